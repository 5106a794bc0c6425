//! One chart: its title with the values at the cursor or the last ones, its curves, the limits at its edges, marks of
//! alerts and gaps. Changes nothing but what limits were drawn.

use ratatui::layout::Rect;

use crate::plain::{duration, tokens};
use crate::telemetry::{Axis, Chart, Extent, Series, Smoothing, Unit, names, nice_limits, sticky};
use crate::tui::app::App;
use crate::tui::paint::{Canvas, Span, span, spans_width};
use crate::tui::plot::{Line, Marker, Plot};
use crate::tui::theme::Role;

/// Columns of the numbers at the right edge, and of the axis on the left of a large chart.
const EDGE: u16 = 9;
/// What a chart must measure for the axis on its left, and for a row below with the ends of its x axis.
const WITH_AXIS: (u16, u16) = (52, 7);
/// Rows of the inside from which on the last value is told beside its point too.
const LAST_FROM: u16 = 5;
const ROLES: [Role; 4] = [Role::Series1, Role::Series2, Role::Series3, Role::Series4];
const GLYPHS: [char; 4] = ['◆', '○', '△', '□'];

/// A curve as it is drawn here.
struct Shown<'a> {
    label: String,
    series: &'a Series,
    role: Role,
    glyph: Option<char>,
}

/// The role and glyph of a run laid over this one: the baseline, or the `index`th of the others.
pub fn overlay_look(pinned: bool, index: usize) -> (Role, char) {
    match pinned {
        true => (Role::Pinned, GLYPHS[0]),
        false => (ROLES[1 + index % 3], GLYPHS[1 + index % 3]),
    }
}

/// The chart's own curves; with other runs laid over, the first of each run.
fn shown<'a>(app: &'a App, chart: &Chart) -> Vec<Shown<'a>> {
    let mut out = Vec::new();
    let alone = app.overlays().next().is_none();
    for (index, curve) in chart.curves.iter().enumerate().take(if alone { ROLES.len() } else { 1 }) {
        if let Some(series) = app.board.series(&curve.name) {
            let glyph = index.checked_sub(1).map(|before| GLYPHS[before]);
            out.push(Shown { label: curve.label.clone(), series, role: ROLES[index], glyph });
        }
    }
    let mut unpinned = 0;
    for (other, board) in app.overlays() {
        let pinned = app.is_pinned(&other.path);
        let (role, glyph) = overlay_look(pinned, unpinned);
        unpinned += usize::from(!pinned);
        if let Some(series) = chart.curves.first().and_then(|curve| board.series(&curve.name)) {
            out.push(Shown { label: other.name(), series, role, glyph: Some(glyph) });
        }
    }
    out
}

pub fn draw(app: &App, chart: &Chart, area: Rect, selected: bool, canvas: &mut Canvas<'_>) {
    if area.height == 0 {
        return;
    }
    let curves = shown(app, chart);
    let axis = chart.axis(app.curves.axis);
    let x = app.curve_window(axis);
    let visible = curves.iter().fold(Extent::EMPTY, |sum, one| sum.with(visible(app, one, axis, x)));
    title(app, chart, &curves, &visible, area, selected, canvas);
    let large = area.width >= WITH_AXIS.0 && area.height >= WITH_AXIS.1;
    let (left, right) = (if large { EDGE } else { 0 }, if area.width >= 3 * EDGE { EDGE } else { 0 });
    let below = u16::from(area.height >= WITH_AXIS.1);
    let body = Rect {
        x: area.x + left,
        y: area.y + 1,
        width: area.width.saturating_sub(left + right),
        height: area.height - 1 - below.min(area.height - 1),
    };
    if body.is_empty() {
        return;
    }
    let Some(y) = limits(app, chart, &visible) else { return };
    let marker = if app.prefs.low_bandwidth { Marker::Dot } else { Marker::Braille };
    let plot = Plot { area: body, axis, x, y, log: app.curves.log, marker };
    if selected {
        app.curves.grain.set(plot.grain());
    }
    // The chart's own first curve on top.
    let lines: Vec<Line<'_>> = curves
        .iter()
        .rev()
        .map(|one| Line {
            series: one.series,
            smoothing: app.curves.smoothing,
            role: one.role,
            glyph: one.glyph,
        })
        .collect();
    let gaps = plot.draw(canvas, &lines);
    if let Some(at) = app.curves.cursor.filter(|_| selected || app.curves.crosshair)
        && let Some(column) = plot.cell_column(at.on(axis))
    {
        upright(canvas, body, column);
    }
    let marks = Rect { y: body.bottom() - 1 + below, height: 1, ..body };
    if below > 0 {
        ends(axis, x, marks, canvas);
    }
    for column in gaps {
        put(canvas, marks, column, "×", Role::Warn);
    }
    for alert in app.board.alerts() {
        if let Some(column) = plot.cell_column(alert.at.on(axis)) {
            put(canvas, marks, column, "▲", Role::AlertMark);
        }
    }
    if right > 0 {
        let edge = Rect { x: body.right() + 1, width: right - 1, ..body };
        edge_numbers(app, chart, &curves, &visible, &plot, edge, canvas);
    }
    if left > 0 {
        let unlog = |value: f64| if app.curves.log { 10f64.powf(value) } else { value };
        for (row, value) in [(body.y, y.1), (body.bottom() - 1, y.0)] {
            let words = format!("{:>8}", chart.unit.words(unlog(value)));
            canvas.line(Rect { x: area.x, y: row, width: left, height: 1 }, &[span(Role::Faint, words)]);
        }
    }
}

