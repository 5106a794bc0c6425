//! The stages between epochs: `slow_update/`, `meta_skill/`, `meta_reflect/`. Their gate decisions are not made here:
//! rows and scores are given as recorded.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{Fields, kind};
use super::folder::Folder;
use super::patches::{object, patch_of, report, texts};
use super::rollouts::{self, ForeignRollouts};
use super::steps::skill;
use crate::domain::{
    ComparisonPair, MetaReflect, MetaSkill, PairCategory, PairSide, SlowUpdate, StageAction,
};

/// What was recorded at the end of one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignEpoch {
    pub slow_update: Option<ForeignStage<SlowUpdate>>,
    /// The longitudinal rollouts under the previous epoch's skill and the current one.
    pub prev: Option<ForeignRollouts>,
    pub curr: Option<ForeignRollouts>,
    pub meta_skill: Option<ForeignStage<MetaSkill>>,
    pub meta_reflect: Option<ForeignStage<MetaReflect>>,
}

/// A finished stage with what a gate would look at. Its `decision` is not set yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignStage<T> {
    pub found: T,
    pub seconds: f64,
    pub candidate_hash: Option<String>,
    pub selection_hard: Option<f64>,
    pub selection_soft: Option<f64>,
    pub selection: Option<ForeignRollouts>,
}

/// All epochs of which a stage left something.
pub fn read(folder: &mut Folder) -> BTreeMap<u32, ForeignEpoch> {
    let mut epochs: BTreeMap<u32, ForeignEpoch> = BTreeMap::new();
    for epoch in numbers(folder, "slow_update") {
        let place = format!("slow_update/epoch_{epoch:02}");
        let found = epochs.entry(epoch).or_default();
        found.slow_update = slow_update(folder, &place);
        found.prev = rollouts::read(folder, &format!("{place}/rollout_prev"));
        found.curr = rollouts::read(folder, &format!("{place}/rollout_curr"));
    }
    for epoch in numbers(folder, "meta_skill") {
        epochs.entry(epoch).or_default().meta_skill =
            meta_skill(folder, &format!("meta_skill/epoch_{epoch:02}/meta_skill_result.json"));
    }
    for epoch in numbers(folder, "meta_reflect") {
        epochs.entry(epoch).or_default().meta_reflect =
            meta_reflect(folder, &format!("meta_reflect/epoch_{epoch:02}"));
    }
    epochs
}

fn numbers(folder: &mut Folder, place: &str) -> Vec<u32> {
    let names = folder.names(place);
    names.iter().filter_map(|name| name.strip_prefix("epoch_")?.parse().ok()).collect()
}

fn slow_update(folder: &mut Folder, place: &str) -> Option<ForeignStage<SlowUpdate>> {
    let file = format!("{place}/slow_result.json");
    let map = object(folder, &file)?;
    let fields = Fields { map: &map, file: &file, line: None, place: "" };
    let pairs = pairs(folder, &format!("{place}/comparison_pairs.json"));
    let all_pairs = self::pairs(folder, &format!("{place}/comparison_pairs_all.json"));
    let found = SlowUpdate {
        action: action(folder, &fields),
        reasoning: fields.text(folder, "reasoning").unwrap_or_default(),
        content: fields.text(folder, "slow_update_content").unwrap_or_default(),
        prev_hard: fields.number(folder, "prev_hard"),
        curr_hard: fields.number(folder, "curr_hard"),
        pairs,
        all_pairs,
        candidate: skill(folder, &format!("{place}/candidate_skill.md")),
        decision: None,
        note: String::new(),
    };
    let selection = rollouts::read(folder, &format!("{place}/selection_eval"));
    Some(stage(folder, &fields, found, selection))
}

