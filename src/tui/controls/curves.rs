//! Controls of pane 6: the curves. Which chart, which part of the run, at which place; other runs laid over.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::telemetry::{Axis, Board, Chart, MOST_ZOOM, Moment, Series, Smoothing, stepped_end, window};
use crate::tui::action::{Action, Spec, always, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::controls::runs::RunsAction;
use crate::tui::msg::Effect;
use crate::tui::services::Ask;
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CurvesAction {
    Open,
    Left,
    Right,
    PreviousChart,
    NextChart,
    Crosshair,
    ZoomOut,
    ZoomIn,
    Reset,
    LogY,
    Smooth,
    XAxis,
    Pin,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Curves CurvesAction:
    Open          "curves.open"          "one chart" ["enter"]          None, false, App::has_curves, "one chart in full, and back to all";
    Left          "curves.left"          "cursor"    ["left"]           None, false, App::has_curves, "value cursor to the left";
    Right         "curves.right"         "cursor right" ["right"]       None, false, App::has_curves, "value cursor to the right";
    PreviousChart "curves.previous"      "chart"     ["h"]              None, false, App::has_curves, "previous chart";
    NextChart     "curves.next"          "next chart" ["l"]             None, false, App::has_curves, "next chart";
    Crosshair     "curves.crosshair"     "crosshair" ["i"]              None, false, App::has_curves, "the cursor in all charts, or in one";
    ZoomOut       "curves.zoom-out"      "window"    ["<"]              None, false, App::has_curves, "show more of the run";
    ZoomIn        "curves.zoom-in"       "zoom in"   [">"]              None, false, App::has_curves, "show less of the run, around the cursor or its end";
    Reset         "curves.reset"         "reset"     ["0"]              None, false, App::has_curves, "the whole run, cursor off";
    LogY          "curves.log"           "log"       ["L"]              None, false, App::has_curves, "logarithmic y axis, or not";
    Smooth        "curves.smooth"        "smooth"    ["S"]              None, false, App::has_curves, "smoothing of the whole series: off, 0.6, 0.9";
    XAxis         "curves.axis"          "x axis"    ["T"]              None, false, App::has_curves, "x is step, time or tokens";
    Pin           "curves.pin"           "baseline"  ["b"]              None, false, always,          "pin the next marked run as baseline, or none";
};

pub const HINTS: &[Action] = &[
    Action::Curves(CurvesAction::Left),
    Action::Curves(CurvesAction::PreviousChart),
    Action::Curves(CurvesAction::Open),
    Action::Curves(CurvesAction::ZoomOut),
    Action::Curves(CurvesAction::Reset),
    Action::Curves(CurvesAction::Crosshair),
    Action::Curves(CurvesAction::Smooth),
    Action::Curves(CurvesAction::XAxis),
    Action::Curves(CurvesAction::LogY),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::FlipStrip),
];

/// A minute: less than that is never the whole axis.
const LEAST_TIME: f64 = 60_000.0;
const LEAST_TOKENS: f64 = 1_000.0;
/// Between two looks at the journals of other runs.
const REFRESH_MS: u64 = 5_000;

/// A run laid over this one.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherRun {
    pub path: PathBuf,
    /// `None`: being read.
    pub board: Option<Result<Arc<Board>, String>>,
    asked_at: u64,
    waiting: bool,
}

impl OtherRun {
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default)]
pub struct CurvesView {
    /// Title of the selected chart; `None`: the first.
    pub selected: Option<String>,
    /// The selected chart has the whole pane.
    pub one: bool,
    pub cursor: Option<Moment>,
    /// The cursor is shown in all charts.
    pub crosshair: bool,
    pub axis: Axis,
    pub log: bool,
    pub smoothing: Smoothing,
    /// How often the whole axis was halved.
    pub zoom: u32,
    pub filter: String,
    pub others: Vec<OtherRun>,
    /// Charts side by side, as last drawn.
    pub across: Cell<usize>,
    /// X of one cell of the selected chart, as last drawn: a step of the cursor is one that can be seen.
    pub grain: Cell<f64>,
    /// Y limits of charts by title, which stay put while a curve moves a little.
    pub limits: RefCell<HashMap<String, (f64, f64)>>,
}

impl CurvesView {
    /// Charts find their limits anew.
    fn refit(&mut self) {
        self.limits.get_mut().clear();
        self.grain.set(0.0);
    }
}

impl App {
    pub fn has_curves(&self) -> bool {
        self.board.all().next().is_some()
    }

