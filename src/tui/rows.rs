//! The rows of the Rollouts pane: calls in flight first, then finished items of the shown stage as the index lists them.

use std::cell::RefCell;
use std::rc::Rc;

use super::app::App;
use super::item_table::ItemTableCache;
use super::live::{CallPhase, LiveCall};
use super::row_filter::{Facts, Status};
use super::row_index::{
    GROUPS, ResultRef, Results, RowIndex, Source, Tally, Wanted, group_of, purpose_group, shown_width,
};
use crate::domain::Rollout;
use crate::event::{ItemResult, RunState};

/// Which row: a call by its path, until its result is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowId {
    Call(String),
    Result(ResultRef),
}

/// One attempt at an item, or an optimizer call.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub group: &'static str,
    pub item: &'a str,
    pub body: RowBody<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum RowBody<'a> {
    Call(&'a str, &'a LiveCall),
    Done(ResultRef, &'a Rollout),
    Missing(ResultRef, &'a str),
}

impl<'a> Row<'a> {
    fn of_result(at: ResultRef, group: &'static str, result: &'a ItemResult) -> Self {
        let body = match result {
            ItemResult::Scored(rollout) => RowBody::Done(at, rollout),
            ItemResult::Missing { error, .. } => RowBody::Missing(at, error),
        };
        Self { group, item: result.item(), body }
    }

    fn of_call(app: &App, path: &'a str, call: &'a LiveCall) -> Self {
        let item = match call.item.as_str() {
            "" => path.rsplit('/').next().unwrap_or(path),
            item => item,
        };
        Self { group: call_group(app, path), item, body: RowBody::Call(path, call) }
    }

    pub fn id(&self) -> RowId {
        match self.body {
            RowBody::Call(path, _) => RowId::Call(path.to_owned()),
            RowBody::Done(at, _) | RowBody::Missing(at, _) => RowId::Result(at),
        }
    }

    pub fn status(&self) -> Status {
        match self.body {
            RowBody::Call(..) => Status::Running,
            RowBody::Missing(..) => Status::Missing,
            RowBody::Done(_, rollout) if rollout.score.failed() => Status::Failed,
            RowBody::Done(..) => Status::Passed,
        }
    }

    pub fn passed(&self) -> bool {
        self.status() == Status::Passed
    }
}

fn call_group(app: &App, path: &str) -> &'static str {
    let has = |part: &str| path.split('/').any(|segment| segment == part);
    const NAMED: [(&str, &str); 13] = [
        ("test_base", "base"),
        ("test_best", "best"),
        ("test_final", "last"),
        ("deep", "deep"),
        ("rollout", "train"),
        ("analyst", "analyst"),
        ("merge", "merge"),
        ("rank", "rank"),
        ("lr", "budget"),
        ("rewrite", "rewrite"),
        ("prev", "prev"),
        ("curr", "curr"),
        ("rescore", "current"),
    ];
    if let Some((_, group)) = NAMED.iter().find(|(part, _)| has(part)) {
        group
    } else if has("call") {
        "optim"
    } else if has("appendix") {
        "notes"
    } else {
        let latest = app.state.eval_order.last().and_then(|id| app.state.evals.get(id));
        latest.map_or("select", |eval| purpose_group(eval.purpose))
    }
}

/// The list as it stands: its length is known, a row is made when it is asked for.
pub struct Rows<'a> {
    calls: Vec<Row<'a>>,
    results: Vec<Results<'a>>,
    index: Rc<RowIndex>,
}

