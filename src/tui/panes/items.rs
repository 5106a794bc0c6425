//! Pane 5, item by item: both sides of a measurement, what changed, and where it stands against the decision.

use ratatui::layout::Rect;

use super::{below, placeholder, titled, verdict_mark};
use crate::plain::{bounded_gain, interval, measured_part, score, verdict_word};
use crate::text::{fit, sanitize_line};
use crate::tui::app::App;
use crate::tui::item_table::{Change, ItemLine, ItemTable, Side};
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, window};
use crate::tui::row_index::shown_width;
use crate::tui::theme::Role;

/// Columns of one score.
const SCORE: usize = 10;
/// Columns of an item at most.
const ITEM: usize = 40;

pub fn draw(app: &App, table: &ItemTable, area: Rect, canvas: &mut Canvas<'_>) {
    let stage = span(Role::Dim, format!("{}  ", app.stage_name()));
    let sort = span(Role::Text, format!("items by {}", app.gate.sort.name()));
    let counts = counts(table);
    let titles = vec![
        (vec![stage.clone(), sort.clone()], counts.clone()),
        (vec![sort], counts.clone()),
        (vec![stage], Vec::new()),
    ];
    let mut inner = titled(app, Pane::Gate, area, canvas, titles);
    if table.lines.is_empty() {
        return placeholder(canvas, inner, &["No item is measured yet."]);
    }
    if let Some(line) = decision(app).filter(|_| inner.height > 4) {
        canvas.line(inner, &line);
        inner = below(inner, 1);
    }
    let widest = table.lines.iter().take(200).map(|line| shown_width(&line.item)).max().unwrap_or(0);
    let room = (inner.width as usize).saturating_sub(2 + 3 * SCORE);
    let item_width = widest.clamp(8, ITEM).min(room.max(8));
    let (current, candidate) = table.sides.names;
    let soft = if table.soft { "  soft scores" } else { "" };
    let head =
        format!("  {} {current:>SCORE$}{candidate:>SCORE$}{:>SCORE$}{soft}", fit("item", item_width), "Δ");
    canvas.line(inner, &[span(Role::Faint, head)]);
    inner = below(inner, 1);
    let visible = inner.height as usize;
    let selected = app.gate.selected.min(table.lines.len() - 1);
    let first = window(selected, table.lines.len(), visible);
    for (row, (index, one)) in rows_of(inner).zip(table.lines.iter().enumerate().skip(first)) {
        canvas.line(row, &line(one, item_width));
        if index == selected {
            canvas.overlay_style(row, Role::Selection);
        }
    }
}

/// `+9 −4 =47 ?1 ·6`.
fn counts(table: &ItemTable) -> Vec<Span> {
    let mut out = Vec::new();
    for change in [Change::Gained, Change::Lost, Change::Same, Change::Missing, Change::OneSided] {
        let n = table.count(change);
        if n > 0 {
            out.push(span(role(change), format!("{}{n} ", change.mark())));
        }
    }
    out
}

/// The verdict with the difference it rests on.
fn decision(app: &App) -> Option<Vec<Span>> {
    let gate = app.shown_decision()?;
    let (glyph, role) = verdict_mark(gate.verdict);
    let part = measured_part(&gate.candidate).map_or(String::new(), |part| format!("  {part}"));
    let interval = format!("  {}", interval(gate.interval));
    Some(vec![
        span(role, format!("{glyph} {}  ", verdict_word(gate.verdict))),
        span(role, bounded_gain(&gate.candidate, gate.current.gate)),
        span(Role::Dim, format!("{interval}  visible from {}{part}", score(gate.smallest_visible_gain))),
    ])
}

fn role(change: Change) -> Role {
    match change {
        Change::Gained => Role::Good,
        Change::Lost => Role::Bad,
        Change::Missing => Role::Warn,
        Change::Same | Change::OneSided => Role::Dim,
    }
}

fn line(one: &ItemLine, item_width: usize) -> Vec<Span> {
    let change = one.change();
    let delta = one.delta().map_or(String::new(), |delta| match delta {
        0.0 => "0".to_owned(),
        delta => format!("{delta:+.2}"),
    });
    vec![
        span(role(change), format!("{} ", change.mark())),
        span(Role::Text, format!("{} ", fit(&sanitize_line(&one.item), item_width))),
        cell(one.current),
        cell(one.candidate),
        span(role(change), format!("{delta:>SCORE$}")),
    ]
}

fn cell(of: Side) -> Span {
    let role = match of {
        Side::Absent => Role::Faint,
        Side::Missing(_) => Role::Warn,
        Side::Scored { passed: true, .. } => Role::Good,
        Side::Scored { passed: false, .. } => Role::Bad,
    };
    span(role, format!("{:>SCORE$}", of.words()))
}