    pub(in crate::tui) fn act_curves(&mut self, action: CurvesAction) -> Vec<Effect> {
        match action {
            CurvesAction::Open => {
                self.curves.one = !self.curves.one;
                self.curves.refit();
            }
            CurvesAction::Left => self.move_cursor(false),
            CurvesAction::Right => self.move_cursor(true),
            CurvesAction::PreviousChart => self.select_chart(-1),
            CurvesAction::NextChart => self.select_chart(1),
            CurvesAction::Crosshair => {
                self.curves.crosshair = !self.curves.crosshair;
                if self.curves.cursor.is_none() {
                    self.move_cursor(true);
                }
            }
            CurvesAction::ZoomOut => self.zoom_curves(self.curves.zoom.saturating_sub(1)),
            CurvesAction::ZoomIn => self.zoom_curves((self.curves.zoom + 1).min(MOST_ZOOM)),
            CurvesAction::Reset => {
                self.curves.cursor = None;
                self.curves.crosshair = false;
                self.zoom_curves(0);
            }
            CurvesAction::LogY => {
                self.curves.log = !self.curves.log;
                self.curves.refit();
            }
            CurvesAction::Smooth => {
                self.curves.smoothing = next(&Smoothing::ALL, self.curves.smoothing);
                self.curves.refit();
            }
            CurvesAction::XAxis => {
                self.curves.axis = next(&Axis::ALL, self.curves.axis);
                self.curves.refit();
            }
            CurvesAction::Pin => self.pin_next(),
        }
        Vec::new()
    }

    fn zoom_curves(&mut self, zoom: u32) {
        self.curves.zoom = zoom;
        self.curves.refit();
    }

    /// Charts whose title holds every word of the filter.
    pub fn charts(&self) -> Vec<Chart> {
        let filter = self.curves.filter.to_lowercase();
        let mut charts = self.board.charts();
        charts.retain(|chart| {
            let title = chart.title.to_lowercase();
            filter.split_whitespace().all(|word| title.contains(word))
        });
        charts
    }

    /// Place of the selected chart.
    pub fn selected_chart(&self, charts: &[Chart]) -> usize {
        let selected = self.curves.selected.as_deref();
        selected.and_then(|title| charts.iter().position(|chart| chart.title == title)).unwrap_or(0)
    }

    fn select_chart(&mut self, by: isize) {
        let charts = self.charts();
        let Some(last) = charts.len().checked_sub(1) else { return };
        let place = self.selected_chart(&charts).saturating_add_signed(by).min(last);
        self.curves.selected = Some(charts[place].title.clone());
        self.curves.grain.set(0.0);
    }

    pub(in crate::tui) fn move_in_curves(&mut self, lines: isize) {
        let across = if self.curves.one { 1 } else { self.curves.across.get().max(1) };
        self.select_chart(lines.saturating_mul(across as isize));
    }

    /// The series whose points the cursor goes along.
    fn cursor_series(&self) -> Option<(&Series, Axis)> {
        let charts = self.charts();
        let chart = charts.get(self.selected_chart(&charts))?;
        let series = chart.curves.iter().find_map(|curve| self.board.series(&curve.name))?;
        Some((series, chart.axis(self.curves.axis)))
    }

    /// The axis that the selected chart is drawn over.
    pub fn cursor_axis(&self) -> Axis {
        self.cursor_series().map_or(self.curves.axis, |(_, axis)| axis)
    }

    /// To the next point that is at least a cell away; the first move shows the last point.
    fn move_cursor(&mut self, right: bool) {
        let Some((series, axis)) = self.cursor_series() else { return };
        let Some(last) = series.len().checked_sub(1) else { return };
        let here = self.curves.cursor.map(|at| at.on(axis));
        let place = match (here, right) {
            (None, true) => last,
            (None, false) => last.saturating_sub(1),
            (Some(x), true) => {
                let far = series.last_until(axis, x + self.curves.grain.get()).unwrap_or(0);
                let next = series.last_until(axis, x).map_or(0, |at| at + 1);
                far.max(next).min(last)
            }
            (Some(x), false) => {
                let far = series.first_at(axis, x - self.curves.grain.get());
                let next = series.first_at(axis, x).saturating_sub(1);
                far.min(next)
            }
        };
        self.curves.cursor = series.moment(place);
    }

    /// One level out of what the pane shows; false when it shows everything.
    pub(in crate::tui) fn back_in_curves(&mut self) -> bool {
        if self.curves.one {
            self.curves.one = false;
            self.curves.refit();
        } else if self.curves.cursor.is_some() {
            self.curves.cursor = None;
            self.curves.crosshair = false;
        } else {
            return false;
        }
        true
    }

