//! Controls of pane 1: the runs under the root. Owns what is listed, in which order, and which of them are chosen.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::client::Listing;
use crate::store::{Condition, Query, RunSummary};
use crate::telemetry::SHELF;
use crate::tui::action::{Action, Spec, always, rows};
use crate::tui::app::{App, Link};
use crate::tui::controls::global::GlobalAction;
use crate::tui::departure::Departure;
use crate::tui::layout::Pane;
use crate::tui::msg::{Dirty, Effect};
use crate::tui::overlay::{Confirmed, Overlay};
use crate::tui::services::Ask;
use crate::tui::theme::Role;

/// Between looks at the root: while all is read, while some runs are still unread, and after a failure.
const LOOK_MS: u64 = 3_000;
const READ_ON_MS: u64 = 50;
const AFTER_FAILURE_MS: u64 = 30_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunsAction {
    Open,
    New,
    Resume,
    Mark,
    Pin,
    Sort,
    Refresh,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Runs RunsAction:
    Open          "runs.open"            "attach"    ["enter"]          None, false, App::has_runs, "attach to the selected run";
    New           "runs.new"             "new run"   ["c"]              None, false, always, "start a new run by a form";
    Resume        "runs.resume"          "resume"    ["R"]              None, false, App::has_runs, "resume the selected run (asks first)";
    Mark          "runs.mark"            "overlay"   ["space"]          None, false, App::has_runs, "mark the run: its curves are drawn over those of the attached one";
    Pin           "runs.pin"             "baseline"  ["b"]              None, false, App::has_runs, "pin the run as baseline of the curves, or unpin it";
    Sort          "runs.sort"            "sort"      ["S"]              None, false, App::has_runs, "sort by last change, name, status, best, gain, age, tokens";
    Refresh       "runs.refresh"         "refresh"   ["r"]              None, false, always, "look at the folder of runs again now";
};

pub const HINTS: &[Action] = &[
    Action::Runs(RunsAction::Open),
    Action::Runs(RunsAction::New),
    Action::Runs(RunsAction::Resume),
    Action::Global(GlobalAction::Filter),
    Action::Runs(RunsAction::Sort),
    Action::Runs(RunsAction::Mark),
    Action::Runs(RunsAction::Pin),
];

/// What the rows are ordered by; the most wanted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Changed,
    Name,
    Status,
    Best,
    Gain,
    Age,
    Tokens,
}

impl Sort {
    pub const ALL: [Sort; 7] =
        [Sort::Changed, Sort::Name, Sort::Status, Sort::Best, Sort::Gain, Sort::Age, Sort::Tokens];

