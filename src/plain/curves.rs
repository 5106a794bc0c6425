//! Curves outside the terminal: numbers as CSV, charts as SVG. Pure; names are untrusted text.

use std::fmt::Write as _;

use super::describe::{duration, tokens};
use crate::telemetry::{Axis, Board, Chart, Series, Smoothing, nice_limits};
use crate::text::sanitize_line;

/// All series of runs in long form, one line a point. A value that is no number is empty.
pub fn csv(boards: &[&Board]) -> String {
    let mut out = String::from("run,series,step,time_s,tokens,value\n");
    for board in boards {
        for (name, series) in board.all() {
            let labels = format!("{},{}", field(&board.run), field(name));
            for (index, value) in series.values(Smoothing::Off).values().iter().enumerate() {
                let Some(at) = series.moment(index) else { continue };
                let value = if value.is_finite() { value.to_string() } else { String::new() };
                let _ = writeln!(out, "{labels},{},{},{},{value}", at.step, at.time / 1e3, at.tokens);
            }
        }
    }
    out
}

/// A field that stays one field, and that no spreadsheet takes for a formula.
fn field(text: &str) -> String {
    let text = sanitize_line(text);
    let formula = text.starts_with(['=', '+', '-', '@']);
    let guard = if formula { "'" } else { "" };
    if formula || text.contains(['"', ',', '\n', '\r', '\'']) {
        return format!("\"{guard}{}\"", text.replace('"', "\"\""));
    }
    text.into_owned()
}

/// How charts are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Look {
    pub axis: Axis,
    pub smoothing: Smoothing,
    pub log: bool,
    /// Part of the x axis; `None`: all of it.
    pub x: Option<(f64, f64)>,
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 260.0;
/// Left, right, top and bottom of a chart's inside.
const MARGINS: (f64, f64, f64, f64) = (70.0, 20.0, 34.0, 28.0);
/// One point for each of these at most, so that a picture of a million points stays small.
const COLUMNS: usize = 700;
/// Readable on white, told apart by dashes as well.
const STROKES: [(&str, &str); 6] = [
    ("#1f77b4", ""),
    ("#b35900", "7 3"),
    ("#5b3a8e", "2 3"),
    ("#2e7d32", "9 3 2 3"),
    ("#a01d1d", "4 4"),
    ("#4d4d4d", "12 4"),
];

/// The charts one below the other: of one run all curves, of several the first curve of each run.
pub fn svg(boards: &[&Board], charts: &[Chart], look: Look) -> String {
    let height = HEIGHT * charts.len().max(1) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (index, chart) in charts.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">", HEIGHT * index as f64);
        draw(&mut out, boards, chart, look);
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn draw<'a>(out: &mut String, boards: &[&'a Board], chart: &'a Chart, look: Look) {
    let axis = chart.axis(look.axis);
    let curves: Vec<(&'a str, &'a Series)> = match boards {
        [board] => {
            let own = chart.curves.iter();
            own.filter_map(|curve| Some((curve.label.as_str(), board.series(&curve.name)?))).collect()
        }
        several => {
            let first = chart.curves.first();
            let with = |board: &&'a Board| Some((board.run.as_str(), board.series(&first?.name)?));
            several.iter().filter_map(with).collect()
        }
    };
    let end = boards.iter().map(|board| board.end().on(axis)).fold(0.0, f64::max);
    let x = look.x.unwrap_or((0.0, if end > 0.0 { end } else { 1.0 }));
    let smoothed = match look.smoothing {
        Smoothing::Off => String::new(),
        on => format!(", smoothed {} (exponential)", on.factor()),
    };
    text(out, MARGINS.0, 18.0, "start", &format!("{} by {}{smoothed}", chart.title, axis.name()));
    let visible = curves.iter().fold(crate::telemetry::Extent::EMPTY, |sum, (_, series)| {
        let range = series.first_at(axis, x.0)..series.last_until(axis, x.1).map_or(0, |last| last + 1);
        sum.with(series.values(look.smoothing).extent(range))
    });
    let limits = if look.log { visible.positive_limits() } else { visible.limits() };
    let Some((low, high)) = limits else {
        return text(out, WIDTH / 2.0, HEIGHT / 2.0, "middle", "nothing measured");
    };
    let scale = |value: f64| if look.log { value.log10() } else { value };
    let (low, high) = nice_limits(scale(low), scale(high));
    let (left, right, top, bottom) = (MARGINS.0, WIDTH - MARGINS.1, MARGINS.2, HEIGHT - MARGINS.3);
    let place = |at: f64, value: f64| {
        let across = left + (at - x.0) / (x.1 - x.0) * (right - left);
        (across, bottom - (scale(value) - low) / (high - low) * (bottom - top))
    };
    let _ = writeln!(out, "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#808080\"/>");
    let number = |value: f64| chart.unit.words(if look.log { 10f64.powf(value) } else { value });
    text(out, left - 6.0, top + 8.0, "end", &number(high));
    text(out, left - 6.0, bottom, "end", &number(low));
    text(out, left, bottom + 18.0, "start", &place_words(axis, x.0));
    text(out, right, bottom + 18.0, "end", &place_words(axis, x.1));
    if look.log && visible.not_positive > 0 {
        let words = format!("{} values at or below 0 left out", visible.not_positive);
        text(out, (left + right) / 2.0, bottom + 18.0, "middle", &words);
    }
    let mut legend = right;
    for (index, (label, series)) in curves.iter().enumerate().rev() {
        let (stroke, dash) = STROKES[index % STROKES.len()];
        let path = path(series, axis, look, x, &place);
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.5\" stroke-dasharray=\"{dash}\"/>"
        );
        let last = series.last(look.smoothing).map_or_else(|| "–".to_owned(), |last| chart.unit.words(last));
        let words = format!("{label} {last}");
        text(out, legend, 18.0, "end", &words);
        legend -= 8.0 * words.chars().count() as f64 + 12.0;
        let _ = writeln!(
            out,
            "<path d=\"M{} 14h22\" stroke=\"{stroke}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
            legend - 16.0
        );
        legend -= 26.0;
    }
}

