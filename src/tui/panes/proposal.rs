//! What pane 4 says about the selected proposal and about its step, between the list and the diff.

use super::gate::Lines;
use crate::domain::{Decision, EditOp, SourceType, UpdateMode};
use crate::event::{ReviewEdit, ReviewState, StepState};
use crate::plain::{appendix_words, budget_words, count};
use crate::text::{sanitize, wrap};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::patch::PatchAction;
use crate::tui::paint::{span, wrap_spans};
use crate::tui::patch_doc::{PatchDoc, Standing, as_decided, review_mode};
use crate::tui::theme::Role;

/// About the proposal at `selected`.
pub(super) fn lines(
    app: &App,
    review: &ReviewState,
    doc: &PatchDoc,
    selected: usize,
    columns: usize,
) -> Lines {
    let slot = &review.edits[selected];
    let mut lines = Lines::new();
    if let Decision::Reject { reason } = &slot.decision {
        let why = if reason.is_empty() { "no reason given" } else { reason };
        let wrapped = wrap_spans(&[span(Role::Bad, "rejected: "), span(Role::Text, why)], columns);
        lines.extend(wrapped.into_iter().take(2));
    }
    if !doc.trouble[selected].is_empty() {
        lines.push(vec![span(Role::Warn, doc.trouble[selected].as_str())]);
    }
    if doc.hidden[selected] > 0 {
        let words = format!("{}: the text applied is not just what is shown", hides(doc.hidden[selected]));
        lines.extend(wrap_spans(&[span(Role::Warn, words)], columns));
    }
    if let Standing::Partly { taken, of } = doc.standings[selected] {
        let lines_key = app.press_for(Action::Patch(PatchAction::Lines));
        let of = count(of, "changed line");
        let words = format!("accepted in part: {taken} of {of}, {lines_key} shows which");
        lines.push(vec![span(Role::Good, words)]);
    } else if doc.standings[selected] == Standing::Amended {
        lines.push(vec![span(Role::Good, "edited by hand, accepted as amended")]);
    }
    lines.extend(comments(review, Some(selected), columns));
    match review_mode(review) {
        UpdateMode::Patch => {
            if app.patch.rationale {
                lines.extend(rationale(slot, columns));
            }
            if doc.group_of(selected).is_none() {
                lines.extend(own_text(slot, columns));
            }
        }
        UpdateMode::RewriteFromSuggestions => {
            let instruction = as_decided(slot).content;
            let clean = sanitize(instruction.trim());
            let wrapped = wrap(&clean, columns).into_iter().take(6);
            lines.extend(wrapped.map(|line| vec![span(Role::Text, line)]));
            if app.patch.rationale {
                lines.extend(rationale(slot, columns));
            }
        }
        UpdateMode::FullRewriteMinibatch => {
            for change in slot.edit.rationale.lines().take(4) {
                lines.extend(bullet(change, columns));
            }
            if app.patch.rationale {
                lines.extend(items(slot, columns));
            }
        }
    }
    lines
}

/// What was said to the optimiser about an edit, or about the step; the last words first.
fn comments(review: &ReviewState, edit: Option<usize>, columns: usize) -> Lines {
    let said = review.comments.iter().rev().filter(|comment| comment.edit == edit);
    said.take(3)
        .flat_map(|comment| {
            let words = [
                span(Role::Title, "comment "),
                span(Role::Dim, format!("{}: ", comment.by.0)),
                span(Role::Text, comment.text.as_str()),
            ];
            wrap_spans(&words, columns).into_iter().take(3)
        })
        .collect()
}

pub(super) fn hides(n: usize) -> String {
    format!("hides {}", count(n, "control character"))
}

/// About the step as a whole: who set the budget, what a rewrite changed, what went into the appendix.
pub(super) fn of_step(app: &App, step: &StepState, columns: usize) -> Lines {
    let mut lines = Lines::new();
    if let Some(review) = &step.review {
        lines.extend(comments(review, None, columns));
    }
    if let Some(decision) = &step.lr_decision {
        lines.push(vec![span(Role::Dim, budget_words(decision))]);
        if app.patch.rationale {
            let why = [span(Role::Title, "why "), span(Role::Text, decision.reasoning.as_str())];
            lines.extend(wrap_spans(&why, columns).into_iter().take(3));
            for risk in decision.risk_notes.iter().take(2) {
                lines.extend(bullet(&format!("risk: {risk}"), columns));
            }
        }
    }
    if let Some(rewrite) = &step.rewrite {
        let changes = count(rewrite.change_summary.len(), "change");
        lines.push(vec![span(Role::Dim, format!("rewritten as a whole, {changes}"))]);
        for change in rewrite.change_summary.iter().take(3) {
            lines.extend(bullet(change, columns));
        }
    }
    if step.regions_restored {
        lines.push(vec![span(Role::Warn, "the new text had changed protected regions: they were put back")]);
    }
    if let Some(flush) = &step.appendix {
        lines.push(vec![span(Role::Dim, appendix_words(flush))]);
        if app.patch.rationale {
            for note in flush.consolidated.as_ref().unwrap_or(&flush.step_notes).iter().take(5) {
                lines.extend(bullet(note, columns));
            }
        }
    }
    lines
}

/// One item of a list, cut to one row.
fn bullet(text: &str, columns: usize) -> Option<Vec<crate::tui::paint::Span>> {
    wrap_spans(&[span(Role::Dim, "· "), span(Role::Text, text)], columns).into_iter().next()
}

fn rationale(slot: &ReviewEdit, columns: usize) -> Lines {
    let why = if slot.edit.rationale.is_empty() { "(none given)" } else { slot.edit.rationale.as_str() };
    let mut lines = wrap_spans(&[span(Role::Title, "why "), span(Role::Text, why)], columns);
    lines.truncate(5);
    lines.extend(items(slot, columns));
    lines
}

fn items(slot: &ReviewEdit, columns: usize) -> Lines {
    let source = match slot.edit.source_type {
        SourceType::Failure => "from failures",
        SourceType::Success => "from successes",
    };
    let items = if slot.edit.motivated_by.is_empty() {
        "(not recorded)".to_owned()
    } else {
        slot.edit.motivated_by.join(", ")
    };
    let words =
        [span(Role::Title, "items "), span(Role::Dim, format!("{source}: ")), span(Role::Text, items)];
    wrap_spans(&words, columns).into_iter().take(2).collect()
}

/// Old and new text of an edit that the diff does not show.
fn own_text(slot: &ReviewEdit, columns: usize) -> Lines {
    let edit = as_decided(slot);
    let mut lines = vec![vec![span(Role::Dim, "not in the candidate:")]];
    let target = match edit.op {
        // The anchor of an insertion stays.
        EditOp::InsertAfter => ("after", Role::Dim),
        EditOp::Append
        | EditOp::Replace
        | EditOp::Delete
        | EditOp::AddRule
        | EditOp::RemoveRule
        | EditOp::MergeRules
        | EditOp::Reorganize
        | EditOp::Compress
        | EditOp::Clarify
        | EditOp::Rewrite
        | EditOp::Unknown => ("-", Role::Removed),
    };
    for (text, (sign, role)) in [(&edit.target, target), (&edit.content, ("+", Role::Added))] {
        let clean = sanitize(text.trim_end());
        if !clean.is_empty() {
            let wrapped = wrap(&clean, columns.saturating_sub(sign.len() + 1));
            lines.extend(wrapped.into_iter().take(4).map(|line| vec![span(role, format!("{sign} {line}"))]));
        }
    }
    lines
}