    pub fn name(self) -> &'static str {
        match self {
            Sort::Changed => "last change",
            Sort::Name => "name",
            Sort::Status => "status",
            Sort::Best => "best",
            Sort::Gain => "gain",
            Sort::Age => "age",
            Sort::Tokens => "tokens",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Ties keep the order of the listing: the last changed first.
    fn compare(self, left: &RunSummary, right: &RunSummary) -> Ordering {
        let score = |a: Option<f64>, b: Option<f64>| {
            b.unwrap_or(f64::NEG_INFINITY).total_cmp(&a.unwrap_or(f64::NEG_INFINITY))
        };
        match self {
            Sort::Changed => Ordering::Equal,
            Sort::Name => left.name.cmp(&right.name),
            Sort::Status => urgency(left.status).cmp(&urgency(right.status)),
            Sort::Best => score(left.best_score, right.best_score),
            Sort::Gain => score(left.delta(), right.delta()),
            Sort::Age => right.started_at.cmp(&left.started_at),
            Sort::Tokens => tokens_of(right).cmp(&tokens_of(left)),
        }
    }
}

/// What wants a person first, then what is at work, then what can go on, then what is over.
fn urgency(status: Condition) -> u8 {
    match status {
        Condition::Review => 0,
        Condition::Stalled => 1,
        Condition::Interrupted => 2,
        Condition::Running | Condition::Elsewhere => 3,
        Condition::Paused | Condition::Stopping => 4,
        Condition::Failed | Condition::OutOfBudget | Condition::Damaged => 5,
        Condition::New | Condition::Cancelled => 6,
        Condition::Completed | Condition::Imported | Condition::Unread => 7,
    }
}

pub fn tokens_of(run: &RunSummary) -> u64 {
    let usage = run.total_usage();
    usage.prompt_tokens + usage.completion_tokens
}

#[derive(Clone, Debug, Default)]
pub struct RunsView {
    pub rows: Vec<Arc<RunSummary>>,
    /// Places in `rows` that pass the filter, sorted.
    pub shown: Vec<usize>,
    /// The filter as it was typed, and what is wrong with it: then the last good one holds.
    pub filter: String,
    pub filter_fault: Option<String>,
    query: Query,
    pub sort: Sort,
    /// Place in `shown`.
    pub cursor: usize,
    /// Drawn over the curves of the attached run, in the order they were marked.
    pub marked: Vec<PathBuf>,
    pub pinned: Option<PathBuf>,
    /// How many runs are in each condition that wants attention.
    pub counts: Vec<(Condition, usize)>,
    /// Why there is no listing.
    pub fault: Option<String>,
    /// A listing was told at least once.
    pub heard: bool,
    pub more: bool,
    asked: bool,
    next_look: u64,
}

impl RunsView {
    pub fn selected(&self) -> Option<&Arc<RunSummary>> {
        self.rows.get(*self.shown.get(self.cursor)?)
    }

    /// Runs drawn over the curves: the baseline and what is marked.
    pub fn drawn(&self) -> Vec<PathBuf> {
        let unmarked = self.pinned.iter().filter(|pinned| !self.marked.contains(pinned));
        unmarked.chain(&self.marked).cloned().collect()
    }

    pub fn row_of(&self, path: &Path) -> Option<&Arc<RunSummary>> {
        self.rows.iter().find(|run| run.path == path)
    }

    /// Chooses and sorts again; the selection stays on its run.
    fn arrange(&mut self, selected: Option<PathBuf>, now: u64) {
        self.shown = (0..self.rows.len()).filter(|at| self.query.admits(&self.rows[*at], now)).collect();
        let (rows, sort) = (&self.rows, self.sort);
        self.shown.sort_by(|left, right| sort.compare(&rows[*left], &rows[*right]));
        let place = selected
            .and_then(|path| self.shown.iter().position(|at| self.rows[*at].path == path))
            .unwrap_or(self.cursor);
        self.cursor = place.min(self.shown.len().saturating_sub(1));
    }

    fn count(&mut self) {
        let wanted = [Condition::Review, Condition::Stalled, Condition::Running, Condition::Interrupted];
        let n = |status| self.rows.iter().filter(|run| run.status == status).count();
        self.counts = wanted.map(|status| (status, n(status))).into_iter().filter(|one| one.1 > 0).collect();
    }

    pub(in crate::tui) fn refilter(&mut self, now: u64) {
        match Query::parse(&self.filter) {
            Ok(query) => (self.query, self.filter_fault) = (query, None),
            Err(error) => self.filter_fault = Some(error.to_string()),
        }
        self.arrange(self.selected().map(|run| run.path.clone()), now);
    }
}

impl App {
    pub fn has_runs(&self) -> bool {
        self.runs.selected().is_some()
    }

