//! Fields of a foreign JSON object, read leniently: numbers may be text, anything may be absent, and what is of
//! another kind is noted with its place. Must not invent values.

use serde_json::{Map, Value};

use super::folder::Folder;

/// Longest reply or prompt kept, in bytes; they can be any size.
const LONGEST: usize = 64 << 10;

/// One object and where it stands, for notes.
pub struct Fields<'a> {
    pub map: &'a Map<String, Value>,
    pub file: &'a str,
    pub line: Option<usize>,
    /// Where in the file when lines do not tell, as `step 3: `; else empty.
    pub place: &'a str,
}

impl Fields<'_> {
    /// The field, unless it is absent or null.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// The first field of several names for one thing.
    pub fn first<'k>(&self, keys: &[&'k str]) -> Option<&'k str> {
        keys.iter().copied().find(|key| self.value(key).is_some())
    }

    pub fn note(&self, folder: &mut Folder, what: &str) {
        folder.note(self.file, self.line, format!("{}{what}", self.place));
    }

    fn wrong(&self, folder: &mut Folder, key: &str, wanted: &str) {
        let found = self.map.get(key).map_or("absent", kind);
        self.note(folder, &format!("`{key}` is {found}, not {wanted}; left out"));
    }

    /// A finite number; 0 is one.
    pub fn number(&self, folder: &mut Folder, key: &str) -> Option<f64> {
        let number = self.value(key).map(number)?;
        match number {
            Some(number) if number.is_finite() => Some(number),
            Some(_) => {
                self.note(folder, &format!("`{key}` is not a finite number; left out"));
                None
            }
            None => {
                self.wrong(folder, key, "a number");
                None
            }
        }
    }

    /// A whole number from 0.
    pub fn count(&self, folder: &mut Folder, key: &str) -> Option<usize> {
        let number = self.number(folder, key)?;
        if number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 {
            return Some(number as usize);
        }
        self.note(folder, &format!("`{key}` is {number}, not a whole number from 0; left out"));
        None
    }

    /// Text; numbers and booleans are spelt out, anything else is noted and given as JSON.
    pub fn text(&self, folder: &mut Folder, key: &str) -> Option<String> {
        let text = match self.value(key)? {
            Value::String(text) => text.clone(),
            scalar @ (Value::Number(_) | Value::Bool(_)) => scalar.to_string(),
            other => {
                self.note(folder, &format!("`{key}` is {}, not text; shown as JSON", kind(other)));
                other.to_string()
            }
        };
        Some(text)
    }

    pub fn list(&self, folder: &mut Folder, key: &str) -> &[Value] {
        match self.value(key) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.wrong(folder, key, "a list");
                &[]
            }
        }
    }

    pub fn object(&self, folder: &mut Folder, key: &str) -> Option<&Map<String, Value>> {
        match self.value(key)? {
            Value::Object(map) => Some(map),
            _ => {
                self.wrong(folder, key, "an object");
                None
            }
        }
    }
}

/// A number, also as text or boolean. NaN and infinities are numbers here.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Text of bounded length.
pub fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        let mut end = LONGEST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let left_out = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… [{left_out} more bytes]"));
    }
    text
}

pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_come_in_many_spellings_and_oddities_are_noted_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let value = json!({
            "zero": 0, "text": " 0.25 ", "flag": true, "nan": "NaN", "list": [], "null": null,
            "half": 1.5, "minus": -1, "name": 7, "huge": "x".repeat(LONGEST + 10),
        });
        let Value::Object(map) = &value else { panic!() };
        let fields = Fields { map, file: "f.json", line: Some(3), place: "step 2: " };
        assert_eq!(fields.number(&mut folder, "zero"), Some(0.0));
        assert_eq!(fields.number(&mut folder, "text"), Some(0.25));
        assert_eq!(fields.number(&mut folder, "flag"), Some(1.0));
        assert_eq!(fields.number(&mut folder, "null"), None);
        assert_eq!(fields.number(&mut folder, "none"), None);
        assert_eq!(fields.text(&mut folder, "name").as_deref(), Some("7"));
        let huge = cut(fields.text(&mut folder, "huge").unwrap());
        assert_eq!(huge.len(), LONGEST + "… [10 more bytes]".len());
        assert_eq!(fields.first(&["null", "none", "half"]), Some("half"));
        assert_eq!(fields.number(&mut folder, "nan"), None);
        assert_eq!(fields.number(&mut folder, "list"), None);
        assert_eq!(fields.count(&mut folder, "half"), None);
        assert_eq!(fields.count(&mut folder, "minus"), None);
        assert!(fields.list(&mut folder, "zero").is_empty());
        assert!(fields.object(&mut folder, "zero").is_none());
        assert_eq!(fields.text(&mut folder, "list").as_deref(), Some("[]"));
        let told: Vec<String> = folder.into_oddities().iter().map(ToString::to_string).collect();
        assert_eq!(told[0], "f.json:3: step 2: `nan` is not a finite number; left out");
        assert_eq!(told.len(), 7, "{told:?}");
    }
}
