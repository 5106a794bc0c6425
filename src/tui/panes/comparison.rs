//! Two results in the place of the transcript.

use ratatui::layout::Rect;

use super::{frame, placeholder};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, rows_of, span};
use crate::tui::row_index::ResultRef;
use crate::tui::theme::Role;

pub fn draw(app: &App, pair: [ResultRef; 2], area: Rect, canvas: &mut Canvas<'_>) {
    let items = pair.map(|at| app.row_of(at).map_or(String::new(), |row| row.item.to_owned()));
    let what = if items[0] == items[1] { items[0].clone() } else { items.join(" and ") };
    let info = vec![span(Role::Text, what), span(Role::Dim, "  compared")];
    let back = format!("{} back", app.press_for(Action::Global(GlobalAction::Back)));
    let inner = frame(app, Pane::Transcript, area, canvas, info, &[span(Role::Dim, back)]);
    let lines = app.side_by_side(pair, inner.width as usize);
    if lines.is_empty() {
        return placeholder(canvas, inner, &["No results to compare."]);
    }
    let scroll = &app.transcript.scroll;
    scroll.extent.set((lines.len(), inner.height as usize));
    let top = scroll.top.min(lines.len().saturating_sub(inner.height as usize));
    for (row, line) in rows_of(inner).zip(&lines[top..]) {
        canvas.line(row, line);
    }
}
