//! The JSON shape of proposals in replies, prompts and files, one per update mode; names are SkillOpt's.
//! Must not read replies.

use serde_json::{Map, Value, json};

use super::{Edit, Patch, Priority, SourceType, UpdateMode};

impl Edit {
    /// The proposal as an item of the list that [`UpdateMode::items_key`] names.
    pub fn as_item(&self, mode: UpdateMode) -> Value {
        let mut item = match mode {
            UpdateMode::Patch => json!({"op": self.op, "target": self.target, "content": self.content}),
            UpdateMode::RewriteFromSuggestions => json!({
                "type": self.op,
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
        if let Value::Object(fields) = &mut item {
            self.add_origin(fields, mode);
        }
        item
    }

    fn add_origin(&self, fields: &mut Map<String, Value>, mode: UpdateMode) {
        if mode == UpdateMode::Patch && !self.rationale.is_empty() {
            fields.insert("rationale".into(), json!(self.rationale));
        }
        if let Some(priority) = self.priority {
            fields.insert("priority_hint".into(), json!(priority));
        }
        fields.insert("support_count".into(), json!(self.support_count));
        fields.insert("source_type".into(), json!(self.source_type));
        if let Some(level) = self.merge_level {
            fields.insert("merge_level".into(), json!(level));
        }
        if !self.motivated_by.is_empty() {
            fields.insert("motivated_by".into(), json!(self.motivated_by));
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

impl Priority {
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
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
