//! `steps/step_NNNN/`: what one step did, stage by stage.

use serde_json::{Map, Value, json};

use super::{Output, rollouts};
use crate::domain::{Edit, Phase, SourceType, Verdict};
use crate::event::{ItemResult, RunState, StepState};
use crate::store::StoreError;

pub(super) fn write(output: &Output, state: &RunState, step: &StepState) -> Result<(), StoreError> {
    let folder = format!("steps/step_{:04}", step.at.step);
    if !step.rollouts.is_empty() {
        rollouts::write(output, &format!("{folder}/rollout"), &step.rollouts)?;
    }
    write_patches(output, &folder, step)?;
    if let Some(merged) = &step.merged {
        output.json(&format!("{folder}/merged_patch.json"), merged)?;
    }
    if let Some(ranked) = &step.ranked {
        output.json(&format!("{folder}/ranked_edits.json"), ranked)?;
    }
    if let Some(review) = &step.review {
        let told = json!({
            "mode": review.mode,
            "closed": review.closed,
            "timeout_s": review.timeout_s,
            "current_hash": review.current_hash,
            "edits": review.edits,
            "rejected": review.rejected,
        });
        output.json(&format!("{folder}/review.json"), &told)?;
    }
    if let Some(candidate) = &step.candidate {
        output.text(&format!("{folder}/candidate_skill.md"), &candidate.text)?;
    }
    if let Some(report) = &step.report {
        output.json(&format!("{folder}/edit_apply_report.json"), &report.rows)?;
    }
    if let Some(eval) = step.eval.as_ref().and_then(|eval| state.evals.get(eval)) {
        rollouts::write_evaluation(output, &format!("{folder}/selection_eval"), eval)?;
    }
    if let Some(gate) = &step.gate {
        output.json(&format!("{folder}/gate.json"), gate)?;
    }
    if let Some(record) = record(step) {
        if let Some(digest) = digest(step) {
            output.json(&format!("{folder}/trajectory_digest.json"), &digest)?;
        }
        output.json(&format!("{folder}/step_record.json"), &record)?;
    }
    Ok(())
}

/// One file per minibatch with a usable patch; an unusable reply leaves no file.
fn write_patches(output: &Output, folder: &str, step: &StepState) -> Result<(), StoreError> {
    for analysis in &step.analyses {
        let Some(patch) = &analysis.patch else { continue };
        let kind = match analysis.source {
            SourceType::Failure => "fail",
            SourceType::Success => "succ",
        };
        let told = json!({
            "batch_size": analysis.items.len(),
            "items": analysis.items,
            "note": analysis.note,
            "patch": patch,
            "source_type": analysis.source,
        });
        output.json(&format!("{folder}/patches/minibatch_{kind}_{:03}.json", analysis.minibatch), &told)?;
    }
    Ok(())
}

/// The history row of a finished step: its record with the times of the journal, fields in SkillOpt's order.
pub(super) fn record(step: &StepState) -> Option<Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(step.record.as_ref()?) else { return None };
    let mut row = Map::new();
    for name in ["step", "epoch", "step_in_epoch"] {
        row.insert(name.to_owned(), fields.shift_remove(name)?);
    }
    row.insert("timing".into(), timing(step));
    for (name, value) in fields {
        let is_budget = name == "edit_budget";
        row.insert(name, value);
        if is_budget {
            row.insert("lr_control_mode".into(), json!("fixed"));
        }
    }
    let end = step.finished_at.unwrap_or(step.started_at);
    row.insert("wall_time_s".into(), seconds(end.saturating_sub(step.started_at)));
    Some(Value::Object(row))
}

/// Seconds of each stage, from its start to the start of the next. Stages stream into each other, so work of a
/// stage that overlaps the one before counts to that one.
fn timing(step: &StepState) -> Value {
    let mut spent = Phase::STEP.map(|phase| (phase, 0));
    for (at, (phase, start)) in step.phase_starts.iter().enumerate() {
        let next = step.phase_starts.get(at + 1).map(|(_, start)| *start);
        let end = next.or(step.finished_at).unwrap_or(*start);
        for (_, ms) in spent.iter_mut().filter(|(candidate, _)| candidate == phase) {
            *ms += end.saturating_sub(*start);
        }
    }
    spent.into_iter().map(|(phase, ms)| (format!("{}_s", phase.name()), seconds(ms))).collect()
}

/// Milliseconds as seconds with one decimal.
pub(super) fn seconds(ms: u64) -> Value {
    json!(((ms as f64) / 100.0).round() / 10.0)
}

/// What the step buffer keeps of the step: failures by reason, and on a rejection what was tried.
fn digest(step: &StepState) -> Option<Value> {
    let record = step.record.as_ref()?;
    let scored = || step.rollouts.iter().filter_map(ItemResult::rollout);
    let mut patterns: Vec<(&str, Vec<&str>)> = Vec::new();
    for rollout in scored().filter(|rollout| rollout.score.failed()) {
        let kind = rollout.score.reason.split(':').next().unwrap_or_default().trim();
        match patterns.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, items)) => items.push(&rollout.item),
            None => patterns.push((kind, vec![&rollout.item])),
        }
    }
    let mut digest = json!({
        "step": step.at.step,
        "action": record.action,
        "n_total": scored().count(),
        "n_fail": patterns.iter().map(|(_, items)| items.len()).sum::<usize>(),
        "failure_patterns": patterns
            .iter()
            .map(|(kind, items)| json!({ "pattern": kind, "count": items.len(), "task_ids": items }))
            .collect::<Vec<_>>(),
    });
    if let (Verdict::Reject, Some(gate)) = (record.action, &step.gate) {
        digest["score_before"] = json!(gate.current.gate);
        digest["score_after"] = json!(gate.candidate.gate);
        let edits = step.ranked.iter().flat_map(|patch| &patch.edits);
        digest["rejected_edits"] = edits.map(brief).collect();
    }
    Some(digest)
}

fn brief(edit: &Edit) -> Value {
    let start = |text: &str| text.chars().take(200).collect::<String>();
    json!({ "op": edit.op, "content": start(&edit.content), "target": start(&edit.target) })
}
