//! The layers of a configuration: files (with `inherits`), then `-o KEY=VALUE`. Each value is checked against the
//! registry where it is written, so a complaint knows its line. Rules that span keys live in `rules`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use super::Config;
use super::aliases::{self, Name};
use super::error::{ConfigError, Origin, Place};
use super::keys::{self, Expect, Key, Kind};
use super::nearest::nearest;
use super::value::{self, Complaint};

/// Top-level key that names the file a file builds upon.
const INHERITS: &str = "inherits";

/// Data that is generated, not read: no path.
pub const DEMO: &str = "demo:";

/// The winning value of one key.
#[derive(Debug)]
pub struct Entry {
    pub value: Value,
    pub origin: Origin,
}

/// How the current layer wrote a key.
#[derive(Debug)]
struct Spelling {
    name: String,
    value: Value,
    origin: Origin,
}

/// All layers read so far; later ones win.
#[derive(Debug, Default)]
pub struct Layers {
    pub entries: BTreeMap<&'static str, Entry>,
    pub errors: Vec<ConfigError>,
    pub warnings: Vec<String>,
    /// Keys of the layer that is being read.
    spellings: HashMap<&'static str, Spelling>,
}

impl Layers {
    /// Reads a file and the files it inherits from, base first. False: the file could not be read or parsed, so
    /// what it sets is not known.
    pub fn read_file(&mut self, path: &Path) -> bool {
        let mut chain = Vec::new();
        self.read_chain(path, Place::File(path.to_owned()), &mut chain)
    }

