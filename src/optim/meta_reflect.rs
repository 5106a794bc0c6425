//! One revision from the whole history of an epoch: which edits were tried and what the gate said. Owns how the history
//! is worded and the reply is read; must not apply or judge the revision.

use super::analyst::analyst_reply;
use super::reply::{ReplyFault, object, text};
use super::summary::described;
use crate::domain::{Edit, Patch, SourceType, UpdateMode};

/// What a step selected for application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Selected<'a> {
    /// The step ended before anything was selected.
    Skipped,
    None,
    Edits(&'a [Edit]),
}

/// A step of the epoch as the history tells it.
#[derive(Clone, Copy, Debug)]
pub struct HistoryStep<'a> {
    pub step: u32,
    pub action: &'a str,
    pub selection_hard: Option<f64>,
    /// Stands in for a step that was not measured.
    pub current_score: Option<f64>,
    pub best_score: Option<f64>,
    pub selected: Selected<'a>,
    pub n_total: usize,
    pub n_fail: usize,
    /// (pattern text, count, item ids)
    pub patterns: &'a [(String, usize, Vec<String>)],
}

/// Proposals that a meta-reflection makes in a run of `mode`: it revises the document, so where whole documents are
/// proposed otherwise it makes edits.
pub fn meta_reflect_mode(mode: UpdateMode) -> UpdateMode {
    match mode {
        UpdateMode::Patch | UpdateMode::FullRewriteMinibatch => UpdateMode::Patch,
        UpdateMode::RewriteFromSuggestions => UpdateMode::RewriteFromSuggestions,
    }
}

/// The steps with their scores, selected proposals and failure patterns, in order.
pub fn epoch_history(steps: &[HistoryStep<'_>], mode: UpdateMode) -> String {
    let steps: Vec<String> = steps.iter().map(|step| step_text(step, mode)).collect();
    steps.join("\n\n")
}

fn step_text(step: &HistoryStep<'_>, mode: UpdateMode) -> String {
    let score = |score: Option<f64>| score.map_or_else(|| "?".to_owned(), |score| format!("{score:?}"));
    let gate = score(step.selection_hard.or(step.current_score));
    let (action, best) = (step.action.to_uppercase(), score(step.best_score));
    let mut lines = vec![format!("### Step {} — gate: {gate}, {action}, best_so_far: {best}", step.step)];
    let noun = mode.noun();
    match step.selected {
        Selected::Skipped => lines.push(format!("Selected {noun}s: (skipped)")),
        Selected::None | Selected::Edits([]) => lines.push(format!("Selected {noun}s: (none)")),
        Selected::Edits(edits) => {
            lines.push(format!("Selected {noun}s:"));
            let rows = edits.iter().enumerate();
            lines.extend(rows.map(|(i, edit)| format!("  {}. {}", i + 1, described(edit, mode))));
        }
    }
    if !step.patterns.is_empty() {
        lines.push(format!("Failure patterns ({}/{} tasks failed):", step.n_fail, step.n_total));
        let rows = step.patterns.iter();
        lines.extend(rows.map(|(pattern, count, _)| format!("  - \"{pattern}\" (×{count})")));
    }
    lines.join("\n")
}

/// Reads the reply: the summary for the next epoch ("" when it has none), and a patch of at most `budget` proposals of
/// [`meta_reflect_mode`].
pub fn meta_reflect_reply(
    reply: &str,
    mode: UpdateMode,
    budget: usize,
) -> Result<(String, Patch), ReplyFault> {
    let summary = text(&object(reply)?, "meta_summary").trim().to_owned();
    // Its patch is an analyst's, of no items in particular.
    let reply = analyst_reply(reply, meta_reflect_mode(mode), SourceType::Failure, budget, &[])?;
    Ok((summary, reply.patch))
}
