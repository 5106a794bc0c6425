//! Reads an analyst's reply: proposals, kinds of failures or successes seen, notes on lapses. Owns the contract of the
//! analyst prompts.

use serde_json::{Map, Value};

use super::appendix::notes_of;
use super::proposal::{proposal, unknown_op};
use super::reply::{ReplyFault, list, object, patch_of, saturated, text, texts, whole_number};
use crate::domain::{EditOp, FailureNote, Patch, SourceType, UpdateMode};

/// A usable analyst reply. The patch may be empty: nothing to propose is a valid answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalystReply {
    pub patch: Patch,
    pub failures: Vec<FailureNote>,
    pub success_patterns: Vec<String>,
    /// On lapses: the skill's rule exists and was not followed.
    pub appendix_notes: Vec<String>,
    /// One line per part of the reply that was left out or is odd, with the reason.
    pub left_out: Vec<String>,
}

/// Reads an analyst's reply about the training items `shown`. Every proposal gets `source`, its support (its own
/// `support_count`, else the reply's `batch_size`, else the number of items shown) and the items that motivated it
/// (those it names among `shown`, else all). The list is cut to `budget`, except for whole documents. Malformed
/// proposals are left out with a note. Failures that are all lapses come with notes and no patch.
pub fn analyst_reply(
    reply: &str,
    mode: UpdateMode,
    source: SourceType,
    budget: usize,
    shown: &[String],
) -> Result<AnalystReply, ReplyFault> {
    let reply = object(reply)?;
    let appendix_notes = notes_of(reply.get("appendix_notes"));
    let lapses_only = source == SourceType::Failure && !appendix_notes.is_empty();
    let (patch, left_out) = match patch_of(&reply, mode.items_key()) {
        Err(ReplyFault::Missing { .. }) if lapses_only => {
            (Patch { reasoning: "execution-lapse only".into(), edits: Vec::new() }, Vec::new())
        }
        patch => proposals(&reply, patch?, mode, source, budget, shown)?,
    };
    let success_patterns = match source {
        SourceType::Failure => Vec::new(),
        SourceType::Success => texts(&reply, "success_patterns"),
    };
    Ok(AnalystReply { patch, failures: failure_notes(&reply), success_patterns, appendix_notes, left_out })
}

fn proposals(
    reply: &Map<String, Value>,
    patch: &Map<String, Value>,
    mode: UpdateMode,
    source: SourceType,
    budget: usize,
    shown: &[String],
) -> Result<(Patch, Vec<String>), ReplyFault> {
    let noun = mode.noun();
    let support = reply.get("batch_size").and_then(whole_number).unwrap_or(shown.len()).max(1);
    let (mut edits, mut left_out) = (Vec::new(), Vec::new());
    for (position, item) in list(patch, mode.items_key())?.iter().enumerate() {
        match proposal(item, mode) {
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
                    left_out.push(format!("{noun} {}: {}", position + 1, unknown_op(item, mode)));
                }
                edits.push(edit);
            }
            Err(reason) => left_out.push(format!("{noun} {}: {reason}", position + 1)),
        }
    }
    if edits.is_empty() && !left_out.is_empty() {
        left_out.truncate(5);
        return Err(ReplyFault::NoUsableItem { noun, reasons: left_out.join("; ") });
    }
    if edits.len() > budget && mode != UpdateMode::FullRewriteMinibatch {
        let (over, total) = (edits.len() - budget, edits.len());
        left_out.push(format!("the budget of {budget} leaves out {over} of {total} {noun}s"));
        edits.truncate(budget);
    }
    Ok((Patch { reasoning: text(patch, "reasoning"), edits }, left_out))
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

#[cfg(test)]
#[path = "analyst_tests.rs"]
mod tests;
