//! The small TOML files of the workbench (keymap, theme, `ui.toml`) as flat rows with line numbers, and their faults.
//! Knows no key's meaning.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// A file longer than this is no settings file.
const MOST_BYTES: u64 = 1 << 20;

/// One thing wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    /// 0: the file as a whole.
    pub line: usize,
    pub key: String,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct FileError(pub Vec<Fault>);

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Fault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl From<Fault> for FileError {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

/// A value as far as these files need it.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Text(String),
    Flag(bool),
    Number(f64),
    Texts(Vec<String>),
    /// A table without keys.
    Nothing,
    /// Something else, by the name of its type.
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Keys from the root, joined by dots.
    pub key: String,
    pub line: usize,
    pub value: Plain,
}

impl Row {
    pub fn fault(&self, file: &str, message: impl Into<String>) -> Fault {
        Fault { file: file.to_owned(), line: self.line, key: self.key.clone(), message: message.into() }
    }
}

/// The text of a file.
///
/// # Errors
/// A fault that names the file.
pub fn read(path: &Path) -> Result<String, Fault> {
    let fault = |message| Fault { file: path.display().to_string(), line: 0, key: String::new(), message };
    let length = std::fs::metadata(path).map_err(|error| fault(format!("cannot read it: {error}")))?.len();
    if length > MOST_BYTES {
        return Err(fault(format!("{length} bytes are too many for a settings file")));
    }
    std::fs::read_to_string(path).map_err(|error| fault(format!("cannot read it: {error}")))
}

/// Rows in the order of the file. `file` is what faults call it.
///
/// # Errors
/// The place where the text is not TOML.
pub fn rows(file: &str, text: &str) -> Result<Vec<Row>, Fault> {
    let table = DeTable::parse(text).map_err(|error| Fault {
        file: file.to_owned(),
        line: line(text, error.span().map_or(0, |span| span.start)),
        key: String::new(),
        message: format!("not valid TOML: {}", error.message().trim().replace('\n', ", ")),
    })?;
    let mut out = Vec::new();
    collect(text, "", table.get_ref(), &mut out);
    out.sort_by_key(|row| row.line);
    Ok(out)
}

fn collect(text: &str, section: &str, table: &DeTable<'_>, out: &mut Vec<Row>) {
    for (name, value) in table {
        let key = match section {
            "" => name.get_ref().to_string(),
            section => format!("{section}.{}", name.get_ref()),
        };
        match value.get_ref().as_table() {
            Some(inner) if !inner.is_empty() => collect(text, &key, inner, out),
            _ => out.push(Row { key, line: line(text, name.span().start), value: plain(value.get_ref()) }),
        }
    }
}

fn plain(value: &DeValue<'_>) -> Plain {
    match value {
        DeValue::String(text) => Plain::Text(text.to_string()),
        DeValue::Boolean(flag) => Plain::Flag(*flag),
        DeValue::Integer(number) => number.as_str().parse().map_or(Plain::Other("integer"), Plain::Number),
        DeValue::Float(number) => number.as_str().parse().map_or(Plain::Other("float"), Plain::Number),
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect();
            texts.map_or(Plain::Other("list of other things than texts"), Plain::Texts)
        }
        DeValue::Table(table) if table.is_empty() => Plain::Nothing,
        DeValue::Table(_) | DeValue::Datetime(_) => Plain::Other(value.type_str()),
    }
}

fn line(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// `$XDG_CONFIG_HOME/planish/NAME`, by default under `~/.config`; `None` without a home.
pub fn config_file(name: &str) -> Option<PathBuf> {
    let folder = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = folder("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| folder("HOME").map(|home| home.join(".config")))?;
    Some(root.join("planish").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_become_rows_with_lines() {
        let text = "a.b = [\"x\"]\n[c]\nd = true\ne = {}\nf = 2\ng = [1]\n";
        let rows = rows("f.toml", text).unwrap();
        let told: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.line)).collect();
        assert_eq!(told, [("a.b", 1), ("c.d", 3), ("c.e", 4), ("c.f", 5), ("c.g", 6)]);
        assert_eq!(rows[0].value, Plain::Texts(vec!["x".into()]));
        assert_eq!((&rows[2].value, &rows[3].value), (&Plain::Nothing, &Plain::Number(2.0)));
    }

    #[test]
    fn a_fault_names_file_line_and_key() {
        let fault = rows("f.toml", "a = 1\nb = =\n").unwrap_err();
        assert!(fault.to_string().starts_with("f.toml:2: not valid TOML"), "{fault}");
        let row = Row { key: "ui.fps".into(), line: 3, value: Plain::Nothing };
        assert_eq!(row.fault("u.toml", "too many").to_string(), "u.toml:3: ui.fps: too many");
        assert!(read(Path::new("/nowhere/x.toml")).unwrap_err().to_string().contains("/nowhere/x.toml"));
    }
}
