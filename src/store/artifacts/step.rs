//! `steps/step_NNNN/`: what one step did, stage by stage, and its row of the history.

use serde_json::{Map, Value, json};

use super::{Output, rollouts};
use crate::domain::{
    Edit, FailedItem, MinibatchNotes, Phase, ProbeExample, Rewrite, SourceType, UpdateMode, Verdict,
    failure_patterns,
};
use crate::event::{
    Analysis, BatchProbe, EvalOwner, EvalPurpose, EvalState, ItemResult, Overruling, RunState, StepState,
};
use crate::store::StoreError;

pub(super) fn write(output: &Output, state: &RunState, step: &StepState) -> Result<(), StoreError> {
    let mode = mode(state);
    let folder = format!("steps/step_{:04}", step.at.step);
    let file = |name: &str| format!("{folder}/{name}");
    write_batches(output, state, step, &folder)?;
    if let Some(merged) = &step.merged {
        output.json(&file("merged_patch.json"), &merged.as_payload(mode))?;
    }
    if let Some(decision) = &step.lr_decision {
        output.json(&file("lr_decision.json"), decision)?;
    }
    if let Some(ranked) = &step.ranked {
        let mut told = ranked.as_payload(mode);
        if let Some(ranking) = &step.ranking {
            told["ranking_details"] = json!(ranking);
        }
        output.json(&file("ranked_edits.json"), &told)?;
    }
    if let Some(review) = &step.review {
        let mut told = json!({
            "mode": review.mode,
            "closed": review.closed,
            "timeout_s": review.timeout_s,
            "current_hash": review.current_hash,
            "edits": review.edits,
            "rejected": review.rejected,
        });
        if !review.comments.is_empty() {
            told["comments"] = json!(review.comments);
        }
        output.json(&file("review.json"), &told)?;
    }
    if let Some(rewrite) = &step.rewrite {
        write_rewrite(output, mode, step, rewrite, &folder)?;
    }
    if let Some(candidate) = &step.candidate {
        output.text(&file("candidate_skill.md"), &candidate.text)?;
    }
    if let Some(report) = step.report.as_ref().filter(|report| report.total > 0) {
        output.json(&file("edit_apply_report.json"), &report.rows)?;
    }
    if let Some(eval) = step.eval.as_ref().and_then(|eval| state.evals.get(eval)) {
        rollouts::write_evaluation(output, &file("selection_eval"), eval)?;
    }
    for (_, eval) in evals_of(state, step, EvalPurpose::Rescore) {
        rollouts::write_evaluation(output, &file("current_eval"), eval)?;
    }
    if let Some(gate) = &step.gate {
        output.json(&file("gate.json"), gate)?;
    }
    if let Some(word) = &step.overruling {
        output.json(&file("override.json"), word)?;
    }
    if let Some(appendix) = &step.appendix {
        output.json(&file("appendix_notes.json"), appendix)?;
    }
    if let Some(record) = record(step) {
        // A step that a foreign run did has no rollouts here.
        if let Some(digest) = digest(mode, step).filter(|_| !step.rollouts.is_empty()) {
            output.json(&file("trajectory_digest.json"), &digest)?;
        }
        output.json(&file("step_record.json"), &record)?;
    }
    Ok(())
}

/// How the run changes its skill.
pub(super) fn mode(state: &RunState) -> UpdateMode {
    state.info.as_ref().map_or_else(UpdateMode::default, |info| info.update_mode)
}

/// The evaluations that a step made for a purpose, with their ids.
fn evals_of<'a>(
    state: &'a RunState,
    step: &'a StepState,
    purpose: EvalPurpose,
) -> impl Iterator<Item = (&'a str, &'a EvalState)> {
    let evals = state.evals.iter().map(|(id, eval)| (id.as_str(), eval));
    let owner = EvalOwner::Step(step.at.step);
    evals.filter(move |(id, eval)| eval.purpose == purpose && eval.owner(id) == owner)
}

