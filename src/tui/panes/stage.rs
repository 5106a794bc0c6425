//! A stage between epochs in full: how it ended, what it changed in the skill, what it compared, and why. Fills pane 4
//! while such a stage is selected; the gate's evidence is in pane 5.

use ratatui::layout::Rect;

use super::diff;
use super::gate::Lines;
use super::{action_mark, frame, placeholder};
use crate::domain::{ComparisonPair, EpochStage, MetaReflect, PairCategory, SlowUpdate, StageKind};
use crate::event::StageState;
use crate::plain::{
    STALE, action_words, bounded, bounded_gain, category_words, edit_title, pair_words, proposals,
    sample_words,
};
use crate::text::{sanitize, sanitize_line, truncate, wrap};
use crate::tui::app::App;
use crate::tui::controls::patch::Anchor;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, rows_of, span, wrap_spans};
use crate::tui::search::marked_in;
use crate::tui::theme::Role;

/// Most of one text that is laid out; the run folder has all of it.
const SHOWN: usize = 16 * 1024;
/// Worst first.
const CATEGORIES: [PairCategory; 4] = [
    PairCategory::Regressed,
    PairCategory::PersistentFail,
    PairCategory::Improved,
    PairCategory::StableSuccess,
];

pub fn draw(app: &App, epoch: u32, kind: StageKind, area: Rect, canvas: &mut Canvas<'_>) {
    let mut info = vec![span(Role::Dim, app.stage_name())];
    let search = app.search_in(Pane::Patch);
    if let Some(search) = search {
        info.extend([span(Role::Text, "  "), search.label()]);
    }
    let inner = frame(app, Pane::Patch, area, canvas, info, &[]);
    app.patch.drawn_columns.set(inner.width);
    let Some((index, done)) = app.found(epoch, kind) else {
        let words = match app.ended() {
            true => "The run ended before this stage was done.",
            false => "Under way: what it finds appears here.",
        };
        app.patch.scroll.extent.set((0, 0));
        return placeholder(canvas, inner, &[words]);
    };
    let lines = content(app, index, done, inner.width as usize);
    let visible = inner.height as usize;
    app.patch.scroll.extent.set((lines.len(), visible));
    let top = match app.patch.anchor {
        Anchor::Free => app.patch.scroll.top.min(lines.len().saturating_sub(visible)),
        Anchor::Edit | Anchor::Group(_) => 0,
    };
    app.patch.drawn_top.set(top);
    for (row, (place, line)) in rows_of(inner).zip(lines.iter().enumerate().skip(top)) {
        match search {
            Some(search) => {
                let here = app.patch.found == Some(place);
                canvas.line(row, &marked_in(line, &search.pattern, here));
            }
            None => drop(canvas.line(row, line)),
        }
    }
}

/// All lines of a finished stage, as they were laid out last.
pub fn stage_lines(app: &App, epoch: u32, kind: StageKind) -> Lines {
    let found = app.found(epoch, kind);
    let columns = app.patch.drawn_columns.get() as usize;
    found.map_or_else(Lines::new, |(index, done)| content(app, index, done, columns))
}

fn content(app: &App, index: usize, done: &StageState, columns: usize) -> Lines {
    let mut lines = summary(done, columns);
    if app.left_stale(index) {
        let words =
            [span(Role::Warn, "≈ the score of the current skill is stale: "), span(Role::Warn, STALE)];
        lines.extend(wrap_spans(&words, columns));
    }
    lines.push(Vec::new());
    match &done.stage {
        EpochStage::SlowUpdate(found) => {
            change(app, index, columns, &mut lines);
            section(&mut lines, "why", &found.reasoning, columns);
            pairs(found, columns, &mut lines);
        }
        EpochStage::MetaSkill(found) => {
            section(&mut lines, "memory for the optimizer in the next epoch", &found.content, columns);
            section(&mut lines, "why", &found.reasoning, columns);
        }
        EpochStage::MetaReflect(found) => {
            revision(found, columns, &mut lines);
            if found.candidate.is_some() {
                change(app, index, columns, &mut lines);
            }
            section(&mut lines, "summary of the epoch", &found.meta_summary, columns);
            section(&mut lines, "why", &found.patch.reasoning, columns);
        }
    }
    lines
}

