//! Import of SkillOpt and ReflACT configurations: YAML with its `_base_` chain (`yaml`, `layers`), both layouts and both
//! vocabularies (`names`, `flat`), into one planish TOML (`translate`, `servers`, `environment`, `values`,
//! `document`). Must not decide
//! what a setting does.

mod document;
mod environment;
mod error;
mod flat;
mod layers;
mod names;
mod node;
mod number;
mod servers;
mod translate;
mod values;
mod yaml;

use std::path::{Path, PathBuf};

pub use super::roles::{default_model, label, role_backends};
pub use environment::Environment;
pub use error::ImportError;
pub use layers::Merged;
pub use node::{Mapping, Node};
pub use number::cast_value;

use super::error::ConfigErrors;
use super::layer::folder_of;
use translate::{Folders, Translation};

/// A SkillOpt configuration as planish's own.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The new file, TOML with comments.
    pub toml: String,
    /// Settings that were not taken over; the file names them.
    pub left_out: usize,
}

/// Reads a YAML file with the files it builds upon and overrides (`K=V`). Relative paths are written as seen from
/// `out`, or in full. `env` reads the environment variables that SkillOpt reads as well.
///
/// # Errors
/// What cannot be read, or everything that has a value SkillOpt would refuse.
pub fn import(
    path: &Path,
    options: &[String],
    out: Option<&Path>,
    env: Environment<'_>,
) -> Result<Imported, ImportError> {
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let folders = Folders { current, out: out.map(folder_of) };
    let translation = Translation::of(&Merged::load(path, options)?, &folders, env);
    if !translation.errors.is_empty() {
        return Err(ImportError::Settings(ConfigErrors(translation.errors)));
    }
    Ok(Imported { toml: document::document(path, &translation), left_out: translation.dropped.len() })
}
