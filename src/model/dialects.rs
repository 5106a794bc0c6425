//! The dialect table in effect: the built-in one with a user's file over it. Must not build requests.

use std::path::Path;

use reqwest::Url;
use serde::Deserialize;

use super::dialect::{Api, Dialect, DialectPatch, ThinkingStyle};
use crate::config::instead_of;

const BUILT_IN: &str = include_str!("../../assets/dialects.toml");
const BUILT_IN_NAME: &str = "assets/dialects.toml";

/// Every dialect by name, in the order of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialects {
    rows: Vec<Dialect>,
}

/// Why a dialect table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {why}; {remedy}", place(.line, .row))]
pub struct DialectError {
    pub file: String,
    /// From 1.
    pub line: Option<usize>,
    pub row: Option<String>,
    pub why: String,
    pub remedy: String,
}

fn place(line: &Option<usize>, row: &Option<String>) -> String {
    match (line, row) {
        (Some(line), _) => format!(" line {line}"),
        (None, Some(row)) => format!(" dialect \"{row}\""),
        (None, None) => String::new(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectFile {
    #[serde(default)]
    dialect: Vec<DialectPatch>,
}

impl Dialects {
    /// # Errors
    /// Never, as long as the tests pass: the built-in table is checked there.
    pub fn built_in() -> Result<Self, DialectError> {
        Self { rows: Vec::new() }.with(BUILT_IN, BUILT_IN_NAME)
    }

    /// The built-in table with the rows of `user_file` added, or in the place of rows of the same name.
    ///
    /// # Errors
    /// The file cannot be read or says something that the table has no place for.
    pub fn load(user_file: &Path) -> Result<Self, DialectError> {
        let file = user_file.display().to_string();
        let text = std::fs::read_to_string(user_file).map_err(|error| DialectError {
            file: file.clone(),
            line: None,
            row: None,
            why: error.to_string(),
            remedy: "name a readable file in model.dialects, or leave it empty".into(),
        })?;
        Self::built_in()?.with(&text, &file)
    }

    fn with(mut self, text: &str, file: &str) -> Result<Self, DialectError> {
        let parsed: DialectFile = toml::from_str(text).map_err(|error| unreadable(text, file, &error))?;
        let mut new: Vec<String> = Vec::new();
        for patch in parsed.dialect {
            let row = patch.name.clone();
            let refuse = |why: String, remedy: &str| DialectError {
                file: file.to_owned(),
                line: None,
                row: Some(row.clone()),
                why,
                remedy: remedy.to_owned(),
            };
            if new.contains(&row) {
                return Err(refuse("there are two rows of this name".into(), "keep one"));
            }
            let base = match &patch.like {
                None => Dialect::plain(""),
                Some(like) => self.get(like).cloned().ok_or_else(|| {
                    refuse(format!("like = \"{like}\" names no row above"), "name one that comes before it")
                })?,
            };
            let dialect = base.patched(patch);
            check(&dialect).map_err(|(why, remedy)| refuse(why, remedy))?;
            new.push(row.clone());
            match self.rows.iter_mut().find(|known| known.name == row) {
                Some(known) => *known = dialect,
                None => self.rows.push(dialect),
            }
        }
        Ok(self)
    }

    pub fn rows(&self) -> &[Dialect] {
        &self.rows
    }

    pub fn get(&self, name: &str) -> Option<&Dialect> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The dialect of a host, by the table's `hosts` that hold no path.
    pub fn for_host(&self, host: &str) -> Option<&Dialect> {
        self.best(host, "")
    }

    /// The dialect of an address: the row whose entry says most about it.
    pub fn for_address(&self, base_url: &str) -> Option<&Dialect> {
        let url = Url::parse(base_url).ok()?;
        self.best(url.host_str()?, url.path())
    }

    fn best<'s>(&'s self, host: &str, path: &str) -> Option<&'s Dialect> {
        let host = host.to_ascii_lowercase();
        let entries = self.rows.iter().flat_map(|row| row.hosts.iter().map(move |entry| (row, entry)));
        let fitting = entries.filter(|(_, entry)| fits(entry, &host, path));
        // The longest entry says most; of equals the first one counts.
        let longer = |best: Option<(&'s Dialect, &'s String)>, next: (&'s Dialect, &'s String)| match best {
            Some(best) if best.1.len() >= next.1.len() => Some(best),
            Some(_) | None => Some(next),
        };
        fitting.fold(None, longer).map(|(row, _)| row)
    }
}

fn fits(entry: &str, host: &str, path: &str) -> bool {
    let (entry_host, entry_path) = entry.split_at(entry.find('/').unwrap_or(entry.len()));
    let host_fits = match entry_host.strip_prefix('.') {
        Some(below) => host.strip_suffix(below).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => host == entry_host,
    };
    let below = path.strip_prefix(entry_path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    host_fits && (entry_path.is_empty() || below)
}

/// What the types of the keys do not rule out.
fn check(row: &Dialect) -> Result<(), (String, &'static str)> {
    let named = !row.name.is_empty() && row.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !named {
        return Err((format!("name = \"{}\"", row.name), "use letters, digits and _"));
    }
    let web = |url: &str| Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if !row.base_url.is_empty() && !web(&row.base_url) {
        return Err((
            format!("base_url = \"{}\" is no http or https address", row.base_url),
            "write it in full",
        ));
    }
    let fitting = match row.api {
        Api::Chat => row.thinking != ThinkingStyle::Anthropic,
        Api::Responses => matches!(row.thinking, ThinkingStyle::None | ThinkingStyle::Effort),
        Api::Messages => matches!(row.thinking, ThinkingStyle::None | ThinkingStyle::Anthropic),
    };
    if !fitting {
        return Err((
            format!("thinking = \"{}\" has no place in api = \"{}\"", row.thinking.word(), row.api.word()),
            "choose a style of that API, or none",
        ));
    }
    for (name, value) in &row.headers {
        if super::address::header(name, value.as_str().unwrap_or("\n")).is_none() {
            return Err((
                format!("headers.{name} is no header that may be set here"),
                "write texts without line ends, and leave keys to model.ROLE.api_key_env",
            ));
        }
    }
    if let Some((field, _)) = row.extra_body.keys().find_map(|field| Some((field, instead_of(field)?))) {
        return Err((
            format!("extra_body sets `{field}`, which planish sets itself and budgets count on"),
            "take it out; the keys of model.ROLE and the templates of env say it",
        ));
    }
    Ok(())
}

/// An error of the TOML reader in words of the table.
fn unreadable(text: &str, file: &str, error: &toml::de::Error) -> DialectError {
    let line = error.span().map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
    let said = error.message();
    let unknown = said.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let key = line.and_then(|line| text.lines().nth(line - 1)).and_then(|line| line.split('=').next());
    let why = match (unknown, key.map(str::trim)) {
        (Some(key), _) => format!("unknown key \"{key}\""),
        (None, Some(key)) if !key.is_empty() && !key.starts_with('[') => format!("{key}: {said}"),
        (None, _) => said.to_owned(),
    };
    let remedy = "`planish schema dialects` shows every key and what it takes".to_owned();
    DialectError { file: file.to_owned(), line, row: None, why, remedy }
}