/// What a curve spans in the window, with the points next to it: lines to them cross it.
fn visible(app: &App, one: &Shown<'_>, axis: Axis, x: (f64, f64)) -> Extent {
    let from = one.series.first_at(axis, x.0).saturating_sub(1);
    let to = one.series.last_until(axis, x.1).map_or(0, |last| last + 2);
    one.series.values(app.curves.smoothing).extent(from..to)
}

/// Limits of the y axis, in decades when it is logarithmic.
fn limits(app: &App, chart: &Chart, visible: &Extent) -> Option<(f64, f64)> {
    let wanted = if app.curves.log {
        let (low, high) = visible.positive_limits()?;
        nice_limits(low.log10(), high.log10())
    } else {
        let (low, high) = visible.limits()?;
        let nice = nice_limits(low, high);
        let floor = if low >= 0.0 { nice.0.max(0.0) } else { nice.0 };
        let ceiling = if chart.unit == Unit::Share && high <= 1.0 { nice.1.min(1.0) } else { nice.1 };
        (floor, ceiling)
    };
    let mut known = app.curves.limits.borrow_mut();
    let kept = sticky(known.get(&chart.title).copied(), wanted);
    known.insert(chart.title.clone(), kept);
    Some(kept)
}

/// The value at the cursor where this chart shows it, else the last one.
fn value(app: &App, one: &Shown<'_>, axis: Axis, selected: bool) -> Option<f64> {
    let smoothing = app.curves.smoothing;
    match app.curves.cursor.filter(|_| selected || app.curves.crosshair) {
        Some(at) => {
            let index = one.series.last_until(axis, at.on(axis))?;
            one.series.values(smoothing).values().get(index).copied()
        }
        None => one.series.last(smoothing),
    }
}

