//! What is wrong with a skill folder: one finding per fault, with its place and what to do. Must not read files.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Some client would not load the skill, or would read something else than what is written.
    Error,
    /// Clients load it, but it is not as the format advises.
    Warn,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warning",
        }
    }
}

/// A fault of a skill folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    /// Path inside the folder; `.` is the folder itself.
    pub file: String,
    /// Counts from 1.
    pub line: Option<usize>,
    pub message: String,
    pub remedy: String,
}

impl Finding {
    pub fn error(file: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: Level::Error,
            file: file.to_owned(),
            line: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    pub fn warn(file: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Warn, ..Self::error(file, message, remedy) }
    }

    pub fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {}: {}; {}", self.level.name(), self.message, self.remedy)
    }
}