/// Rollouts, patches and deep reflection, each batch in a folder of its own where the step has several.
fn write_batches(
    output: &Output,
    state: &RunState,
    step: &StepState,
    folder: &str,
) -> Result<(), StoreError> {
    let mode = mode(state);
    let several = !step.batch_starts.is_empty();
    let of_batch = |batch: usize| if several { format!("{folder}/batch_{batch}") } else { folder.to_owned() };
    for batch in 0..step.batch_starts.len().max(1) {
        let start = step.batch_starts.get(batch).copied().unwrap_or(0);
        let end = step.batch_starts.get(batch + 1).copied().unwrap_or(step.rollouts.len());
        let results = step.rollouts.get(start..end).unwrap_or_default();
        if !results.is_empty() {
            rollouts::write(output, &format!("{}/rollout", of_batch(batch)), results)?;
        }
    }
    for analysis in &step.analyses {
        let deep = if analysis.deep { "/deep_reflect" } else { "" };
        write_analysis(output, mode, analysis, &format!("{}{deep}", of_batch(analysis.batch)))?;
    }
    for probe in &step.probes {
        let name = format!("{}/deep_reflect/probe.json", of_batch(probe.batch));
        let own = format!("/b{}", probe.batch);
        let probed = evals_of(state, step, EvalPurpose::DeepProbe).find(|(id, _)| id.ends_with(&own));
        output.json(&name, &told_probe(probe, probed.map(|(_, eval)| eval)))?;
    }
    for (id, eval) in evals_of(state, step, EvalPurpose::DeepProbe) {
        let batch = id.rsplit_once("/b").and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
        rollouts::write_evaluation(output, &format!("{}/deep_reflect/rollout", of_batch(batch)), eval)?;
    }
    Ok(())
}

/// One file per minibatch with a usable patch; an unusable reply leaves no file.
fn write_analysis(
    output: &Output,
    mode: UpdateMode,
    analysis: &Analysis,
    folder: &str,
) -> Result<(), StoreError> {
    let Some(patch) = &analysis.patch else { return Ok(()) };
    let mut told = Map::from_iter([
        ("batch_size".to_owned(), json!(analysis.items.len())),
        ("items".to_owned(), json!(analysis.items)),
    ]);
    let kind = match analysis.source {
        SourceType::Failure => {
            told.insert("failure_summary".into(), json!(analysis.failures));
            "fail"
        }
        SourceType::Success => {
            told.insert("success_patterns".into(), json!(analysis.success_patterns));
            "succ"
        }
    };
    told.insert("patch".into(), patch.as_payload(mode));
    if !analysis.appendix_notes.is_empty() {
        told.insert("appendix_notes".into(), json!(analysis.appendix_notes));
    }
    told.insert("note".into(), json!(analysis.note));
    told.insert("source_type".into(), json!(analysis.source));
    output.json(&format!("{folder}/patches/minibatch_{kind}_{:03}.json", analysis.minibatch), &told)
}

/// The probe and the items it was made from; where those were not told, the ones that were probed.
fn told_probe(probe: &BatchProbe, probed: Option<&EvalState>) -> Value {
    let mut told = json!(probe.answer.probe);
    let mut examples = probe.answer.examples.clone();
    if examples.is_empty() {
        let rollouts = probed.into_iter().flat_map(|eval| &eval.results).filter_map(|row| row.1.rollout());
        examples.extend(rollouts.map(|rollout| ProbeExample {
            id: rollout.item.clone(),
            task_type: rollout.task_type.clone(),
            reference_fields: Vec::new(),
            reference_preview: String::new(),
        }));
    }
    let mut fields: Map<String, Value> = Map::new();
    for field in examples.iter().flat_map(|example| &example.reference_fields) {
        let count = fields.get(field).and_then(Value::as_u64).unwrap_or(0);
        fields.insert(field.clone(), json!(count + 1));
    }
    told["reference_summary"] = if fields.is_empty() {
        json!({ "selected_count": examples.len(), "mode": "no_reference_probe" })
    } else {
        json!({ "selected_count": examples.len(), "field_counts": fields })
    };
    told["selected_examples"] = json!(examples);
    told
}

fn write_rewrite(
    output: &Output,
    mode: UpdateMode,
    step: &StepState,
    rewrite: &Rewrite,
    folder: &str,
) -> Result<(), StoreError> {
    match mode {
        UpdateMode::Patch | UpdateMode::RewriteFromSuggestions => {
            output.json(&format!("{folder}/rewrite_result.json"), rewrite)
        }
        UpdateMode::FullRewriteMinibatch => {
            let of_rewrite = |edit: &&Edit| edit.content.trim_end() == rewrite.new_skill.trim_end();
            let proposed = step.ranked.iter().chain(&step.merged).flat_map(|patch| &patch.edits);
            let selected = match proposed.into_iter().find(of_rewrite) {
                Some(edit) => edit.as_item(mode),
                // A reviewer wrote it anew.
                None => json!({ "change_summary": rewrite.change_summary, "new_skill": rewrite.new_skill }),
            };
            let merged = step.merged.as_ref().map(|merged| merged.as_payload(mode));
            let told = json!({ "selected_candidate": selected, "merged_patch": merged });
            output.json(&format!("{folder}/full_rewrite_result.json"), &told)
        }
    }
}

