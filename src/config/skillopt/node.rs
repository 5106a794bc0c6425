//! A YAML document as plain data in which every entry knows its place. Must not read files.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;

/// A value of a YAML document.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Mapping),
}

impl Node {
    /// As in the messages of the importer.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "whole number",
            Self::Float(_) => "number",
            Self::Text(_) => "text",
            Self::List(_) => "list",
            Self::Map(_) => "mapping",
        }
    }

    /// Null or empty text: SkillOpt takes both as not given.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.trim().is_empty(),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::List(_) | Self::Map(_) => false,
        }
    }
}

/// Entries in the order they were written.
pub type Mapping = IndexMap<String, Entry>;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Entry {
    pub node: Node,
    pub place: Place,
    /// The name it was written under, with its section, if that is not its name any more.
    pub was: Option<String>,
}

/// Entries are equal when their values are, wherever they were written.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `line` counts from 1.
    File { path: Arc<Path>, line: usize },
    /// `--cfg-options K=V`.
    Option,
    /// A variable of the environment.
    Environment,
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, line } => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                write!(out, "{name}:{line}")
            }
            Self::Option => out.write_str("--cfg-options"),
            Self::Environment => out.write_str("environment"),
        }
    }
}
