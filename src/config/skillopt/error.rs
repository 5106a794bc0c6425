//! Why a SkillOpt configuration cannot be imported. Each message names the place and the remedy, never a value.

use std::path::PathBuf;

use thiserror::Error;

use crate::config::error::ConfigErrors;

#[derive(Debug, Error)]
pub enum ImportError {
    #[error("{}: no such file{named_by}; check the path", path.display())]
    NotFound { path: PathBuf, named_by: NamedBy },
    #[error("{}: cannot read it{named_by}: {why}", path.display())]
    Unreadable { path: PathBuf, named_by: NamedBy, why: String },
    #[error("{}:{line}: {problem}; {remedy}", path.display())]
    Syntax { path: PathBuf, line: usize, problem: String, remedy: &'static str },
    #[error("{}: its _base_ chain comes back to it; remove one `_base_` of the circle", path.display())]
    Circular { path: PathBuf },
    #[error("--cfg-options {argument}: no `=`; write section.key=value")]
    NoValue { argument: String },
    #[error(transparent)]
    Settings(ConfigErrors),
}

impl ImportError {
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// The file whose `_base_` named another file.
#[derive(Debug)]
pub struct NamedBy(pub Option<PathBuf>);

impl std::fmt::Display for NamedBy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |path| write!(out, " (the _base_ of {})", path.display()))
    }
}
