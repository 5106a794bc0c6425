//! Flat SkillOpt settings as settings of planish, each with what is to be said about it. A setting that cannot be taken
//! over is named with the reason; a key of a server is never taken over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Value;

use super::environment::Environment;
use super::flat::Flat;
use super::layers::{Dropped, Merged};
use super::node::{Entry, Node, Place};
use super::values;
use crate::config::aliases::{self, Name};
use crate::config::backends::Backend;
use crate::config::error::{self, ConfigError};
use crate::config::keys::{self, Key, Kind};
use crate::config::rules::is_variable_name;
use crate::config::value::Complaint;
use crate::config::{Config, layer};

/// One line of the new file.
pub struct Setting {
    /// `None`: the reader of the file has to fill it in.
    pub value: Option<Value>,
    pub notes: Vec<String>,
}

/// Everything the new file says.
pub struct Translation {
    pub settings: BTreeMap<&'static str, Setting>,
    pub dropped: Vec<Dropped>,
    pub errors: Vec<ConfigError>,
}

/// Where relative paths start.
pub struct Folders {
    /// SkillOpt takes them from where it is started.
    pub current: PathBuf,
    /// Folder of the new file; `None`: paths are written in full.
    pub out: Option<PathBuf>,
}

/// What SkillOpt's code does where its files leave a key out and planish's default is another.
fn when_left_out() -> [(&'static str, Value); 4] {
    [
        ("optimizer.lr_scheduler", Value::String("constant".into())),
        ("optimizer.use_slow_update", Value::Boolean(false)),
        ("optimizer.use_meta_skill", Value::Boolean(false)),
        ("model.rewrite_reasoning_effort", Value::String("high".into())),
    ]
}

/// Values that SkillOpt's base file writes out and that planish has anyway when a key is not set.
fn is_implied(key: &str, value: &Value) -> bool {
    match (key, value) {
        ("model.minimax_model", Value::String(model)) => model == "MiniMax-M3",
        ("model.minimax_temperature", Value::Float(temperature)) => *temperature == 0.7,
        ("model.minimax_max_tokens", Value::Integer(tokens)) => *tokens == 8000,
        ("model.minimax_enable_thinking", Value::Boolean(thinking)) => !thinking,
        (key, Value::String(version)) if key.ends_with("azure_openai_api_version") => {
            version == "2024-12-01-preview"
        }
        (key, Value::String(scope)) if key.ends_with("azure_openai_ad_scope") => {
            scope == "https://cognitiveservices.azure.com/.default"
        }
        _ => false,
    }
}

/// The first names of the Azure settings count only where those of today are blank.
fn is_older_name(name: &str, flat: &Flat) -> bool {
    let newer = name.replacen("azure_", "azure_openai_", 1);
    let is_old = ["azure_endpoint", "azure_api_version"].contains(&name);
    is_old && flat.get(&newer).is_some_and(|flat| !flat.entry.node.is_blank())
}

impl Translation {
    pub fn of(merged: &Merged, folders: &Folders, env: Environment<'_>) -> Self {
        let (flat, dropped) = merged.flatten();
        let mut translation = Self { settings: BTreeMap::new(), dropped, errors: Vec::new() };
        for (name, of_name) in &flat {
            if !is_older_name(name, &flat) {
                translation.take(name, &of_name.written, &of_name.entry, folders);
            }
        }
        translation.roles(&flat, env);
        translation.left_out(&flat);
        translation.without_defaults();
        translation
    }

    fn take(&mut self, name: &str, written: &str, entry: &Entry, folders: &Folders) {
        // Roles are worked out together.
        let of_roles =
            ["model_backend", "optimizer_backend", "target_backend", "optimizer_model", "target_model"];
        if of_roles.contains(&name) {
            return;
        }
        let key = match aliases::by_flat_name(name).map(Name::Key).or_else(|| aliases::resolve(name)) {
            Some(Name::Key(key)) => key,
            Some(Name::Retired { why }) => return self.drop(written, &entry.place, why),
            Some(Name::Secret { .. }) if entry.node.is_blank() => return,
            Some(Name::Secret { .. }) => {
                let why = "a key is never taken over: put it into the environment variable that the role's api_key_env names";
                return self.drop(written, &entry.place, why);
            }
            None if entry.node.is_blank() => return,
            None => return self.drop(written, &entry.place, "planish has no such setting"),
        };
        let taken_for = taken_for(key, &entry.node);
        if let Some((_, why)) = &taken_for {
            self.drop(written, &entry.place, *why);
        }
        let mut notes = Vec::new();
        match values::convert(key, taken_for.as_ref().map_or(&entry.node, |(node, _)| node)) {
            Ok(None) => {}
            Ok(Some(value)) if is_implied(key.path, &value) => {}
            Ok(Some(value)) if values::holds_credentials(&value) => {
                self.drop(
                    written,
                    &entry.place,
                    "holds a user name or password: write the address without it",
                );
            }
            Ok(Some(Value::String(text))) if key.path.ends_with("_env") && !is_variable_name(&text) => {
                let why = "no name of an environment variable, and maybe a key: it is shown nowhere";
                self.drop(written, &entry.place, why);
            }
            Ok(Some(value)) => {
                if written != key.path {
                    notes.push(format!("was {written} ({})", entry.place));
                }
                let value = rebased(key.kind, value, &entry.place, folders, &mut notes);
                self.set(key.path, Some(value), notes);
            }
            Err(_) if key.path == "env.name" => {
                let why =
                    "planish has no benchmark of this name: describe the task with the other keys of [env]";
                self.drop(written, &entry.place, why);
            }
            Err(complaint) => self.refuse(written, &entry.place, complaint),
        }
    }

    fn left_out(&mut self, flat: &Flat) {
        let given =
            |key: &str| flat.get(&aliases::flat_name(key)).is_some_and(|flat| flat.entry.node != Node::Null);
        let note = || vec!["not set there: what SkillOpt does then".to_owned()];
        for (key, value) in when_left_out() {
            if !given(key) {
                self.set(key, Some(value), note());
            }
        }
        let trace = "model.codex_trace_to_optimizer";
        let is_codex = |setting: &Setting| {
            setting.value.as_ref().and_then(Value::as_str) == Some(Backend::CodexExec.word())
        };
        if !given(trace) && self.settings.get("model.target.backend").is_some_and(is_codex) {
            self.set(trace, Some(Value::Boolean(false)), note());
        }
        let reflact = |written: &str| ["teacher", "student"].iter().any(|word| written.contains(word));
        let gated = "optimizer.slow_update_gate_with_selection";
        if flat.values().any(|flat| reflact(&flat.written)) && !self.settings.contains_key(gated) {
            self.set(gated, Some(Value::Boolean(true)), vec!["ReflACT always gates the slow update".into()]);
        }
    }

    fn without_defaults(&mut self) {
        let defaults: BTreeMap<&str, serde_json::Value> =
            keys::flatten(&Config::default()).into_iter().map(|(key, value)| (key.path, value)).collect();
        self.settings.retain(|key, setting| match &setting.value {
            Some(value) => serde_json::to_value(value).ok().as_ref() != defaults.get(key),
            None => true,
        });
    }

    pub fn set(&mut self, key: &'static str, value: Option<Value>, notes: Vec<String>) {
        self.settings.insert(key, Setting { value, notes });
    }

    /// Takes back the setting of a flat name; whether there was one.
    pub fn forget(&mut self, flat_name: &str) -> bool {
        let key = aliases::by_flat_name(flat_name);
        key.is_some_and(|key| self.settings.remove(key.path).is_some())
    }

    pub fn drop(&mut self, name: &str, place: &Place, why: impl Into<String>) {
        self.dropped.push(Dropped { name: name.to_owned(), place: place.clone(), why: why.into() });
    }

    pub fn refuse(&mut self, name: &str, place: &Place, complaint: Complaint) {
        let place = match place {
            Place::File { path, line } => error::Place::Line { path: path.to_path_buf(), line: *line },
            Place::Option | Place::Environment => error::Place::CommandLine,
        };
        let Complaint { problem, remedy } = complaint;
        self.errors.push(ConfigError { place, key: name.to_owned(), problem, remedy });
    }
}

/// What SkillOpt takes a value for without a word, if that is another one.
fn taken_for(key: &Key, node: &Node) -> Option<(Node, &'static str)> {
    let unknown = |allowed| match node {
        Node::Text(word) => aliases::canonical_word(key.path, allowed, word).is_none(),
        _ => false,
    };
    match (key.path, key.kind) {
        ("optimizer.skill_update_mode", Kind::Choice(allowed)) if unknown(allowed) => {
            Some((Node::Text("patch".into()), "an unknown word, which SkillOpt takes for patch"))
        }
        ("optimizer.skill_aware_appendix_source", Kind::Choice(allowed)) if unknown(allowed) => {
            Some((Node::Text("both".into()), "an unknown word, which SkillOpt takes for both"))
        }
        ("evaluation.use_gate", _) if !matches!(node, Node::Bool(_)) => {
            Some((Node::Bool(true), "only a plain false turns SkillOpt's gate off, so it is on"))
        }
        _ => None,
    }
}

/// A path that is still right where the new file lies.
fn rebased(kind: Kind, value: Value, place: &Place, folders: &Folders, notes: &mut Vec<String>) -> Value {
    match (kind, value) {
        (Kind::Path(_), Value::String(text)) if !text.is_empty() && !text.starts_with(layer::DEMO) => {
            Value::String(rebased_path(kind, &text, place, folders, notes))
        }
        (Kind::Folders, Value::Array(items)) => {
            let item = |item: Value| match item {
                Value::String(text) => Value::String(rebased_path(kind, &text, place, folders, notes)),
                other => other,
            };
            Value::Array(items.into_iter().map(item).collect())
        }
        (_, value) => value,
    }
}

fn rebased_path(kind: Kind, text: &str, place: &Place, folders: &Folders, notes: &mut Vec<String>) -> String {
    let beside = match place {
        Place::File { path, .. } => Some(layer::folder_of(path)),
        Place::Option | Place::Environment => None,
    };
    let starts = beside.into_iter().chain([folders.current.clone()]);
    let found = starts.map(|folder| PathBuf::from(layer::absolute(text, &folder))).find(|path| path.exists());
    let is_read = values::is_read(kind);
    let path = match found {
        Some(path) if is_read => path.canonicalize().unwrap_or(path),
        Some(_) | None => {
            if is_read {
                notes.push("there is nothing at this path yet".into());
            }
            PathBuf::from(layer::absolute(text, &folders.current))
        }
    };
    match &folders.out {
        Some(out) => relative(&path, out),
        None => path.to_string_lossy().into_owned(),
    }
}

/// `path` as seen from `folder`, both absolute; as it is when they share nothing.
fn relative(path: &Path, folder: &Path) -> String {
    let common = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    if common <= 1 {
        return path.to_string_lossy().into_owned();
    }
    let up = folder.components().skip(common).map(|_| std::path::Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(common)).collect();
    if way.as_os_str().is_empty() { ".".into() } else { way.to_string_lossy().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_the_new_file() {
        for (path, folder, expected) in [
            ("/a/b/c", "/a/b", "c"),
            ("/a/b/c", "/a/b/d/e", "../../c"),
            ("/a/b", "/a/b", "."),
            ("/x/y", "/a/b", "/x/y"),
        ] {
            assert_eq!(relative(Path::new(path), Path::new(folder)), expected);
        }
    }
}
