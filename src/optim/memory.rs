//! What the steps of an epoch remember for the optimiser: failure patterns, and edits that did not survive. Owns how
//! both are worded; must not decide what is remembered when.

use super::material::one_line;
use super::summary::{QUOTE, attempted};
use crate::domain::{Edit, FailedAttempt, ReviewerNote, StepMemory};

/// Longest comment of a reviewer that is quoted, in characters.
const COMMENT: usize = 4096;

/// An edit that the gate rejected.
pub fn failed_attempt(edit: &Edit) -> FailedAttempt {
    FailedAttempt { summary: attempted(edit), why: "gate".into() }
}

/// An edit that a reviewer refused. The reason is quoted to later reflections; it may be empty.
pub fn reviewer_refusal(edit: &Edit, reason: &str) -> FailedAttempt {
    let why = match reason.trim() {
        "" => "rejected by reviewer".to_owned(),
        reason => format!("rejected by reviewer because {}", one_line(reason, QUOTE)),
    };
    FailedAttempt { summary: attempted(edit), why }
}

/// Words of a reviewer on an edit, or on the step as a whole.
pub fn reviewer_note(edit: Option<&Edit>, text: &str) -> ReviewerNote {
    ReviewerNote { about: edit.map(attempted).unwrap_or_default(), text: text.to_owned() }
}

/// The memory as a prompt shows it: per step a heading, its failure patterns, the edits that the gate rejected with the
/// scores, the edits that a reviewer refused with the reasons, and what else the reviewer said. Empty without earlier steps.
pub fn memory_text(memory: &[StepMemory]) -> String {
    let mut lines = Vec::new();
    for step in memory {
        let total = if step.n_total == 0 { "?".to_owned() } else { step.n_total.to_string() };
        let action = step.action.to_uppercase();
        lines.push(format!("### Step {} — {action} ({}/{total} failed)", step.step, step.n_fail));
        for (pattern, count, items) in &step.failure_patterns {
            lines.push(format!("  - \"{pattern}\" (×{count}, tasks: {})", items.join(", ")));
        }
        let (gate, reviewer): (Vec<_>, Vec<_>) =
            step.failed_attempts.iter().partition(|attempt| attempt.why == "gate");
        if !gate.is_empty() {
            let most = if step.at_most { "at most " } else { "" };
            let scores = step
                .scores
                .map_or_else(String::new, |(before, after)| format!(" (score {before} → {most}{after})"));
            lines.push(format!("  Rejected edits{scores}:"));
            let rows = gate.iter().enumerate();
            lines.extend(rows.map(|(i, attempt)| format!("    {}. {}", i + 1, attempt.summary)));
        }
        if !reviewer.is_empty() {
            lines.push("  Edits a reviewer refused:".to_owned());
            let rows = reviewer.iter().enumerate();
            lines.extend(
                rows.map(|(i, attempt)| format!("    {}. {}: {}", i + 1, attempt.summary, attempt.why)),
            );
        }
        if !step.reviewer_notes.is_empty() {
            lines.push("  A reviewer's comments:".to_owned());
            let rows = step.reviewer_notes.iter().enumerate();
            lines.extend(rows.map(|(i, note)| {
                let about = if note.about.is_empty() { "on the step" } else { &note.about };
                format!("    {}. {about}: {}", i + 1, one_line(&note.text, COMMENT))
            }));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::EditOp;

    fn edit(op: EditOp, target: &str, content: &str) -> Edit {
        let value = serde_json::json!({"op": op, "target": target, "content": content});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn refused_edits_are_told_with_the_reviewers_reason() {
        let step = StepMemory {
            step: 2,
            action: "accept".into(),
            n_total: 4,
            n_fail: 1,
            failure_patterns: Vec::new(),
            scores: None,
            at_most: false,
            failed_attempts: vec![
                reviewer_refusal(&edit(EditOp::Append, "", "Say \"no\"\n"), " too harsh "),
                reviewer_refusal(&edit(EditOp::Delete, "- a", ""), ""),
                failed_attempt(&edit(EditOp::InsertAfter, "- a", "- b")),
            ],
            reviewer_notes: vec![
                reviewer_note(Some(&edit(EditOp::Delete, "- a", "")), "keep\nit"),
                reviewer_note(None, "fewer rules"),
            ],
        };
        assert_eq!(
            memory_text(&[step]),
            "### Step 2 — ACCEPT (1/4 failed)\n  Rejected edits:\n    1. [insert_after] target=\"- a\" → \"- b\"\n  \
             Edits a reviewer refused:\n    1. [append] \"Say \\\"no\\\"\\n\": rejected by reviewer because too harsh\n    \
             2. [delete] target=\"- a\": rejected by reviewer\n  \
             A reviewer's comments:\n    1. [delete] target=\"- a\": keep it\n    2. on the step: fewer rules"
        );
    }

    #[test]
    fn a_huge_edit_is_quoted_short_and_on_one_line() {
        let summary = failed_attempt(&edit(EditOp::Append, "", &"é\n".repeat(10_000))).summary;
        assert!(summary.chars().count() < 3 * QUOTE && !summary.contains('\n') && summary.ends_with("…\""));
    }
}
