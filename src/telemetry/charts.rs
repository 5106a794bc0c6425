//! Which series are drawn together, in which order and unit. Draws nothing.

use super::board::{Board, names};
use super::scale::Unit;
use super::series::Axis;

/// One curve of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    pub label: String,
    /// Name of its series.
    pub name: String,
}

/// Series that share a y axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    pub title: String,
    pub unit: Unit,
    /// Sampled by the clock: over steps it would be a row of upright bars, so it goes over time instead.
    pub sampled: bool,
    /// The first one is the one that the title's number belongs to.
    pub curves: Vec<Curve>,
}

impl Chart {
    fn new(title: &str, unit: Unit, curves: &[(&str, &str)]) -> Self {
        let curve = |(label, name): &(&str, &str)| Curve { label: (*label).into(), name: (*name).into() };
        Self { title: title.into(), unit, sampled: false, curves: curves.iter().map(curve).collect() }
    }

    fn sampled(self) -> Self {
        Self { sampled: true, ..self }
    }

    /// The axis it is drawn over when `wanted` is asked for.
    pub fn axis(&self, wanted: Axis) -> Axis {
        match wanted {
            Axis::Step if self.sampled => Axis::Time,
            Axis::Step | Axis::Time | Axis::Tokens => wanted,
        }
    }
}

impl Board {
    /// The charts of this run, most telling first. Those that every run of steps will have are there from the start, so
    /// that the others keep their places.
    pub fn charts(&self) -> Vec<Chart> {
        let has = |name: &str| self.series(name).is_some();
        let own = |name: &str| names::ALL.contains(&name) || name.starts_with("gpu");
        let metrics = || self.all().map(|(name, _)| name).filter(|name| !own(name));
        // A run that trains weights has metrics and no steps of edits.
        let of_edits = metrics().next().is_none() || has(names::TRAIN_HARD) || has(names::SELECT_CURRENT);
        let mut out = Vec::new();
        if of_edits {
            out.push(Chart::new(
                "train",
                Unit::Share,
                &[("hard", names::TRAIN_HARD), ("soft", names::TRAIN_SOFT)],
            ));
            let select = [
                ("current", names::SELECT_CURRENT),
                ("best", names::SELECT_BEST),
                ("candidate", names::SELECT_CANDIDATE),
            ];
            out.push(Chart::new("select", Unit::Share, &select));
        }
        out.extend(metrics().map(|name| Chart::new(name, Unit::Plain, &[(name, name)])));
        if of_edits {
            let edits = [("kept", names::EDITS_KEPT), ("proposed", names::EDITS_PROPOSED)];
            out.push(Chart::new("edits", Unit::Count, &edits));
        }
        out.push(Chart::new("tok/s", Unit::Count, &[("tok/s", names::RATE)]).sampled());
        if has(names::LATENCY_MEAN) {
            let latency = [("mean", names::LATENCY_MEAN), ("p95", names::LATENCY_P95)];
            out.push(Chart::new("latency", Unit::Seconds, &latency));
        }
        if has(names::MISSING) {
            let shares = [("failed", names::FAILED), ("missing", names::MISSING)];
            out.push(Chart::new("failures", Unit::Share, &shares));
        }
        if has(names::TOKENS) {
            out.push(Chart::new("tokens", Unit::Count, &[("a step", names::TOKENS)]));
        }
        if has(names::CPU) {
            out.push(Chart::new("cpu", Unit::Share, &[("cpu", names::CPU)]).sampled());
            let resident = [("host", names::RSS), ("children", names::CHILDREN_RSS)];
            out.push(Chart::new("rss", Unit::Bytes, &resident).sampled());
        }
        for (name, _) in self.all().filter(|(name, _)| name.starts_with("gpu")) {
            let (gpu, what) = name.split_once('/').unwrap_or((name, ""));
            let unit = match what {
                "memory" => Unit::Bytes,
                "utilisation" => Unit::Share,
                "watts" => Unit::Watts,
                "celsius" => Unit::Celsius,
                _ => Unit::Plain,
            };
            let title = format!("{gpu} {what}");
            out.push(Chart::new(&title, unit, &[(what, name)]).sampled());
        }
        out
    }
}
