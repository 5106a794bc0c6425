//! `slow_update/`, `meta_skill/` and `meta_reflect/`: what the stages after the steps of an epoch compared, said and
//! decided.

use serde_json::{Value, json};

use super::step::{mode, seconds};
use super::{Output, rollouts};
use crate::domain::{
    ComparisonPair, EpochStage, MetaReflect, MetaSkill, Patch, SlowUpdate, StageAction, StageKind, UpdateMode,
};
use crate::event::{EvalOwner, EvalPurpose, EvalState, RunState, StageState};
use crate::store::{StoreError, encode_item_id};

/// What a slow update is for, told with each result.
const SLOW_TARGET: &str = "training items that got worse or stayed wrong from one epoch to the next";
/// The same for a proposal of the meta-reflection.
const META_TARGET: &str = "what the epoch's history of edits and scores shows";

pub(super) fn write(output: &Output, state: &RunState, epoch: u32) -> Result<(), StoreError> {
    for (id, eval) in &state.evals {
        match eval.owner(id) {
            EvalOwner::Stage(of, kind) if of == epoch => write_evaluation(output, id, eval, kind)?,
            EvalOwner::Stage(..) | EvalOwner::Step(_) | EvalOwner::Run => {}
        }
    }
    for stage in state.stages_of(epoch) {
        match &stage.stage {
            EpochStage::SlowUpdate(found) => slow_update(output, stage, found)?,
            EpochStage::MetaSkill(found) => meta_skill(output, stage, found)?,
            EpochStage::MetaReflect(found) => meta_reflect(output, revision_mode(mode(state)), stage, found)?,
        }
    }
    Ok(())
}

fn folder(kind: StageKind, epoch: u32) -> String {
    let name = match kind {
        StageKind::SlowUpdate => "slow_update",
        StageKind::MetaSkill => "meta_skill",
        StageKind::MetaReflect => "meta_reflect",
    };
    format!("{name}/epoch_{epoch:02}")
}

fn write_evaluation(output: &Output, id: &str, eval: &EvalState, kind: StageKind) -> Result<(), StoreError> {
    let name = match eval.purpose {
        EvalPurpose::LongitudinalPrev => "rollout_prev",
        EvalPurpose::LongitudinalCurr => "rollout_curr",
        EvalPurpose::Rescore => "current_eval",
        EvalPurpose::SlowCandidate | EvalPurpose::MetaReflectCandidate => "selection_eval",
        EvalPurpose::Baseline
        | EvalPurpose::Candidate
        | EvalPurpose::RescoreBest
        | EvalPurpose::DeepProbe
        | EvalPurpose::FinalSelection
        | EvalPurpose::TestBase
        | EvalPurpose::TestBest
        | EvalPurpose::TestFinal => return Ok(()),
    };
    let folder = format!("{}/{name}", folder(kind, eval.at.epoch));
    if !id.split('/').any(|part| part.starts_with("topup")) {
        return rollouts::write_evaluation(output, &folder, eval);
    }
    for (_, result) in &eval.results {
        rollouts::write(output, &format!("{folder}/topup/{}", encode_item_id(result.item())), [result])?;
    }
    Ok(())
}

/// The fields of a stage that did nothing in the first epoch.
fn first_epoch(stage: &StageState) -> Option<Value> {
    match stage.stage.action() {
        action @ (StageAction::InjectPlaceholder | StageAction::SkipFirstEpoch) => {
            Some(json!({ "action": action, "epoch": stage.at.epoch }))
        }
        StageAction::NoContent
        | StageAction::WriteMetaSkill
        | StageAction::ForceAccept
        | StageAction::Accept
        | StageAction::AcceptNewBest
        | StageAction::Reject
        | StageAction::Undecided
        | StageAction::SkipNoEdits
        | StageAction::SkipNoSuggestions
        | StageAction::SkipNoRewrite
        | StageAction::SkipNoChange => None,
    }
}

fn time_s(stage: &StageState) -> Value {
    seconds(stage.finished_at.saturating_sub(stage.started_at))
}

fn note(told: &mut Value, note: &str) {
    if !note.is_empty() {
        told["note"] = json!(note);
    }
}