impl<'a> Rows<'a> {
    pub fn len(&self) -> usize {
        self.calls.len() + self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, place: usize) -> Option<Row<'a>> {
        match place.checked_sub(self.calls.len()) {
            None => self.calls.get(place).cloned(),
            Some(place) => {
                let (at, group, result) = self.index.get(&self.results, place)?;
                Some(Row::of_result(at, group, result))
            }
        }
    }

    /// Rows from a place on.
    pub fn from(&self, place: usize) -> impl Iterator<Item = Row<'a>> {
        (place..self.len()).map_while(|place| self.get(place))
    }

    pub fn iter(&self) -> impl Iterator<Item = Row<'a>> {
        self.from(0)
    }

    pub fn place(&self, id: &RowId) -> Option<usize> {
        match id {
            RowId::Call(path) => {
                self.calls.iter().position(|row| matches!(row.body, RowBody::Call(one, _) if one == path))
            }
            RowId::Result(at) => self.index.place(&self.results, *at).map(|place| self.calls.len() + place),
        }
    }

    /// By group, in the order of [`GROUPS`].
    pub fn tallies(&self) -> Vec<(&'static str, Tally)> {
        let mut tallies = self.index.tallies().to_vec();
        for row in &self.calls {
            match tallies.iter_mut().find(|(group, _)| *group == row.group) {
                Some((_, tally)) => tally.running += 1,
                None => tallies.push((row.group, Tally { running: 1, ..Tally::default() })),
            }
        }
        tallies.sort_by_key(|(group, _)| GROUPS.iter().position(|known| known == group));
        tallies
    }

    /// Columns of the widest item.
    pub fn widest(&self) -> usize {
        self.calls.iter().map(|row| shown_width(row.item)).fold(self.index.widest(), usize::max)
    }
}

impl App {
    /// Rows of the shown stage, filtered and sorted as the view asks.
    pub fn rows(&self) -> Rows<'_> {
        let Some(stage) = self.shown_stage() else {
            return Rows { calls: Vec::new(), results: Vec::new(), index: Rc::default() };
        };
        let view = &self.rollouts;
        let wanted = Wanted {
            stage,
            sort: view.sort,
            failures_only: view.failures_only,
            filter: view.filter.clone(),
            only: view.only.as_ref().map(|items| items.iter().cloned().collect()),
        };
        let live = self.stages().get(0) == Some(stage);
        let calls =
            self.live.calls.iter().filter(|_| live).map(|(path, call)| Row::of_call(self, path, call));
        let calls = calls.filter(|row| wanted.passes(&call_facts(row))).collect();
        let index = self.row_index(&wanted);
        Rows { calls, results: index.results(&self.state), index }
    }

    fn row_index(&self, wanted: &Wanted) -> Rc<RowIndex> {
        let cached = &self.rollouts.index;
        let run = self.run_index();
        let evals = run.evals_of(wanted.stage);
        let stale = !cached.borrow().is_fresh(&self.state, wanted, evals);
        if stale && let Ok(mut index) = cached.try_borrow_mut() {
            Rc::make_mut(&mut index).refresh(&self.state, wanted, evals);
        }
        Rc::clone(&cached.borrow())
    }

    /// Place of the selected row; where it was when it is not listed now.
    pub fn selected_row(&self, rows: &Rows<'_>) -> usize {
        match &self.rollouts.selected {
            None => 0,
            Some(id) => {
                let place = rows.place(id).unwrap_or(self.rollouts.place);
                place.min(rows.len().saturating_sub(1))
            }
        }
    }

    /// One result of the run as a row, whatever the pane lists.
    pub fn row_of(&self, at: ResultRef) -> Option<Row<'_>> {
        let result = Results::of(&self.state, at.source).get(at.place)?;
        Some(Row::of_result(at, group_of(&self.state, at.source), result))
    }

    /// Another state of the same run: results are known by their places, which the two do not share.
    pub(super) fn take_state(&mut self, state: RunState) {
        let chosen = match &self.rollouts.selected {
            Some(RowId::Result(_)) => self.shown_row().map(|row| (row.group, row.item.to_owned())),
            Some(RowId::Call(_)) | None => None,
        };
        self.state = state;
        self.index = RefCell::default();
        self.rollouts.forget_results();
        self.transcript.forget_results();
        self.gate.items = ItemTableCache::default();
        if let Some((group, item)) = chosen {
            let found = self.rows().iter().find(|row| row.group == group && row.item == item);
            self.rollouts.selected = found.map(|row| row.id());
        }
    }

    /// The newest result of the source that an event added to.
    pub(super) fn newest_result(&self, source: Source) -> Option<ResultRef> {
        let place = Results::of(&self.state, source).len().checked_sub(1)?;
        Some(ResultRef { source, place })
    }
}

fn call_facts<'a>(row: &Row<'a>) -> Facts<'a> {
    let reason = match row.body {
        RowBody::Call(_, LiveCall { phase: CallPhase::Retrying { error }, .. }) => error.as_str(),
        RowBody::Call(..) | RowBody::Done(..) | RowBody::Missing(..) => "",
    };
    Facts { item: row.item, task_type: "", reason, group: row.group, status: row.status() }
}
