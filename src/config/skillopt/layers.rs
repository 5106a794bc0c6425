//! A SkillOpt file with the files it builds upon and its overrides, merged by SkillOpt's rules into one mapping. Must not
//! know what a setting means.

use std::path::{Path, PathBuf};

use super::error::{ImportError, NamedBy};
use super::node::{Entry, Mapping, Node, Place};
use super::number::cast_value;
use super::{names, yaml};
use crate::config::aliases::in_own_words;

const BASE: &str = "_base_";

/// Something that was written and does not count.
#[derive(Clone, Debug)]
pub struct Dropped {
    pub name: String,
    pub place: Place,
    pub why: String,
}

/// All layers as one mapping.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    pub settings: Mapping,
    pub dropped: Vec<Dropped>,
}

impl Merged {
    /// Reads a file over the files it builds upon, then `K=V` overrides over it.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ImportError> {
        let mut merged = Self::default();
        merged.settings = merged.read(path, None, &mut Vec::new())?;
        let structured = merged.is_structured();
        for argument in overrides {
            merged.apply(argument, structured)?;
        }
        Ok(merged)
    }

    /// Settings lie in sections.
    pub fn is_structured(&self) -> bool {
        names::SECTIONS.iter().any(|section| section_of(&self.settings, section).is_some())
    }

    fn read(
        &mut self,
        path: &Path,
        named_by: Option<&Path>,
        chain: &mut Vec<PathBuf>,
    ) -> Result<Mapping, ImportError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let (path, named_by) = (path.to_owned(), NamedBy(named_by.map(Path::to_owned)));
            match error.kind() {
                std::io::ErrorKind::NotFound => ImportError::NotFound { path, named_by },
                _ => ImportError::Unreadable { path, named_by, why: error.to_string() },
            }
        })?;
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if chain.contains(&identity) {
            return Err(ImportError::Circular { path: path.to_owned() });
        }
        chain.push(identity);
        let mut layer = yaml::parse(path, &text)?;
        let base = layer.shift_remove(BASE);
        self.tidy(&mut layer);
        let Some(base) = base else { return Ok(layer) };
        let Node::Text(base) = &base.node else {
            let (line, problem) = (line_of(&base.place), "_base_ names no file".to_owned());
            let remedy = "give one path, relative to this file";
            return Err(ImportError::Syntax { path: path.to_owned(), line, problem, remedy });
        };
        let base = path.parent().unwrap_or(Path::new("")).join(base);
        let mut settings = self.read(&base, Some(path), chain)?;
        forget(&mut settings, &layer);
        merge(&mut settings, layer);
        Ok(settings)
    }

    /// One layer in today's names, each setting in one spelling.
    fn tidy(&mut self, layer: &mut Mapping) {
        self.reword(layer, "");
        self.rename(layer, "");
        for section in names::SECTIONS {
            let Some(Entry { node: Node::Map(inner), .. }) = layer.get_mut(section) else { continue };
            self.reword(inner, section);
            if section == "model" {
                self.rename(inner, "model.");
            }
            let flat: Vec<String> = inner.keys().filter_map(|key| names::flat(section, key)).collect();
            for name in flat {
                if let Some(entry) = take_flat(layer, &name) {
                    self.drop(entry, &name, "the same file sets it in a section, which wins");
                }
            }
        }
    }

    /// Renames what is written in ReflACT's words.
    fn reword(&mut self, mapping: &mut Mapping, section: &str) {
        for (name, entry) in std::mem::take(mapping) {
            let own = in_own_words(&name).into_owned();
            if own == name {
                mapping.insert(name, entry);
                continue;
            }
            let was = if section.is_empty() { name } else { format!("{section}.{name}") };
            if mapping.contains_key(&own) {
                self.drop(entry, &was, "the same file sets it under its other name, which wins");
            } else {
                mapping.insert(own, Entry { was: Some(was), ..entry });
            }
        }
    }

    /// Codex settings under their newest names.
    fn rename(&mut self, mapping: &mut Mapping, prefix: &str) {
        for (name, older) in names::CODEX {
            for alias in older {
                let Some(entry) = mapping.shift_remove(*alias) else { continue };
                let was = format!("{prefix}{alias}");
                if mapping.contains_key(name) {
                    self.drop(entry, &was, "a newer name of the same setting wins");
                } else {
                    mapping.insert(name.to_owned(), Entry { was: Some(was), ..entry });
                }
            }
        }
    }

    fn drop(&mut self, entry: Entry, name: &str, why: &str) {
        let name = entry.was.unwrap_or_else(|| name.to_owned());
        self.dropped.push(Dropped { name, place: entry.place, why: why.to_owned() });
    }

    fn apply(&mut self, argument: &str, structured: bool) -> Result<(), ImportError> {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(ImportError::NoValue { argument: argument.to_owned() });
        };
        let own = in_own_words(name.trim());
        let (section, key) = own.split_once('.').map_or((None, &*own), |(section, key)| (Some(section), key));
        let key = match section {
            None | Some("model") => newest_codex_name(key),
            Some(_) => key,
        };
        let newest = section.map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"));
        let was = (newest != name).then(|| name.to_owned());
        let entry = Entry { node: cast_value(value), place: Place::Option, was };
        match self.destination(section, key, structured) {
            (None, key) => {
                self.settings.insert(key, entry);
            }
            (Some(section), key) => {
                let empty = || Entry { node: Node::Map(Mapping::new()), place: Place::Option, was: None };
                let section = self.settings.entry(section).or_insert_with(empty);
                if !matches!(section.node, Node::Map(_)) {
                    *section = empty();
                }
                if let Node::Map(inner) = &mut section.node {
                    inner.insert(key, entry);
                }
            }
        }
        Ok(())
    }

    /// Where an override goes: a section, or none.
    fn destination(&self, section: Option<&str>, key: &str, structured: bool) -> (Option<String>, String) {
        let own = |section: Option<&str>, key: &str| (section.map(str::to_owned), key.to_owned());
        match (section, structured) {
            (Some(name), false) if names::SECTIONS.contains(&name) => match names::flat(name, key) {
                Some(flat) => (None, flat),
                None => own(section, key),
            },
            (Some(_), _) | (None, false) => own(section, key),
            (None, true) => match names::structured(key) {
                Some((section, key)) => (Some(section.to_owned()), key),
                // An adapter reads both places, and the section last.
                None if section_of(&self.settings, "env").is_some_and(|env| env.contains_key(key)) => {
                    own(Some("env"), key)
                }
                None => own(None, key),
            },
        }
    }
}

