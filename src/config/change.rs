//! What differs between the configuration a run was started with and the one it is resumed with.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::{Config, ConfigErrors, keys};
use crate::domain::Retuned;

/// One key with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    pub key: &'static str,
    /// Values as JSON, `null` when not set.
    pub old: String,
    pub new: String,
    /// No finished result depends on this key, so a resume may go on.
    pub safe: bool,
}

impl fmt::Display for ChangedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} -> {}", self.key, self.old, self.new)
    }
}

/// All keys whose values differ, in registry order.
pub fn changed_keys(old: &Config, new: &Config) -> Vec<ChangedKey> {
    keys::flatten(old)
        .into_iter()
        .zip(keys::flatten(new))
        .filter(|((_, old), (_, new))| old != new)
        .map(|((key, old), (_, new))| ChangedKey {
            key: key.path,
            old: old.to_string(),
            new: new.to_string(),
            safe: key.safe_on_resume(),
        })
        .collect()
}

/// `config` with other values of keys.
///
/// # Errors
/// A key or value that no configuration of this version holds.
pub fn with_changes(config: &Config, changes: &[Retuned]) -> Result<Config, String> {
    let unreadable =
        |error: serde_json::Error| format!("the changed configuration does not read back: {error}");
    let mut tree = serde_json::to_value(config).map_err(unreadable)?;
    for change in changes {
        let pointer = format!("/{}", change.key.replace('.', "/"));
        match tree.pointer_mut(&pointer) {
            Some(place) => *place = change.new.clone(),
            None => return Err(format!("{} is no key of this version", change.key)),
        }
    }
    serde_json::from_value(tree).map_err(unreadable)
}

impl Config {
    /// What `wanted`, a value per key as JSON or as the text after `-o KEY=`, changes of this configuration.
    ///
    /// # Errors
    /// What `-o` would complain about, word for word.
    pub fn retuned(&self, wanted: &BTreeMap<String, Value>) -> Result<Vec<Retuned>, ConfigErrors> {
        let (_, already) = self.overridden(&[]);
        let overrides: Vec<String> =
            wanted.iter().map(|(key, value)| format!("{key}={}", as_text(value))).collect();
        let (changed, mut errors) = self.overridden(&overrides);
        // What was wrong before, such as a data file that has gone since, is no fault of the change.
        errors.retain(|error| !already.contains(error));
        if !errors.is_empty() {
            return Err(ConfigErrors(errors));
        }
        let pairs = keys::flatten(self).into_iter().zip(keys::flatten(&changed));
        let changes = pairs.filter(|((_, old), (_, new))| old != new);
        Ok(changes.map(|((key, old), (_, new))| Retuned { key: key.path.to_owned(), old, new }).collect())
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_named_with_both_values_and_marked() {
        let old = Config::default();
        let mut new = old.clone();
        new.train.batch_size = 8;
        new.model.target.temperature = Some(0.5);
        new.budget.max_calls = 9;
        new.model.read_timeout_s = 5.0;
        let changed = changed_keys(&old, &new);
        let told: Vec<_> = changed.iter().map(|change| (change.to_string(), change.safe)).collect();
        let expected = [
            ("model.target.temperature: null -> 0.5", false),
            ("model.read_timeout_s: 60.0 -> 5.0", true),
            ("train.batch_size: 40 -> 8", false),
            ("budget.max_calls: 0 -> 9", true),
        ];
        assert_eq!(told, expected.map(|(text, safe)| (text.to_owned(), safe)));
        assert!(changed_keys(&old, &old).is_empty());
    }

    fn wanted(pairs: &[(&str, &str)]) -> BTreeMap<String, Value> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::String((*value).to_owned()))).collect()
    }

    #[test]
    fn a_retune_names_what_changes_and_complains_as_an_override_does() {
        let config = Config::default();
        let changes = config.retuned(&wanted(&[("env.workers", "3"), ("train.batch_size", "40")])).unwrap();
        let before = serde_json::to_value(config.env.workers).unwrap();
        assert_eq!(changes, [Retuned { key: "env.workers".into(), old: before, new: Value::from(3) }]);
        assert_eq!(with_changes(&config, &changes).unwrap().env.workers, 3);
        for (key, value, complaint) in [
            (
                "env.workers",
                "0",
                "command line: env.workers: 0 is out of range; give a whole number that is at least 1",
            ),
            ("env.worker", "3", "command line: env.worker: unknown key, did you mean env.workers?"),
            ("review.mode", "manuel", "did you mean \"manual\"?"),
            ("model.target.api_key", "sk-1", "a key is never a value of a configuration"),
        ] {
            let told = config.retuned(&wanted(&[(key, value)])).unwrap_err().to_string();
            assert!(told.contains(complaint) && !told.contains("sk-1"), "{told}");
        }
        let together = config.retuned(&wanted(&[("review.mode", "manual"), ("review.timeout_s", "5")]));
        assert!(together.unwrap_err().to_string().contains("review.timeout_s: has no effect"));
    }
}
