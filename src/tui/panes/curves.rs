//! Pane 6: as many charts as fit, or one; other runs laid over them, named in a legend.

use ratatui::layout::Rect;

use super::chart::{self, overlay_look, place_words};
use super::{frame, inside, placeholder, waiting_words};
use crate::telemetry::{Axis, Mark};
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, span, window};
use crate::tui::theme::Role;

/// The least that one chart gets where there are more.
const CHART: (u16, u16) = (28, 4);

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let charts = app.charts();
    let selected = app.selected_chart(&charts);
    let begun = app.state.info.is_some() || app.has_curves();
    let body = without_legend(app, inside(app, area));
    let (across, places) = grid(body, charts.len(), app.curves.one);
    // Whole rows scroll, the selected one in the middle.
    let rows = places.len().div_ceil(across);
    let first = window(selected / across, charts.len().div_ceil(across), rows) * across;
    let shown = places.len().min(charts.len() - first.min(charts.len()));
    let info = info(app);
    // An alert's words need the whole title.
    let alerted = info.iter().any(|(role, _)| *role == Role::AlertMark);
    let told = begun && !alerted;
    let right = if told { range_words(app, first, shown, charts.len()) } else { Vec::new() };
    let inner = frame(app, Pane::Curves, area, canvas, info, &right);
    if !begun {
        return placeholder(canvas, inner, &[&waiting_words(app)]);
    }
    if charts.is_empty() {
        let back = app.press_for(Action::Global(GlobalAction::Back));
        return placeholder(
            canvas,
            inner,
            &["No chart has that in its name.", &format!("{back} shows all.")],
        );
    }
    if body != inner {
        canvas.line(Rect { height: 1, ..inner }, &legend(app));
    }
    app.curves.across.set(across);
    let focused = app.arrangement.focus == Pane::Curves;
    for (index, place) in (first..first + shown).zip(&places) {
        let marked = index == selected && (focused || app.curves.one);
        chart::draw(app, &charts[index], *place, marked, canvas);
    }
}

/// The places of `n` charts, row by row, and how many stand side by side. One chart takes all.
fn grid(area: Rect, n: usize, one: bool) -> (usize, Vec<Rect>) {
    let across = if one { 1 } else { (area.width / CHART.0).clamp(1, n.max(1) as u16) };
    let rows = if one { 1 } else { (n as u16).div_ceil(across).clamp(1, (area.height / CHART.1).max(1)) };
    let width = area.width / across;
    let top = |row: u16| row * area.height / rows;
    let place = |index: u16| Rect {
        x: area.x + index % across * width,
        y: area.y + top(index / across),
        width: if across > 1 { width.saturating_sub(2) } else { width },
        height: top(index / across + 1) - top(index / across),
    };
    (across as usize, (0..across * rows).map(place).collect())
}

/// What is left for charts under the names of the runs.
fn without_legend(app: &App, inner: Rect) -> Rect {
    if app.curves.others.is_empty() || inner.height <= CHART.1 {
        return inner;
    }
    Rect { y: inner.y + 1, height: inner.height - 1, ..inner }
}

/// Which charts, and which part of the run.
fn range_words(app: &App, first: usize, shown: usize, n: usize) -> Vec<Span> {
    let (axis, zoom) = (app.curves.axis, app.curves.zoom);
    let (from, to) = app.curve_window(axis);
    let mut words = format!("{} {}–{}", axis.name(), place_words(axis, from), place_words(axis, to));
    if zoom > 0 {
        words.push_str(&format!(" (1/{})", 1u64 << zoom));
    }
    if shown < n {
        words = format!("{}–{} of {n} · {words}", first + 1, first + shown);
    }
    if app.board.left_out() > 0 {
        words = format!("{} values under further names not kept · {words}", app.board.left_out());
    }
    vec![span(Role::Dim, words)]
}

/// The filter, the place of the cursor, and alerts there.
fn info(app: &App) -> Vec<Span> {
    let mut out = Vec::new();
    if !app.curves.filter.is_empty() {
        out.push(span(Role::Warn, format!("/{}  ", app.curves.filter)));
    }
    let Some(at) = app.curves.cursor else { return out };
    let place = [Axis::Step, Axis::Time, Axis::Tokens].map(|axis| place_words(axis, at.on(axis)));
    let [step, time, tokens] = place;
    out.push(span(Role::Key, format!("at step {step} · {time} · {tokens} tok")));
    let axis = app.cursor_axis();
    let near = |alert: &&Mark| (alert.at.on(axis) - at.on(axis)).abs() <= app.curves.grain.get() / 2.0;
    let mut alerts = app.board.alerts().rev().filter(near);
    if let Some(alert) = alerts.next() {
        let more = alerts.count();
        let more = if more > 0 { format!(" (+{more})") } else { String::new() };
        out.push(span(Role::AlertMark, format!("  ▲ {}: {}{more}", alert.code, alert.message)));
    }
    out
}

/// This run and those laid over it, with the glyphs at the ends of their curves.
fn legend(app: &App) -> Vec<Span> {
    let mut out = vec![span(Role::Series1, "━ "), span(Role::Text, app.run_name())];
    let mut unpinned = 0;
    for other in &app.curves.others {
        let pinned = app.is_pinned(&other.path);
        let (role, glyph) = overlay_look(pinned, unpinned);
        match &other.board {
            Some(Ok(_)) => {
                unpinned += usize::from(!pinned);
                out.push(span(role, format!("  {glyph} ")));
                out.push(span(Role::Text, other.name()));
                if pinned {
                    out.push(span(Role::Dim, " (baseline)"));
                }
            }
            Some(Err(why)) => out.push(span(Role::Warn, format!("  ! {}: {why}", other.name()))),
            None => out.push(span(Role::Dim, format!("  … reading {}", other.name()))),
        }
    }
    out
}
