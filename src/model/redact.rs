//! Takes secrets out of text before it reaches disk, logs or errors: known keys by value, common shapes by pattern.
//! Must not know where a text goes.

use serde_json::Value;

use crate::text::mask_secrets;

const MARK: &str = "[redacted]";

/// Redacts the run's own keys and everything that looks like one.
#[derive(Debug, Default)]
pub struct Redactor {
    keys: Vec<String>,
}

impl Redactor {
    /// Keys under 8 characters are not redacted by value: they would mangle ordinary text.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        let mut keys: Vec<String> = keys.into_iter().filter(|key| key.chars().count() >= 8).collect();
        // A key that contains another one goes first, else its rest would stay visible.
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        Self { keys }
    }

    pub fn redact(&self, text: &str) -> String {
        let by_value = self.keys.iter().fold(text.to_owned(), |text, key| text.replace(key, MARK));
        mask_secrets(&by_value, MARK)
    }

    /// Redacts every string of a JSON value (names of fields stay).
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_json(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.redact_json(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_keys_by_value_longest_first() {
        let redactor = Redactor::new(["plainvalue".to_owned(), "plainvalue-and-more".to_owned()]);
        assert_eq!(redactor.redact("a plainvalue-and-more b plainvalue c"), "a [redacted] b [redacted] c");
    }

    #[test]
    fn short_keys_do_not_mangle_text() {
        assert_eq!(Redactor::new(["x".to_owned()]).redact("exitCode"), "exitCode");
    }

    #[test]
    fn redacts_common_shapes() {
        let redactor = Redactor::new([]);
        for (text, want) in [
            ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [redacted]"),
            ("key sk-proj-abcdefgh12345678.", "key [redacted]."),
            (r#"{"api_key": "0123456789abcdef"}"#, r#"{"api_key": "[redacted]"}"#),
            ("http://me:hunter2hunter2@host/v1", "http://me:[redacted]@host/v1"),
            ("ghp_abcdefghijklmnop1234 AKIAABCDEFGHIJKLMNOP", "[redacted] [redacted]"),
            (
                "task-force-of-many-words and a bearer of news",
                "task-force-of-many-words and a bearer of news",
            ),
        ] {
            assert_eq!(redactor.redact(text), want);
        }
    }

    #[test]
    fn redacts_inside_json() {
        let mut value =
            serde_json::json!({"a": ["secretsecret", 1], "secretsecret": {"b": "x secretsecret"}});
        Redactor::new(["secretsecret".to_owned()]).redact_json(&mut value);
        assert_eq!(value, serde_json::json!({"a": [MARK, 1], "secretsecret": {"b": "x [redacted]"}}));
    }
}
