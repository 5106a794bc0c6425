//! Pane 8: the run in words, one line per event.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::event::LogLevel;
use crate::plain::clock;
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, rows_of, span};
use crate::tui::theme::Role;

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let lines = app.lines.matching(&app.logs.filter);
    let mut info = Vec::new();
    if !app.logs.filter.is_empty() {
        info.push(span(Role::Warn, format!("/{}", app.logs.filter)));
    }
    let right = if app.logs.follow {
        vec![span(Role::Dim, "following")]
    } else {
        match lines.len().saturating_sub(app.logs.scroll.top + area.height.saturating_sub(2) as usize) {
            0 => Vec::new(),
            below => vec![span(Role::Warn, format!("↓ {below} more"))],
        }
    };
    let inner = frame(app, Pane::Logs, area, canvas, info, &right);
    if lines.is_empty() {
        let words = if app.logs.filter.is_empty() { waiting_words(app) } else { "Nothing matches." };
        return placeholder(canvas, inner, &[words]);
    }
    let visible = inner.height as usize;
    app.logs.scroll.extent.set((lines.len(), visible));
    let end = lines.len().saturating_sub(visible);
    let top = if app.logs.follow { end } else { app.logs.scroll.top.min(end) };
    for (row, line) in rows_of(inner).zip(&lines[top..]) {
        let (mark, role) = match line.level {
            LogLevel::Debug => (" ", Role::Dim),
            LogLevel::Info => (" ", Role::Text),
            LogLevel::Warn => ("!", Role::Warn),
            LogLevel::Error => ("‼", Role::Bad),
        };
        canvas.line(
            row,
            &[
                span(Role::Faint, format!("{} ", clock(line.at))),
                span(role, format!("{mark} ")),
                span(role, line.text.as_str()),
            ],
        );
    }
}