/// The history row of a finished step: its record with the times of the journal, fields in SkillOpt's order.
pub(super) fn record(step: &StepState) -> Option<Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(step.record.as_ref()?) else { return None };
    let mut row = Map::new();
    for name in ["step", "epoch", "step_in_epoch"] {
        row.insert(name.to_owned(), fields.shift_remove(name)?);
    }
    row.insert("timing".into(), timing(step));
    row.extend(fields);
    // The record stays what the gate said.
    if let Some(word) = &step.overruling {
        row.insert("override".into(), overruled(word));
    }
    let end = step.finished_at.unwrap_or(step.started_at);
    row.insert("wall_time_s".into(), seconds(end.saturating_sub(step.started_at)));
    Some(Value::Object(row))
}

/// A person's word over the gate, in a row of the history.
fn overruled(word: &Overruling) -> Value {
    let applied = word.current_hash().is_some();
    json!({ "ruling": word.ruling, "by": word.by, "reason": word.reason, "applied": applied })
}

/// Seconds of each stage, from its start to the start of the next. Stages stream into each other, so work of a
/// stage that overlaps the one before counts to that one.
fn timing(step: &StepState) -> Value {
    let probed = step.phase_starts.iter().any(|(phase, _)| *phase == Phase::DeepReflect);
    let phases = Phase::STEP.into_iter().chain(probed.then_some(Phase::DeepReflect));
    let mut spent: Vec<(Phase, u64)> = phases.map(|phase| (phase, 0)).collect();
    for (at, (phase, start)) in step.phase_starts.iter().enumerate() {
        let next = step.phase_starts.get(at + 1).map(|(_, start)| *start);
        let end = next.or(step.finished_at).unwrap_or(*start);
        for (_, ms) in spent.iter_mut().filter(|(candidate, _)| candidate == phase) {
            *ms += end.saturating_sub(*start);
        }
    }
    let name = |phase: Phase| format!("{}_s", phase.name().replace(' ', "_"));
    spent.into_iter().map(|(phase, ms)| (name(phase), seconds(ms))).collect()
}

/// Milliseconds as seconds with one decimal.
pub(super) fn seconds(ms: u64) -> Value {
    json!(((ms as f64) / 100.0).round() / 10.0)
}

/// What the step buffer keeps of the step: failures by kind, and on a rejection what was tried. A step without usable
/// proposals leaves nothing there.
fn digest(mode: UpdateMode, step: &StepState) -> Option<Value> {
    let record = step.record.as_ref()?;
    if matches!(record.action, Verdict::SkipNoPatches | Verdict::SkipNoRewrite) {
        return None;
    }
    let scored = || step.rollouts.iter().filter_map(ItemResult::rollout);
    let failures: Vec<_> = scored()
        .filter(|rollout| rollout.score.failed())
        .map(|rollout| FailedItem { id: &rollout.item, reason: &rollout.score.reason })
        .collect();
    let notes: Vec<_> = step
        .analyses
        .iter()
        .filter(|analysis| !analysis.deep)
        .map(|analysis| MinibatchNotes { items: &analysis.items, notes: &analysis.failures })
        .collect();
    let patterns: Vec<Value> = failure_patterns(&failures, &notes)
        .into_iter()
        .map(|(pattern, count, items)| json!({ "pattern": pattern, "count": count, "task_ids": items }))
        .collect();
    let mut digest = json!({
        "step": step.at.step,
        "action": record.action,
        "n_total": scored().count(),
        "n_fail": failures.len(),
        "failure_patterns": patterns,
    });
    if let (Verdict::Reject, Some(gate)) = (record.action, &step.gate) {
        digest["score_before"] = json!(gate.current.gate);
        digest["score_after"] = json!(gate.candidate.gate);
        // What a reviewer struck out was not tried.
        let tried = match &step.review {
            Some(review) => review.kept.as_slice(),
            None => step.ranked.as_ref().map_or(&[][..], |patch| &patch.edits),
        };
        digest["rejected_edits"] = tried.iter().map(|edit| edit.as_digest(mode)).collect();
    }
    Some(digest)
}