fn newest_codex_name(key: &str) -> &str {
    names::CODEX.iter().find(|(_, older)| older.contains(&key)).map_or(key, |(name, _)| name)
}

fn line_of(place: &Place) -> usize {
    match place {
        Place::File { line, .. } => *line,
        Place::Option | Place::Environment => 0,
    }
}

/// A section that is one: a mapping under its name.
pub fn section_of<'a>(settings: &'a Mapping, section: &str) -> Option<&'a Mapping> {
    match &settings.get(section)?.node {
        Node::Map(inner) => Some(inner),
        _ => None,
    }
}

/// Takes a flat setting out; a section of the same name is none.
fn take_flat(settings: &mut Mapping, name: &str) -> Option<Entry> {
    if section_of(settings, name).is_some() {
        return None;
    }
    settings.shift_remove(name)
}

/// Takes out of `base` whatever `child` sets, in both spellings.
fn forget(base: &mut Mapping, child: &Mapping) {
    for (name, entry) in child {
        match &entry.node {
            Node::Map(inner) if names::SECTIONS.contains(&name.as_str()) => {
                for flat in inner.keys().filter_map(|key| names::flat(name, key)) {
                    take_flat(base, &flat);
                }
            }
            _ => {
                if let Some((section, key)) = names::structured(name)
                    && let Some(Entry { node: Node::Map(inner), .. }) = base.get_mut(section)
                {
                    inner.shift_remove(&key);
                }
            }
        }
    }
}

/// Mappings merge key by key; anything else of the child replaces the base's.
fn merge(base: &mut Mapping, child: Mapping) {
    for (name, entry) in child {
        match (base.get_mut(&name), entry) {
            (Some(Entry { node: Node::Map(inner), .. }), Entry { node: Node::Map(own), .. }) => {
                merge(inner, own)
            }
            (_, entry) => {
                base.insert(name, entry);
            }
        }
    }
}
