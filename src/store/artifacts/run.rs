//! The files of the run as a whole, and those that every step moves on: skills, history, runtime state.

use serde_json::{Value, json};

use super::flat_config::flat_config;
use super::standing::{Standing, records, skill_after};
use super::step::record;
use super::summary::summary;
use super::{Output, rollouts};
use crate::config::Config;
use crate::domain::LrControlMode;
use crate::event::{EvalPurpose, EvalState, RunState, RunStatus, StepState};
use crate::store::StoreError;
use crate::store::run_dir::skill_version_name;

/// Evaluations that belong to no step or epoch, and whether they are tests.
const EVALUATIONS: [(EvalPurpose, &str, bool); 5] = [
    (EvalPurpose::Baseline, "selection_eval_baseline", false),
    (EvalPurpose::FinalSelection, "final_selection_eval", false),
    (EvalPurpose::TestBase, "test_eval_baseline", true),
    (EvalPurpose::TestBest, "test_eval", true),
    (EvalPurpose::TestFinal, "test_eval_final", true),
];

/// What a run that continues a foreign one measures before its first step.
const RESUMED: [(EvalPurpose, &str); 2] =
    [(EvalPurpose::Rescore, "selection_eval_current"), (EvalPurpose::RescoreBest, "selection_eval_best")];

pub(super) fn write(output: &Output, config: &Config, state: &RunState) -> Result<(), StoreError> {
    let config = flat_config(config, state);
    output.json("config.json", &config)?;
    write_skill(output, state, 0, &state.initial_hash)?;
    for (purpose, folder, test) in EVALUATIONS {
        let Some(eval) = evaluation(state, purpose) else { continue };
        rollouts::write_evaluation(output, folder, eval)?;
        if test {
            output.json(&format!("{folder}/summary.json"), &rollouts::accuracy(eval))?;
        }
    }
    for (purpose, folder) in RESUMED {
        let first = state.evals.values().find(|eval| eval.purpose == purpose && eval.at.step == 0);
        if let Some(eval) = first {
            rollouts::write_evaluation(output, folder, eval)?;
        }
    }
    write_progress(output, state)?;
    match state.status {
        RunStatus::Ended { .. } => output.json("summary.json", &summary(state, config)),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => Ok(()),
    }
}

/// What every step and stage moves on. A run that goes on has no summary, whatever an earlier end left.
pub(super) fn write_progress(output: &Output, state: &RunState) -> Result<(), StoreError> {
    if let Some(best) = state.skill_text(&state.best_hash) {
        output.text("best_skill.md", best)?;
    }
    let history: Vec<Value> = state.steps.iter().filter_map(record).collect();
    output.json("history.json", &history)?;
    output.json_lines("lr_history.jsonl", &lr_history(state))?;
    output.json("runtime_state.json", &runtime_state(state))?;
    match state.status {
        RunStatus::Ended { .. } => Ok(()),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => output.remove("summary.json"),
    }
}

/// The skill that is current after a finished step, its epoch's stages included.
pub(super) fn write_skill_after(
    output: &Output,
    state: &RunState,
    step: &StepState,
) -> Result<(), StoreError> {
    match skill_after(state, step) {
        Some(hash) => write_skill(output, state, step.at.step, hash),
        None => Ok(()),
    }
}

fn write_skill(output: &Output, state: &RunState, step: u32, hash: &str) -> Result<(), StoreError> {
    match state.skill_text(hash) {
        Some(text) => output.text(&skill_version_name(step), text),
        None => Ok(()),
    }
}

/// The last evaluation begun for a purpose.
pub(super) fn evaluation(state: &RunState, purpose: EvalPurpose) -> Option<&EvalState> {
    let evals = state.eval_order.iter().rev().filter_map(|eval| state.evals.get(eval));
    evals.into_iter().find(|eval| eval.purpose == purpose)
}

/// What the optimizer decided about each step's edit budget.
fn lr_history(state: &RunState) -> Vec<Value> {
    let decided = state.steps.iter().filter_map(|step| {
        let record = step.record.as_ref()?;
        let decision = record.lr_decision.as_ref().or(step.lr_decision.as_ref())?;
        if record.lr_control_mode != LrControlMode::Autonomous {
            return None;
        }
        let mut row = json!({ "step": step.at.step, "epoch": step.at.epoch });
        if let (Some(row), Value::Object(decision)) = (row.as_object_mut(), json!(decision)) {
            row.extend(decision);
        }
        Some(row)
    });
    decided.collect()
}

fn runtime_state(state: &RunState) -> Value {
    let step = records(state).next_back().map_or(0, |record| record.at.step);
    let standing = Standing::now(state);
    let mut told = json!({
        "last_completed_step": step,
        "current_skill_path": skill_version_name(step),
        "current_score": state.current_score,
        "current_origin": standing.current_origin,
        "best_skill_path": "best_skill.md",
        "best_score": state.best_score,
        "best_step": state.best_step,
        "best_origin": standing.best_origin,
    });
    if state.current_score_stale {
        told["current_score_stale"] = json!(true);
    }
    told
}
