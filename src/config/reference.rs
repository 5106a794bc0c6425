//! The key reference that `planish schema` prints, made from the registry.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::Config;
use super::aliases;
use super::keys::{self, Key, Kind, UsedBy};

/// A complete config file with every key at its default and its meaning as a comment. It loads as it is printed,
/// up to the keys that have no default.
pub fn reference_toml() -> String {
    let mut out = String::new();
    let mut section = "";
    for (key, default) in keys::flatten(&Config::default()) {
        let (parent, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if parent != section {
            let gap = if section.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}[{parent}]");
            section = parent;
        }
        let limits = key.kind.limits();
        let limits = if limits.is_empty() { limits } else { format!(" {limits}.") };
        let kind = if matches!(key.kind, Kind::Choice(_)) {
            "One of:".to_owned()
        } else {
            format!("({})", key.kind.name())
        };
        let _ = writeln!(out, "# {} {kind}{limits}{}", key.doc, only(key));
        let also = also(key);
        if !also.is_empty() {
            let _ = writeln!(out, "# Also written: {}.", also.join(", "));
        }
        let _ = match default {
            Value::Null => writeln!(out, "# {name} ="),
            value => writeln!(out, "{name} = {value}"),
        };
    }
    out
}

/// Who alone uses a key, as a sentence.
fn only(key: &Key) -> String {
    match key.used_by {
        UsedBy::Everyone => String::new(),
        UsedBy::Backends(_) => format!(" Only for the backend {}.", key.used_by.names()),
        UsedBy::Benchmarks(_) => format!(" Only for the benchmark {}.", key.used_by.names()),
        UsedBy::NotYet => " Not used by this version.".into(),
    }
}

/// Other spellings of a key and of its values.
fn also(key: &Key) -> Vec<String> {
    let words = aliases::word_aliases(key.path).iter().map(|(alias, word)| format!("{alias:?} for {word}"));
    aliases::spellings(key.path).into_iter().chain(words).collect()
}

/// The registry as JSON: one object per key.
pub fn reference_json() -> Value {
    let rows = keys::flatten(&Config::default()).into_iter().map(|(key, default)| {
        let mut row = Map::new();
        row.insert("key".into(), json!(key.path));
        row.insert("type".into(), json!(key.kind.name()));
        if let Kind::Choice(allowed) = key.kind {
            row.insert("allowed".into(), json!(allowed));
        } else if !key.kind.limits().is_empty() {
            row.insert("limits".into(), json!(key.kind.limits()));
        }
        row.insert("default".into(), default);
        row.insert("doc".into(), json!(key.doc));
        row.insert("safe_on_resume".into(), json!(key.safe_on_resume()));
        row.insert("takes_effect".into(), json!(key.effective.name()));
        row.insert("also".into(), json!(also(key)));
        row.insert("only_for".into(), json!(key.used_by.names()));
        Value::Object(row)
    });
    Value::Array(rows.collect())
}
