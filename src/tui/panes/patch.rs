//! Pane 4: the proposals under review and the diff of the candidate they make, by change group.

use ratatui::layout::Rect;

use super::{frame, placeholder, proposal, waiting_words};
use crate::domain::{Phase, Priority, ReviewClose, ReviewMode, StepRef, TimeoutPolicy, UpdateMode};
use crate::event::{ReviewState, RunStatus, StepState};
use crate::plain::{appendix_words, count, duration, edit_title};
use crate::text::sanitize_line;
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, spans_width, window};
use crate::tui::patch_doc::{PatchDoc, Standing, as_decided, review_mode};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

/// From this width on a row of the list has room for whole warnings.
const WIDE: u16 = 70;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    if let Some(Stage::Between { epoch, kind }) = app.shown_stage() {
        return super::stage::draw(app, epoch, kind, area, canvas);
    }
    let (Some(step), Some(doc)) = (app.shown_step(), app.patch_doc()) else {
        let inner = frame(app, Pane::Patch, area, canvas, Vec::new(), &[]);
        return match app.shown_step() {
            Some(step) => proposing(app, step, inner, canvas),
            None => placeholder(canvas, inner, &[&waiting_words(app)]),
        };
    };
    let Some(review) = &step.review else { return };
    let proposed = count(review.edits.len(), review_mode(review).noun());
    let mut info = vec![span(Role::Dim, format!("step {}  {proposed}", step.at.step))];
    info.extend(standing_counts(&doc));
    if let Some(search) = app.search_in(Pane::Patch) {
        info.extend([span(Role::Text, "  "), search.label()]);
    }
    let inner = frame(app, Pane::Patch, area, canvas, info, &status(app, review));
    if review.edits.is_empty() {
        return placeholder(canvas, inner, &["This step proposed no edit."]);
    }
    let selected = app.patch.edit.min(review.edits.len() - 1);
    let list_rows = (review.edits.len() as u16).min((inner.height / 3).max(1));
    let list = Rect { height: list_rows.min(inner.height), ..inner };
    edit_list(app, step.at, review, &doc, selected, list, canvas);
    let rest = Rect { y: inner.y + list.height, height: inner.height - list.height, ..inner };
    let rest = about(app, step, review, &doc, selected, rest, canvas);
    match app.chosen_lines() {
        _ if rest.height < 2 => {}
        Some((mode, lines)) => super::edit_lines::draw(app, mode, &lines, rest, canvas),
        None => super::diff::draw(app, &doc, unchanged_words(step, review), selected, rest, canvas),
    }
}

