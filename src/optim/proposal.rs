//! Reads one proposal of a reply: an edit, a suggestion or a whole document. Owns what makes one malformed; must not
//! know where it comes from or how many are wanted.

use serde_json::{Map, Value};

use super::reply::{kind, saturated, source, texts, whole_number};
use crate::domain::{Edit, EditOp, Priority, UpdateMode};

/// An item of the list that `mode` names. Texts may be absent or null (then ""), never of another type. An unknown
/// operation is kept, to be reported.
pub fn proposal(item: &Value, mode: UpdateMode) -> Result<Edit, String> {
    let Value::Object(fields) = item else { return Err(format!("{} instead of an object", kind(item))) };
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(format!("`{key}` is {}, not text", kind(other))),
    };
    Ok(match mode {
        UpdateMode::Patch => {
            let op = edit_op(&text("op")?);
            with_origin(op, text("target")?, text("content")?, text("rationale")?, fields)
        }
        UpdateMode::RewriteFromSuggestions => {
            let (title, instruction) = (text("title")?, text("instruction")?);
            if title.trim().is_empty() && instruction.trim().is_empty() {
                return Err("neither `title` nor `instruction`".into());
            }
            let op = suggestion_op(&text("type")?);
            let motivation = text("motivation")?;
            Edit { priority: priority(fields), ..with_origin(op, title, instruction, motivation, fields) }
        }
        UpdateMode::FullRewriteMinibatch => {
            let new_skill = text("new_skill")?;
            if new_skill.trim().is_empty() {
                return Err("no `new_skill`".into());
            }
            let changes = texts(fields, "change_summary");
            let changes: Vec<String> = changes.iter().map(|change| on_one_line(change)).collect();
            with_origin(EditOp::Rewrite, text("title")?, new_skill, changes.join("\n"), fields)
        }
    })
}

/// What to report about an item whose operation is not known.
pub fn unknown_op(item: &Value, mode: UpdateMode) -> String {
    let key = if mode == UpdateMode::Patch { "op" } else { "type" };
    match item.get(key).and_then(Value::as_str) {
        Some(op) => format!("unknown {key} {:?}", op.chars().take(40).collect::<String>()),
        None => format!("no {key}"),
    }
}

fn with_origin(
    op: EditOp,
    target: String,
    content: String,
    rationale: String,
    fields: &Map<String, Value>,
) -> Edit {
    let ids = fields.get("motivated_by").and_then(Value::as_array);
    Edit {
        op,
        target,
        content,
        support_count: fields.get("support_count").and_then(whole_number).map_or(1, saturated),
        source_type: fields.get("source_type").and_then(source).unwrap_or_default(),
        merge_level: None,
        priority: None,
        rationale,
        motivated_by: ids.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

fn edit_op(name: &str) -> EditOp {
    match name {
        "append" => EditOp::Append,
        "insert_after" => EditOp::InsertAfter,
        "replace" => EditOp::Replace,
        "delete" => EditOp::Delete,
        _ => EditOp::Unknown,
    }
}

fn suggestion_op(name: &str) -> EditOp {
    match name {
        "add_rule" => EditOp::AddRule,
        "remove_rule" => EditOp::RemoveRule,
        "merge_rules" => EditOp::MergeRules,
        "reorganize" => EditOp::Reorganize,
        "compress" => EditOp::Compress,
        "clarify" => EditOp::Clarify,
        _ => EditOp::Unknown,
    }
}

fn priority(fields: &Map<String, Value>) -> Option<Priority> {
    match fields.get("priority_hint")?.as_str()?.trim().to_lowercase().as_str() {
        "high" => Some(Priority::High),
        "medium" => Some(Priority::Medium),
        "low" => Some(Priority::Low),
        _ => None,
    }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_suggestion_is_title_instruction_motivation_and_priority() {
        let item = json!({"type": "clarify", "title": "Units", "motivation": "t1 omits them", "instruction": "Say which.",
            "priority_hint": " High", "support_count": "3", "source_type": "success", "motivated_by": ["t1"]});
        let edit = proposal(&item, UpdateMode::RewriteFromSuggestions).unwrap();
        assert_eq!((edit.op, edit.priority, edit.support_count), (EditOp::Clarify, Some(Priority::High), 3));
        assert_eq!(
            (edit.target.as_str(), edit.content.as_str(), edit.rationale.as_str()),
            ("Units", "Say which.", "t1 omits them")
        );
        let odd = json!({"type": "append", "title": "T", "priority_hint": 1});
        let edit = proposal(&odd, UpdateMode::RewriteFromSuggestions).unwrap();
        assert_eq!((edit.op, edit.priority), (EditOp::Unknown, None));
        assert_eq!(unknown_op(&odd, UpdateMode::RewriteFromSuggestions), "unknown type \"append\"");
        let empty = proposal(&json!({"type": "clarify", "title": " "}), UpdateMode::RewriteFromSuggestions);
        assert_eq!(empty, Err("neither `title` nor `instruction`".into()));
    }

    #[test]
    fn a_candidate_is_a_whole_document_with_its_changes_one_per_line() {
        let item = json!({"title": "Shorter", "change_summary": ["a\n b", 5, " c "], "new_skill": "# S\n"});
        let edit = proposal(&item, UpdateMode::FullRewriteMinibatch).unwrap();
        assert_eq!(
            (edit.op, edit.content.as_str(), edit.rationale.as_str()),
            (EditOp::Rewrite, "# S\n", "a b\nc")
        );
        for item in [json!({"new_skill": " \n"}), json!({"title": "T"})] {
            assert_eq!(proposal(&item, UpdateMode::FullRewriteMinibatch), Err("no `new_skill`".into()));
        }
    }

    #[test]
    fn what_was_read_is_written_in_the_same_shape() {
        let items = [
            (
                UpdateMode::Patch,
                json!({"op": "replace", "target": "a", "content": "b", "rationale": "r",
                "support_count": 2, "source_type": "success", "motivated_by": ["t1"]}),
            ),
            (
                UpdateMode::RewriteFromSuggestions,
                json!({"type": "add_rule", "title": "a", "motivation": "r",
                "instruction": "b", "priority_hint": "low", "support_count": 1, "source_type": "failure"}),
            ),
            (
                UpdateMode::FullRewriteMinibatch,
                json!({"title": "a", "change_summary": ["r", "s"], "new_skill": "b",
                "support_count": 1, "source_type": "failure"}),
            ),
        ];
        for (mode, item) in items {
            assert_eq!(proposal(&item, mode).unwrap().as_item(mode), item, "{mode:?}");
        }
    }
}
