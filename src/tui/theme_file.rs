//! Theme files: roles with looks, inheritance, and the themes that come with planish. Owns the words for what is wrong
//! in one; resolves no colour depth.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::colour::{Rgb, Stated, hex, named};
use super::theme::Role;
use super::toml_rows::{Fault, FileError, Plain, Row, read, rows};
use crate::config::nearest;

/// Built-in themes: name, what it is for, text.
pub const BUILT_IN: [(&str, &str, &str); 6] = [
    ("dark", "for dark backgrounds", include_str!("../../themes/dark.toml")),
    ("light", "for light backgrounds", include_str!("../../themes/light.toml")),
    ("high-contrast", "strong colours on black", include_str!("../../themes/high-contrast.toml")),
    (
        "cb-blue-orange",
        "blue and orange, for red-green blindness",
        include_str!("../../themes/cb-blue-orange.toml"),
    ),
    ("cb-red-teal", "teal and red, for blue-yellow blindness", include_str!("../../themes/cb-red-teal.toml")),
    ("mono", "no colours: bold, underline and reverse", include_str!("../../themes/mono.toml")),
];

/// Files that may inherit from each other in one chain.
const LONGEST_CHAIN: usize = 8;

/// How a role looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub fg: Stated,
    pub bg: Stated,
    pub bold: bool,
    pub italic: bool,
    pub underline: bool,
    pub reverse: bool,
}

/// What a theme states, with all it inherits.
#[derive(Clone, Debug)]
pub struct Stating {
    pub name: String,
    pub background: Rgb,
    pub foreground: Rgb,
    looks: HashMap<Role, Look>,
}

impl Stating {
    /// A role without a look is plain text.
    pub fn look(&self, role: Role) -> Look {
        self.looks.get(&role).copied().unwrap_or_default()
    }
}

/// # Errors
/// No such theme, or (ruled out by a test) a broken one.
pub fn built_in(name: &str) -> Result<Stating, FileError> {
    let Some((_, _, text)) = BUILT_IN.iter().find(|(known, _, _)| *known == name) else {
        return Err(
            Fault { file: name.to_owned(), line: 0, key: String::new(), message: unknown(name) }.into()
        );
    };
    parse(&format!("themes/{name}.toml"), text, None, 0)
}

/// # Errors
/// Everything wrong in the file or one it inherits from.
pub fn load(path: &Path) -> Result<Stating, FileError> {
    load_at(path, 0)
}

fn load_at(path: &Path, depth: usize) -> Result<Stating, FileError> {
    parse(&path.display().to_string(), &read(path)?, Some(path), depth)
}

fn unknown(name: &str) -> String {
    let names = || BUILT_IN.iter().map(|(name, _, _)| *name);
    match nearest(name, names()) {
        Some(near) => format!("no theme `{name}`, did you mean {near}?"),
        None => {
            let all: Vec<&str> = names().collect();
            format!(
                "no theme `{name}`: give one of {}, or the path of a file ending in .toml",
                all.join(", ")
            )
        }
    }
}

/// `path`: where the text lies, for the files it inherits from.
pub fn parse(file: &str, text: &str, path: Option<&Path>, depth: usize) -> Result<Stating, FileError> {
    let rows = rows(file, text)?;
    let mut out = base(file, &rows, path, depth)?;
    let stem = path.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    out.name = stem.unwrap_or(out.name);
    let mut faults = Vec::new();
    // A role that is stated replaces the inherited one whole.
    let mut stated: HashMap<Role, Look> = HashMap::new();
    for row in &rows {
        if let Err(message) = take(row, &mut out, &mut stated) {
            faults.push(row.fault(file, message));
        }
    }
    out.looks.extend(stated);
    if faults.is_empty() { Ok(out) } else { Err(FileError(faults)) }
}

/// What the file inherits; the dark theme unless it is built in.
fn base(file: &str, rows: &[Row], path: Option<&Path>, depth: usize) -> Result<Stating, FileError> {
    let Some(row) = rows.iter().find(|row| row.key == "inherits") else {
        return match path {
            Some(_) => built_in("dark"),
            None => Ok(Stating {
                name: String::new(),
                background: (0, 0, 0),
                foreground: (255, 255, 255),
                looks: HashMap::new(),
            }),
        };
    };
    let Plain::Text(parent) = &row.value else {
        return Err(row.fault(file, "give the name of a theme or the path of a file, in quotes").into());
    };
    if depth >= LONGEST_CHAIN {
        return Err(row
            .fault(file, "themes inherit from each other in a circle: remove one `inherits`")
            .into());
    }
    match path {
        Some(path) if parent.ends_with(".toml") => load_at(
            &path.parent().map_or_else(|| PathBuf::from(parent), |folder| folder.join(parent)),
            depth + 1,
        ),
        _ if BUILT_IN.iter().any(|(name, _, _)| name == parent) => built_in(parent),
        _ => Err(row.fault(file, unknown(parent)).into()),
    }
}

fn take(row: &Row, out: &mut Stating, stated: &mut HashMap<Role, Look>) -> Result<(), String> {
    match (row.key.as_str(), &row.value) {
        ("inherits", _) | ("roles", Plain::Nothing) => return Ok(()),
        ("name", Plain::Text(name)) => out.name.clone_from(name),
        ("background", Plain::Text(text)) => out.background = hex(text)?,
        ("foreground", Plain::Text(text)) => out.foreground = hex(text)?,
        ("name" | "background" | "foreground", _) => return Err("give a text in quotes".to_owned()),
        _ => {
            let Some(rest) = row.key.strip_prefix("roles.") else {
                return Err(
                    "no such key: a theme has name, inherits, background, foreground and [roles]".into()
                );
            };
            let (name, part) = rest.split_once('.').unwrap_or((rest, ""));
            let Some(role) = Role::ALL.into_iter().find(|role| role.name() == name) else {
                return Err(match nearest(name, Role::ALL.iter().map(|role| role.name())) {
                    Some(near) => format!("no such role, did you mean {near}?"),
                    None => "no such role; the dark theme names them all".to_owned(),
                });
            };
            part_of(stated.entry(role).or_default(), part, &row.value)?;
        }
    }
    Ok(())
}

fn part_of(look: &mut Look, part: &str, value: &Plain) -> Result<(), String> {
    match (part, value) {
        ("", Plain::Nothing) => {}
        ("fg", Plain::Text(text)) => look.fg.full = Some(hex(text)?),
        ("bg", Plain::Text(text)) => look.bg.full = Some(hex(text)?),
        ("fg16", Plain::Text(text)) => look.fg.named = Some(named(text)?),
        ("bg16", Plain::Text(text)) => look.bg.named = Some(named(text)?),
        ("bold", Plain::Flag(on)) => look.bold = *on,
        ("italic", Plain::Flag(on)) => look.italic = *on,
        ("underline", Plain::Flag(on)) => look.underline = *on,
        ("reverse", Plain::Flag(on)) => look.reverse = *on,
        _ => {
            return Err("a role has fg, bg, fg16 and bg16 (texts), bold, italic, underline and reverse \
                        (true or false)"
                .to_owned());
        }
    }
    Ok(())
}
