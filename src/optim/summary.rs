//! Proposals in one line, for memories and histories. Owns the wording; must not cut what a model is to copy.

use super::material::quoted;
use crate::domain::{Edit, EditOp, UpdateMode};

/// Longest quoted piece of a model's text, in characters.
pub const QUOTE: usize = 400;
/// Longest quoted piece where many proposals are listed.
const LISTED: usize = 220;

/// What was tried: `[replace] target="a" → "b"`, `[clarify] "title" → "instruction"`, `[rewrite] "title" → "change; change"`.
pub fn attempted(edit: &Edit) -> String {
    let quoted = |text: &str| quoted(text, QUOTE);
    let (target, content) = (edit.target.as_str(), edit.content.as_str());
    match edit.op {
        EditOp::Append | EditOp::InsertAfter | EditOp::Replace | EditOp::Delete | EditOp::Unknown => {
            let op = if edit.op == EditOp::Unknown { "?" } else { edit.op.name() };
            match (target.is_empty(), content.is_empty()) {
                (true, _) => format!("[{op}] {}", quoted(content)),
                (false, true) => format!("[{op}] target={}", quoted(target)),
                (false, false) => format!("[{op}] target={} → {}", quoted(target), quoted(content)),
            }
        }
        EditOp::AddRule
        | EditOp::RemoveRule
        | EditOp::MergeRules
        | EditOp::Reorganize
        | EditOp::Compress
        | EditOp::Clarify => format!("[{}] {} → {}", edit.op.name(), quoted(target), quoted(content)),
        // The document itself is the candidate that the gate judged.
        EditOp::Rewrite => {
            format!("[rewrite] {} → {}", quoted(target), quoted(&edit.rationale.replace('\n', "; ")))
        }
    }
}

/// All that matters of a proposal: `op=append  content="x"  support=3`.
pub fn described(edit: &Edit, mode: UpdateMode) -> String {
    let quoted = |text: &str| quoted(text, LISTED);
    let mut parts = Vec::new();
    let mut part = |name: &str, text: &str| {
        if !text.is_empty() {
            parts.push(format!("{name}={}", quoted(text)));
        }
    };
    match mode {
        UpdateMode::Patch => {
            part("target", &edit.target);
            part("content", &edit.content);
            parts.insert(0, format!("op={}", edit.op.name()));
        }
        UpdateMode::RewriteFromSuggestions => {
            part("title", &edit.target);
            part("instruction", &edit.content);
            parts.insert(0, format!("type={}", edit.op.name()));
            parts.extend(edit.priority.map(|priority| format!("priority={}", priority.name())));
        }
        UpdateMode::FullRewriteMinibatch => {
            part("title", &edit.target);
            part("change_summary", &edit.rationale.replace('\n', "; "));
            part("new_skill", edit.content.trim());
            parts.push(format!("source={}", edit.source_type.name()));
        }
    }
    parts.push(format!("support={}", edit.support_count));
    parts.join("  ")
}
