//! Text as a terminal may show it: inert, measured, wrapped, compared. Knows nothing of runs, styles or screens.
//! Untrusted text passes [`sanitize`] before anything else here sees it.

mod diff;
mod highlight;
mod sanitize;
mod secret;
mod width;
mod wrap;

pub use diff::{
    Diff, DiffLine, Group, Mark, diff, diff_ignoring_whitespace, lines, similarity, split_by_cause,
};
pub use highlight::{Grammars, Highlighted, Pieces, Syntax};
pub use sanitize::{hidden, is_invisible, reveal, sanitize, sanitize_line};
pub use secret::{mask_secrets, secret_lines};
pub use width::{fit, truncate, width};
pub use wrap::{wrap, wrap_ranges};
