//! Pane 8: the run in words, one line per event.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::event::LogLevel;
use crate::plain::{clock, count};
use crate::text::sanitize_line;
use crate::tui::app::App;
use crate::tui::controls::logs::level_name;
use crate::tui::journal_lines::JournalLine;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span};
use crate::tui::search::{Search, marked};
use crate::tui::theme::Role;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let view = &app.logs;
    let level = if view.level == LogLevel::Debug { Role::Dim } else { Role::Warn };
    let mut info = vec![span(level, format!("{}+", level_name(view.level)))];
    if !view.filter.is_empty() {
        info.push(span(Role::Warn, format!("  only {}", view.filter)));
    }
    let search = app.search_in(Pane::Logs);
    if let Some(search) = search {
        info.extend([span(Role::Text, "  "), search.label()]);
    }
    let right = match app.new_log_lines() {
        _ if view.follow => vec![span(Role::Dim, "following")],
        0 => Vec::new(),
        new => vec![span(Role::Warn, format!("↓ {new} new"))],
    };
    let inner = frame(app, Pane::Logs, area, canvas, info, &right);
    view.visible.set(inner.height as usize);
    let index = app.log_index();
    if index.len() == 0 {
        let narrowed = !view.filter.is_empty() || view.level != LogLevel::Debug;
        return placeholder(
            canvas,
            inner,
            &[&if narrowed { "Nothing matches.".into() } else { waiting_words(app) }],
        );
    }
    let (_, top) = app.log_rows();
    let mut rows = rows_of(inner);
    if top < app.log_note()
        && let Some(row) = rows.next()
    {
        let words = format!("… {} in events.jsonl of the run", count(app.lines.older(), "older line"));
        canvas.line(row, &[span(Role::Faint, words)]);
    }
    let shown = index.from(top.saturating_sub(app.log_note()));
    for (row, number) in rows.zip(shown) {
        let Some(one) = app.lines.get(number) else { continue };
        canvas.line(row, &line(one, search, view.found == Some(number)));
    }
}

fn line(one: &JournalLine, search: Option<&Search>, here: bool) -> Vec<Span> {
    let (mark, role) = match one.level {
        _ if one.alert => ("▲", Role::AlertMark),
        LogLevel::Debug => (" ", Role::Dim),
        LogLevel::Info => (" ", Role::Text),
        LogLevel::Warn => ("!", Role::Warn),
        LogLevel::Error => ("‼", Role::Bad),
    };
    let mut out = vec![span(Role::Faint, format!("{} ", clock(one.at))), span(role, format!("{mark} "))];
    let text = sanitize_line(&one.text);
    match search {
        Some(search) => out.extend(marked(&text, search.pattern.ranges(&text), role, here)),
        None => out.push(span(role, text)),
    }
    out
}
