//! Text as a terminal may show it: inert, measured, wrapped, compared; and the JSON value in a model's reply. Knows nothing
//! of runs, styles or screens. Untrusted text passes [`sanitize`] before it is measured or shown.

mod diff;
mod extract;
mod highlight;
mod sanitize;
mod secret;
mod width;
mod wrap;

pub use diff::{
    Diff, DiffLine, Group, Mark, diff, diff_ignoring_whitespace, lines, similarity, split_by_cause,
};
pub use extract::{extract_json, extract_json_array};
pub use highlight::{Grammars, Highlighted, Pieces, Syntax};
pub use sanitize::{hidden, is_invisible, reveal, sanitize, sanitize_line};
pub use secret::{mask_secrets, secret_lines};
pub use width::{fit, truncate, width};
pub use wrap::{wrap, wrap_ranges};