    /// The part of `axis` that is shown.
    pub fn curve_window(&self, axis: Axis) -> (f64, f64) {
        let boards = || std::iter::once(&self.board).chain(self.overlays().map(|(_, board)| board));
        let end = boards().map(|board| board.end().on(axis)).fold(0.0, f64::max);
        let whole = match axis {
            Axis::Step => {
                let planned = f64::from(self.board.planned_steps.max(1));
                if end <= planned { planned } else { stepped_end(end, 1.0) }
            }
            Axis::Time => stepped_end(end, LEAST_TIME),
            Axis::Tokens => stepped_end(end, LEAST_TOKENS),
        };
        window(whole, end, self.curves.zoom, self.curves.cursor.map(|at| at.on(axis)))
    }

    // --- other runs ---

    /// Runs laid over this one that have been read, in the order of their marks.
    pub fn overlays(&self) -> impl Iterator<Item = (&OtherRun, &Board)> {
        self.curves.others.iter().filter_map(|other| match &other.board {
            Some(Ok(board)) => Some((other, &**board)),
            Some(Err(_)) | None => None,
        })
    }

    pub fn is_pinned(&self, run: &Path) -> bool {
        self.runs.pinned.as_deref() == Some(run)
    }

    fn pin_next(&mut self) {
        if self.runs.marked.is_empty() && self.runs.pinned.is_none() {
            let mark = self.press_for(Action::Runs(RunsAction::Mark));
            return self.say(Role::Warn, format!("no run is marked: {mark} in the pane of runs marks one"));
        }
        let place = self.runs.marked.iter().position(|run| self.is_pinned(run));
        let next = match (place, &self.runs.pinned) {
            (Some(place), _) => self.runs.marked.get(place + 1),
            (None, Some(_)) => None,
            (None, None) => self.runs.marked.first(),
        };
        self.runs.pinned = next.cloned();
        let name = self.runs.pinned.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
        let words = match name {
            Some(name) => format!("baseline: {name}"),
            None => "no baseline".to_owned(),
        };
        self.say(Role::Dim, words);
    }

    /// Asks for the series of runs that were marked or may have grown; forgets those of others.
    pub(in crate::tui) fn want_series(&mut self) -> Vec<Effect> {
        let wanted = self.runs.drawn();
        if wanted.is_empty() && self.curves.others.is_empty() {
            return Vec::new();
        }
        let known = std::mem::take(&mut self.curves.others);
        let mut effects = Vec::new();
        for path in wanted {
            let mut other = known.iter().find(|other| other.path == path).cloned().unwrap_or(OtherRun {
                path,
                board: None,
                asked_at: 0,
                waiting: false,
            });
            let due = other.board.is_none() || self.now >= other.asked_at + REFRESH_MS;
            if due && !other.waiting {
                (other.asked_at, other.waiting) = (self.now, true);
                effects.push(Effect::Ask(Ask::Series { run: other.path.clone() }));
            }
            self.curves.others.push(other);
        }
        effects
    }

    pub(in crate::tui) fn told_series(
        &mut self,
        run: &Path,
        series: Result<Arc<Board>, String>,
    ) -> Vec<Effect> {
        if let Some(other) = self.curves.others.iter_mut().find(|other| other.path == run) {
            if let (Err(why), false) = (&series, matches!(other.board, Some(Err(_)))) {
                let words = format!("curves of {}: {why}", other.name());
                (other.board, other.waiting) = (Some(series), false);
                self.say(Role::Warn, words);
            } else {
                (other.board, other.waiting) = (Some(series), false);
            }
        }
        Vec::new()
    }

    /// The values of the selected chart, one line a curve.
    pub(in crate::tui) fn copied_from_curves(&self) -> String {
        let charts = self.charts();
        let Some(chart) = charts.get(self.selected_chart(&charts)) else { return String::new() };
        let axis = chart.axis(self.curves.axis);
        let lines = chart.curves.iter().filter_map(|curve| {
            let series = self.board.series(&curve.name)?;
            let x = self.curves.cursor.map_or(f64::INFINITY, |at| at.on(axis));
            let index = series.last_until(axis, x)?;
            let value = series.values(self.curves.smoothing).values().get(index)?;
            let at = series.moment(index)?.on(axis);
            Some(format!("{} {} {value} at {} {at}", chart.title, curve.label, axis.name()))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn next<T: Copy + PartialEq>(all: &[T], now: T) -> T {
    let place = all.iter().position(|one| *one == now).map_or(0, |place| (place + 1) % all.len());
    all[place]
}
