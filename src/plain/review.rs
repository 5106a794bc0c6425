//! The words of a review without a screen: one question a line, numbered answers, no drawing, so that a screen reader
//! can read them aloud.

use super::describe::{count, edit_title};
use crate::domain::{Decision, EditOp, StepRef, UpdateMode};
use crate::event::{ReviewEdit, ReviewState};
use crate::text::{sanitize, sanitize_line, truncate};

/// Longest title in a line, in columns.
const TITLE: usize = 100;
/// Most lines of one text read out; the rest is counted.
const LINES: usize = 60;

/// What can be answered about an edit.
pub const EDIT_ANSWERS: &str = "1 accept, 2 reject, 3 amend, 4 comment, 5 show the text, 6 skip, 7 submit:";

/// How a review is decided where no question can be asked.
pub fn how_to_decide(run: &str) -> String {
    format!(
        "decide with `planish ctl {run} decide EDIT --accept`, `--reject --reason WHY` or `--amend FILE`, \
         then `planish ctl {run} submit`"
    )
}

/// The beginning of a review.
pub fn opening(at: StepRef, review: &ReviewState) -> String {
    let noun = UpdateMode::of_review(review).noun();
    format!("Review of step {}: {}.", at.step, count(review.edits.len(), noun))
}

/// What an edit is, before the question about it.
pub fn title_line(number: usize, slot: &ReviewEdit) -> String {
    let title = edit_title(&decided(slot));
    let words: Vec<&str> = title.split_whitespace().collect();
    truncate(&format!("Edit {number}: {}", words.join(" ")), TITLE)
}

/// `Edit 2 of 5, add rule, supported by 14 of 32. 1 accept, …`. `rollouts`: of the step.
pub fn edit_question(number: usize, review: &ReviewState, slot: &ReviewEdit, rollouts: usize) -> String {
    let of = review.edits.len();
    let op = slot.edit.op.name().replace('_', " ");
    let n = slot.edit.support_count;
    let support = if rollouts > 0 { format!("{n} of {rollouts}") } else { n.to_string() };
    let stands = match standing_words(slot) {
        Some(words) => format!(", {words}"),
        None => String::new(),
    };
    format!("Edit {number} of {of}, {op}, supported by {support}{stands}. {EDIT_ANSWERS}")
}

/// `accepted by ann@pts/1`; nothing for an undecided edit.
pub fn standing_words(slot: &ReviewEdit) -> Option<String> {
    let word = match &slot.decision {
        Decision::Undecided => return None,
        Decision::Accept => "accepted",
        Decision::Reject { .. } => "rejected",
        Decision::Amend { .. } => "amended and accepted",
    };
    Some(match &slot.by {
        Some(by) => format!("{word} by {}", sanitize_line(&by.0)),
        None => word.to_owned(),
    })
}

/// `Submit the review of step 3? 2 accepted, 1 rejected, 1 undecided counts as accepted. 1 submit, …`.
pub fn submit_question(at: StepRef, review: &ReviewState) -> String {
    let n = |wanted: fn(&Decision) -> bool| review.edits.iter().filter(|one| wanted(&one.decision)).count();
    let accepted = n(|one| matches!(one, Decision::Accept | Decision::Amend { .. }));
    let rejected = n(|one| matches!(one, Decision::Reject { .. }));
    let open = match n(|one| *one == Decision::Undecided) {
        0 => String::new(),
        1 => ", 1 undecided counts as accepted".to_owned(),
        open => format!(", {open} undecided count as accepted"),
    };
    format!(
        "Submit the review of step {}? {accepted} accepted, {rejected} rejected{open}. \
         1 submit, 2 back to the edits:",
        at.step
    )
}

pub fn reason_question(number: usize) -> String {
    format!("Why is edit {number} rejected? The optimiser is told. An empty line gives no reason:")
}

pub fn comment_question(number: usize) -> String {
    format!("Your comment on edit {number} for the optimiser. An empty line says nothing:")
}

/// The texts of an edit, why it was proposed, and what was said about it.
pub fn edit_text(number: usize, review: &ReviewState, slot: &ReviewEdit) -> Vec<String> {
    let edit = decided(slot);
    let (before, after) = match edit.op {
        EditOp::Append => ("", "Text to add at the end:"),
        EditOp::InsertAfter => ("After this text:", "this is added:"),
        EditOp::Replace => ("This text:", "is replaced by:"),
        EditOp::Delete => ("Text to delete:", ""),
        EditOp::AddRule
        | EditOp::RemoveRule
        | EditOp::MergeRules
        | EditOp::Reorganize
        | EditOp::Compress
        | EditOp::Clarify => ("Title:", "Instruction:"),
        EditOp::Rewrite => ("Title:", "The whole new text:"),
        EditOp::Unknown => ("Target:", "Text:"),
    };
    let mut out = Vec::new();
    for (words, text) in [(before, &edit.target), (after, &edit.content)] {
        if !words.is_empty() && !text.trim().is_empty() {
            out.push(words.to_owned());
            out.extend(read_out(text));
        }
    }
    if !edit.rationale.trim().is_empty() {
        out.push("Why:".to_owned());
        out.extend(read_out(&edit.rationale));
    }
    if !edit.motivated_by.is_empty() {
        out.push(format!("Motivated by: {}.", edit.motivated_by.join(", ")));
    }
    let said = review.comments.iter().filter(|comment| comment.edit.is_none_or(|edit| edit + 1 == number));
    out.extend(said.map(|comment| format!("Comment by {}: {}", comment.by.0, comment.text)));
    out
}

/// The edit as it would be applied.
fn decided(slot: &ReviewEdit) -> crate::domain::Edit {
    match &slot.decision {
        Decision::Amend { content, .. } => slot.edit.amended(content),
        Decision::Undecided | Decision::Accept | Decision::Reject { .. } => slot.edit.clone(),
    }
}

/// Indented, so that no text can pass for a question.
fn read_out(text: &str) -> Vec<String> {
    let clean = sanitize(text.trim_matches(['\n', '\r']));
    let mut lines: Vec<String> = clean.split('\n').take(LINES).map(|line| format!("  {line}")).collect();
    let all = clean.split('\n').count();
    if all > LINES {
        lines.push(format!("and {} more", count(all - LINES, "line")));
    }
    lines
}

impl UpdateMode {
    /// What the proposals of a review are.
    pub fn of_review(review: &ReviewState) -> Self {
        review.edits.iter().find_map(|slot| slot.edit.op.mode()).unwrap_or_default()
    }
}
