//! Pane 7: what the run takes of its machine. Memory first, then how busy it is, power and heat, with their history; many
//! GPUs as strips of one cell a moment.

use ratatui::layout::Rect;

use super::{frame, placeholder, waiting_words};
use crate::domain::{GpuSample, MachineSample};
use crate::plain::{count, duration};
use crate::telemetry::{Axis, Series, Smoothing, Unit, names, significant, stepped_end};
use crate::tui::app::App;
use crate::tui::layout::Pane;
use crate::tui::paint::{Canvas, Span, rows_of, span, spans_width};
use crate::tui::plot::sparkline;
use crate::tui::theme::Role;

/// Columns of a share as a bar.
const BAR: usize = 10;
/// Columns of a history at most.
const HISTORY: usize = 60;
/// A minute: less than that is never the whole axis.
const LEAST_TIME: f64 = 60_000.0;
/// How long a sample stands for what follows it: more than the time between two in the journal.
const GOOD_FOR: f64 = 60_000.0;
/// Above this many, GPUs get one row each.
const FEW: usize = 2;
/// Shares from which on memory is worth a warning, and heat in degrees.
const FULL: f64 = 0.95;
const HOT: f64 = 85.0;

/// One row: a name, its number, the share it is of its limit, and its history.
struct Gauge<'a> {
    name: String,
    words: String,
    share: Option<f64>,
    warn: bool,
    history: Option<&'a Series>,
    /// What the history is drawn against; `None`: its own greatest.
    most: Option<f64>,
}

pub fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let host = app.state.host.as_ref().map_or("", |(host, _)| host.as_str());
    let sample = app.board.machine.as_ref();
    let info = if host.is_empty() { Vec::new() } else { vec![span(Role::Dim, host)] };
    let right = match sample {
        Some((at, _)) => {
            let age = (app.board.end().time - at.time).max(0.0) as u64;
            let words = if age >= 60_000 { format!("sampled {} ago", duration(age)) } else { String::new() };
            vec![span(Role::Dim, words)]
        }
        None => Vec::new(),
    };
    let right: Vec<Span> = right.into_iter().filter(|(_, words)| !words.is_empty()).collect();
    let inner = frame(app, Pane::Machine, area, canvas, info, &right);
    let Some((_, sample)) = sample else {
        let words = if app.state.info.is_none() {
            waiting_words(app)
        } else {
            "Nothing has been sampled yet.".into()
        };
        let more = "The host samples its machine while it works or is watched.";
        let lines: &[&str] = if app.state.info.is_none() { &[&words] } else { &[&words, more] };
        return placeholder(canvas, inner, lines);
    };
    let lines = lines(app, sample, host, inner.width as usize);
    app.machine.scroll.extent.set((lines.len(), inner.height as usize));
    let top = app.machine.scroll.top.min(lines.len().saturating_sub(inner.height as usize));
    for (row, line) in rows_of(inner).zip(&lines[top..]) {
        canvas.line(row, line);
    }
}

