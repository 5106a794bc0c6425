//! Where a configured value comes from, and every complaint about a configuration. A complaint names the place,
//! the key, what is wrong and what to do; it never repeats a value that could be a secret.

use std::fmt;
use std::path::PathBuf;

/// Which layer set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    /// `line` counts from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    /// `-o KEY=VALUE`.
    CommandLine,
}

impl Origin {
    /// Both values were written in one file, or both on the command line.
    pub fn is_layer_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Origin::File { path, .. }, Origin::File { path: other, .. }) => path == other,
            _ => self == other,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => out.write_str("built-in"),
            Origin::File { path, line } => write!(out, "{}:{line}", path.display()),
            Origin::CommandLine => out.write_str("command line"),
        }
    }
}

/// Where a complaint points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole: it cannot be read, or a key is not set in it.
    File(PathBuf),
    Line {
        path: PathBuf,
        line: usize,
    },
    /// Syntax errors know the column (from 1, in characters).
    Column {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    CommandLine,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(out, "{}", path.display()),
            Place::Line { path, line } => write!(out, "{}:{line}", path.display()),
            Place::Column { path, line, column } => write!(out, "{}:{line}:{column}", path.display()),
            Place::CommandLine => out.write_str("command line"),
        }
    }
}

/// One complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub place: Place,
    /// Full key (`train.batch_size`); empty when the complaint is about the file itself.
    pub key: String,
    pub problem: String,
    pub remedy: String,
}

impl ConfigError {
    /// Without the place, for those who know it.
    pub fn complaint(&self) -> String {
        let key = if self.key.is_empty() { String::new() } else { format!("{}: ", self.key) };
        harmless(&format!("{key}{}; {}", self.problem, self.remedy))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", harmless(&self.place.to_string()), self.complaint())
    }
}

/// Keys, values and file names come from files that others wrote: they must not steer the terminal.
fn harmless(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// Everything wrong with a configuration, in the order it was written. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            write!(out, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
