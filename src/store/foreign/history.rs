//! `history.json` and `step_record.json`: what each finished step was, as a planish record. Takes what is there; must not
//! compute scores.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, kind, number};
use super::folder::Folder;
use super::patches::{object, texts};
use crate::domain::{
    ApplySummary, BatchRecord, GateMetric, LrControlMode, LrDecision, Phase, StepRecord, StepRef, TokenUsage,
    Usage, Verdict,
};

/// Longest time of a stage that is believed, in seconds.
pub const LONGEST: f64 = 30.0 * 24.0 * 3600.0;

/// A finished step.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignRecord {
    pub record: StepRecord,
    /// Seconds of each stage, as far as they are recorded.
    pub timing: Vec<(Phase, f64)>,
    pub wall_time_s: f64,
}

/// What is known about a run apart from its records.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub steps_per_epoch: u32,
    pub metric: GateMetric,
}

/// All finished steps by number: the rows of `history.json`, and the records of step folders that it lacks.
pub fn records(folder: &mut Folder, frame: Frame) -> BTreeMap<u32, ForeignRecord> {
    const HISTORY: &str = "history.json";
    let mut rows: BTreeMap<u32, (String, Map<String, Value>)> = BTreeMap::new();
    let listed = match folder.json(HISTORY) {
        Some(Value::Array(rows)) => rows,
        Some(other) => {
            folder.note(HISTORY, None, format!("is {}, not a list; left out", kind(&other)));
            Vec::new()
        }
        None => Vec::new(),
    };
    for (index, row) in listed.into_iter().enumerate() {
        let step = row.get("step").and_then(number).filter(|step| *step >= 1.0 && *step < 1e9);
        let (Value::Object(map), Some(step)) = (row, step) else {
            folder.note(HISTORY, None, format!("row {} has no step number; left out", index + 1));
            continue;
        };
        if rows.insert(step as u32, (HISTORY.to_owned(), map)).is_some() {
            folder.note(HISTORY, None, format!("step {step} stands there twice; the later row is taken"));
        }
    }
    for step in step_numbers(folder) {
        let file = format!("steps/step_{step:04}/step_record.json");
        if rows.contains_key(&step) || !folder.has(&file) {
            continue;
        }
        if let Some(map) = object(folder, &file) {
            folder.note(HISTORY, None, format!("lacks step {step}; {file} is taken"));
            rows.insert(step, (file, map));
        }
    }
    let mut records: BTreeMap<u32, ForeignRecord> = BTreeMap::new();
    for (step, (file, map)) in rows {
        let place = format!("step {step}: ");
        let fields = Fields { map: &map, file: &file, line: None, place: &place };
        let before = records.last_key_value().map(|(_, before)| &before.record);
        if let Some(record) = record(folder, &fields, step, frame, before) {
            records.insert(step, record);
        }
    }
    records
}

/// Numbers of the step folders, ascending.
pub fn step_numbers(folder: &mut Folder) -> Vec<u32> {
    let names = folder.names("steps");
    let mut steps: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("step_")?.parse().ok())
        .filter(|step| *step > 0)
        .collect();
    steps.sort_unstable();
    steps
}