    fn read_chain(&mut self, path: &Path, named_at: Place, chain: &mut Vec<PathBuf>) -> bool {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                let (problem, remedy) = unreadable(path, &error, &named_at);
                self.complain(named_at, "", Complaint::new(problem, remedy));
                return false;
            }
        };
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if chain.contains(&identity) {
            let problem = format!("{} inherits from itself", path.display());
            self.complain(named_at, INHERITS, Complaint::new(problem, "remove one `inherits` of the circle"));
            return false;
        }
        chain.push(identity);
        let table = match DeTable::parse(&text) {
            Ok(table) => table,
            Err(error) => {
                let offset = error.span().map_or(0, |span| span.start);
                let (line, column) = position(&text, offset);
                let place = Place::Column { path: path.to_owned(), line, column };
                let problem = format!("not valid TOML: {}", error.message().trim().replace('\n', ", "));
                self.complain(place, "", Complaint::new(problem, "correct the syntax at this position"));
                return false;
            }
        };
        let file = File { path, text: &text };
        let table = table.get_ref();
        let base_read = match table.iter().find(|(key, _)| key.get_ref() == INHERITS) {
            None => true,
            Some((key, base)) => match base.get_ref().as_str() {
                Some(base) => {
                    let base = file.folder().join(base);
                    self.read_chain(&base, file.place(key.span().start), chain)
                }
                None => {
                    let complaint =
                        Complaint::new("expected the path of another config", "write it in quotes");
                    self.complain(file.place(key.span().start), INHERITS, complaint);
                    false
                }
            },
        };
        self.begin();
        self.read_table(&file, "", table);
        base_read
    }

    fn read_table(&mut self, file: &File, section: &str, table: &DeTable) {
        let mut rows: Vec<_> = table.iter().collect();
        rows.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in rows {
            let name_text = name.get_ref().as_ref();
            let path =
                if section.is_empty() { name_text.to_owned() } else { format!("{section}.{name_text}") };
            let place = file.place(name.span().start);
            if section.is_empty() && name_text == INHERITS {
                continue;
            }
            let is_section = keys::is_section(&aliases::in_own_words(&path));
            if let Some(inner) = value.get_ref().as_table().filter(|_| is_section) {
                self.read_table(file, &path, inner);
                continue;
            }
            let origin = Origin::File { path: file.path.to_owned(), line: file.line(name.span().start) };
            match aliases::resolve(&path) {
                Some(Name::Key(key)) => match plain(key, value) {
                    Ok(value) => self.set(key, &path, value, origin, &file.folder()),
                    Err(complaint) => self.complain(place, &path, complaint),
                },
                Some(Name::Retired { why }) => self.retired(&path, why, &origin),
                Some(Name::Secret { variable }) => {
                    self.secret(place, &path, &variable, value.get_ref().as_str() == Some(""));
                }
                None if is_section => {
                    let problem = format!("expected a section, found {}", value.get_ref().type_str());
                    let remedy = format!("write its keys under [{path}]");
                    self.complain(place, &path, Complaint::new(problem, remedy));
                }
                None => {
                    let complaint = unknown(&path, value.get_ref().is_table());
                    self.complain(place, &path, complaint);
                }
            }
        }
    }

    /// A new layer begins: what it sets wins over what came before.
    pub fn begin(&mut self) {
        self.spellings.clear();
    }

    /// Takes the values of a configuration that was checked before.
    pub fn read_config(&mut self, config: &Config) {
        let root = Value::try_from(config).unwrap_or(Value::Table(toml::Table::new()));
        for key in keys::keys() {
            let value = key.path.split('.').try_fold(&root, |section, part| section.get(part));
            if let Some(value) = value {
                let entry = Entry { value: value.clone(), origin: Origin::BuiltIn };
                self.entries.insert(key.path, entry);
            }
        }
    }

    /// Takes one `KEY=VALUE` of the command line. Relative paths are taken from `folder`.
    pub fn read_override(&mut self, argument: &str, folder: &Path) {
        let Some((path, text)) = argument.split_once('=') else {
            let complaint = Complaint::new("no `=` in this override", "write -o section.key=value");
            return self.complain(Place::CommandLine, argument.trim(), complaint);
        };
        let path = path.trim();
        match aliases::resolve(path) {
            Some(Name::Key(key)) => match override_value(key, text) {
                Ok(value) => self.set(key, path, value, Origin::CommandLine, folder),
                Err(complaint) => self.complain(Place::CommandLine, path, complaint),
            },
            Some(Name::Retired { why }) => self.retired(path, why, &Origin::CommandLine),
            Some(Name::Secret { variable }) => {
                self.secret(Place::CommandLine, path, &variable, text.is_empty());
            }
            None if keys::is_section(&aliases::in_own_words(path)) => {
                let complaint = Complaint::new("this is a section", format!("write -o {path}.KEY=VALUE"));
                self.complain(Place::CommandLine, path, complaint);
            }
            None => self.complain(Place::CommandLine, path, unknown(path, false)),
        }
    }

    fn set(&mut self, key: &'static Key, name: &str, value: Value, origin: Origin, folder: &Path) {
        let value = match value::check(key, value) {
            Ok(value) => resolve_path(key.kind, value, folder),
            Err(complaint) => return self.complain(place_of(origin), name, complaint),
        };
        match self.spellings.get(key.path) {
            Some(other) if other.name != name && other.value != value => {
                let problem = format!("also set as {} ({}), to another value", other.name, other.origin);
                self.complain(place_of(origin), name, Complaint::new(problem, "keep one of the two"));
            }
            Some(_) | None => {
                let spelling =
                    Spelling { name: name.to_owned(), value: value.clone(), origin: origin.clone() };
                self.spellings.insert(key.path, spelling);
                self.entries.insert(key.path, Entry { value, origin });
            }
        }
    }

    fn retired(&mut self, name: &str, why: &str, origin: &Origin) {
        self.warnings.push(format!("{origin}: {name}: has no effect any more ({why}); remove it"));
    }

    /// The value is never looked at further, nor shown.
    fn secret(&mut self, place: Place, name: &str, variable: &str, is_empty: bool) {
        if !is_empty {
            let remedy = format!(
                "remove it, put the key into the environment variable {variable}, and write that name as api_key_env \
                 of the role's table, like [model.target]"
            );
            self.complain(place, name, Complaint::new("a key is never a value of a configuration", remedy));
        }
    }

    pub fn complain(&mut self, place: Place, key: &str, complaint: Complaint) {
        let Complaint { problem, remedy } = complaint;
        self.errors.push(ConfigError { place, key: key.to_owned(), problem, remedy });
    }
}

fn place_of(origin: Origin) -> Place {
    match origin {
        Origin::File { path, line } => Place::Line { path, line },
        Origin::CommandLine | Origin::BuiltIn => Place::CommandLine,
    }
}

/// A file under way.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    /// Absolute, without symbolic links, so that `..` may be taken off by name.
    fn folder(&self) -> PathBuf {
        folder_of(self.path)
    }

    fn line(&self, offset: usize) -> usize {
        position(self.text, offset).0
    }

    fn place(&self, offset: usize) -> Place {
        Place::Line { path: self.path.to_owned(), line: self.line(offset) }
    }
}

