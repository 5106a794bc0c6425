//! Pane 4: the proposals under review and the diff of the candidate they make, by change group.

use ratatui::layout::Rect;

use super::{frame, placeholder, proposal, waiting_words};
use crate::domain::{Phase, Priority, ReviewClose, ReviewMode, StepRef, TimeoutPolicy, UpdateMode};
use crate::event::{ReviewState, RunStatus, StepState};
use crate::plain::{appendix_words, count, duration, edit_title};
use crate::text::{DiffLine, Mark, sanitize_line};
use crate::tui::app::App;
use crate::tui::controls::patch::Anchor;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, spans_width, window, wrap_spans};
use crate::tui::patch_doc::{CONTEXT, DocRow, PatchDoc, Standing, as_decided, review_mode};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

/// From this width on a row of the list has room for whole warnings.
const WIDE: u16 = 70;
/// Columns of the line-number gutter.
pub(super) const GUTTER: usize = 8;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    if let Some(Stage::Between { epoch, kind }) = app.shown_stage() {
        return super::stage::draw(app, epoch, kind, area, canvas);
    }
    let (Some(step), Some(doc)) = (app.shown_step(), app.patch_doc()) else {
        let inner = frame(app, Pane::Patch, area, canvas, Vec::new(), &[]);
        return match app.shown_step() {
            Some(step) => proposing(app, step, inner, canvas),
            None => placeholder(canvas, inner, &[waiting_words(app)]),
        };
    };
    let Some(review) = &step.review else { return };
    let proposed = count(review.edits.len(), review_mode(review).noun());
    let mut info = vec![span(Role::Dim, format!("step {}  {proposed}", step.at.step))];
    info.extend(standing_counts(&doc));
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
    if rest.height >= 2 {
        diff(app, &doc, unchanged_words(step, review), selected, rest, canvas);
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
    let accepted = doc.count(Standing::Accepted) + doc.count(Standing::Amended);
    let mut out = Vec::new();
    for (n, glyph, role) in [
        (accepted, "✓", Role::Good),
        (doc.count(Standing::Rejected), "✗", Role::Bad),
        (doc.count(Standing::Undecided), "·", Role::Warn),
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
                format!("{verb} in {}", duration(deadline.saturating_sub(self.now) + 999))
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
    for (row, (index, slot)) in rows_of(area).zip(review.edits.iter().enumerate().skip(first)) {
        let (glyph, role) = if app.is_pending(at, index) {
            ("⋯", Role::Dim)
        } else {
            match doc.standings[index] {
                Standing::Undecided => ("·", Role::Warn),
                Standing::Accepted => ("✓", Role::Good),
                Standing::Amended => ("✎", Role::Good),
                Standing::Rejected => ("✗", Role::Bad),
            }
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
        right.push(span(Role::Dim, format!("{n:>2} for")));
        let room = (row.width as usize).saturating_sub(spans_width(&right) + 1) as u16;
        canvas.line_right(row, &right);
        let cursor = if index == selected { span(Role::Key, "▸ ") } else { span(Role::Text, "  ") };
        let text_role = if doc.standings[index] == Standing::Rejected { Role::Dim } else { Role::Text };
        let line = [
            cursor,
            span(Role::Dim, format!("{:>2} ", index + 1)),
            span(role, format!("{glyph} ")),
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

fn diff(app: &App, doc: &PatchDoc, unchanged: &str, selected: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let mut rows = rows_of(area);
    let Some(rule) = rows.next() else { return };
    canvas.line(rule, &rule_words(doc, unchanged, selected, rule.width));
    let room = area.height as usize - 1;
    let columns = (area.width as usize).saturating_sub(GUTTER).max(1);
    let wrapped = |line: &DiffLine| wrap_spans(&parts(line), columns);
    let doc_rows = doc.rows(app.patch.unfolded);
    let height = |row: &DocRow| match row {
        DocRow::Line(line) => wrapped(&doc.diff.lines[*line]).len(),
        DocRow::Fold(_) => 1,
    };
    // Where the last page begins.
    let last_top = doc_rows.len() - fitting(doc_rows.iter().rev().map(height), room);
    app.patch.scroll.extent.set((doc_rows.len(), doc_rows.len() - last_top));
    let top = match (app.patch.anchor, doc.anchored(app.patch.anchor, selected)) {
        (Anchor::Free, _) => app.patch.scroll.top,
        (_, None) => 0,
        (_, Some(group)) => {
            let group = &doc.diff.groups[group];
            let start = doc_rows.iter().position(|row| row.starts(group)).unwrap_or(0);
            // The change itself comes before its context.
            let left = room.saturating_sub(height(&doc_rows[start]));
            start - fitting(doc_rows[..start].iter().rev().take(CONTEXT).map(height), left)
        }
    };
    let top = top.min(last_top);
    app.patch.drawn_top.set(top);
    for row in &doc_rows[top..] {
        let index = match row {
            DocRow::Line(index) => *index,
            DocRow::Fold(lines) => {
                let Some(row) = rows.next() else { return };
                canvas.line(row, &folded_words(lines.len()));
                continue;
            }
        };
        let line = &doc.diff.lines[index];
        let mine = group_at(doc, index).is_some_and(|group| doc.group_edits[group].contains(&selected));
        for (piece, spans) in wrapped(line).into_iter().enumerate() {
            let Some(row) = rows.next() else { return };
            canvas.line(row, &gutter(line, piece == 0, mine));
            let shift = (GUTTER as u16).min(row.width);
            canvas.line(Rect { x: row.x + shift, width: row.width - shift, ..row }, &spans);
        }
    }
}

/// How many rows of these heights go into `room`.
fn fitting(heights: impl Iterator<Item = usize>, room: usize) -> usize {
    let ends = heights.scan(0, |used, height| {
        *used += height;
        Some(*used)
    });
    ends.take_while(|end| *end <= room).count()
}

pub(super) fn folded_words(lines: usize) -> Vec<Span> {
    vec![
        span(Role::Faint, format!("{:GUTTER$}… {} · ", "", count(lines, "unchanged line"))),
        span(Role::Key, "t"),
        span(Role::Faint, " shows them"),
    ]
}

fn rule_words(doc: &PatchDoc, unchanged: &str, selected: usize, width: u16) -> Vec<Span> {
    let groups = doc.diff.groups.len();
    let mut words = vec![span(Role::Border, "── ")];
    if groups == 0 {
        words.push(span(Role::Dim, unchanged));
    } else {
        let caused = doc.group_edits.iter().any(|edits| !edits.is_empty());
        let place = doc.group_of(selected).map_or("–".to_owned(), |group| (group + 1).to_string());
        words.push(span(
            Role::Dim,
            match caused {
                true => format!("change {place} of {groups}  "),
                false => format!("{}  ", count(groups, "change")),
            },
        ));
        words.push(span(Role::Added, format!("+{} ", doc.diff.added())));
        words.push(span(Role::Removed, format!("−{} ", doc.diff.removed())));
    }
    let rest = (width as usize).saturating_sub(spans_width(&words));
    words.push(span(Role::Border, "─".repeat(rest)));
    words
}

fn group_at(doc: &PatchDoc, line: usize) -> Option<usize> {
    doc.diff.groups.iter().position(|group| group.lines.contains(&line))
}

pub(super) fn gutter(line: &DiffLine, first: bool, mine: bool) -> Vec<Span> {
    let (sign, role) = match line.mark {
        Mark::Same => (" ", Role::Faint),
        Mark::Removed => ("-", Role::Removed),
        Mark::Added => ("+", Role::Added),
    };
    let bar = if mine { span(Role::Key, "▌") } else { span(Role::Faint, " ") };
    let number = line.new.or(line.old).filter(|_| first);
    let number = number.map_or("    ".to_owned(), |number| format!("{number:>4}"));
    vec![bar, span(Role::Faint, format!("{number} ")), span(role, format!("{sign} "))]
}

pub(super) fn parts(line: &DiffLine) -> Vec<Span> {
    line.parts
        .iter()
        .map(|(emphasised, text)| {
            let role = match (line.mark, emphasised) {
                (Mark::Same, _) => Role::Text,
                (Mark::Removed, false) => Role::Removed,
                (Mark::Removed, true) => Role::RemovedWord,
                (Mark::Added, false) => Role::Added,
                (Mark::Added, true) => Role::AddedWord,
            };
            span(role, text.as_str())
        })
        .collect()
}