fn lines(app: &App, sample: &MachineSample, host: &str, columns: usize) -> Vec<Vec<Span>> {
    let mut out = Vec::new();
    let series = |name: &str| app.board.series(name);
    if sample.gpus.is_empty() {
        let place = if host.is_empty() { "this machine" } else { host };
        out.push(vec![span(Role::Dim, format!("no NVIDIA driver on {place}"))]);
    } else if sample.gpus.len() <= FEW {
        for gpu in &sample.gpus {
            out.push(vec![
                span(Role::Title, format!("GPU {}  ", gpu.index)),
                span(Role::Dim, gpu.name.as_str()),
            ]);
            let gauges = of_gpu(app, gpu);
            out.extend(gauges.iter().map(|gauge| gauge_line(app, gauge, columns)));
        }
    } else {
        out.push(strip_head(&sample.gpus, columns));
        out.extend(sample.gpus.iter().map(|gpu| strip(app, gpu, columns)));
    }
    let memory = Gauge {
        name: "memory".into(),
        words: of_total(sample.memory_used, sample.memory_total),
        share: share(sample.memory_used as f64, sample.memory_total as f64),
        warn: sample.memory_used as f64 > FULL * sample.memory_total as f64,
        history: series(names::MEMORY),
        most: Some(sample.memory_total as f64),
    };
    let cpu = Gauge {
        name: "cpu".into(),
        words: format!("{} of {}", percent(sample.cpu), count(sample.cores, "core")),
        share: Some(sample.cpu),
        warn: false,
        history: series(names::CPU),
        most: Some(1.0),
    };
    let resident = |name: &str, bytes: u64, history| Gauge {
        name: name.into(),
        words: bytes_words(bytes),
        share: share(bytes as f64, sample.memory_total as f64),
        warn: false,
        history,
        most: None,
    };
    let rate = app.live.rate(app.ended());
    let work = Gauge {
        name: "tok/s".into(),
        words: match &rate {
            Some((rate, note)) => format!("{} {note}", significant((rate * 10.0).round() / 10.0)),
            None => match series(names::RATE).and_then(|series| series.last(Smoothing::Off)) {
                Some(rate) => format!("{} {} in flight", significant(rate), app.board.in_flight),
                None => "–".into(),
            },
        },
        share: None,
        warn: false,
        history: series(names::RATE),
        most: None,
    };
    let host = resident("host", sample.rss, series(names::RSS));
    let children = resident("children", sample.children_rss, series(names::CHILDREN_RSS));
    out.extend([memory, cpu, host, children, work].iter().map(|gauge| gauge_line(app, gauge, columns)));
    out
}

fn of_gpu<'a>(app: &'a App, gpu: &GpuSample) -> Vec<Gauge<'a>> {
    let series = |what: &str| app.board.series(&format!("gpu{}/{what}", gpu.index));
    let (used, total) = (gpu.memory_used as f64, gpu.memory_total as f64);
    let mut out = vec![Gauge {
        name: "memory".into(),
        words: of_total(gpu.memory_used, gpu.memory_total),
        share: share(used, total),
        warn: total > 0.0 && used > FULL * total,
        history: series("memory"),
        most: Some(total),
    }];
    if let Some(busy) = gpu.utilisation {
        out.push(Gauge {
            name: "busy".into(),
            words: percent(busy),
            share: Some(busy),
            warn: false,
            history: series("utilisation"),
            most: Some(1.0),
        });
    }
    if let Some(watts) = gpu.watts {
        let limit = gpu.watts_limit.filter(|limit| *limit > 0.0);
        out.push(Gauge {
            name: "power".into(),
            words: match limit {
                Some(limit) => format!("{watts:.0} of {limit:.0} W"),
                None => format!("{watts:.0} W"),
            },
            share: limit.map(|limit| watts / limit),
            warn: false,
            history: series("watts"),
            most: limit,
        });
    }
    if let Some(celsius) = gpu.celsius {
        out.push(Gauge {
            name: "heat".into(),
            words: format!("{celsius:.0} °C"),
            share: None,
            warn: celsius >= HOT,
            history: series("celsius"),
            most: Some(100.0),
        });
    }
    out
}

fn gauge_line(app: &App, gauge: &Gauge<'_>, columns: usize) -> Vec<Span> {
    let role = if gauge.warn { Role::Warn } else { Role::Text };
    let mark = if gauge.warn { "!" } else { " " };
    let mut out = vec![
        span(Role::Dim, format!("{:<9}", gauge.name)),
        span(role, format!("{mark}{:<21}", gauge.words)),
        span(Role::Series1, format!("{:<BAR$}  ", gauge.share.map_or(String::new(), bar))),
    ];
    let room = columns.saturating_sub(spans_width(&out)).min(HISTORY);
    if let Some(series) = gauge.history.filter(|_| room >= 4) {
        out.push(span(Role::Series2, history(app, series, gauge.most, room)));
    }
    out
}