fn record(
    folder: &mut Folder,
    fields: &Fields<'_>,
    step: u32,
    frame: Frame,
    before: Option<&StepRecord>,
) -> Option<ForeignRecord> {
    let per_epoch = frame.steps_per_epoch.max(1);
    let small = |count: Option<usize>| count.and_then(|count| u32::try_from(count).ok());
    let at = StepRef {
        epoch: small(fields.count(folder, "epoch")).unwrap_or((step - 1) / per_epoch + 1),
        step,
        step_in_epoch: small(fields.count(folder, "step_in_epoch")).unwrap_or((step - 1) % per_epoch),
    };
    // A step without a score of its own leaves the ones before it in place.
    let candidate_gate_score = fields.number(folder, "candidate_gate_score");
    let mut score = |key: &str, before: Option<f64>| {
        let found = fields.number(folder, key).or(before);
        if found.is_none() {
            fields.note(folder, &format!("`{key}` is not known; the step is shown without its record"));
        }
        found
    };
    let current_score = score("current_score", before.map(|before| before.current_score))?;
    let best_score = score("best_score", before.map(|before| before.best_score))?;
    let best_step =
        small(fields.count(folder, "best_step")).or(before.map(|before| before.best_step)).unwrap_or(0);
    let action = action(folder, fields, best_step == step);
    let metric = match fields.value("gate_metric").and_then(Value::as_str) {
        None => frame.metric,
        Some(word) => gate_metric(word).unwrap_or_else(|| {
            fields.note(folder, &format!("`gate_metric` is {word:?}, which planish does not know"));
            frame.metric
        }),
    };
    let origin = |folder: &mut Folder, key: &str, before: Option<&String>| {
        fields.text(folder, key).or(before.cloned()).unwrap_or_else(|| "initial".into())
    };
    let support_counts = fields.list(folder, "support_counts").iter();
    let support_counts = support_counts.map(|count| number(count).unwrap_or_default() as u32).collect();
    let n_appendix_notes_added = fields.count(folder, "n_appendix_notes_added");
    let selection_hard = fields.number(folder, "selection_hard");
    let record = StepRecord {
        candidate_at_most: false,
        at,
        tokens: tokens(folder, fields),
        rollout_hard: fields.number(folder, "rollout_hard").unwrap_or_default(),
        rollout_soft: fields.number(folder, "rollout_soft").unwrap_or_default(),
        rollout_n: fields.count(folder, "rollout_n").unwrap_or_default(),
        accumulation_batches: batches(folder, fields),
        n_patches: fields.count(folder, "n_patches").unwrap_or_default(),
        n_failure_patches: fields.count(folder, "n_failure_patches").unwrap_or_default(),
        n_success_patches: fields.count(folder, "n_success_patches").unwrap_or_default(),
        n_deep_failure_patches: fields.count(folder, "n_deep_failure_patches"),
        n_deep_success_patches: fields.count(folder, "n_deep_success_patches"),
        n_edits_merged: fields.count(folder, "n_edits_merged").unwrap_or_default(),
        n_edits_ranked: fields.count(folder, "n_edits_ranked").unwrap_or_default(),
        edit_budget: fields.count(folder, "edit_budget"),
        lr_control_mode: control_mode(folder, fields),
        lr_decision: fields.object(folder, "lr_decision").map(|map| {
            let row = Fields { map, place: "lr_decision: ", ..*fields };
            lr_decision(folder, &row)
        }),
        support_counts,
        candidate_hash: fields.text(folder, "candidate_hash"),
        candidate_skill_len: fields.count(folder, "candidate_skill_len"),
        rewrite_change_summary: fields
            .value("rewrite_change_summary")
            .is_some()
            .then(|| texts(folder, fields, "rewrite_change_summary")),
        edit_apply_summary: apply_summary(folder, fields),
        selection_hard,
        selection_soft: fields.number(folder, "selection_soft"),
        gate_metric: metric,
        // Before there were several metrics, the gate compared `hard`.
        candidate_gate_score: candidate_gate_score.or(selection_hard),
        action,
        current_score,
        best_score,
        best_step,
        current_origin: origin(folder, "current_origin", before.map(|before| &before.current_origin)),
        best_origin: origin(folder, "best_origin", before.map(|before| &before.best_origin)),
        skill_len: fields.count(folder, "skill_len").unwrap_or_default(),
        // Notes go into the skill after the gate has scored it.
        current_score_stale: n_appendix_notes_added.is_some_and(|added| added > 0),
        n_execution_lapse_notes: fields.count(folder, "n_execution_lapse_notes"),
        n_appendix_notes_added,
        n_appendix_notes_total: fields.count(folder, "n_appendix_notes_total"),
        n_appendix_notes_consolidated: fields.count(folder, "n_appendix_notes_consolidated"),
    };
    let seconds = |value: Option<f64>| value.unwrap_or_default().clamp(0.0, LONGEST);
    let mut timing = Vec::new();
    if let Some(map) = fields.object(folder, "timing") {
        let stages = Fields { map, place: "timing: ", ..*fields };
        for phase in Phase::STEP.into_iter().chain([Phase::DeepReflect]) {
            let key = format!("{}_s", phase.name().replace(' ', "_"));
            if stages.value(&key).is_some() {
                timing.push((phase, seconds(stages.number(folder, &key))));
            }
        }
    }
    let wall_time_s = seconds(fields.number(folder, "wall_time_s"));
    Some(ForeignRecord { record, timing, wall_time_s })
}

