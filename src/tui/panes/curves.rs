//! Pane 6: train score, selection score, accepted edits and tokens/s as braille curves with their last values.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, span};
use crate::tui::plot::{Bounds, Series, plot, range};
use crate::tui::theme::Role;

/// Columns for the numbers of the y axis.
const AXIS: u16 = 5;

struct Chart {
    title: &'static str,
    /// Drawn in order; the last one is the one the title's number belongs to.
    curves: Vec<(Role, Vec<(f64, f64)>)>,
    x: (f64, f64),
    /// Grid of the y axis.
    grid: f64,
    number: Option<String>,
    note: String,
}

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let info = match app.curves.cursor.and_then(|cursor| app.state.steps.get(cursor)) {
        Some(step) => vec![span(Role::Key, format!("at step {}", step.at.step))],
        None => Vec::new(),
    };
    let right = match &app.state.info {
        Some(info) => vec![span(Role::Dim, format!("{} steps", info.plan.total_steps))],
        None => Vec::new(),
    };
    let inner = frame(app, Pane::Curves, area, canvas, info, &right);
    if app.state.info.is_none() {
        return placeholder(canvas, inner, &[waiting_words(app)]);
    }
    let charts = [train(app), selection(app), accepted(app), throughput(app)];
    for (chart, area) in charts.iter().zip(grid(inner)) {
        draw_chart(chart, area, canvas);
    }
}

/// Four places: side by side in a low strip, two by two in a high pane, one above the other in a narrow one.
fn grid(area: Rect) -> Vec<Rect> {
    let columns = match (area.width, area.height) {
        (..60, _) => 1,
        (_, 14..) => 2,
        (72.., _) => 4,
        _ => 2,
    };
    let rows = 4 / columns;
    let (width, height) = (area.width / columns, area.height / rows);
    (0..4)
        .map(|index| Rect {
            x: area.x + index % columns * width,
            y: area.y + index / columns * height,
            width: width.saturating_sub(2),
            height,
        })
        .collect()
}

fn draw_chart(chart: &Chart, area: Rect, canvas: &mut Canvas<'_>) {
    if area.height == 0 {
        return;
    }
    let head = Rect { height: 1, ..area };
    let role = chart.curves.last().map_or(Role::Dim, |curve| curve.0);
    let mut words: Vec<Span> = vec![span(Role::Title, chart.title)];
    match &chart.number {
        Some(number) => words.push(span(role, format!(" {number}"))),
        None => words.push(span(Role::Faint, " –")),
    }
    let used = canvas.line(head, &words);
    let rest = Rect { x: head.x + used, width: head.width - used, ..head };
    if !chart.note.is_empty() && rest.width > 1 {
        canvas.line_right(
            Rect { x: rest.x + 1, width: rest.width - 1, ..rest },
            &[span(Role::Dim, chart.note.as_str())],
        );
    }
    let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let values = chart.curves.iter().flat_map(|curve| curve.1.iter().map(|point| point.1));
    let Some(y) = range(values, chart.grid) else { return };
    if body.height == 0 || body.width <= AXIS + 2 {
        return;
    }
    let label = |value: f64| match chart.grid {
        grid if grid < 1.0 => format!("{value:>4.2} "),
        _ => format!("{value:>4.0} "),
    };
    canvas.line(Rect { width: AXIS, height: 1, ..body }, &[span(Role::Faint, label(y.1))]);
    if body.height > 1 {
        let bottom = Rect { y: body.bottom() - 1, width: AXIS, height: 1, ..body };
        canvas.line(bottom, &[span(Role::Faint, label(y.0))]);
    }
    let series: Vec<Series<'_>> =
        chart.curves.iter().map(|(role, points)| Series { points, role: *role }).collect();
    let inside = Rect { x: body.x + AXIS, width: body.width - AXIS, ..body };
    plot(canvas, inside, Bounds { x: chart.x, y }, &series);
}

