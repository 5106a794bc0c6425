//! What all replies of the optimizer have in common: a JSON object with fields of a known type. Owns the faults of a
//! reply and the readers of fields; a reply that breaks its contract is refused with a reason, never half guessed.

use serde_json::{Map, Value};

use crate::domain::SourceType;
use crate::text::extract_json;

/// Why a reply cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    #[error("the reply holds no JSON value")]
    NoJson,
    #[error("the reply is {found}, not a JSON object")]
    NoObject { found: &'static str },
    #[error("the reply has no `{key}`")]
    Missing { key: &'static str },
    #[error("`{key}` is {found}, not {wanted}")]
    WrongType { key: &'static str, found: &'static str, wanted: &'static str },
    #[error("`{key}` is blank")]
    Blank { key: &'static str },
    #[error("{noun} {number} is unusable: {reason}")]
    BadItem { noun: &'static str, number: usize, reason: String },
    #[error("no {noun} is usable: {reasons}")]
    NoUsableItem { noun: &'static str, reasons: String },
    #[error("the merged list is empty although there was something to merge")]
    EmptyMerge,
    #[error("no index in `selected_indices` is usable")]
    NoUsableIndex,
    #[error("`{key}` holds no whole number")]
    NoNumber { key: &'static str },
    #[error("there are {after} notes after the consolidation of {before}")]
    NoFewerNotes { before: usize, after: usize },
}

/// The JSON object of a reply.
pub(super) fn object(reply: &str) -> Result<Map<String, Value>, ReplyFault> {
    match extract_json(reply) {
        None => Err(ReplyFault::NoJson),
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(ReplyFault::NoObject { found: kind(&other) }),
    }
}

pub(super) fn list<'a>(object: &'a Map<String, Value>, key: &'static str) -> Result<&'a [Value], ReplyFault> {
    match object.get(key) {
        None => Err(ReplyFault::Missing { key }),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(ReplyFault::WrongType { key, found: kind(other), wanted: "a list" }),
    }
}

/// A text without which the reply is worth nothing; it may be empty, where the optimizer had nothing to say.
pub(super) fn required_text(object: &Map<String, Value>, key: &'static str) -> Result<String, ReplyFault> {
    match object.get(key) {
        None | Some(Value::Null) => Err(ReplyFault::Missing { key }),
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        Some(other) => Err(ReplyFault::WrongType { key, found: kind(other), wanted: "a text" }),
    }
}

/// A text that the reply may do without.
pub(super) fn text(object: &Map<String, Value>, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The texts of a list; a lone text counts as a list of one, anything else as none.
pub(super) fn texts(object: &Map<String, Value>, key: &str) -> Vec<String> {
    let texts: Vec<&str> = match object.get(key) {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    texts.into_iter().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// The object `patch` of a reply; a reply that leaves the wrapper out but has items is understood too.
pub(super) fn patch_of<'a>(
    reply: &'a Map<String, Value>,
    items_key: &str,
) -> Result<&'a Map<String, Value>, ReplyFault> {
    const KEY: &str = "patch";
    match reply.get(KEY) {
        Some(Value::Object(patch)) => Ok(patch),
        Some(other) => Err(ReplyFault::WrongType { key: KEY, found: kind(other), wanted: "an object" }),
        None => match reply.get(items_key) {
            Some(Value::Array(items)) if !items.is_empty() => Ok(reply),
            _ => Err(ReplyFault::Missing { key: KEY }),
        },
    }
}

pub(super) fn source(value: &Value) -> Option<SourceType> {
    match value.as_str()? {
        "failure" => Some(SourceType::Failure),
        "success" => Some(SourceType::Success),
        _ => None,
    }
}

/// A count as models write it: a number (cut to an integer) or a text of digits; not negative, not a boolean.
pub(super) fn whole_number(value: &Value) -> Option<usize> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| (0.0..=1e9).contains(number))?;
            Some(number as usize)
        }
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

pub(super) fn saturated(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