/// The gate's word. An unknown one is read by its parts, and noted.
fn action(folder: &mut Folder, fields: &Fields<'_>, is_best: bool) -> Verdict {
    let word = fields.text(folder, "action").unwrap_or_default();
    let known = [
        Verdict::AcceptNewBest,
        Verdict::Accept,
        Verdict::ForceAccept,
        Verdict::Reject,
        Verdict::Undecided,
        Verdict::SkipNoPatches,
        Verdict::SkipNoRewrite,
        Verdict::SkipNoChange,
    ];
    if let Some(verdict) = known.into_iter().find(|verdict| verdict.name() == word) {
        return verdict;
    }
    let lower = word.to_ascii_lowercase();
    let verdict = if lower.contains("accept") {
        if is_best { Verdict::AcceptNewBest } else { Verdict::Accept }
    } else if lower.contains("reject") {
        Verdict::Reject
    } else if lower.contains("skip") {
        Verdict::SkipNoPatches
    } else {
        Verdict::Undecided
    };
    fields.note(
        folder,
        &format!("`action` is {word:?}, which planish does not know; read as {}", verdict.name()),
    );
    verdict
}

/// `hard`, `soft` or `mixed`.
pub fn gate_metric(word: &str) -> Option<GateMetric> {
    match word.trim().to_ascii_lowercase().as_str() {
        "hard" => Some(GateMetric::Hard),
        "soft" => Some(GateMetric::Soft),
        "mixed" => Some(GateMetric::Mixed),
        _ => None,
    }
}

fn control_mode(folder: &mut Folder, fields: &Fields<'_>) -> LrControlMode {
    let Some(word) = fields.text(folder, "lr_control_mode") else { return LrControlMode::Fixed };
    let known = [LrControlMode::Fixed, LrControlMode::Autonomous, LrControlMode::None];
    known.into_iter().find(|mode| mode.name() == word).unwrap_or_else(|| {
        fields.note(
            folder,
            &format!("`lr_control_mode` is {word:?}, which planish does not know; read as fixed"),
        );
        LrControlMode::Fixed
    })
}

/// The optimizer's word on the budget of a step.
pub fn lr_decision(folder: &mut Folder, fields: &Fields<'_>) -> LrDecision {
    let flag = |key: &str| fields.value(key) == Some(&Value::Bool(true));
    LrDecision {
        learning_rate: fields.count(folder, "learning_rate").unwrap_or_default(),
        raw_learning_rate: fields.count(folder, "raw_learning_rate").unwrap_or_default(),
        available_update_items: fields.count(folder, "available_update_items").unwrap_or_default(),
        clamped: flag("clamped"),
        fallback: flag("fallback"),
        reasoning: fields.text(folder, "reasoning").unwrap_or_default(),
        confidence: fields.text(folder, "confidence").unwrap_or_default(),
        risk_notes: texts(folder, fields, "risk_notes"),
        raw_response: fields.text(folder, "raw_response").unwrap_or_default(),
        error: fields.text(folder, "error"),
    }
}

fn batches(folder: &mut Folder, fields: &Fields<'_>) -> Vec<BatchRecord> {
    let mut batches = Vec::new();
    for (index, row) in fields.list(folder, "accumulation_batches").iter().enumerate() {
        let Value::Object(map) = row else { continue };
        let row = Fields { map, place: "accumulation_batches: ", ..*fields };
        let mut count = |key: &str| row.count(folder, key).unwrap_or_default();
        let (batch_seed, n_envs) = (count("batch_seed") as u64, count("n_envs"));
        let (n_failure_patches, n_success_patches) = (count("n_failure_patches"), count("n_success_patches"));
        batches.push(BatchRecord {
            batch_idx: row.count(folder, "batch_idx").unwrap_or(index),
            batch_seed,
            n_envs,
            hard: row.number(folder, "hard").unwrap_or_default(),
            soft: row.number(folder, "soft").unwrap_or_default(),
            n_failure_patches,
            n_success_patches,
        });
    }
    batches
}

fn tokens(folder: &mut Folder, fields: &Fields<'_>) -> TokenUsage {
    let mut usage = TokenUsage::new();
    let Some(stages) = fields.object(folder, "tokens") else { return usage };
    for (stage, value) in stages {
        let Value::Object(map) = value else { continue };
        let row = Fields { map, place: "tokens: ", ..*fields };
        let mut count = |key: &str| row.count(folder, key).unwrap_or_default() as u64;
        let one = Usage {
            calls: count("calls"),
            prompt_tokens: count("prompt_tokens"),
            completion_tokens: count("completion_tokens"),
            ..Usage::default()
        };
        usage.insert(stage.clone(), one);
    }
    usage
}

fn apply_summary(folder: &mut Folder, fields: &Fields<'_>) -> Option<ApplySummary> {
    let map = fields.object(folder, "edit_apply_summary")?;
    let row = Fields { map, place: "edit_apply_summary: ", ..*fields };
    let mut count = |key: &str| row.count(folder, key).unwrap_or_default();
    Some(ApplySummary {
        total: count("total"),
        applied: count("applied"),
        skipped: count("skipped"),
        errors: count("errors"),
    })
}