/// The x axis is the whole plan, so a curve grows instead of sliding.
fn steps_axis(app: &App) -> (f64, f64) {
    let planned = app.state.info.as_ref().map_or(0, |info| info.plan.total_steps) as f64;
    let seen = app.state.steps.last().map_or(0.0, |step| f64::from(step.at.step));
    (0.0, planned.max(seen).max(1.0))
}

/// Value at the cursor, or the last one.
fn chosen(app: &App, points: &[(f64, f64)]) -> Option<f64> {
    let point = match app.curves.cursor.and_then(|cursor| app.state.steps.get(cursor)) {
        Some(step) => points.iter().find(|point| point.0 == f64::from(step.at.step)),
        None => points.iter().rev().find(|point| point.1.is_finite()),
    };
    point.map(|point| point.1).filter(|value| value.is_finite())
}

fn train(app: &App) -> Chart {
    let points: Vec<(f64, f64)> = app
        .state
        .steps
        .iter()
        .filter_map(|step| {
            let record = step.record.as_ref()?;
            Some((f64::from(step.at.step), record.rollout_hard))
        })
        .collect();
    Chart {
        title: "train",
        number: chosen(app, &points).map(|value| format!("{value:.3}")),
        curves: vec![(Role::Series1, points)],
        x: steps_axis(app),
        grid: 0.25,
        note: String::new(),
    }
}

/// Score of the current skill, over that of the best one. A rejected candidate's score is the gate's affair.
fn selection(app: &App) -> Chart {
    let mut current = Vec::new();
    let mut best = Vec::new();
    if let Some(baseline) = app.state.baseline_score {
        current.push((0.0, baseline));
        best.push((0.0, baseline));
    }
    for record in app.state.steps.iter().filter_map(|step| step.record.as_ref()) {
        let x = f64::from(record.at.step);
        current.push((x, record.current_score));
        best.push((x, record.best_score));
    }
    let last_best = best.last().map(|point| point.1);
    Chart {
        title: "select",
        number: chosen(app, &current).map(|value| format!("{value:.3}")),
        curves: vec![(Role::Series2, best), (Role::Series1, current)],
        x: steps_axis(app),
        grid: 0.25,
        note: last_best.map_or(String::new(), |best| format!("best {best:.3}")),
    }
}

fn accepted(app: &App) -> Chart {
    let mut total = 0.0;
    let mut points = Vec::new();
    for step in &app.state.steps {
        let Some(record) = &step.record else { continue };
        if record.action.accepted() {
            total += record.edit_apply_summary.map_or(0, |summary| summary.applied) as f64;
        }
        points.push((f64::from(step.at.step), total));
    }
    if !points.is_empty() {
        points.insert(0, (0.0, 0.0));
    }
    Chart {
        title: "edits",
        number: chosen(app, &points).map(|value| format!("{value:.0}")),
        curves: vec![(Role::Series1, points)],
        x: steps_axis(app),
        grid: 5.0,
        note: "kept by the gate".to_owned(),
    }
}

fn throughput(app: &App) -> Chart {
    let samples = &app.live.throughput;
    let rate = app.live.rate(app.ended());
    let first = samples.front().map_or(0, |sample| sample.0);
    let points: Vec<(f64, f64)> =
        samples.iter().map(|(at, rate)| (at.saturating_sub(first) as f64, *rate)).collect();
    let end = points.last().map_or(1.0, |point| point.0);
    // The window grows in steps: a window that slides with every sample would redraw the whole curve each time.
    let window = 60_000.0_f64.max((end / 60_000.0).ceil() * 60_000.0);
    Chart {
        title: "tok/s",
        number: rate.as_ref().map(|(rate, _)| format!("{rate:.1}")),
        curves: vec![(Role::Series1, points)],
        x: (0.0, window),
        grid: 20.0,
        note: rate.map_or(String::new(), |(_, note)| note),
    }
}
