//! Overlays drawn over the panes: help, palette, questions, lines to fill in, the continuations of a chord.

use ratatui::layout::Rect;

use super::app::App;
use super::keymap::written;
use super::overlay::{Overlay, Question};
use super::paint::{Canvas, Span, rows_of, span, wrap_spans};
use super::palette::{Then, entries};
use super::theme::Role;
use super::{form_view, help};
use crate::text::{fit, width};

/// Columns of the help's box, and rows of its edges.
const HELP_WIDTH: u16 = 84;
const HELP_EDGES: u16 = 2;

impl App {
    /// The help in rows as wide as its box on this screen.
    pub(super) fn help(&self, filter: &str) -> Vec<Vec<Span>> {
        help::lines(self, HELP_WIDTH.min(self.size.0).saturating_sub(4) as usize, filter)
    }

    /// The last row of the help that can be the first in view.
    pub(super) fn help_end(&self, filter: &str) -> usize {
        self.help(filter).len().saturating_sub(self.size.1.saturating_sub(HELP_EDGES) as usize)
    }
}

pub fn centered(area: Rect, columns: u16, rows: u16) -> Rect {
    let (columns, rows) = (columns.min(area.width), rows.min(area.height));
    Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    }
}

pub fn draw(app: &App, overlay: &Overlay, canvas: &mut Canvas<'_>) {
    let screen = canvas.buf.area;
    match overlay {
        Overlay::Help { top, filter, typing } => {
            let lines = app.help(&filter.text());
            let area = centered(screen, HELP_WIDTH, lines.len() as u16 + HELP_EDGES);
            canvas.clear(area);
            let mut title = vec![span(Role::TitleFocus, format!("Help: {}", app.arrangement.focus.title()))];
            if *typing || !filter.text().is_empty() {
                let cursor = if *typing { "▏" } else { "" };
                title.push(span(Role::Key, format!("  /{}{cursor}", filter.text())));
            }
            let visible = area.height.saturating_sub(HELP_EDGES) as usize;
            let top = (*top).min(lines.len().saturating_sub(visible));
            let mut right = vec![span(Role::Dim, "/ finds  esc closes")];
            if visible < lines.len() {
                let words = format!("{}–{} of {} · j/k scroll  ", top + 1, top + visible, lines.len());
                right.insert(0, span(Role::Warn, words));
            }
            let inner = canvas.boxed(area, true, &title, &right);
            for (row, line) in rows_of(inner).zip(&lines[top..]) {
                canvas.line(row, line);
            }
        }
        Overlay::Palette { input, selected } => {
            let area = centered(screen, 76, 18.min(screen.height.saturating_sub(2)));
            canvas.clear(area);
            let title = [span(Role::TitleFocus, "Commands")];
            let inner = canvas.boxed(area, true, &title, &[span(Role::Dim, "enter runs  esc closes")]);
            let mut rows = rows_of(inner);
            if let Some(row) = rows.next() {
                input_line(input, row, canvas);
            }
            let found = entries(app, &input.text());
            if found.is_empty()
                && let Some(row) = rows.next()
            {
                canvas.line(row, &[span(Role::Dim, "no command matches")]);
            }
            let first = super::paint::window(*selected, found.len(), inner.height.saturating_sub(1) as usize);
            for (row, (index, entry)) in rows.zip(found.iter().enumerate().skip(first)) {
                let (role, doc) = match &entry.then {
                    Then::Refuse(why) if entry.doc.is_empty() => (Role::Faint, why.clone()),
                    Then::Refuse(why) => (Role::Faint, format!("({why}) {}", entry.doc)),
                    Then::Act(_) | Then::Fill(_) | Then::Run(_) => (Role::Text, entry.doc.clone()),
                };
                let name =
                    if entry.name.len() < 23 { fit(&entry.name, 23) } else { format!("{}  ", entry.name) };
                let line = [span(Role::Key, fit(&entry.keys, 8)), span(role, name), span(Role::Dim, doc)];
                canvas.line(row, &line);
                if index == *selected {
                    canvas.overlay_style(row, Role::Selection);
                }
            }
        }
        Overlay::Confirm { then } => {
            let Question { title, details, verb } = app.question(then);
            let wrapped: Vec<Vec<Span>> =
                details.iter().flat_map(|text| wrap_spans(&[span(Role::Text, text.as_str())], 54)).collect();
            let area = centered(screen, 60, wrapped.len() as u16 + 6);
            canvas.clear(area);
            let inner = canvas.boxed(area, true, &[span(Role::TitleFocus, title)], &[]);
            let mut rows = rows_of(inner).skip(1);
            for (line, row) in wrapped.iter().zip(&mut rows) {
                canvas.line(row, line);
            }
            if let Some(row) = rows.nth(1) {
                let line = [
                    span(Role::Key, "enter"),
                    span(Role::Text, format!(" {verb}    ")),
                    span(Role::Key, "esc"),
                    span(Role::Text, " back"),
                ];
                canvas.line(row, &line);
            }
        }
        Overlay::Choice { title, choices, selected, .. } => {
            let area = centered(screen, 72, choices.len() as u16 + HELP_EDGES);
            canvas.clear(area);
            let right = [span(Role::Dim, "enter chooses  esc back")];
            let inner = canvas.boxed(area, true, &[span(Role::TitleFocus, title.as_str())], &right);
            let first = super::paint::window(*selected, choices.len(), inner.height as usize);
            for (row, (index, choice)) in rows_of(inner).zip(choices.iter().enumerate().skip(first)) {
                let line = [
                    span(Role::Key, format!("{:>2} ", index + 1)),
                    span(Role::Text, fit(&choice.label, 18)),
                    span(Role::Dim, choice.doc.as_str()),
                ];
                canvas.line(row, &line);
                if index == *selected {
                    canvas.overlay_style(row, Role::Selection);
                }
            }
        }
        Overlay::Launch(form) => form_view::draw_launch(form, canvas),
        Overlay::Resume(picker) => form_view::draw_resume(app, picker, canvas),
        Overlay::Prompt { title, hint, input, .. } => {
            let area = centered(screen, 72, 5);
            canvas.clear(area);
            let inner = canvas.boxed(area, true, &[span(Role::TitleFocus, title.as_str())], &[]);
            let mut rows = rows_of(inner);
            if let Some(row) = rows.next() {
                input_line(input, row, canvas);
            }
            if let Some(row) = rows.nth(1) {
                canvas.line(row, &[span(Role::Dim, *hint)]);
            }
        }
    }
}

