//! One attempt in full: what was given, turns, thoughts, reply, score and why. Draws the lines in view.

use ratatui::layout::Rect;

use super::{comparison, frame, placeholder, titled};
use crate::domain::Rollout;
use crate::plain::{count, tokens};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::live::CallPhase;
use crate::tui::paint::{Canvas, Span, rows_of, span};
use crate::tui::rows::{Row, RowBody};
use crate::tui::search::{Search, marked, matches_in};
use crate::tui::theme::Role;
use crate::tui::transcript_doc::{Block, BlockKind, Line, TranscriptDoc};

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    if let Some(pair) = app.transcript.compared {
        return comparison::draw(app, pair, area, canvas);
    }
    let Some(row) = app.shown_row() else {
        let inner = frame(app, Pane::Transcript, area, canvas, Vec::new(), &[]);
        return placeholder(canvas, inner, &["No rollout to show."]);
    };
    let titles = numbers(&row).into_iter().map(|right| (title(app, &row), right)).collect();
    let inner = titled(app, Pane::Transcript, area, canvas, titles);
    app.transcript.columns.set((inner.width as usize).max(1));
    let doc = app.transcript_doc();
    app.transcript.scroll.extent.set((doc.lines.len(), inner.height as usize));
    let top = app.transcript_top();
    let at_hand = app.block_at_hand();
    for (row, one) in rows_of(inner).zip(&doc.lines[top..]) {
        canvas.line(row, &line(app, &doc, one, at_hand));
    }
}

fn title(app: &App, row: &Row<'_>) -> Vec<Span> {
    let mut out = vec![span(Role::Text, row.item), span(Role::Dim, format!("  {}", row.group))];
    if app.transcript.look.raw {
        out.push(span(Role::Warn, "  raw"));
    }
    if let Some(search) = app.search_in(Pane::Transcript) {
        out.extend([span(Role::Text, "  "), search.label()]);
    }
    out
}

/// How the attempt went: at length, in short, not at all.
fn numbers(row: &Row<'_>) -> Vec<Vec<Span>> {
    let words = match &row.body {
        RowBody::Done(_, rollout) => return scored(rollout),
        RowBody::Missing(..) => span(Role::Warn, "! missing: not a score"),
        RowBody::Call(_, call) => match &call.phase {
            CallPhase::Running if call.thinking => span(Role::Active, "▸ thinking"),
            CallPhase::Running => span(Role::Active, "▸ running"),
            CallPhase::Answered => span(Role::Active, "◌ answered"),
            CallPhase::Retrying { .. } => span(Role::Warn, "↻ waiting to retry"),
        },
    };
    vec![vec![words], Vec::new()]
}

fn scored(rollout: &Rollout) -> Vec<Vec<Span>> {
    let (mark, role) =
        if rollout.score.failed() { ("✗ fail", Role::Bad) } else { ("✓ pass", Role::Good) };
    let scores = format!("  hard {:.2} soft {:.2}", rollout.score.hard, rollout.score.soft);
    let spent = format!(
        "  {}+{} tokens  {:.1}s",
        tokens(rollout.usage.prompt_tokens),
        tokens(rollout.usage.completion_tokens),
        rollout.ms as f64 / 1000.0
    );
    let mark = span(role, mark);
    vec![
        vec![mark.clone(), span(Role::Dim, scores.clone()), span(Role::Dim, spent)],
        vec![mark.clone(), span(Role::Dim, scores)],
        vec![mark],
        Vec::new(),
    ]
}

fn line(app: &App, doc: &TranscriptDoc, one: &Line, at_hand: Option<usize>) -> Vec<Span> {
    let search = app.search_in(Pane::Transcript);
    match one {
        Line::Blank => Vec::new(),
        Line::Title(index) => match doc.blocks.get(*index) {
            Some(block) if block.kind == BlockKind::Fact => {
                let mut out = vec![span(Role::Dim, block.title.as_str())];
                out.extend(text(app, search, *index, block, 0..block.text.len()));
                out
            }
            Some(block) => heading(block, at_hand == Some(*index)),
            None => Vec::new(),
        },
        Line::Text(index, range) => match doc.blocks.get(*index) {
            Some(block) => text(app, search, *index, block, range.clone()),
            None => Vec::new(),
        },
    }
}

fn heading(block: &Block, at_hand: bool) -> Vec<Span> {
    let role = match block.kind {
        BlockKind::Tool => Role::Tool,
        BlockKind::Thinking => Role::Thinking,
        BlockKind::Fact | BlockKind::Prompt | BlockKind::Speech => Role::Title,
    };
    let mut out = Vec::new();
    if block.kind.folds() {
        let glyph = if block.folded { "▸ " } else { "▾ " };
        out.push(span(if at_hand { Role::Key } else { Role::Faint }, glyph));
    }
    out.push(span(role, block.title.as_str()));
    if block.folded {
        out.push(span(Role::Faint, format!(" · {}", count(block.text.lines().count(), "line"))));
        if at_hand {
            out.extend([span(Role::Faint, " · "), span(Role::Key, "t"), span(Role::Faint, " shows it")]);
        }
    }
    out
}

/// A part of a block's text with what is searched for marked.
fn text(
    app: &App,
    search: Option<&Search>,
    index: usize,
    block: &Block,
    range: std::ops::Range<usize>,
) -> Vec<Span> {
    let Some(search) = search else { return vec![span(block.role, &block.text[range])] };
    let found = app.transcript.found.as_ref().filter(|(of, _)| *of == index).map(|(_, place)| place.clone());
    let matches = matches_in(&search.pattern, &block.text, range.clone());
    let here = found.is_some_and(|place| place.start < range.end && place.end > range.start);
    let shown = &block.text[range.clone()];
    let inside = matches.into_iter().map(|one| one.start - range.start..one.end - range.start);
    marked(shown, inside, block.role, here)
}
