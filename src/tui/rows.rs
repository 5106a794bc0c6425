//! The rows of the Rollouts pane: calls in flight first, then finished items of the shown stage, newest first.

use super::app::App;
use super::live::LiveCall;
use super::stages::Stage;
use crate::domain::Rollout;
use crate::event::{EvalPurpose, ItemResult};

/// One attempt at an item, or an optimizer call.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Stays the same when the call ends and its result arrives.
    pub key: String,
    /// Why the target was asked (`train`, `select`, `current`, `deep`, `prev`, `curr`, `base`, `best`, `last`), or what the
    /// optimizer is at.
    pub group: &'static str,
    pub item: &'a str,
    pub body: RowBody<'a>,
}

#[derive(Clone, Debug)]
pub enum RowBody<'a> {
    Call(&'a LiveCall),
    Done(&'a Rollout),
    Missing(&'a str),
}

impl<'a> Row<'a> {
    fn of_result(group: &'static str, result: &'a ItemResult) -> Self {
        let item = result.item();
        let body = match result {
            ItemResult::Scored(rollout) => RowBody::Done(rollout),
            ItemResult::Missing { error, .. } => RowBody::Missing(error),
        };
        Self { key: format!("{group}/{item}"), group, item, body }
    }

    fn of_call(app: &App, path: &'a str, call: &'a LiveCall) -> Self {
        let group = call_group(app, path);
        if call.item.is_empty() {
            let tail = path.rsplit('/').next().unwrap_or(path);
            return Self { key: path.to_owned(), group, item: tail, body: RowBody::Call(call) };
        }
        Self { key: format!("{group}/{}", call.item), group, item: &call.item, body: RowBody::Call(call) }
    }

    /// Failed, missing or still unknown.
    pub fn passed(&self) -> bool {
        matches!(self.body, RowBody::Done(rollout) if !rollout.score.failed())
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

fn purpose_group(purpose: EvalPurpose) -> &'static str {
    match purpose {
        EvalPurpose::Rescore => "current",
        EvalPurpose::Baseline
        | EvalPurpose::Candidate
        | EvalPurpose::RescoreBest
        | EvalPurpose::SlowCandidate
        | EvalPurpose::MetaReflectCandidate
        | EvalPurpose::FinalSelection => "select",
        EvalPurpose::LongitudinalPrev => "prev",
        EvalPurpose::LongitudinalCurr => "curr",
        EvalPurpose::DeepProbe => "deep",
        EvalPurpose::TestBase => "base",
        EvalPurpose::TestBest => "best",
        EvalPurpose::TestFinal => "last",
    }
}

impl App {
    /// Rows of the shown stage, filtered as the view asks.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let Some(stage) = self.shown_stage() else { return Vec::new() };
        let mut rows: Vec<Row<'_>> = Vec::new();
        if self.stages().first() == Some(&stage) {
            rows.extend(self.live.calls.iter().map(|(path, call)| Row::of_call(self, path, call)));
        }
        for eval in self.evals_of(stage).rev() {
            let group = purpose_group(eval.purpose);
            rows.extend(eval.results.iter().rev().map(|(_, result)| Row::of_result(group, result)));
        }
        if let Stage::Step(number) = stage
            && let Some(step) = self.state.steps.iter().find(|step| step.at.step == number)
        {
            rows.extend(step.rollouts.iter().rev().map(|result| Row::of_result("train", result)));
        }
        let filter = self.rollouts.filter.to_lowercase();
        let only = self.rollouts.only.as_ref();
        rows.retain(|row| {
            only.is_none_or(|only| only.iter().any(|item| item == row.item))
                && (!self.rollouts.failures_only || !row.passed())
                && (filter.is_empty() || row.item.to_lowercase().contains(&filter))
        });
        rows
    }

    /// Place of the selected row.
    pub fn selected_row(&self, rows: &[Row<'_>]) -> usize {
        let selected = self.rollouts.selected.as_ref();
        selected.and_then(|key| rows.iter().position(|row| row.key == *key)).unwrap_or(0)
    }
}
