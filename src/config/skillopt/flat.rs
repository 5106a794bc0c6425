//! The flat view of merged settings: what SkillOpt's trainer and adapters see. Must not know what a setting means.

use indexmap::IndexMap;

use super::layers::{Dropped, Merged, section_of};
use super::names;
use super::node::{Entry, Node};
use crate::config::keys;
use crate::config::nearest::nearest;

/// One setting under its flat name, with the name it was written under.
#[derive(Clone, Debug)]
pub struct FlatEntry {
    pub entry: Entry,
    pub written: String,
}

pub type Flat = IndexMap<String, FlatEntry>;

impl Merged {
    /// Flat settings, and what no program would ever read.
    pub fn flatten(&self) -> (Flat, Vec<Dropped>) {
        let mut dropped = self.dropped.clone();
        let mut flat = Flat::new();
        let structured = self.is_structured();
        let mut take = |name: String, written: String, entry: &Entry| {
            let written = entry.was.clone().unwrap_or(written);
            flat.insert(name, FlatEntry { entry: entry.clone(), written });
        };
        for (name, entry) in &self.settings {
            // `env` with a plain value is the flat name of the environment's name.
            let is_map = matches!(entry.node, Node::Map(_));
            let section = names::SECTIONS.contains(&name.as_str()) && (is_map || name != "env");
            if !structured || !section {
                take(name.clone(), name.clone(), entry);
            } else if !is_map {
                let why = "a plain value where a section belongs".to_owned();
                dropped.push(Dropped { name: name.clone(), place: entry.place.clone(), why });
            }
        }
        for section in names::SECTIONS {
            for (key, entry) in section_of(&self.settings, section).into_iter().flatten() {
                let written = format!("{section}.{key}");
                match names::flat(section, key) {
                    Some(name) => take(name, written, entry),
                    None if entry.node.is_blank() => {}
                    None => {
                        let meant = nearest(key, keys_of(section))
                            .map(|key| format!("; did you mean {section}.{key}?"));
                        let why = format!("SkillOpt never reads it{}", meant.unwrap_or_default());
                        dropped.push(Dropped { name: written, place: entry.place.clone(), why });
                    }
                }
            }
        }
        (flat, dropped)
    }
}

/// Keys of a section, as planish writes them.
fn keys_of(section: &str) -> impl Iterator<Item = &'static str> {
    keys::keys().filter_map(move |key| key.path.strip_prefix(section)?.strip_prefix('.'))
}
