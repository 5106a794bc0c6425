//! The files of the run as a whole.

use serde_json::{Map, Value, json};

use super::flat_config::flat_config;
use super::step::{record, seconds};
use super::{Output, rollouts};
use crate::config::Config;
use crate::domain::{GateScore, StepRecord, Verdict};
use crate::event::{EvalPurpose, EvalState, RunState, RunStatus};
use crate::store::StoreError;
use crate::store::run_dir::skill_version_name;

/// Origin of a skill that no step produced.
const INITIAL: &str = "initial";

pub(super) fn write(output: &Output, state: &RunState) -> Result<(), StoreError> {
    let config = flat_config(&Config::read_resolved(&output.run.config_toml())?, state);
    output.json("config.json", &config)?;
    write_skills(output, state)?;
    for (purpose, folder) in [
        (EvalPurpose::Baseline, "selection_eval_baseline"),
        (EvalPurpose::TestBase, "test_eval_baseline"),
        (EvalPurpose::TestBest, "test_eval"),
    ] {
        let Some(eval) = evaluation(state, purpose) else { continue };
        rollouts::write_evaluation(output, folder, eval)?;
        if purpose != EvalPurpose::Baseline {
            output.json(&format!("{folder}/summary.json"), &rollouts::accuracy(eval))?;
        }
    }
    let history: Vec<Value> = state.steps.iter().filter_map(record).collect();
    output.json("history.json", &history)?;
    output.json("runtime_state.json", &runtime_state(state))?;
    match state.status {
        RunStatus::Ended { .. } => output.json("summary.json", &summary(state, config)),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => output.remove("summary.json"),
    }
}

/// The skill that was current after each step, and the best one.
fn write_skills(output: &Output, state: &RunState) -> Result<(), StoreError> {
    let mut current = state.initial_hash.as_str();
    let write = |step: u32, hash: &str| match state.skill_text(hash) {
        Some(text) => output.text(&skill_version_name(step), text),
        None => Ok(()),
    };
    write(0, current)?;
    for record in records(state) {
        if let Some(candidate) = &record.candidate_hash
            && record.action.accepted()
        {
            current = candidate;
        }
        write(record.at.step, current)?;
    }
    match state.skill_text(&state.best_hash) {
        Some(text) => output.text("best_skill.md", text),
        None => Ok(()),
    }
}

fn records(state: &RunState) -> impl DoubleEndedIterator<Item = &StepRecord> {
    state.steps.iter().filter_map(|step| step.record.as_ref())
}

/// The last evaluation begun for a purpose.
fn evaluation(state: &RunState, purpose: EvalPurpose) -> Option<&EvalState> {
    let evals = state.eval_order.iter().rev().filter_map(|eval| state.evals.get(eval));
    evals.into_iter().find(|eval| eval.purpose == purpose)
}

/// Selection score of a skill, where it was measured.
fn selection_score<'a>(state: &'a RunState, hash: &str) -> Option<&'a GateScore> {
    let on_selection = |eval: &&EvalState| {
        matches!(eval.purpose, EvalPurpose::Baseline | EvalPurpose::Candidate) && eval.skill_hash == hash
    };
    let evals = state.eval_order.iter().filter_map(|eval| state.evals.get(eval));
    evals.filter(on_selection).find_map(|eval| eval.score.as_ref())
}

/// Names of where the current and the best skill came from.
fn origins(state: &RunState) -> (&str, &str) {
    records(state)
        .next_back()
        .map_or((INITIAL, INITIAL), |record| (record.current_origin.as_str(), record.best_origin.as_str()))
}

fn runtime_state(state: &RunState) -> Value {
    let step = records(state).next_back().map_or(0, |record| record.at.step);
    let (current_origin, best_origin) = origins(state);
    json!({
        "last_completed_step": step,
        "current_skill_path": skill_version_name(step),
        "current_score": state.current_score,
        "current_origin": current_origin,
        "best_skill_path": "best_skill.md",
        "best_score": state.best_score,
        "best_step": state.best_step,
        "best_origin": best_origin,
    })
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

fn epoch_stats(state: &RunState) -> Vec<Value> {
    let mut epochs: Vec<u32> = records(state).map(|record| record.at.epoch).collect();
    epochs.dedup();
    let stats = epochs.into_iter().filter_map(|epoch| {
        let of_epoch = || records(state).filter(move |record| record.at.epoch == epoch);
        let tally = Tally::of(of_epoch());
        let last = of_epoch().next_back()?;
        Some(json!({
            "epoch": epoch,
            "steps": of_epoch().map(|record| record.at.step).collect::<Vec<_>>(),
            "accepts": tally.accepts,
            "rejects": tally.rejects,
            "skips": tally.skips,
            "undecided": tally.undecided,
            "best_score_at_epoch_end": last.best_score,
            "current_score_at_epoch_end": last.current_score,
        }))
    });
    stats.collect()
}

fn token_summary(state: &RunState) -> Value {
    let total = state.total_usage();
    let stages = state.usage.iter().map(|(stage, usage)| (stage.as_str(), *usage));
    let rows = stages.chain([("_total", total)]).map(|(stage, usage)| {
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

/// The summary of an ended run. Unlike SkillOpt's, every `*_hard` is a hard score and the tokens and time are those
/// of the whole run, resumed or not. `final_*` speaks of the current skill: only the best one is tested.
fn summary(state: &RunState, config: Map<String, Value>) -> Value {
    let baseline = evaluation(state, EvalPurpose::Baseline).and_then(|eval| eval.score.as_ref());
    let best = selection_score(state, &state.best_hash);
    let last = selection_score(state, &state.current_hash);
    let (current_origin, best_origin) = origins(state);
    let tally = Tally::of(records(state));
    let test = state.test.as_ref();
    let final_test = test.filter(|_| state.current_hash == state.best_hash);
    let started_at = state.info.as_ref().map_or(state.updated_at, |info| info.started_at);
    let (status, reason) = match &state.status {
        RunStatus::Ended { status, reason } => (json!(status), reason.as_str()),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => (Value::Null, ""),
    };
    json!({
        "version": concat!("planish-", env!("CARGO_PKG_VERSION")),
        "status": status,
        "reason": reason,
        "config": config,
        "baseline_selection_hard": baseline.map(|score| score.hard),
        "best_selection_hard": best.map(|score| score.hard),
        "best_selection_gate": state.best_score,
        "final_selection_hard": last.map(|score| score.hard),
        "final_selection_soft": last.map(|score| score.soft),
        "best_step": state.best_step,
        "current_origin": current_origin,
        "best_origin": best_origin,
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
        "final_test_hard": final_test.map(|test| test.best_hard),
        "final_test_soft": final_test.map(|test| test.best_soft),
        "test_delta_hard": test.map(|test| test.delta),
        "test_delta_interval": test.map(|test| test.interval),
        "test_n": test.map(|test| test.n),
        "final_test_delta_hard": final_test.map(|test| test.delta),
        "total_wall_time_s": seconds(state.updated_at.saturating_sub(started_at)),
        "token_summary": token_summary(state),
    })
}
