//! Reads data files (JSON array, object of rows, JSON lines) into items with their places. Owns the file formats and
//! the form of an id; must not know splits, templates or scorers.

use std::path::Path;

use serde_json::{Map, Value};

use crate::domain::Item;

use super::error::{DataError, Place, Row};

/// An item and where it was read, for messages about it.
#[derive(Clone, Debug)]
pub(super) struct PlacedItem {
    pub(super) item: Item,
    pub(super) place: Place,
}

pub(super) fn read_items(path: &Path) -> Result<Vec<PlacedItem>, DataError> {
    let bytes =
        std::fs::read(path).map_err(|error| DataError::file(path, format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        DataError::file(path, format!("line {line} is not UTF-8; save the file as UTF-8"))
    })?;
    parse_rows(&text, path)?
        .into_iter()
        .map(|(row, value)| {
            let place = Place { file: path.to_owned(), row };
            let item = item_of(value).map_err(|problem| DataError::row(&place, problem))?;
            Ok(PlacedItem { item, place })
        })
        .collect()
}

/// The rows of `text`, without their places: what a data file at `path` would hold.
///
/// # Errors
/// Names file and line.
pub fn read_rows(text: &str, path: &Path) -> Result<Vec<Value>, DataError> {
    Ok(parse_rows(text, path)?.into_iter().map(|(_, row)| row).collect())
}

/// The rows of a file: a JSON array; an object's `data` array, else the object's values; else one JSON value per
/// non-blank line. A `.jsonl` file is always read by lines. `path` decides that and appears in errors.
pub(super) fn parse_rows(text: &str, path: &Path) -> Result<Vec<(Row, Value)>, DataError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        return parse_lines(text, path);
    }
    let rows = match serde_json::from_str(text) {
        Ok(Value::Array(rows)) => rows,
        Ok(Value::Object(mut object)) => match object.remove("data") {
            Some(Value::Array(rows)) => rows,
            Some(other) => object.into_iter().map(|(_, value)| value).chain([other]).collect(),
            None => object.into_iter().map(|(_, value)| value).collect(),
        },
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            return Err(DataError::file(
                path,
                "holds a single value; give a JSON array of objects or one object per line",
            ));
        }
        Err(error) => {
            let first = text.lines().find(|line| !line.trim().is_empty());
            if first.is_none_or(|line| serde_json::from_str::<Value>(line).is_ok()) {
                return parse_lines(text, path);
            }
            return Err(DataError::file(path, format!("is not JSON: {error}")));
        }
    };
    Ok(rows.into_iter().enumerate().map(|(i, value)| (Row::Element(i + 1), value)).collect())
}

fn parse_lines(text: &str, path: &Path) -> Result<Vec<(Row, Value)>, DataError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(i, line)| {
            let row = Row::Line(i + 1);
            let value = serde_json::from_str(line).map_err(|error| {
                let place = Place { file: path.to_owned(), row };
                // serde_json counts within this one line.
                DataError::row(&place, format!("is not JSON at column {}", error.column()))
            })?;
            Ok((row, value))
        })
        .collect()
}

fn item_of(value: Value) -> Result<Item, String> {
    let fields: Map<String, Value> = match value {
        Value::Object(fields) => fields,
        other => return Err(format!("is {}, not an object with fields", kind(&other))),
    };
    let id = match fields.get("id") {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) if id.is_i64() || id.is_u64() => id.to_string(),
        Some(_) => return Err("`id` must be a non-empty text or an integer".to_owned()),
        None => return Err("has no `id`; give every row an id of its own".to_owned()),
    };
    Ok(Item { id, fields })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(name: &str, text: impl AsRef<[u8]>) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let prefix = format!("{}/", folder.path().display());
        read_items(&path)
            .map(|items| items.into_iter().map(|placed| placed.item.id).collect())
            .map_err(|error| error.to_string().replace(&prefix, ""))
    }

    fn refusal(name: &str, text: impl AsRef<[u8]>) -> String {
        items(name, text).unwrap_err()
    }

    #[test]
    fn every_form_is_read_in_order() {
        let wanted = Ok(vec!["b".to_owned(), "1".to_owned()]);
        assert_eq!(items("d.json", r#"[{"id":"b"},{"id":1}]"#), wanted);
        assert_eq!(items("d.json", r#"{"version":2,"data":[{"id":"b"},{"id":1}]}"#), wanted);
        assert_eq!(items("d.json", r#"{"z":{"id":"b"},"a":{"id":1}}"#), wanted);
        assert_eq!(items("d.json", "{\"id\":\"b\"}\n\n{\"id\":1}\n"), wanted);
        assert_eq!(items("d.jsonl", "\u{feff}{\"id\":\"b\"}\r\n{\"id\":1}"), wanted);
        assert_eq!(items("d.jsonl", "{\"id\":\"b\",\"data\":[]}"), Ok(vec!["b".to_owned()]));
    }

    #[test]
    fn malformed_files_name_line_or_row() {
        assert_eq!(refusal("d.jsonl", "{\"id\":1}\n\n{\"id\":2"), "d.jsonl, line 3: is not JSON at column 7");
        assert!(refusal("d.json", "[\n{\"id\":1},\n{]").starts_with("d.json: is not JSON: "));
        assert!(refusal("d.json", "[\n{\"id\":1},\n{]").contains("line 3 column 2"));
        assert_eq!(
            refusal("d.json", "[{\"id\":1},7]"),
            "d.json, row 2: is a number, not an object with fields"
        );
        assert!(refusal("d.json", "7").starts_with("d.json: holds a single value"));
        assert!(refusal("d.json", b"{\"id\":1}\n\xff").starts_with("d.json: line 2 is not UTF-8"));
        assert!(read_items(Path::new("absent.json")).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn ids_are_texts_or_integers() {
        assert!(refusal("d.jsonl", "{\"id\":1}\n{\"q\":1}").starts_with("d.jsonl, line 2: has no `id`"));
        for bad in ["1.5", "null", "true", "\" \"", "[1]"] {
            let message = refusal("d.json", format!("[{{\"id\":{bad}}}]"));
            assert!(message.starts_with("d.json, row 1: `id` must be"), "{message}");
        }
    }
}