/// How the stage ended, without its texts.
pub(super) fn summary(done: &StageState, columns: usize) -> Lines {
    let action = done.stage.action();
    let (glyph, role) = action_mark(action);
    let head = format!("{glyph} epoch {} {}: {}", done.at.epoch, done.stage.name(), action_words(action));
    let mut lines = vec![vec![span(role, head)]];
    let (note, found) = match &done.stage {
        EpochStage::SlowUpdate(found) => (&found.note, Some(found)),
        EpochStage::MetaSkill(found) => (&found.note, None),
        EpochStage::MetaReflect(found) => (&found.note, None),
    };
    if !note.is_empty() {
        lines.extend(wrap_spans(&[span(Role::Warn, note.as_str())], columns).into_iter().take(4));
    }
    if let Some(found) = found {
        let words: Vec<String> = pair_words(found).into_iter().chain(sample_words(found)).collect();
        if !words.is_empty() {
            lines.push(vec![span(Role::Dim, words.join("; "))]);
        }
    }
    if let Some(decision) = done.stage.candidate().1 {
        let score = bounded(&decision.candidate, decision.candidate.gate);
        let gain = bounded_gain(&decision.candidate, decision.current.gate);
        lines.push(vec![
            span(Role::Dim, format!("gate {score} against {:.3}, ", decision.current.gate)),
            span(role, gain),
            span(Role::Dim, "; pane 5 has the evidence"),
        ]);
    }
    lines
}

/// The skill before and after, by line.
fn change(app: &App, index: usize, columns: usize, lines: &mut Lines) {
    let Some(doc) = app.stage_doc(index) else { return };
    if doc.diff.groups.is_empty() {
        lines.push(vec![span(Role::Dim, "The skill stays as it was.")]);
        return lines.push(Vec::new());
    }
    lines.push(vec![
        span(Role::Title, "change of the skill  "),
        span(Role::Added, format!("+{} ", doc.diff.added())),
        span(Role::Removed, format!("−{}", doc.diff.removed())),
    ]);
    app.patch.drawn_columns.set(columns as u16);
    lines.extend(diff::lines(app, &doc, columns));
    lines.push(Vec::new());
}

fn pairs(found: &SlowUpdate, columns: usize, lines: &mut Lines) {
    if found.pairs.is_empty() {
        return;
    }
    lines.push(vec![span(Role::Title, "the same items before and now")]);
    let item = found.pairs.iter().map(|pair| crate::text::width(&sanitize_line(&pair.id))).max();
    let item = item.unwrap_or(0).clamp(4, 24);
    for category in CATEGORIES {
        for pair in found.pairs.iter().filter(|pair| pair.category == category) {
            lines.push(pair_line(pair, item, columns));
        }
    }
    lines.push(Vec::new());
}

fn pair_line(pair: &ComparisonPair, item: usize, columns: usize) -> Vec<crate::tui::paint::Span> {
    let (glyph, role) = match pair.category {
        PairCategory::Improved => ("↑", Role::Good),
        PairCategory::Regressed => ("↓", Role::Bad),
        PairCategory::PersistentFail => ("✗", Role::Warn),
        PairCategory::StableSuccess => ("✓", Role::Dim),
    };
    let answer = |text: &str| truncate(&sanitize_line(text.trim()), (columns / 4).max(8));
    vec![
        span(role, format!("{glyph} {:<13}", category_words(pair.category))),
        span(Role::Text, format!("{} ", crate::text::fit(&sanitize_line(&pair.id), item))),
        span(Role::Dim, format!(" {:.2} → {:.2}  ", pair.prev.soft, pair.curr.soft)),
        span(
            Role::Text,
            format!("{} → {}", answer(&pair.prev.predicted_answer), answer(&pair.curr.predicted_answer)),
        ),
    ]
}

/// What the meta-reflection proposed.
fn revision(found: &MetaReflect, columns: usize, lines: &mut Lines) {
    if found.patch.edits.is_empty() {
        return;
    }
    lines.push(vec![span(Role::Title, proposals(&found.patch.edits))]);
    for edit in &found.patch.edits {
        lines.extend(wrap_spans(&[span(Role::Text, edit_title(edit))], columns).into_iter().take(3));
        if !edit.rationale.is_empty() {
            let why = [span(Role::Dim, "  why "), span(Role::Dim, edit.rationale.as_str())];
            lines.extend(wrap_spans(&why, columns).into_iter().take(3));
        }
    }
    for change in &found.change_summary {
        lines.extend(wrap_spans(&[span(Role::Dim, format!("· {change}"))], columns).into_iter().take(2));
    }
    lines.push(Vec::new());
}

/// A model's text under a heading; nothing for an empty one.
fn section(lines: &mut Lines, name: &str, body: &str, columns: usize) {
    let shown: String = body.chars().take(SHOWN).collect();
    let clean = sanitize(shown.trim());
    if clean.is_empty() {
        return;
    }
    lines.push(vec![span(Role::Title, name)]);
    lines.extend(wrap(&clean, columns).into_iter().map(|line| vec![span(Role::Text, line)]));
    if shown.len() < body.len() {
        lines.push(vec![span(Role::Faint, "… cut here; the run folder has all of it")]);
    }
    lines.push(Vec::new());
}