/// The text with a reversed cell as cursor; the end of a long text stays in view.
pub fn input_line(input: &super::input::Input, area: Rect, canvas: &mut Canvas<'_>) {
    let (before, under, after) = input.around_cursor();
    let room = (area.width as usize).saturating_sub(4);
    let mut skip = 0;
    while width(&before[skip..]) > room {
        skip += before[skip..].chars().next().map_or(1, char::len_utf8);
    }
    let prompt = [span(Role::Key, "› "), span(Role::Text, &before[skip..])];
    let used = canvas.line(area, &prompt);
    let cursor = Rect { x: area.x + used, width: area.width - used, ..area };
    let taken = canvas.line(cursor, &[span(Role::Text, under)]).max(1);
    let cell = Rect { width: taken.min(cursor.width), height: 1, ..cursor };
    let reversed = ratatui::style::Style::new().add_modifier(ratatui::style::Modifier::REVERSED);
    canvas.buf.set_style(cell.intersection(canvas.buf.area), reversed);
    let rest = Rect { x: cursor.x + cell.width, width: cursor.width - cell.width, ..cursor };
    canvas.line(rest, &[span(Role::Text, after)]);
}

/// How a chord that has begun goes on, above the hints; or the count so far.
pub fn draw_pending(app: &App, canvas: &mut Canvas<'_>) {
    let screen = canvas.buf.area;
    let presses = &app.surface.presses;
    if presses.is_empty() {
        if let Some(count) = app.surface.count {
            let words =
                [span(Role::Key, format!(" # {count} ")), span(Role::Dim, "then a motion · esc cancels ")];
            let row = Rect { y: screen.height.saturating_sub(1), height: 1, ..screen };
            canvas.clear(row);
            canvas.line(row, &words);
        }
        return;
    }
    let rest = app.keymap.continuations(app.arrangement.focus.scope(), presses);
    let area = centered(screen, 54, (rest.len() as u16 + HELP_EDGES).min(screen.height.saturating_sub(2)));
    let area = Rect { y: screen.height.saturating_sub(area.height + 1), ..area };
    canvas.clear(area);
    let title = [span(Role::TitleFocus, format!("{} …", written(presses)))];
    let inner = canvas.boxed(area, true, &title, &[span(Role::Dim, "esc cancels")]);
    for (row, (keys, spec)) in rows_of(inner).zip(&rest) {
        let role = if (spec.enabled)(app) { Role::Text } else { Role::Faint };
        canvas.line(row, &[span(Role::Key, fit(keys, 9)), span(role, spec.doc)]);
    }
}
