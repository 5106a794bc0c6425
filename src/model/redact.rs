//! Takes secrets out of text before it reaches disk, logs or errors: known keys by value, common shapes by pattern.
//! Must not know where a text goes.

use regex::Regex;
use serde_json::Value;

const MARK: &str = "[redacted]";

/// Shapes of keys and tokens. `keep` is what stays visible, so that a reader still sees what was there.
const SHAPES: &str = concat!(
    r#"(?P<keep>(?i:\bbearer\s+|\bapi[-_]?key["']?\s*[:=]\s*["']?|://[^/\s:@]+:))"#,
    r"[A-Za-z0-9._~+/=-]{12,}",
    r"|\bsk-[A-Za-z0-9_-]{12,}",
    r"|\b(?:gh[pousr]_|github_pat_|hf_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{16,}",
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}",
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
);

/// Redacts the run's own keys and everything that looks like one.
#[derive(Debug, Default)]
pub struct Redactor {
    keys: Vec<String>,
    shapes: Option<Regex>,
}

impl Redactor {
    /// Keys under 8 characters are not redacted by value: they would mangle ordinary text.
    pub fn new(keys: impl IntoIterator<Item = String>) -> Self {
        let mut keys: Vec<String> = keys.into_iter().filter(|key| key.chars().count() >= 8).collect();
        // A key that contains another one goes first, else its rest would stay visible.
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        Self { keys, shapes: Regex::new(SHAPES).ok() }
    }

    pub fn redact(&self, text: &str) -> String {
        let by_value = self.keys.iter().fold(text.to_owned(), |text, key| text.replace(key, MARK));
        match &self.shapes {
            Some(shapes) => shapes.replace_all(&by_value, format!("${{keep}}{MARK}")).into_owned(),
            None => by_value,
        }
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
