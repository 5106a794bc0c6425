//! `steps/step_NNNN/`: everything a step left behind, finished or not.

use serde_json::Value;

use super::fields::{Fields, kind, number};
use super::folder::Folder;
use super::history::ForeignRecord;
use super::patches::{ForeignAnalysis, analyses, object, patch, report, texts};
use super::rollouts::{self, ForeignRollouts};
use crate::domain::{
    AppendixFlush, DeepProbe, EditReport, FailedAttempt, Patch, ProbeAnswer, ProbeExample, Rewrite, Skill,
    StepMemory, StepRef,
};
use crate::event::Ranking;

/// One step. Everything may be absent: the run may have stopped in the middle of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignStep {
    pub at: StepRef,
    /// `None`: the step did not finish.
    pub record: Option<ForeignRecord>,
    pub batches: Vec<ForeignBatch>,
    pub merged: Option<Patch>,
    pub ranked: Option<Patch>,
    pub ranking: Option<Ranking>,
    /// Set in the rewrite modes.
    pub rewrite: Option<Rewrite>,
    pub candidate: Option<Skill>,
    pub report: Option<EditReport>,
    pub selection: Option<ForeignRollouts>,
    pub appendix: Option<AppendixFlush>,
    /// What the step buffer kept of it.
    pub digest: Option<StepMemory>,
}

/// One accumulation batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignBatch {
    pub rollouts: Option<ForeignRollouts>,
    pub analyses: Vec<ForeignAnalysis>,
    pub deep: Option<ForeignDeepReflection>,
}

/// A second look at some items of a batch, with a diagnostic instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignDeepReflection {
    pub probe: ProbeAnswer,
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
        ranking: ranking(folder, &in_place("ranked_edits.json")),
        rewrite: rewrite(folder, &place),
        candidate: skill(folder, &in_place("candidate_skill.md")),
        report: report(folder, &in_place("edit_apply_report.json")),
        selection: rollouts::read(folder, &in_place("selection_eval")),
        appendix: appendix(folder, &in_place("appendix_notes.json")),
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
        deep: deep_reflection(folder, &format!("{place}/deep_reflect")),
    }
}

fn deep_reflection(folder: &mut Folder, place: &str) -> Option<ForeignDeepReflection> {
    let file = format!("{place}/probe.json");
    let map = object(folder, &file)?;
    let fields = Fields { map: &map, file: &file, line: None, place: "" };
    let probe = DeepProbe {
        reasoning: fields.text(folder, "reasoning").unwrap_or_default(),
        probe_instruction: fields.text(folder, "probe_instruction").unwrap_or_default(),
        probe_target_id: fields.text(folder, "probe_target_id"),
        probe_after_step: fields.number(folder, "probe_after_step").map(|step| step as i64),
    };
    let mut examples = Vec::new();
    for row in fields.list(folder, "selected_examples") {
        let Value::Object(map) = row else { continue };
        let row = Fields { map, place: "selected_examples: ", ..fields };
        examples.push(ProbeExample {
            id: row.text(folder, "id").unwrap_or_default(),
            task_type: row.text(folder, "task_type").unwrap_or_default(),
            reference_fields: texts(folder, &row, "reference_fields"),
            reference_preview: row.text(folder, "reference_preview").unwrap_or_default(),
        });
    }
    let probe = ProbeAnswer { probe, examples };
    let rollouts = rollouts::read(folder, &format!("{place}/rollout"));
    Some(ForeignDeepReflection { probe, rollouts, analyses: analyses(folder, &format!("{place}/patches")) })
}

fn ranking(folder: &mut Folder, file: &str) -> Option<Ranking> {
    if !folder.has(file) {
        return None;
    }
    // Its oddities are noted where the patch is read.
    let text = folder.text(file)?;
    let value = super::python_json::value(&text).ok()?;
    let details = value.get("ranking_details")?;
    let indices = details.get("selected_indices").and_then(Value::as_array)?.iter();
    Some(Ranking {
        reasoning: details.get("reasoning").and_then(Value::as_str).unwrap_or_default().to_owned(),
        selected_indices: indices.filter_map(|index| usize::try_from(index.as_u64()?).ok()).collect(),
    })
}

/// The new document of a rewrite call, or the chosen one of several.
fn rewrite(folder: &mut Folder, place: &str) -> Option<Rewrite> {
    let file = format!("{place}/rewrite_result.json");
    if let Some(map) = object(folder, &file) {
        return Some(rewritten(folder, &Fields { map: &map, file: &file, line: None, place: "" }));
    }
    let file = format!("{place}/full_rewrite_result.json");
    let map = object(folder, &file)?;
    let fields = Fields { map: &map, file: &file, line: None, place: "" };
    let map = fields.object(folder, "selected_candidate")?;
    Some(rewritten(folder, &Fields { map, place: "selected_candidate: ", ..fields }))
}

fn rewritten(folder: &mut Folder, fields: &Fields<'_>) -> Rewrite {
    Rewrite {
        reasoning: fields
            .first(&["reasoning", "title"])
            .and_then(|key| fields.text(folder, key))
            .unwrap_or_default(),
        change_summary: texts(folder, fields, "change_summary"),
        new_skill: fields.text(folder, "new_skill").unwrap_or_default(),
    }
}

fn appendix(folder: &mut Folder, file: &str) -> Option<AppendixFlush> {
    let map = object(folder, file)?;
    let fields = Fields { map: &map, file, line: None, place: "" };
    let (step_notes, appendix_after) =
        (texts(folder, &fields, "step_notes"), texts(folder, &fields, "appendix_after"));
    // How many were new is in the step's record.
    Some(AppendixFlush { step_notes, appendix_after, ..AppendixFlush::default() })
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
        at_most: false,
        failed_attempts,
        reviewer_notes: Vec::new(),
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