fn proposing(app: &App, step: &StepState, area: Rect, canvas: &mut Canvas<'_>) {
    let noun = app.state.info.as_ref().map_or("edit", |info| info.update_mode.noun());
    if step.record.is_some() {
        let mut words = vec![format!("Step {}: no {noun}s proposed.", step.at.step)];
        // Notes change the skill also in a step without proposals.
        if let Some(flush) = &step.appendix {
            words.push(String::new());
            words.push(appendix_words(flush));
            let notes = flush.consolidated.as_ref().unwrap_or(&flush.step_notes);
            words.extend(notes.iter().take(10).map(|note| format!("· {}", sanitize_line(note))));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        return placeholder(canvas, area, &words);
    }
    let edits: usize =
        step.analyses.iter().filter_map(|one| one.patch.as_ref()).map(|patch| patch.edits.len()).sum();
    let first = if step.phase == Some(Phase::Rollout) {
        format!("Step {}: rollouts run; no {noun} is proposed yet.", step.at.step)
    } else {
        format!(
            "Step {}: {} so far, {} proposed.",
            step.at.step,
            count(step.analyses.len(), "analysis").replace("analysiss", "analyses"),
            count(edits, noun)
        )
    };
    let next = match app.ended() {
        true => "The run ended before the step selected any.",
        false => "Edits appear here when the step has selected them.",
    };
    placeholder(canvas, area, &[&first, "", next]);
}

fn standing_counts(doc: &PatchDoc) -> Vec<Span> {
    let mut out = Vec::new();
    for (n, glyph, role) in [
        (doc.count(|one| one.is_accepted()), "✓", Role::Good),
        (doc.count(|one| *one == Standing::Rejected), "✗", Role::Bad),
        (doc.count(|one| *one == Standing::Undecided), "·", Role::Warn),
    ] {
        if n > 0 {
            out.push(span(role, format!("  {glyph}{n}")));
        }
    }
    out
}

/// How the review stands: count-down, or how it ended.
pub fn status(app: &App, review: &ReviewState) -> Vec<Span> {
    match &review.closed {
        Some(ReviewClose::Auto) => vec![span(Role::Dim, "accepted without review")],
        Some(ReviewClose::Submitted { by }) => vec![span(Role::Dim, format!("submitted by {}", by.0))],
        Some(ReviewClose::TimedOut { .. }) => vec![span(Role::Dim, "timed out")],
        None if review.mode == ReviewMode::Auto => vec![span(Role::Dim, "no review")],
        None => vec![span(Role::Warn, app.countdown(review))],
    }
}

impl App {
    /// `accepts in 0:42`, or why it does not.
    pub fn countdown(&self, review: &ReviewState) -> String {
        if self.ended() {
            return "left open".to_owned();
        }
        let verb = match review.on_timeout {
            TimeoutPolicy::Accept => "accepts",
            TimeoutPolicy::Reject => "rejects",
            TimeoutPolicy::Wait => return "waits for you".to_owned(),
        };
        match (review.deadline, &self.state.status) {
            (None, _) => "waits for you".to_owned(),
            (Some(_), RunStatus::Paused { .. }) => format!("{verb} later (paused)"),
            (Some(deadline), _) => {
                // Rounded up, so that 0:00 means over.
                let now = if self.recording { self.state.updated_at } else { self.now };
                format!("{verb} in {}", duration(deadline.saturating_sub(now) + 999))
            }
        }
    }
}

fn edit_list(
    app: &App,
    at: StepRef,
    review: &ReviewState,
    doc: &PatchDoc,
    selected: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let first = window(selected, review.edits.len(), area.height as usize);
    let rollouts = app
        .shown_step()
        .map_or(0, |step| step.record.as_ref().map_or(step.rollouts.len(), |record| record.rollout_n));
    for (row, (index, slot)) in rows_of(area).zip(review.edits.iter().enumerate().skip(first)) {
        let (mark, role) = match app.is_pending(at, index) {
            true => ("[⋯]", Role::Dim),
            false => doc.standings[index].mark(),
        };
        let mut right = Vec::new();
        if let Some(word) = doc.trouble[index].split(':').next().filter(|word| !word.is_empty()) {
            right.push(span(Role::Warn, format!("{word}  ")));
        }
        if doc.hidden[index] > 0 {
            let n = doc.hidden[index];
            let words = if row.width >= WIDE { proposal::hides(n) } else { format!("hides {n}") };
            right.push(span(Role::Warn, format!("{words}  ")));
        }
        if let Some(by) = &slot.by {
            right.push(span(Role::Dim, format!("{}  ", crate::text::truncate(&by.0, 16))));
        }
        if let Some(priority) = slot.edit.priority {
            let role = if priority == Priority::High { Role::Warn } else { Role::Dim };
            right.push(span(role, format!("{}  ", priority.name())));
        }
        let n = slot.edit.support_count;
        // Without the rollouts of the step the number stands alone.
        let support = if rollouts == 0 { format!("{n:>2}") } else { format!("{n:>2} of {rollouts}") };
        right.push(span(Role::Dim, support));
        let room = (row.width as usize).saturating_sub(spans_width(&right) + 1) as u16;
        canvas.line_right(row, &right);
        let cursor = if index == selected { span(Role::Key, "▸ ") } else { span(Role::Text, "  ") };
        let text_role = if doc.standings[index] == Standing::Rejected { Role::Dim } else { Role::Text };
        let line = [
            cursor,
            span(Role::Dim, format!("{:>2} ", index + 1)),
            span(role, format!("{mark} ")),
            span(text_role, edit_title(&as_decided(slot))),
        ];
        canvas.line(Rect { width: room, ..row }, &line);
        if index == selected {
            canvas.overlay_style(row, Role::Selection);
        }
    }
}

/// What is to be said about the selected proposal and the step; gives the area left below.
fn about(
    app: &App,
    step: &StepState,
    review: &ReviewState,
    doc: &PatchDoc,
    selected: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) -> Rect {
    let columns = (area.width as usize).saturating_sub(2);
    let mut lines = proposal::lines(app, review, doc, selected, columns);
    lines.extend(proposal::of_step(app, step, columns));
    let room = area.height.saturating_sub(4);
    let lines = &lines[..lines.len().min(room as usize)];
    for (row, line) in rows_of(area).zip(lines) {
        canvas.line(Rect { x: row.x + 2, width: row.width.saturating_sub(2), ..row }, line);
    }
    let used = lines.len() as u16;
    Rect { y: area.y + used, height: area.height - used, ..area }
}

/// Why there is no change to show.
fn unchanged_words(step: &StepState, review: &ReviewState) -> &'static str {
    match (review_mode(review), &step.rewrite, &step.record) {
        (UpdateMode::RewriteFromSuggestions, None, None) => {
            "a rewrite carries the suggestions out after the review "
        }
        (UpdateMode::RewriteFromSuggestions, None, Some(_)) => "no rewrite came of the suggestions ",
        (UpdateMode::Patch | UpdateMode::RewriteFromSuggestions | UpdateMode::FullRewriteMinibatch, ..) => {
            "the candidate equals the current skill "
        }
    }
}