    pub(in crate::tui) fn act_runs(&mut self, action: RunsAction) -> Vec<Effect> {
        let selected = self.runs.selected().map(|run| run.path.clone());
        match (action, selected) {
            (RunsAction::New, _) => return self.open_launch_form(),
            (RunsAction::Refresh, _) => self.runs.next_look = 0,
            (RunsAction::Sort, _) => {
                self.runs.sort = self.runs.sort.next();
                self.runs.cursor = 0;
                self.runs.arrange(None, self.now);
            }
            (RunsAction::Open, Some(run)) => return self.open_run(run),
            (RunsAction::Resume, Some(run)) => return self.open_resume_picker(Some(&run)),
            (RunsAction::Mark, Some(run)) => {
                match self.runs.marked.iter().position(|marked| *marked == run) {
                    Some(at) => drop(self.runs.marked.remove(at)),
                    None if self.may_draw(&run, self.runs.drawn().len()) => self.runs.marked.push(run),
                    None => return Vec::new(),
                }
                self.move_in_runs(1);
            }
            (RunsAction::Pin, Some(run)) => {
                // The new baseline takes the place of the old one.
                if self.runs.pinned.as_ref() == Some(&run) {
                    self.runs.pinned = None;
                } else if self.may_draw(&run, self.runs.marked.len()) {
                    self.runs.pinned = Some(run);
                }
            }
            (RunsAction::Open | RunsAction::Resume | RunsAction::Mark | RunsAction::Pin, None) => {}
        }
        Vec::new()
    }

    /// Whether another run may be drawn over the curves beside `others`; says why not.
    fn may_draw(&mut self, run: &Path, others: usize) -> bool {
        let may = others < SHELF || self.runs.drawn().iter().any(|drawn| drawn == run);
        if !may {
            let mark = self.press_for(Action::Runs(RunsAction::Mark));
            self.say(
                Role::Warn,
                format!("{SHELF} runs are marked, no more fit: {mark} on one of them makes room"),
            );
        }
        may
    }

    /// Attaches to another run; the one attached now goes on without this client.
    pub(in crate::tui) fn open_run(&mut self, run: PathBuf) -> Vec<Effect> {
        if self.attached.as_ref() == Some(&run) {
            self.focus(Pane::Steps);
            return Vec::new();
        }
        if self.has_draft() {
            self.overlay = Some(Overlay::Confirm { then: Confirmed::Leave { run } });
            return Vec::new();
        }
        self.depart(Departure::Open { run })
    }

    pub(in crate::tui) fn move_in_runs(&mut self, lines: isize) {
        let last = self.runs.shown.len().saturating_sub(1);
        self.runs.cursor = self.runs.cursor.saturating_add_signed(lines).min(last);
    }

    pub(in crate::tui) fn copied_from_runs(&self) -> String {
        self.runs.selected().map(|run| run.path.display().to_string()).unwrap_or_default()
    }

    pub(in crate::tui) fn told_runs(&mut self, runs: Result<Listing, String>) -> Vec<Effect> {
        let view = &mut self.runs;
        view.asked = false;
        let before = (view.heard, view.more, view.fault.take());
        match runs {
            Ok(listing) => {
                let same = listing.runs.len() == view.rows.len()
                    && listing.runs.iter().zip(&view.rows).all(|(new, old)| Arc::ptr_eq(new, old));
                (view.heard, view.more) = (true, listing.more);
                view.next_look = self.now + if listing.more { READ_ON_MS } else { LOOK_MS };
                if !same {
                    let selected = view.selected().map(|run| run.path.clone());
                    view.rows = listing.runs;
                    view.count();
                    view.arrange(selected, self.now);
                }
                if same && before == (true, listing.more, None) {
                    return Vec::new();
                }
            }
            Err(fault) => {
                view.next_look = self.now + AFTER_FAILURE_MS;
                view.fault = Some(fault);
            }
        }
        self.stain(Dirty::Data);
        Vec::new()
    }

    /// The list is on the screen, or something is chosen from it.
    fn runs_wanted(&self) -> bool {
        self.link == Link::Unattached
            || self.places().of(Pane::Runs).is_some()
            || self.overlay.as_ref().is_some_and(|overlay| overlay.lists_runs())
    }

    /// When to look at the root again; `None`: nobody looks, or an answer is awaited.
    pub(in crate::tui) fn next_look(&self) -> Option<u64> {
        (!self.runs.asked && self.runs_wanted()).then_some(self.runs.next_look)
    }

    pub(in crate::tui) fn look_if_due(&mut self) -> Vec<Effect> {
        if self.next_look().is_none_or(|due| due > self.now) {
            return Vec::new();
        }
        self.runs.asked = true;
        vec![Effect::Ask(Ask::Runs)]
    }
}
