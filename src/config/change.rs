//! What differs between the configuration a run was started with and the one it is resumed with.

use std::fmt;

use super::{Config, keys};

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
}
