//! `steps/step_NNNN/`: everything a step left behind, finished or not.

use serde_json::Value;

use super::fields::{Fields, kind, number};
use super::folder::Folder;
use super::history::ForeignRecord;
use super::patches::{ForeignAnalysis, analyses, object, patch, report};
use super::rollouts::{self, ForeignRollouts};
use crate::domain::{EditReport, FailedAttempt, Patch, Skill, StepMemory, StepRef};

/// One step. Everything may be absent: the run may have stopped in the middle of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignStep {
    pub at: StepRef,
    /// `None`: the step did not finish.
    pub record: Option<ForeignRecord>,
    pub batches: Vec<ForeignBatch>,
    pub merged: Option<Patch>,
    pub ranked: Option<Patch>,
    pub candidate: Option<Skill>,
    pub report: Option<EditReport>,
    pub selection: Option<ForeignRollouts>,
    /// What the step buffer kept of it.
    pub digest: Option<StepMemory>,
}

/// One accumulation batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignBatch {
    pub rollouts: Option<ForeignRollouts>,
    pub analyses: Vec<ForeignAnalysis>,
}

pub fn read(folder: &mut Folder, at: StepRef, record: Option<ForeignRecord>) -> ForeignStep {
    let place = format!("steps/step_{:04}", at.step);
    let in_place = |name: &str| format!("{place}/{name}");
    let mut batches: Vec<ForeignBatch> =
        batch_folders(folder, &place).iter().map(|place| batch(folder, place)).collect();
    batches.retain(|batch| *batch != ForeignBatch::default());
    ForeignStep {
        at,
        record,
        batches,
        merged: patch(folder, &in_place("merged_patch.json")),
        ranked: patch(folder, &in_place("ranked_edits.json")),
        candidate: skill(folder, &in_place("candidate_skill.md")),
        report: report(folder, &in_place("edit_apply_report.json")),
        selection: rollouts::read(folder, &in_place("selection_eval")),
        digest: digest(folder, &in_place("trajectory_digest.json"), at.step),
    }
}

/// A skill document as SkillOpt reads it: CRLF becomes LF.
pub fn skill(folder: &mut Folder, file: &str) -> Option<Skill> {
    Some(Skill::new(folder.text(file)?.replace("\r\n", "\n")))
}

/// The step's own folder, or its `batch_N` ones.
fn batch_folders(folder: &mut Folder, place: &str) -> Vec<String> {
    let names = folder.names(place);
    let number = |name: &str| name.strip_prefix("batch_")?.parse::<u32>().ok();
    let mut numbered: Vec<(u32, String)> =
        names.into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
    numbered.sort();
    let mut folders = vec![place.to_owned()];
    folders.extend(numbered.into_iter().map(|(_, name)| format!("{place}/{name}")));
    folders
}

fn batch(folder: &mut Folder, place: &str) -> ForeignBatch {
    ForeignBatch {
        rollouts: rollouts::read(folder, &format!("{place}/rollout")),
        analyses: analyses(folder, &format!("{place}/patches")),
    }
}

fn digest(folder: &mut Folder, file: &str, step: u32) -> Option<StepMemory> {
    let map = object(folder, file)?;
    let fields = Fields { map: &map, file, line: None, place: "" };
    let mut failure_patterns = Vec::new();
    for row in fields.list(folder, "failure_patterns") {
        let Value::Object(map) = row else {
            fields.note(folder, &format!("a failure pattern is {}; left out", kind(row)));
            continue;
        };
        let row = Fields { map, place: "failure_patterns: ", ..fields };
        let ids = row.list(folder, "task_ids").iter().map(plain).collect::<Vec<_>>();
        let count = row.count(folder, "count").unwrap_or(ids.len());
        failure_patterns.push((row.text(folder, "pattern").unwrap_or_default(), count, ids));
    }
    let attempts = fields.list(folder, "rejected_edits").iter();
    let failed_attempts =
        attempts.map(|edit| FailedAttempt { summary: summary(edit), why: "gate".into() }).collect();
    let score = |key: &str| fields.value(key).and_then(number).filter(|score| score.is_finite());
    Some(StepMemory {
        step,
        action: fields.text(folder, "action").unwrap_or_default(),
        n_total: fields.count(folder, "n_total").unwrap_or_default(),
        n_fail: fields.count(folder, "n_fail").unwrap_or_default(),
        failure_patterns,
        scores: score("score_before").zip(score("score_after")),
        failed_attempts,
    })
}

/// A rejected edit in a few words: its texts, in the order they stand.
fn summary(edit: &Value) -> String {
    match edit {
        Value::Object(map) => {
            let parts = map.values().filter(|value| !value.is_null()).map(plain);
            parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
        }
        other => plain(other),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
