//! Reads the optimizer's analyst and merge replies into typed patches. Owns the JSON contract of
//! `assets/prompts`; a reply that breaks it is refused with a reason, never half guessed.

use serde_json::{Map, Value};

use super::extract::extract_json;
use crate::domain::{Edit, EditOp, FailureNote, Patch, SourceType};

/// Why a reply gives no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    #[error("the reply holds no JSON value")]
    NoJson,
    #[error("the reply is {found}, not a JSON object")]
    NoObject { found: &'static str },
    #[error("the reply has no `{key}`")]
    Missing { key: &'static str },
    #[error("`{key}` is {found}, not a list")]
    NoList { key: &'static str, found: &'static str },
    #[error("edit {number} is unusable: {reason}")]
    BadEdit { number: usize, reason: String },
    #[error("no edit is usable: {reasons}")]
    NoUsableEdit { reasons: String },
    #[error("the merged list is empty although there were edits to merge")]
    EmptyMerge,
    #[error("no index in `selected_indices` is usable")]
    NoUsableIndex,
}

/// A usable analyst reply. The patch may be empty: nothing to propose is a valid answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalystReply {
    pub patch: Patch,
    pub failures: Vec<FailureNote>,
    pub success_patterns: Vec<String>,
    pub appendix_notes: Vec<String>,
    /// One line per part of the reply that was left out, with the reason.
    pub left_out: Vec<String>,
}

/// Reads an analyst's reply about the training items `shown`. Every edit gets `source`, its support (its own
/// `support_count`, else the reply's `batch_size`, else the number of items shown) and the items that motivated it
/// (those it names among `shown`, else all). The list is cut to `budget`. Malformed edits are left out with a note.
pub fn analyst_reply(
    reply: &str,
    _mode: crate::domain::UpdateMode,
    source: SourceType,
    budget: usize,
    shown: &[String],
) -> Result<AnalystReply, ReplyFault> {
    let reply = object(reply)?;
    let patch = patch_of(&reply)?;
    let items = list(patch, "edits")?;
    let support = reply.get("batch_size").and_then(whole_number).unwrap_or(shown.len()).max(1);
    let mut left_out = Vec::new();
    let mut edits = Vec::new();
    for (position, item) in items.iter().enumerate() {
        match edit(item) {
            Ok(mut edit) => {
                edit.source_type = source;
                if item.get("support_count").and_then(whole_number).is_none() {
                    edit.support_count = saturated(support);
                }
                edit.motivated_by.retain(|item| shown.contains(item));
                if edit.motivated_by.is_empty() {
                    edit.motivated_by = shown.to_vec();
                }
                if edit.op == EditOp::Unknown {
                    left_out.push(format!("edit {}: {}", position + 1, unknown_op(item)));
                }
                edits.push(edit);
            }
            Err(reason) => left_out.push(format!("edit {}: {reason}", position + 1)),
        }
    }
    if edits.is_empty() && !left_out.is_empty() {
        left_out.truncate(5);
        return Err(ReplyFault::NoUsableEdit { reasons: left_out.join("; ") });
    }
    if edits.len() > budget {
        left_out.push(format!(
            "the budget of {budget} leaves out {} of {} edits",
            edits.len() - budget,
            edits.len()
        ));
        edits.truncate(budget);
    }
    let patch = Patch { reasoning: text(patch, "reasoning"), edits };
    Ok(AnalystReply {
        patch,
        failures: failure_notes(&reply),
        success_patterns: Vec::new(),
        appendix_notes: Vec::new(),
        left_out,
    })
}

/// Reads a merge reply. `level` is stamped on every edit (`None` for the final merge). An edit equal to one of
/// `merged` inherits what the reply leaves out; any other is motivated by the items of all of them. A single malformed
/// edit refuses the reply, and so does an empty list: the unmerged edits are worth more than a gap.
pub fn merge_reply(
    reply: &str,
    _mode: crate::domain::UpdateMode,
    level: Option<u32>,
    source: Option<SourceType>,
    merged: &[Patch],
) -> Result<Patch, ReplyFault> {
    let reply = object(reply)?;
    let items = list(&reply, "edits")?;
    let parents: Vec<&Edit> = merged.iter().flat_map(|patch| &patch.edits).collect();
    if items.is_empty() && !parents.is_empty() {
        return Err(ReplyFault::EmptyMerge);
    }
    let mut edits = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        let mut edit = edit(item).map_err(|reason| ReplyFault::BadEdit { number: position + 1, reason })?;
        inherit(&mut edit, item, &parents);
        if let Some(source) = source {
            edit.source_type = source;
        }
        if level.is_some() {
            edit.merge_level = level;
        }
        edits.push(edit);
    }
    Ok(Patch { reasoning: text(&reply, "reasoning"), edits })
}

