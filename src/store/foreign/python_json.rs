//! JSON as Python writes it: NaN and the infinities stand bare. Must not know what the values mean.

use serde_json::Value;

/// Reads one value; a bare `NaN`, `Infinity` or `-Infinity` becomes the text of that name.
///
/// # Errors
/// What is no JSON even so.
pub fn value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match with_quoted_constants(text) {
        Some(quoted) => serde_json::from_str(&quoted),
        None => Err(error),
    })
}

/// The text with quotes around the bare constants, on the same lines; `None` when there are none.
fn with_quoted_constants(text: &str) -> Option<String> {
    const CONSTANTS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !text.contains("NaN") && !text.contains("Infinity") {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = if first == '"' {
            string_len(rest)
        } else if let Some(constant) = CONSTANTS.into_iter().find(|constant| rest.starts_with(constant)) {
            out.push('"');
            out.push_str(constant);
            out.push('"');
            rest = &rest[constant.len()..];
            continue;
        } else {
            first.len_utf8()
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Some(out)
}

/// Bytes of the string literal that `text` begins with, quotes included; all when it does not end.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn constants_outside_of_strings_become_text() {
        let text = r#"{"a": [NaN, -Infinity, Infinity, 1.5], "NaN \" NaN": "Infinity", "ü": -1}"#;
        let expected = json!({
            "a": ["NaN", "-Infinity", "Infinity", 1.5], "NaN \" NaN": "Infinity", "ü": -1,
        });
        assert_eq!(value(text).unwrap(), expected);
    }

    #[test]
    fn plain_json_is_left_alone_and_damage_keeps_its_line() {
        assert_eq!(value(r#"{"a": "NaN"}"#).unwrap(), json!({"a": "NaN"}));
        for (text, line) in [("{\"a\":\nNaN,\n\"b", 3), ("\n\n{]", 3), ("\"NaN", 1), ("NaNcy", 1)] {
            assert_eq!(value(text).unwrap_err().line(), line, "{text}");
        }
    }
}
