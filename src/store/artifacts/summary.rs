//! `summary.json` of an ended run. Unlike SkillOpt's, every `*_hard` is a hard score, and tokens and time are those of
//! the whole run, resumed or not.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::run::evaluation;
use super::standing::{Standing, records};
use super::step::seconds;
use crate::domain::{Continued, GateScore, Origin, StepRecord, Usage, Verdict};
use crate::event::{EvalPurpose, EvalState, LastOutcome, RunState, RunStatus, StepState};

pub(super) fn summary(state: &RunState, config: Map<String, Value>) -> Value {
    let baseline = match earlier(state) {
        Some(earlier) => earlier.baseline.as_ref(),
        None => evaluation(state, EvalPurpose::Baseline).and_then(|eval| eval.score.as_ref()),
    };
    let best = selection_score(state, &state.best_hash);
    let last = selection_score(state, &state.current_hash);
    let standing = Standing::now(state);
    let tally = Tally::of(records(state));
    let test = state.test.as_ref();
    let last_test = last_test(state);
    let started_at = state.info.as_ref().map_or(state.updated_at, |info| info.started_at);
    let earlier_ms: f64 =
        earlier(state).iter().flat_map(|earlier| &earlier.steps).map(|step| step.wall_time_s * 1000.0).sum();
    let (status, reason) = match &state.status {
        RunStatus::Ended { status, reason } => (json!(status), reason.as_str()),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => (Value::Null, ""),
    };
    let mut summary = json!({
        "version": concat!("planish-", env!("CARGO_PKG_VERSION")),
        "status": status,
        "reason": reason,
        "config": config,
        "baseline_selection_hard": baseline.map(|score| score.hard),
        "best_selection_hard": best.map(|score| score.hard),
        "best_gate_score": state.best_score,
        "final_selection_hard": last.map(|score| score.hard),
        "final_selection_soft": last.map(|score| score.soft),
        "best_step": state.best_step,
        "current_origin": standing.current_origin,
        "best_origin": standing.best_origin,
        "total_steps": records(state).count(),
        "total_accepts": tally.accepts,
        "total_rejects": tally.rejects,
        "total_skips": tally.skips,
        "total_undecided": tally.undecided,
        "epoch_stats": epoch_stats(state),
        "baseline_test_hard": test.map(|test| test.base_hard),
        "baseline_test_soft": test.map(|test| test.base_soft),
        "test_hard": test.map(|test| test.best_hard),
        "test_soft": test.map(|test| test.best_soft),
        "final_test_hard": last_test.as_ref().map(|last| last.hard),
        "final_test_soft": last_test.as_ref().map(|last| last.soft),
        "test_delta_hard": test.map(|test| test.delta),
        "test_delta_interval": test.map(|test| test.interval),
        "test_n": test.map(|test| test.n),
        "final_test_delta_hard": last_test.as_ref().map(|last| last.delta),
        "total_wall_time_s": seconds(state.updated_at.saturating_sub(started_at) + earlier_ms as u64),
        "token_summary": token_summary(state),
    });
    let overrides = state.steps.iter().filter(|step| overruled(step)).count();
    // A run that nobody overruled is told as the original tells it.
    if let (1.., Some(rows)) = (overrides, summary.as_object_mut()) {
        rows.insert("total_overrides".into(), json!(overrides));
    }
    summary
}

/// A person's word stands over the gate's.
fn overruled(step: &StepState) -> bool {
    step.overruling.as_ref().is_some_and(|word| word.current_hash().is_some())
}

/// What a continued run took over.
fn earlier(state: &RunState) -> Option<&Continued> {
    match state.info.as_ref()?.origin.as_ref()? {
        Origin::Continued(continued) => Some(continued),
        Origin::Imported(_) => None,
    }
}

/// Selection score of a skill, where all of the split was measured: the last measurement counts.
fn selection_score<'a>(state: &'a RunState, hash: &str) -> Option<&'a GateScore> {
    let on_selection =
        |eval: &&EvalState| eval.purpose.on_selection_items() && eval.skill_hash == hash && !eval.curtailed;
    let evals = state.eval_order.iter().rev().filter_map(|eval| state.evals.get(eval));
    evals.filter(on_selection).find_map(|eval| eval.score.as_ref())
}

/// The last skill's test: its own, or the best's when both are one text.
fn last_test(state: &RunState) -> Option<LastOutcome> {
    let test = state.test.as_ref()?;
    let of_best = (state.current_hash == state.best_hash).then_some(LastOutcome {
        n: test.n,
        hard: test.best_hard,
        soft: test.best_soft,
        delta: test.delta,
    });
    test.last.clone().or(of_best)
}

/// How many steps ended in which way.
#[derive(Default)]
struct Tally {
    accepts: usize,
    rejects: usize,
    skips: usize,
    undecided: usize,
}

impl Tally {
    fn of<'a>(records: impl Iterator<Item = &'a StepRecord>) -> Self {
        let mut tally = Self::default();
        for record in records {
            match record.action {
                Verdict::AcceptNewBest | Verdict::Accept | Verdict::ForceAccept => tally.accepts += 1,
                Verdict::Reject => tally.rejects += 1,
                Verdict::Undecided => tally.undecided += 1,
                Verdict::SkipNoPatches | Verdict::SkipNoRewrite | Verdict::SkipNoChange => tally.skips += 1,
            }
        }
        tally
    }
}

/// Steps by epoch, with the scores that its stages left.
fn epoch_stats(state: &RunState) -> Vec<Value> {
    let mut epochs: Vec<u32> = records(state).map(|record| record.at.epoch).collect();
    epochs.dedup();
    let stats = epochs.into_iter().filter_map(|epoch| {
        let of_epoch = || records(state).filter(move |record| record.at.epoch == epoch);
        let tally = Tally::of(of_epoch());
        let standing = Standing::after(state, epoch)?;
        Some(json!({
            "epoch": epoch,
            "steps": of_epoch().map(|record| record.at.step).collect::<Vec<_>>(),
            "accepts": tally.accepts,
            "rejects": tally.rejects,
            "skips": tally.skips,
            "undecided": tally.undecided,
            "best_score_at_epoch_end": standing.best_score,
            "current_score_at_epoch_end": standing.current_score,
        }))
    });
    stats.collect()
}

fn token_summary(state: &RunState) -> Value {
    let mut stages: BTreeMap<&str, Usage> = BTreeMap::new();
    let before = earlier(state).into_iter().flat_map(|earlier| &earlier.steps);
    for (stage, usage) in before.flat_map(|step| &step.record.tokens).chain(&state.usage) {
        *stages.entry(stage).or_default() += *usage;
    }
    let mut total = Usage::default();
    stages.values().for_each(|usage| total += *usage);
    let rows = stages.into_iter().chain([("_total", total)]).map(|(stage, usage)| {
        let row = json!({
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        });
        (stage.to_owned(), row)
    });
    Value::Object(rows.collect())
}