/// How the columns of [`strip`] are called.
fn strip_head(gpus: &[GpuSample], columns: usize) -> Vec<Span> {
    let same = gpus.iter().all(|gpu| gpu.name == gpus[0].name);
    let names = if same { format!("{} × {}", gpus.len(), gpus[0].name) } else { count(gpus.len(), "GPU") };
    let mut out = vec![span(
        Role::Title,
        format!("{:<5}{:<18}{:>5}{:>7}{:>6}  ", "GPU", "memory", "busy", "power", "heat"),
    )];
    if spans_width(&out) + 12 < columns {
        out.push(span(Role::Dim, format!("memory of {names}")));
    }
    out
}

/// One GPU in one row, its memory's history as shades.
fn strip(app: &App, gpu: &GpuSample, columns: usize) -> Vec<Span> {
    let (used, total) = (gpu.memory_used as f64, gpu.memory_total as f64);
    let full = total > 0.0 && used > FULL * total;
    let hot = gpu.celsius.is_some_and(|celsius| celsius >= HOT);
    let told =
        |value: Option<f64>, unit: &str| value.map_or("–".to_owned(), |value| format!("{value:.0}{unit}"));
    let role = |warn: bool| if warn { Role::Warn } else { Role::Text };
    let mut out = vec![
        span(Role::Dim, format!("{:<4}", gpu.index)),
        span(
            role(full),
            format!("{}{:<18}", if full { "!" } else { " " }, of_total(gpu.memory_used, gpu.memory_total)),
        ),
        span(Role::Text, format!("{:>5}", gpu.utilisation.map_or("–".to_owned(), percent))),
        span(Role::Text, format!("{:>7}", told(gpu.watts, "W"))),
        span(role(hot), format!("{:>6}  ", told(gpu.celsius, if hot { "°!" } else { "°" }))),
    ];
    let room = columns.saturating_sub(spans_width(&out)).min(HISTORY);
    if let Some(series) = app.board.series(&format!("gpu{}/memory", gpu.index)).filter(|_| room >= 4) {
        let shades = ['·', '░', '▒', '▓', '█'];
        let cells = over_time(app, series, room).into_iter().map(|value| match share(value, total) {
            Some(share) => shades[(share.clamp(0.0, 1.0) * 4.0).round() as usize],
            None => ' ',
        });
        out.push(span(Role::Series2, cells.collect::<String>()));
    }
    out
}

/// The greatest value in each of `columns` stretches of the run's time so far, or the last one if it is still good; NaN
/// where nothing was sampled. The axis grows by a quarter at a time, so that a new sample changes one cell.
fn over_time(app: &App, series: &Series, columns: usize) -> Vec<f64> {
    let end = stepped_end(app.board.end().time, LEAST_TIME);
    let edge = |column: usize| end * column as f64 / columns as f64;
    (0..columns)
        .map(|column| {
            let range = series.between(Axis::Time, edge(column), edge(column + 1));
            if let Some((_, high)) = series.values(Smoothing::Off).extent(range.clone()).limits() {
                return high;
            }
            let last = range.start.checked_sub(1).filter(|_| range.start < series.len());
            let last = last.and_then(|index| {
                Some((series.moment(index)?, series.values(Smoothing::Off).values()[index]))
            });
            last.filter(|(at, _)| edge(column) - at.time <= GOOD_FOR).map_or(f64::NAN, |(_, value)| value)
        })
        .collect()
}

fn history(app: &App, series: &Series, most: Option<f64>, columns: usize) -> String {
    let values = over_time(app, series, columns);
    let most = most.unwrap_or_else(|| values.iter().copied().fold(0.0, f64::max));
    let shares: Vec<f64> = values.iter().map(|value| share(*value, most).unwrap_or(f64::NAN)).collect();
    sparkline(&shares, columns).replace('·', " ")
}

fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn share(value: f64, most: f64) -> Option<f64> {
    (most > 0.0 && value.is_finite()).then(|| value / most)
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn bytes_words(bytes: u64) -> String {
    format!("{}B", Unit::Bytes.words(bytes as f64))
}

fn of_total(used: u64, total: u64) -> String {
    format!("{} of {}", bytes_words(used), bytes_words(total))
}