/// The folder that holds `path`, absolute.
pub fn folder_of(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// Line and column of a byte offset, both from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn plain(key: &Key, value: &Spanned<DeValue>) -> Result<Value, Complaint> {
    if let DeValue::Integer(digits) = value.get_ref()
        && digits.radix() == 10
        && digits.as_str().parse::<i64>().is_err()
    {
        return value::beyond_integers(key, digits.as_str());
    }
    Value::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| {
        Complaint::new(
            format!("unreadable value: {}", error.message().trim()),
            "give a smaller number or another form",
        )
    })
}

/// TOML when it is TOML of the key's kind (a table may be JSON), else the text as it stands.
fn override_value(key: &Key, text: &str) -> Result<Value, Complaint> {
    let parsed = toml::from_str::<toml::Table>(&format!("v = {text}"))
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("v"));
    Ok(match (key.kind, parsed) {
        (Kind::Text | Kind::Path(_) | Kind::Choice(_), Some(value)) if !value.is_str() => {
            Value::String(text.to_owned())
        }
        (_, Some(value)) => value,
        (Kind::Table, None) => match serde_json::from_str::<toml::Table>(text) {
            Ok(table) => Value::Table(table),
            Err(_) => Value::String(text.to_owned()),
        },
        (Kind::Count { .. } | Kind::Number { .. }, None) if is_whole_number(text) => {
            return value::beyond_integers(key, text.trim());
        }
        (_, None) => Value::String(text.to_owned()),
    })
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn resolve_path(kind: Kind, value: Value, folder: &Path) -> Value {
    match (kind, value) {
        (Kind::Path(expect), Value::String(text)) => {
            let is_path = !(text.is_empty() || (expect == Expect::DataOrDemo && text.starts_with(DEMO)));
            Value::String(if is_path { absolute(&text, folder) } else { text })
        }
        (Kind::Folders, Value::Array(items)) => {
            let resolved = |item: Value| match item {
                Value::String(text) => Value::String(absolute(&text, folder)),
                other => other,
            };
            Value::Array(items.into_iter().map(resolved).collect())
        }
        (_, value) => value,
    }
}

/// A path as seen from a folder, without `.` and `..`.
pub fn absolute(text: &str, folder: &Path) -> String {
    let mut path = folder.to_owned();
    for part in Path::new(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

/// `named_at` begins the message: when that is the file itself, its name is not said again.
fn unreadable(path: &Path, error: &std::io::Error, named_at: &Place) -> (String, &'static str) {
    let is_place = matches!(named_at, Place::File(place) if place == path);
    let name = if is_place { "it".to_owned() } else { path.display().to_string() };
    match error.kind() {
        std::io::ErrorKind::NotFound if is_place => ("no such file".into(), "check the path of the config"),
        std::io::ErrorKind::NotFound => (format!("no such file: {name}"), "check the path of the config"),
        std::io::ErrorKind::InvalidData if is_place => ("not UTF-8".into(), "save it as UTF-8"),
        std::io::ErrorKind::InvalidData => (format!("{name} is not UTF-8"), "save it as UTF-8"),
        _ => (format!("cannot read {name}: {error}"), "give a readable file"),
    }
}

/// The key itself is shown, its value never: it may be a secret in the wrong place.
fn unknown(path: &str, is_table: bool) -> Complaint {
    let what = if is_table { "unknown section" } else { "unknown key" };
    let remedy = "remove it, or see `planish schema` for all keys";
    match suggestion(path) {
        Some(near) => Complaint::new(format!("{what}, did you mean {near}?"), remedy),
        None => Complaint::new(what, remedy),
    }
}

/// The known key or section a mistyped one was meant to be: the same name in another section first, then the
/// nearest name in the same section, then the nearest of all.
fn suggestion(path: &str) -> Option<&'static str> {
    let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
    let last = |key: &'static str| key.rsplit_once('.').map_or(key, |(_, name)| name);
    let all = || keys::keys().map(|key| key.path);
    if let Some(moved) = all().find(|key| last(key) == name) {
        return Some(moved);
    }
    let siblings = || all().filter(|key| key.rsplit_once('.').is_some_and(|(parent, _)| parent == section));
    if let Some(near) = nearest(name, siblings().map(last)) {
        return siblings().find(|key| last(key) == near);
    }
    let sections = || all().flat_map(|key| key.match_indices('.').map(move |(at, _)| &key[..at]));
    nearest(path, all().chain(sections()))
        .or_else(|| nearest(name, all().map(last)).and_then(|near| all().find(|key| last(key) == near)))
}
