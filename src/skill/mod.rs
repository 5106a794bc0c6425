//! Skill folders in the Agent Skills format: reading them, checking them, making them from a run, and putting them where
//! coding agents look. Owns the format and those places; must not know how a run is made.

mod carried;
mod check;
mod export;
mod finding;
mod front_matter;
mod install;
mod moves;
mod name;
mod package;
mod place;
mod receipt;
mod references;
mod tree;

pub use carried::{Carried, CarriedError, keep_in_run, kept_in_run, package_of_run};
pub use check::{Checked, Size, check, check_package, estimated_tokens, secrets};
pub use export::{ExportError, Exported, Wishes, export};
pub use finding::{Finding, Level};
pub use front_matter::{Entry, FrontMatter, Parts, Unclosed, Value, divide, quoted};
pub use install::{Change, InstallError, Mode, Outcome, Refusal, Site, Step};
pub use name::{LONGEST_NAME, NameError, SkillName};
pub use package::{DOCUMENT, MOST_BYTES, MOST_FILES, Package, PackageFile, Unfit, sha256};
pub use place::{Client, Scope};
