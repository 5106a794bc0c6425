//! Proposals in the shape each update mode has in files: edits, suggestions or whole documents under the mode's key.
//! Owns names only; must not change what was proposed.

use serde_json::{Map, Value, json};

use crate::domain::{Edit, Patch, UpdateMode};

/// Longest quotation in a short form, in characters.
const SHORT: usize = 200;

/// `{"reasoning": …, "<items>": […]}`.
pub(super) fn patch(mode: UpdateMode, patch: &Patch) -> Map<String, Value> {
    let items = patch.edits.iter().map(|edit| item(mode, edit)).collect();
    Map::from_iter([
        ("reasoning".to_owned(), json!(patch.reasoning)),
        (mode.items_key().to_owned(), Value::Array(items)),
    ])
}

/// One proposal with everything that is known of it.
pub(super) fn item(mode: UpdateMode, edit: &Edit) -> Value {
    let mut item = match mode {
        UpdateMode::Patch => return json!(edit),
        UpdateMode::RewriteFromSuggestions => json!({
            "type": edit.op.name(),
            "title": edit.target,
            "motivation": edit.rationale,
            "instruction": edit.content,
        }),
        UpdateMode::FullRewriteMinibatch => json!({
            "title": edit.target,
            "change_summary": edit.rationale.lines().collect::<Vec<_>>(),
            "new_skill": edit.content,
        }),
    };
    if let Some(priority) = edit.priority {
        item["priority_hint"] = json!(priority);
    }
    item["source_type"] = json!(edit.source_type);
    item["support_count"] = json!(edit.support_count);
    if let Some(level) = edit.merge_level {
        item["merge_level"] = json!(level);
    }
    if !edit.motivated_by.is_empty() {
        item["motivated_by"] = json!(edit.motivated_by);
    }
    item
}

/// A proposal as a digest quotes it.
pub(super) fn short(mode: UpdateMode, edit: &Edit) -> Value {
    let cut = |text: &str| text.chars().take(SHORT).collect::<String>();
    match mode {
        UpdateMode::Patch => {
            json!({ "op": edit.op, "content": cut(&edit.content), "target": cut(&edit.target) })
        }
        UpdateMode::RewriteFromSuggestions => json!({
            "type": edit.op.name(),
            "title": cut(&edit.target),
            "instruction": cut(&edit.content),
        }),
        UpdateMode::FullRewriteMinibatch => json!({
            "title": cut(&edit.target),
            "change_summary": edit.rationale.lines().map(cut).collect::<Vec<_>>(),
            "source_type": edit.source_type,
        }),
    }
}