fn meta_skill(folder: &mut Folder, file: &str) -> Option<ForeignStage<MetaSkill>> {
    let map = object(folder, file)?;
    let fields = Fields { map: &map, file, line: None, place: "" };
    let found = MetaSkill {
        action: action(folder, &fields),
        reasoning: fields.text(folder, "reasoning").unwrap_or_default(),
        content: fields.text(folder, "meta_skill_content").unwrap_or_default(),
        note: String::new(),
    };
    Some(stage(folder, &fields, found, None))
}

fn meta_reflect(folder: &mut Folder, place: &str) -> Option<ForeignStage<MetaReflect>> {
    let file = format!("{place}/meta_result.json");
    let map = object(folder, &file)?;
    let fields = Fields { map: &map, file: &file, line: None, place: "" };
    let found = MetaReflect {
        action: action(folder, &fields),
        meta_summary: fields.text(folder, "meta_summary").unwrap_or_default(),
        patch: patch_of(folder, &fields),
        candidate: skill(folder, &format!("{place}/meta_candidate.md")),
        report: report(folder, &format!("{place}/meta_edit_apply_report.json")),
        change_summary: texts(folder, &fields, "rewrite_change_summary"),
        decision: None,
        note: String::new(),
    };
    let selection = rollouts::read(folder, &format!("{place}/selection_eval"));
    let mut stage = stage(folder, &fields, found, selection);
    // Here the gate looks at `hard` alone.
    stage.selection_hard = stage.selection_hard.or_else(|| fields.number(folder, "gate_score"));
    Some(stage)
}

fn stage<T>(
    folder: &mut Folder,
    fields: &Fields<'_>,
    found: T,
    selection: Option<ForeignRollouts>,
) -> ForeignStage<T> {
    ForeignStage {
        found,
        seconds: fields.number(folder, "time_s").unwrap_or_default().clamp(0.0, super::history::LONGEST),
        candidate_hash: fields.text(folder, "candidate_hash"),
        selection_hard: fields.number(folder, "selection_hard"),
        selection_soft: fields.number(folder, "selection_soft"),
        selection,
    }
}

/// How the stage ended. An unknown word changes nothing, as far as anybody can tell.
fn action(folder: &mut Folder, fields: &Fields<'_>) -> StageAction {
    let word = fields.text(folder, "action").unwrap_or_default();
    serde_json::from_value(Value::String(word.clone())).unwrap_or_else(|_| {
        fields.note(folder, &format!("`action` is {word:?}, which planish does not know; read as undecided"));
        StageAction::Undecided
    })
}

fn pairs(folder: &mut Folder, file: &str) -> Vec<ComparisonPair> {
    let rows = match folder.json(file) {
        Some(Value::Array(rows)) => rows,
        Some(other) => {
            folder.note(file, None, format!("is {}, not a list; left out", kind(&other)));
            return Vec::new();
        }
        None => return Vec::new(),
    };
    let mut pairs = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let place = format!("pair {}: ", index + 1);
        let Value::Object(map) = row else {
            folder.note(file, None, format!("{place}{}; left out", kind(row)));
            continue;
        };
        let fields = Fields { map, file, line: None, place: &place };
        let side = |folder: &mut Folder, key: &str| {
            let map = fields.object(folder, key)?;
            let row = Fields { map, ..fields };
            Some(PairSide {
                hard: u8::from(row.number(folder, "hard")? != 0.0),
                soft: row.number(folder, "soft").unwrap_or_default(),
                predicted_answer: row.text(folder, "predicted_answer").unwrap_or_default(),
                fail_reason: row.text(folder, "fail_reason").unwrap_or_default(),
            })
        };
        let (Some(prev), Some(curr)) = (side(folder, "prev"), side(folder, "curr")) else {
            fields.note(folder, "lacks a side; left out");
            continue;
        };
        pairs.push(ComparisonPair {
            id: fields.text(folder, "id").unwrap_or_default(),
            task: fields.text(folder, "task").unwrap_or_default(),
            category: PairCategory::of(prev.hard == 1, curr.hard == 1),
            prev,
            curr,
            prev_trajectory: String::new(),
            curr_trajectory: String::new(),
        });
    }
    pairs
}
