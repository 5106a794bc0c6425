//! One frame: header, panes, strips and overlays into a buffer. Pure: the same app gives the same buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::{Action, Scope, Spec, spec};
use super::app::App;
use super::controls::global::GlobalAction;
use super::layout::{Class, Pane};
use super::overlay::{Overlay, Question, palette_matches};
use super::paint::{Canvas, Span, rows_of, span, spans_width, wrap_spans};
use super::panes;
use super::plot::sparkline;
use super::theme::{Role, Theme};
use super::{header, help};
use crate::plain::count;
use crate::telemetry::{Smoothing, names};
use crate::text::{fit, width};

/// Draws `app` into all of `buf`, which must have the app's size and be empty.
pub fn draw(app: &App, theme: &Theme, buf: &mut Buffer) {
    let mut canvas = Canvas { buf, theme };
    let places = app.places();
    if places.class == Class::Tiny {
        for (row, line) in rows_of(canvas.buf.area).zip(header::summary(app)) {
            canvas.line(row, &line);
        }
        return;
    }
    header::draw(app, places.header, &mut canvas);
    if let Some(area) = places.tabs {
        tabs(app, area, &mut canvas);
    }
    for (pane, area) in &places.panes {
        panes::draw(app, *pane, *area, &mut canvas);
    }
    if let Some(area) = places.status {
        status(app, area, &mut canvas);
    }
    hints(app, places.hints, &mut canvas);
    if let Some(overlay) = &app.overlay {
        draw_overlay(app, overlay, &mut canvas);
    }
}

/// The longest words that fit: whole names, their beginnings, numbers alone.
fn tabs(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let fitting = [usize::MAX, 4, 0].map(|letters| tab_spans(app, letters));
    let line = fitting.iter().find(|line| spans_width(line) <= area.width as usize);
    canvas.line(area, line.or(fitting.last()).map_or(&[], Vec::as_slice));
}

/// Tabs with names of at most `letters`; the one in view has its whole name.
fn tab_spans(app: &App, letters: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    for pane in Pane::NUMBERED {
        let number = pane.number().unwrap_or_default();
        let here = pane == app.arrangement.focus
            || (pane == Pane::Rollouts && app.arrangement.focus == Pane::Transcript);
        let waits = pane == Pane::Patch && app.review_label().is_some();
        let mark = if waits { "*" } else { "" };
        if here {
            spans.push(span(Role::TitleFocus, format!("[{number} {}{mark}]", pane.title())));
        } else {
            let name: String = pane.title().chars().take(letters).collect();
            spans.push(span(Role::Key, format!(" {number}")));
            spans.push(span(if waits { Role::Warn } else { Role::Dim }, format!(" {name}{mark}")));
        }
    }
    spans
}

/// Last numbers with sparklines, so that curves are never quite hidden.
fn status(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let mut spans = vec![span(Role::Text, " ")];
    for (name, series, role) in
        [("train", names::TRAIN_HARD, Role::Series1), ("select", names::SELECT_CURRENT, Role::Series2)]
    {
        let Some(values) = app.board.series(series).map(|series| series.values(Smoothing::Off).values())
        else {
            continue;
        };
        let Some(last) = values.last() else { continue };
        spans.push(span(Role::Dim, format!("{name} ")));
        spans.push(span(Role::Text, format!("{last:.3} ")));
        spans.push(span(role, format!("{}   ", sparkline(values, 8))));
    }
    if let Some(best) = app.state.best_score {
        spans.push(span(Role::Dim, "best "));
        spans.push(span(Role::Text, format!("{best:.3}   ")));
    }
    if let Some((rate, note)) = app.live.rate(app.ended()) {
        let note = if app.live.in_flight > 0 { String::new() } else { format!(" {note}") };
        let words = [span(Role::Text, format!("{rate:.1}")), span(Role::Dim, format!(" tok/s{note}"))];
        if spans_width(&spans) + spans_width(&words) <= area.width as usize {
            spans.extend(words);
        }
    }
    canvas.line(area, &spans);
    if app.clients.len() > 1 {
        let words = format!("{} ", count(app.clients.len(), "client"));
        let room = area.width.saturating_sub(spans_width(&spans) as u16);
        canvas.line_right(
            Rect { x: area.x + area.width - room, width: room, ..area },
            &[span(Role::Dim, words)],
        );
    }
}