fn inherit(edit: &mut Edit, item: &Value, parents: &[&Edit]) {
    let same = |parent: &&&Edit| {
        parent.op == edit.op && parent.target == edit.target && parent.content.trim() == edit.content.trim()
    };
    let twin = parents.iter().find(same).copied();
    let known = |id: &String| parents.iter().any(|parent| parent.motivated_by.contains(id));
    edit.motivated_by.retain(known);
    if edit.motivated_by.is_empty() {
        let origins = twin.map_or_else(|| parents.to_vec(), |twin| vec![twin]);
        for id in origins.into_iter().flat_map(|parent| &parent.motivated_by) {
            if !edit.motivated_by.contains(id) {
                edit.motivated_by.push(id.clone());
            }
        }
    }
    let Some(twin) = twin else { return };
    if edit.rationale.is_empty() {
        edit.rationale.clone_from(&twin.rationale);
    }
    if item.get("support_count").and_then(whole_number).is_none() {
        edit.support_count = twin.support_count;
    }
    if item.get("source_type").and_then(source).is_none() {
        edit.source_type = twin.source_type;
    }
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
        Some(other) => Err(ReplyFault::NoList { key, found: kind(other) }),
    }
}

pub(super) fn text(object: &Map<String, Value>, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The inner `patch`; a reply that leaves the wrapper out but has edits is understood too.
fn patch_of(reply: &Map<String, Value>) -> Result<&Map<String, Value>, ReplyFault> {
    const KEY: &str = "patch";
    match reply.get(KEY) {
        Some(Value::Object(patch)) => Ok(patch),
        Some(other) => Err(ReplyFault::NoObject { found: kind(other) }),
        None => match reply.get("edits") {
            Some(Value::Array(edits)) if !edits.is_empty() => Ok(reply),
            _ => Err(ReplyFault::Missing { key: KEY }),
        },
    }
}

/// One edit of the contract. `target`, `content` and `rationale` may be absent or null (then ""), never another type.
fn edit(item: &Value) -> Result<Edit, String> {
    let Value::Object(fields) = item else { return Err(format!("{} instead of an object", kind(item))) };
    let optional = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(format!("`{key}` is {}, not text", kind(other))),
    };
    let ids = fields.get("motivated_by").and_then(Value::as_array);
    Ok(Edit {
        op: match optional("op")?.as_str() {
            "append" => EditOp::Append,
            "insert_after" => EditOp::InsertAfter,
            "replace" => EditOp::Replace,
            "delete" => EditOp::Delete,
            _ => EditOp::Unknown,
        },
        target: optional("target")?,
        content: optional("content")?,
        support_count: fields.get("support_count").and_then(whole_number).map_or(1, saturated),
        source_type: fields.get("source_type").and_then(source).unwrap_or_default(),
        merge_level: None,
        priority: None,
        rationale: optional("rationale")?,
        motivated_by: ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

fn unknown_op(item: &Value) -> String {
    match item.get("op").and_then(Value::as_str) {
        Some(op) => format!("unknown op {:?}", op.chars().take(40).collect::<String>()),
        None => "no op".to_owned(),
    }
}

fn source(value: &Value) -> Option<SourceType> {
    match value.as_str()? {
        "failure" => Some(SourceType::Failure),
        "success" => Some(SourceType::Success),
        _ => None,
    }
}

fn failure_notes(reply: &Map<String, Value>) -> Vec<FailureNote> {
    let rows = reply.get("failure_summary").and_then(Value::as_array);
    let note = |row: &Value| {
        let row = row.as_object()?;
        let (failure_type, description) = (text(row, "failure_type"), text(row, "description"));
        let count = row.get("count").and_then(whole_number);
        (!failure_type.trim().is_empty()).then_some(FailureNote { failure_type, count, description })
    };
    rows.into_iter().flatten().filter_map(note).collect()
}

/// A count as models write it: a number (cut to an integer) or a text of digits; not negative, not a boolean.
fn whole_number(value: &Value) -> Option<usize> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| (0.0..=1e9).contains(number))?;
            Some(number as usize)
        }
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn saturated(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