fn slow_update(output: &Output, stage: &StageState, found: &SlowUpdate) -> Result<(), StoreError> {
    let folder = folder(StageKind::SlowUpdate, stage.at.epoch);
    let result = format!("{folder}/slow_result.json");
    if let Some(told) = first_epoch(stage) {
        return output.json(&result, &told);
    }
    if found.prev_hard.is_some() || !found.pairs.is_empty() {
        output.json(&format!("{folder}/comparison_pairs.json"), &pairs(&found.pairs))?;
    }
    if !found.all_pairs.is_empty() {
        output.json(&format!("{folder}/comparison_pairs_all.json"), &pairs(&found.all_pairs))?;
    }
    if let Some(candidate) = &found.candidate {
        output.text(&format!("{folder}/candidate_skill.md"), &candidate.text)?;
    }
    let mut told = json!({
        "reasoning": found.reasoning,
        "slow_update_content": found.content,
        "time_s": time_s(stage),
        "prev_hard": found.prev_hard,
        "curr_hard": found.curr_hard,
        "candidate_hash": found.candidate.as_ref().map(|skill| &skill.hash),
        "update_origin": "slow_update_momentum",
        "update_target": SLOW_TARGET,
    });
    if let Some(decision) = &found.decision {
        told["selection_hard"] = json!(decision.candidate.hard);
        told["selection_soft"] = json!(decision.candidate.soft);
        output.json(&format!("{folder}/gate.json"), decision)?;
    }
    told["action"] = json!(found.action);
    note(&mut told, &found.note);
    output.json(&result, &told)
}

fn pairs(pairs: &[ComparisonPair]) -> Vec<ComparisonPair> {
    pairs.iter().map(ComparisonPair::without_trajectories).collect()
}

fn meta_skill(output: &Output, stage: &StageState, found: &MetaSkill) -> Result<(), StoreError> {
    let result = format!("{}/meta_skill_result.json", folder(StageKind::MetaSkill, stage.at.epoch));
    if let Some(told) = first_epoch(stage) {
        return output.json(&result, &told);
    }
    let mut told = json!({
        "reasoning": found.reasoning,
        "meta_skill_content": found.content,
        "time_s": time_s(stage),
        "action": found.action,
    });
    note(&mut told, &found.note);
    output.json(&result, &told)
}

fn meta_reflect(
    output: &Output,
    mode: UpdateMode,
    stage: &StageState,
    found: &MetaReflect,
) -> Result<(), StoreError> {
    let folder = folder(StageKind::MetaReflect, stage.at.epoch);
    let file = |name: &str| format!("{folder}/{name}");
    let patch = meta_patch(mode, &found.patch);
    output.json(&file("meta_patch.json"), &patch)?;
    if let Some(candidate) = &found.candidate {
        output.text(&file("meta_candidate.md"), &candidate.text)?;
        if mode != UpdateMode::Patch {
            let told = json!({ "change_summary": found.change_summary, "new_skill": candidate.text });
            output.json(&file("meta_rewrite_result.json"), &told)?;
        }
    }
    if let Some(report) = found.report.as_ref().filter(|report| report.total > 0) {
        output.json(&file("meta_edit_apply_report.json"), &report.rows)?;
    }
    if let Some(decision) = &found.decision {
        output.json(&file("gate.json"), decision)?;
    }
    let mut told = json!({
        "meta_summary": found.meta_summary,
        "patch": patch,
        "action": found.action,
        "gate_score": found.decision.as_ref().map(|decision| decision.candidate.gate),
        "time_s": time_s(stage),
        "update_origin": "meta_reflect_momentum",
        "update_target": META_TARGET,
    });
    if !found.change_summary.is_empty() {
        told["rewrite_change_summary"] = json!(found.change_summary);
    }
    note(&mut told, &found.note);
    output.json(&file("meta_result.json"), &told)
}

/// Whole documents cannot be revised from a history, so that mode is revised by edits.
fn revision_mode(mode: UpdateMode) -> UpdateMode {
    match mode {
        UpdateMode::Patch | UpdateMode::FullRewriteMinibatch => UpdateMode::Patch,
        UpdateMode::RewriteFromSuggestions => UpdateMode::RewriteFromSuggestions,
    }
}

/// The patch with where each item came from.
fn meta_patch(mode: UpdateMode, patch: &Patch) -> Value {
    let mut told = patch.as_payload(mode);
    for item in told.get_mut(mode.items_key()).and_then(Value::as_array_mut).into_iter().flatten() {
        item["update_origin"] = json!("meta_reflect_momentum");
        item["update_target"] = json!(META_TARGET);
    }
    told
}