fn hints(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    if let Some(toast) = &app.toast {
        let mark = match toast.role {
            Role::Bad => "‼ ",
            Role::Warn => "! ",
            _ => "",
        };
        canvas.line(inner, &[span(toast.role, format!("{mark}{}", toast.text))]);
        return;
    }
    let always = hint_spans(app, Scope::Global.hints());
    let reserved = spans_width(&always) as u16;
    let room = inner.width.saturating_sub(reserved + 2);
    let mut spans = Vec::new();
    for action in app.arrangement.focus.scope().hints() {
        let more = hint_spans(app, &[*action]);
        if spans_width(&spans) + spans_width(&more) > room as usize {
            break;
        }
        spans.extend(more);
    }
    canvas.line(Rect { width: room, ..inner }, &spans);
    canvas.line_right(inner, &always);
}

fn hint_spans(app: &App, actions: &[Action]) -> Vec<Span> {
    let mut out = Vec::new();
    let shown = |spec: &&Spec| (spec.enabled)(app) && !(spec.steers && app.identity.read_only);
    for spec in actions.iter().filter_map(|action| spec(*action)).filter(shown) {
        let Some(keys) = hint_keys(app, spec.action) else { continue };
        let label = match spec.action {
            Action::Global(GlobalAction::Pause)
                if matches!(app.state.status, crate::event::RunStatus::Paused { .. }) =>
            {
                "resume"
            }
            _ => spec.label,
        };
        out.push(span(Role::Key, keys));
        out.push(span(Role::Dim, format!(" {label}  ")));
    }
    out
}

/// The first key sequence; both keys of a motion and its opposite. `None`: the user has unbound it.
fn hint_keys(app: &App, action: Action) -> Option<String> {
    let keys = app.keymap.first(action)?;
    let other = help::opposite(action).filter(|_| help::is_motion(action));
    let other = other.and_then(|other| app.keymap.first(other));
    // As they lie on the keyboard, whichever of the two the hint is about.
    Some(match other {
        Some(other) if other < keys => format!("{other}/{keys}"),
        Some(other) => format!("{keys}/{other}"),
        None => keys,
    })
}

/// Columns of the help's box, and rows of its edges.
const HELP_WIDTH: u16 = 84;
const HELP_EDGES: u16 = 2;

impl App {
    /// The help in rows as wide as its box on this screen.
    pub(super) fn help(&self) -> Vec<Vec<Span>> {
        help::lines(self, HELP_WIDTH.min(self.size.0).saturating_sub(4) as usize)
    }

    /// The last row of the help that can be the first in view.
    pub(super) fn help_end(&self) -> usize {
        self.help().len().saturating_sub(self.size.1.saturating_sub(HELP_EDGES) as usize)
    }
}

fn centered(area: Rect, columns: u16, rows: u16) -> Rect {
    let (columns, rows) = (columns.min(area.width), rows.min(area.height));
    Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    }
}

fn draw_overlay(app: &App, overlay: &Overlay, canvas: &mut Canvas<'_>) {
    let screen = canvas.buf.area;
    match overlay {
        Overlay::Help { top } => {
            let lines = app.help();
            let area = centered(screen, HELP_WIDTH, lines.len() as u16 + HELP_EDGES);
            canvas.clear(area);
            let title = [span(Role::TitleFocus, format!("Help: {}", app.arrangement.focus.title()))];
            let visible = area.height.saturating_sub(HELP_EDGES) as usize;
            let top = (*top).min(lines.len().saturating_sub(visible));
            let mut right = vec![span(Role::Dim, "esc closes")];
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
            let found = palette_matches(&input.text());
            let first = super::paint::window(*selected, found.len(), inner.height.saturating_sub(1) as usize);
            for (row, (index, spec)) in rows.zip(found.iter().enumerate().skip(first)) {
                let role = if (spec.enabled)(app) { Role::Text } else { Role::Faint };
                let line = [
                    span(Role::Key, fit(&app.keymap.first(spec.action).unwrap_or_default(), 8)),
                    span(role, fit(spec.id, 23)),
                    span(Role::Dim, spec.doc),
                ];
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
fn input_line(input: &super::input::Input, area: Rect, canvas: &mut Canvas<'_>) {
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
