//! Why data or an environment's settings cannot be used: one message that names key, file or row and says what to do.

use std::fmt;
use std::path::{Path, PathBuf};

/// A row of a data file as people find it: counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) file: PathBuf,
    pub(super) row: Row,
}

/// `Line` in JSON lines, `Element` in an array or object of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    Line(usize),
    Element(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.row {
            Row::Line(number) => write!(f, "{file}, line {number}"),
            Row::Element(number) => write!(f, "{file}, row {number}"),
        }
    }
}

/// Bad data or settings; nothing was started. The texts may quote the data file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DataError {
    #[error("{key}: {problem}")]
    Setting { key: &'static str, problem: String },
    #[error("{}: {problem}", path.display())]
    File { path: PathBuf, problem: String },
    #[error("{place}: {problem}")]
    Row { place: Place, problem: String },
}

impl DataError {
    pub(super) fn setting(key: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting { key, problem: problem.into() }
    }

    pub(super) fn file(path: &Path, problem: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), problem: problem.into() }
    }

    pub(super) fn row(place: &Place, problem: impl Into<String>) -> Self {
        Self::Row { place: place.clone(), problem: problem.into() }
    }
}