/// A curve as a path: of each column its first, least, greatest and last value; gaps lift the pen.
fn path(
    series: &Series,
    axis: Axis,
    look: Look,
    x: (f64, f64),
    place: &dyn Fn(f64, f64) -> (f64, f64),
) -> String {
    let values = series.values(look.smoothing);
    let mut out = String::new();
    let mut pen_down = false;
    let mut point = |at: f64, value: f64| {
        let (across, down) = place(at, value);
        if !(across.is_finite() && down.is_finite()) {
            pen_down = false;
            return;
        }
        let _ = write!(out, "{}{across:.1} {down:.1}", if pen_down { "L" } else { "M" });
        pen_down = true;
    };
    let step = (x.1 - x.0) / COLUMNS as f64;
    let mut from = series.first_at(axis, x.0);
    for column in 0..=COLUMNS {
        let edge = x.0 + (column + 1) as f64 * step;
        let to = series.first_at(axis, edge).min(series.last_until(axis, x.1).map_or(0, |last| last + 1));
        if from >= to {
            continue;
        }
        let at = |index: usize| series.moment(index).map_or(0.0, |at| at.on(axis));
        point(at(from), values.values()[from]);
        if to - from > 1 {
            let middle = x.0 + (column as f64 + 0.5) * step;
            let extent = values.extent(from..to);
            let limits = if look.log { extent.positive_limits() } else { extent.limits() };
            if let Some((low, high)) = limits.filter(|_| to - from > 2) {
                point(middle, low);
                point(middle, high);
            }
            point(at(to - 1), values.values()[to - 1]);
        }
        from = to;
    }
    out
}

fn place_words(axis: Axis, x: f64) -> String {
    match axis {
        Axis::Step => format!("{x}"),
        Axis::Time => duration(x as u64),
        Axis::Tokens => tokens(x as u64),
    }
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = sanitize_line(words).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ =
        writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"#202020\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Record};

    fn board(run: &str, values: &[f64]) -> Board {
        let mut board = Board::named(run);
        for (step, value) in (1..).zip(values) {
            let event =
                Event::Metric { step: Some(step), values: [("loss, \"all\"".to_owned(), *value)].into() };
            board.hear(&Record { seq: step, at: step * 1500, event });
        }
        board
    }

    #[test]
    fn csv_is_one_line_a_point_and_its_fields_stay_apart() {
        let told = csv(&[&board("=one", &[0.5, f64::NAN, -2.0])]);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(
            lines,
            [
                "run,series,step,time_s,tokens,value",
                "\"'=one\",\"loss, \"\"all\"\"\",1,1.5,0,0.5",
                "\"'=one\",\"loss, \"\"all\"\"\",2,3,0,",
                "\"'=one\",\"loss, \"\"all\"\"\",3,4.5,0,-2",
            ]
        );
    }

    #[test]
    fn svg_draws_every_run_breaks_at_gaps_and_escapes_names() {
        let (one, two) =
            (board("<one>", &[1.0, 2.0, f64::NAN, 4.0, 5.0]), board("two\u{1b}[2J", &[3.0, 3.0]));
        let told = svg(&[&one, &two], &one.charts()[..1], Look::default());
        assert!(
            told.contains("&lt;one&gt; 5") && told.contains("two 3") && !told.contains('\u{1b}'),
            "{told}"
        );
        let paths: Vec<&str> = told.lines().filter(|line| line.contains("stroke-width=\"1.5\"")).collect();
        assert_eq!(paths.len(), 2);
        assert_eq!(paths[1].matches('M').count(), 2, "a gap lifts the pen: {}", paths[1]);
        assert_eq!(paths[1].matches('L').count(), 2);
        // Whatever is in it, all of it lies inside.
        let number = |part: &str| part.parse::<f64>().unwrap();
        let inside = paths[1].split('"').nth(1).unwrap();
        for pair in inside.split(['M', 'L']).filter(|pair| !pair.is_empty()) {
            let (x, y) = pair.split_once(' ').unwrap();
            assert!((0.0..=WIDTH).contains(&number(x)) && (0.0..=HEIGHT).contains(&number(y)), "{pair}");
        }
    }

    #[test]
    fn a_million_points_are_a_small_picture() {
        let mut one = Board::named("one");
        for step in 1..200_000u64 {
            let event = Event::Metric {
                step: Some(step),
                values: [("x".to_owned(), (step % 17) as f64 - 3.0)].into(),
            };
            one.hear(&Record { seq: step, at: step, event });
        }
        let look = Look { log: true, smoothing: Smoothing::Some, ..Look::default() };
        let told = svg(&[&one], &one.charts()[..1], look);
        assert!(told.len() < 64 * 1024, "{}", told.len());
        assert!(svg(&[&Board::default()], &[], Look::default()).ends_with("</svg>\n"));
    }
}
