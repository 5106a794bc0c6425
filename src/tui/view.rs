//! One frame: header, panes, strips and overlays into a buffer. Pure: the same app gives the same buffer.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::{Action, Scope, Spec, spec};
use super::app::App;
use super::controls::global::GlobalAction;
use super::layout::{Class, Pane};
use super::paint::{Canvas, Span, rows_of, span, spans_width};
use super::panes;
use super::plot::sparkline;
use super::theme::{Role, Theme};
use super::{header, help, overlay_view};
use crate::plain::count;
use crate::telemetry::{Smoothing, names};

/// Draws `app` into all of `buf`, which must have the app's size and be empty.
pub fn draw(app: &App, theme: &Theme, buf: &mut Buffer) {
    let mut canvas = Canvas { buf, theme, selected: None };
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
    let mut selections = Vec::new();
    for (pane, area) in &places.panes {
        panes::draw(app, *pane, *area, &mut canvas);
        selections.extend(canvas.selected.take().map(|row| (*pane, row)));
    }
    *app.surface.selections.borrow_mut() = selections;
    if let Some(area) = places.status {
        status(app, area, &mut canvas);
    }
    hints(app, places.hints, &mut canvas);
    if let Some(overlay) = &app.overlay {
        overlay_view::draw(app, overlay, &mut canvas);
    }
    overlay_view::draw_pending(app, &mut canvas);
}

/// The longest words that fit: whole names, their beginnings, numbers alone.
fn tabs(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let fitting = [usize::MAX, 4, 0].map(|letters| tab_spans(app, letters));
    let line = fitting.iter().find(|line| spans_width(line) <= area.width as usize);
    canvas.line(area, line.or(fitting.last()).map_or(&[], Vec::as_slice));
}

/// The tab under a column of the tab strip.
pub fn tab_at(app: &App, column: u16) -> Option<Pane> {
    let fitting = [usize::MAX, 4, 0].map(|letters| tab_spans(app, letters));
    let line = fitting.iter().find(|line| spans_width(line) <= app.size.0 as usize)?;
    let mut end = 0;
    let mut tabs = 0;
    for piece in line {
        end += spans_width(std::slice::from_ref(piece));
        tabs += usize::from(piece.0 == Role::Key || piece.0 == Role::TitleFocus);
        if usize::from(column) < end {
            return Pane::NUMBERED.get(tabs.checked_sub(1)?).copied();
        }
    }
    None
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
    if let Some(broken) = &app.surface.broken {
        let first = broken.lines().next().unwrap_or_default();
        canvas.line(inner, &[span(Role::Bad, format!("‼ {first}"))]);
        return;
    }
    if let Some(why) = app.state.outage() {
        let resume = hint_spans(app, &[Action::Global(GlobalAction::Pause)]);
        let room = inner.width.saturating_sub(spans_width(&resume) as u16 + 2);
        canvas.line(Rect { width: room, ..inner }, &[span(Role::Bad, format!("‼ {why}"))]);
        canvas.line_right(inner, &resume);
        return;
    }
    let always = hint_spans(app, Scope::Global.hints());
    let reserved = spans_width(&always) as u16;
    let room = inner.width.saturating_sub(reserved + 2);
    let mut spans = Vec::new();
    if let Some(role) = app.state.handed_off() {
        let words = format!("answers of the {} are awaited in handoff/ of the run   ", role.name());
        spans.push(span(Role::Review, words));
    }
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
            Action::Global(GlobalAction::Filter) if app.arrangement.focus.is_searched() => "search",
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