fn title(
    app: &App,
    chart: &Chart,
    curves: &[Shown<'_>],
    visible: &Extent,
    area: Rect,
    selected: bool,
    canvas: &mut Canvas<'_>,
) {
    let axis = chart.axis(app.curves.axis);
    // A rate at rest says so, and that of a whole run is its mean.
    let at_cursor = app.curves.cursor.is_some() && (selected || app.curves.crosshair);
    let of_now = chart.curves.first().is_some_and(|curve| curve.name == names::RATE) && !at_cursor;
    let rate = if of_now { app.live.rate(app.ended()) } else { None };
    let number = |one: &Shown<'_>| value(app, one, axis, selected).map(|value| chart.unit.words(value));
    let mut words = match selected {
        true => vec![span(Role::Key, "▸"), span(Role::TitleFocus, chart.title.as_str())],
        false => vec![span(Role::Title, chart.title.as_str())],
    };
    let first = rate.as_ref().map(|(rate, note)| format!("{} {note}", chart.unit.words(*rate)));
    match first.or_else(|| curves.first().and_then(number)) {
        Some(number) => words.push(span(ROLES[0], format!(" {number}"))),
        None => words.push(span(Role::Faint, " –")),
    }
    let flags = flags(app, axis, visible);
    let room = (area.width as usize).saturating_sub(spans_width(&flags) + 1);
    for one in curves.iter().skip(1) {
        let glyph = one.glyph.map_or(String::new(), |glyph| glyph.to_string());
        let number = number(one).unwrap_or_else(|| "–".to_owned());
        let more = [
            span(one.role, format!("  {glyph}")),
            span(Role::Dim, format!("{} ", one.label)),
            span(one.role, number),
        ];
        if spans_width(&words) + spans_width(&more) > room {
            break;
        }
        words.extend(more);
    }
    let head = Rect { height: 1, ..area };
    let used = canvas.line(head, &words);
    canvas.line_right(Rect { x: head.x + used, width: head.width - used, ..head }, &flags);
}

/// What is not as the plain numbers would be drawn.
fn flags(app: &App, axis: Axis, visible: &Extent) -> Vec<Span> {
    let mut words = Vec::new();
    if axis != app.curves.axis {
        words.push(format!("by {}", axis.name()));
    }
    if app.curves.smoothing != Smoothing::Off {
        words.push(format!("ema {}", app.curves.smoothing.factor()));
    }
    if app.curves.log {
        words.push(match visible.not_positive {
            0 => "log".to_owned(),
            n => format!("log, {n} ≤ 0 left out"),
        });
    }
    vec![span(Role::Dim, format!(" {}", words.join(" · ")))]
}

/// Greatest, last and least value at the right edge, the last one beside its point: not in a low chart, where it stands
/// close above in the title, and every new point would be told twice.
fn edge_numbers(
    app: &App,
    chart: &Chart,
    curves: &[Shown<'_>],
    visible: &Extent,
    plot: &Plot,
    edge: Rect,
    canvas: &mut Canvas<'_>,
) {
    let found = if app.curves.log { visible.positive_limits() } else { visible.limits() };
    let Some((low, high)) = found else { return };
    let mut put = |row: u16, role: Role, value: f64| {
        let line = Rect { y: edge.y + row, height: 1, ..edge };
        canvas.line(line, &[span(role, chart.unit.words(value))]);
    };
    put(0, Role::Faint, high);
    if edge.height > 1 {
        put(edge.height - 1, Role::Faint, low);
    }
    let last = curves.first().and_then(|one| one.series.last(app.curves.smoothing));
    if edge.height >= LAST_FROM
        && let Some(last) = last
        && let Some(row) = plot.cell_row(last)
    {
        put(row.clamp(1, edge.height - 2), ROLES[0], last);
    }
}

/// The two ends of the x axis.
fn ends(axis: Axis, x: (f64, f64), row: Rect, canvas: &mut Canvas<'_>) {
    canvas.line(row, &[span(Role::Faint, place_words(axis, x.0))]);
    canvas.line_right(row, &[span(Role::Faint, place_words(axis, x.1))]);
}

/// A place on an axis in words.
pub fn place_words(axis: Axis, x: f64) -> String {
    match axis {
        Axis::Step if x.fract() == 0.0 => format!("{x:.0}"),
        Axis::Step => format!("{x:.1}"),
        Axis::Time => duration(x as u64),
        Axis::Tokens => tokens(x as u64),
    }
}

/// An upright line through the cells that nothing is drawn in.
fn upright(canvas: &mut Canvas<'_>, body: Rect, column: u16) {
    for row in 0..body.height {
        let place = (body.x + column, body.y + row);
        if canvas.buf.area.contains(place.into()) && canvas.buf[place].symbol() == " " {
            let style = canvas.theme.style(Role::Crosshair);
            canvas.buf[place].set_symbol("│").set_style(style);
        }
    }
}

fn put(canvas: &mut Canvas<'_>, row: Rect, column: u16, glyph: &str, role: Role) {
    canvas.line(Rect { x: row.x + column, width: 1, ..row }, &[span(role, glyph)]);
}
