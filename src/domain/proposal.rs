//! The JSON shape of proposals in replies, prompts and files, one per update mode; names are SkillOpt's.
//! Must not read replies or change what was proposed.

use serde_json::{Value, json};

use super::{Edit, Patch, SourceType, UpdateMode};

/// Longest quotation in a short form, in characters.
const SHORT: usize = 200;

impl Edit {
    /// The proposal with everything that is known of it, as an item of the list that [`UpdateMode::items_key`] names.
    pub fn as_item(&self, mode: UpdateMode) -> Value {
        let mut item = match mode {
            UpdateMode::Patch => return json!(self),
            UpdateMode::RewriteFromSuggestions => json!({
                "type": self.op.name(),
                "title": self.target,
                "motivation": self.rationale,
                "instruction": self.content,
            }),
            UpdateMode::FullRewriteMinibatch => json!({
                "title": self.target,
                "change_summary": self.rationale.lines().collect::<Vec<_>>(),
                "new_skill": self.content,
            }),
        };
        if let Some(priority) = self.priority {
            item["priority_hint"] = json!(priority);
        }
        item["source_type"] = json!(self.source_type);
        item["support_count"] = json!(self.support_count);
        if let Some(level) = self.merge_level {
            item["merge_level"] = json!(level);
        }
        if !self.motivated_by.is_empty() {
            item["motivated_by"] = json!(self.motivated_by);
        }
        item
    }

    /// The proposal as a digest quotes it.
    pub fn as_digest(&self, mode: UpdateMode) -> Value {
        let cut = |text: &str| text.chars().take(SHORT).collect::<String>();
        match mode {
            UpdateMode::Patch => {
                json!({ "op": self.op, "content": cut(&self.content), "target": cut(&self.target) })
            }
            UpdateMode::RewriteFromSuggestions => json!({
                "type": self.op.name(),
                "title": cut(&self.target),
                "instruction": cut(&self.content),
            }),
            UpdateMode::FullRewriteMinibatch => json!({
                "title": cut(&self.target),
                "change_summary": self.rationale.lines().map(cut).collect::<Vec<_>>(),
                "source_type": self.source_type,
            }),
        }
    }
}

impl Patch {
    /// `{"reasoning": …, "edits" | "revise_suggestions" | "skill_candidates": […]}`
    pub fn as_payload(&self, mode: UpdateMode) -> Value {
        let items: Vec<Value> = self.edits.iter().map(|edit| edit.as_item(mode)).collect();
        json!({"reasoning": self.reasoning, mode.items_key(): items})
    }
}

impl SourceType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Success => "success",
        }
    }
}
