//! Pane 3: attempts of the shown stage; what is in flight on top, streaming.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::plain::tokens;
use crate::text::{fit, sanitize, sanitize_line};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::live::{CallPhase, LiveCall};
use crate::tui::paint::{Canvas, Span, rows_of, span, window, wrap_spans};
use crate::tui::rows::{Row, RowBody};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

/// From this inner width on there is room for reasons and streaming text.
const WIDE: u16 = 60;
/// Groups of attempts, in the order they are counted.
const GROUPS: [&str; 9] = ["train", "deep", "prev", "curr", "current", "select", "base", "best", "last"];
/// Those that must not be counted together with others.
const APART: [&str; 4] = ["deep", "prev", "curr", "current"];

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let rows = app.rows();
    let mut info = vec![match &app.rollouts.only {
        Some(_) => span(Role::Warn, format!("behind edit {}", app.patch.edit + 1)),
        None => span(Role::Dim, app.stage_name()),
    }];
    if app.rollouts.failures_only {
        info.push(span(Role::Warn, " failures"));
    }
    if !app.rollouts.filter.is_empty() {
        info.push(span(Role::Warn, format!(" /{}", app.rollouts.filter)));
    }
    // Several runs over the same items: each is counted, and its rows are marked.
    let grouped = app.shown_stage() == Some(Stage::Test) || rows.iter().any(|row| APART.contains(&row.group));
    let counts = tally(&rows.iter().collect::<Vec<_>>());
    let mut inner = frame(app, Pane::Rollouts, area, canvas, info, if grouped { &[] } else { &counts });
    if rows.is_empty() {
        let words = match app.shown_stage() {
            None => waiting_words(app),
            Some(_) if app.rollouts.only.is_some() => "Those rollouts are not of this stage. esc goes back.",
            Some(_) if app.rollouts.failures_only || !app.rollouts.filter.is_empty() => "Nothing matches.",
            Some(_) => "No rollout yet.",
        };
        return placeholder(canvas, inner, &[words]);
    }
    if grouped {
        let counts = wrap_spans(&per_group(&rows), inner.width as usize);
        let used = (counts.len() as u16).min(inner.height.saturating_sub(1)).min(2);
        for (row, line) in rows_of(inner).zip(&counts[..used as usize]) {
            canvas.line(row, line);
        }
        inner = Rect { y: inner.y + used, height: inner.height - used, ..inner };
    }
    let selected = app.selected_row(&rows);
    let visible = inner.height as usize;
    let first = window(selected, rows.len(), visible);
    let items = rows.iter().map(|row| crate::text::width(&sanitize_line(row.item))).max().unwrap_or(0);
    let item_width = items.clamp(8, if inner.width >= WIDE { 24 } else { 13 });
    for (area, (index, row)) in rows_of(inner).zip(rows.iter().enumerate().skip(first)) {
        canvas.line(area, &line(app, row, item_width, inner.width, grouped));
        if index == selected {
            canvas.overlay_style(area, Role::Selection);
        }
    }
}

/// `base ✗100 · best ✓87 ✗13`.
fn per_group(rows: &[Row<'_>]) -> Vec<Span> {
    let mut out = Vec::new();
    for group in GROUPS {
        let of_group: Vec<&Row<'_>> = rows.iter().filter(|row| row.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        let between = if out.is_empty() { "" } else { " · " };
        out.push(span(Role::Dim, format!("{between}{group} ")));
        out.extend(tally(&of_group));
    }
    out
}

fn tally(rows: &[&Row<'_>]) -> Vec<Span> {
    let (mut passed, mut failed, mut missing, mut running) = (0, 0, 0, 0);
    for row in rows {
        match row.body {
            RowBody::Call(_) => running += 1,
            RowBody::Missing(_) => missing += 1,
            RowBody::Done(_) if row.passed() => passed += 1,
            RowBody::Done(_) => failed += 1,
        }
    }
    let mut out = Vec::new();
    for (n, glyph, role) in [
        (running, "▸", Role::Active),
        (passed, "✓", Role::Good),
        (failed, "✗", Role::Bad),
        (missing, "!", Role::Warn),
    ] {
        if n > 0 {
            if !out.is_empty() {
                out.push(span(Role::Text, " "));
            }
            out.push(span(role, format!("{glyph}{n}")));
        }
    }
    out
}

fn line(app: &App, row: &Row<'_>, item_width: usize, width: u16, marked: bool) -> Vec<Span> {
    let wide = width >= WIDE;
    // Without the column of groups there is still room for the name of a skill.
    let mark = if marked && !wide { format!("{} ", row.group) } else { String::new() };
    let mut out = Vec::new();
    let item = format!("{} ", fit(&sanitize_line(row.item), item_width));
    match &row.body {
        RowBody::Call(call) => {
            let retrying = matches!(call.phase, CallPhase::Retrying { .. });
            let (glyph, role) = if retrying { ("↻", Role::Warn) } else { ("▸", Role::Active) };
            out.push(span(role, format!("{glyph} ")));
            out.push(span(Role::Text, item));
            if wide {
                out.push(span(Role::Dim, format!("{:<8}", row.group)));
            }
            out.push(span(Role::Dim, mark));
            out.push(span(role, live_words(app, call, wide)));
        }
        RowBody::Missing(error) => {
            out.push(span(Role::Warn, "! "));
            out.push(span(Role::Text, item));
            if wide {
                out.push(span(Role::Dim, format!("{:<8}", row.group)));
            }
            out.push(span(Role::Dim, mark));
            out.push(span(Role::Warn, format!("missing  {error}")));
        }
        RowBody::Done(rollout) => {
            let (glyph, role) = if row.passed() { ("✓", Role::Good) } else { ("✗", Role::Bad) };
            out.push(span(role, format!("{glyph} ")));
            out.push(span(Role::Text, item));
            if wide {
                out.push(span(Role::Dim, format!("{:<8}", row.group)));
            }
            out.push(span(role, format!("{:>4.2}", rollout.score.hard)));
            let count = format!("{:>5}t", tokens(rollout.usage.completion_tokens));
            let count = if mark.is_empty() { count } else { format!("  {}", row.group) };
            out.push(span(Role::Dim, format!("{count} {:>5}", seconds(rollout.ms))));
            if wide {
                out.push(span(Role::Text, format!("  {}", answer(&rollout.answer))));
                if !row.passed() {
                    out.push(span(Role::Dim, format!("  {}", sanitize_line(&rollout.score.reason))));
                }
            }
        }
    }
    out
}

fn answer(text: &str) -> String {
    crate::text::truncate(&sanitize_line(text.trim()), 32)
}

fn live_words(app: &App, call: &LiveCall, wide: bool) -> String {
    let age = seconds(app.now.saturating_sub(call.started_at));
    match &call.phase {
        CallPhase::Retrying { error } => format!("retry {} · {error}", call.attempt),
        CallPhase::Running if call.text.is_empty() => format!("waiting {age:>5}"),
        CallPhase::Running => {
            let clean = sanitize(&call.text).replace('\n', " ");
            let room = if wide { 60 } else { 14 };
            format!("{}▏", tail(clean.trim(), room))
        }
    }
}

/// The last `columns` characters: what streams in stays in view.
fn tail(text: &str, columns: usize) -> String {
    let n = text.chars().count();
    text.chars().skip(n.saturating_sub(columns)).collect()
}

fn seconds(ms: u64) -> String {
    if ms < 100_000 { format!("{:.1}s", ms as f64 / 1000.0) } else { format!("{}s", ms / 1000) }
}
