//! `RunState`: what a journal tells. Live runs, attached clients and replays all look at this; `fold` builds it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{
    BREAKER, BREAKER_OPEN, EndStatus, EvalPurpose, ItemResult, LogLevel, Overruling, Ranking, RejectedEdit,
    Retune, RunPlan, TestOutcome,
};
use crate::domain::{
    AppendixFlush, Author, Decision, Edit, EditOp, EditReport, EpochStage, FailureNote, GateDecision,
    GateScore, LrDecision, Origin, Patch, Phase, ProbeAnswer, Retuned, ReviewClose, ReviewComment,
    ReviewMode, Rewrite, Role, Skill, SkillFolder, SourceType, StageKind, StepRecord, StepRef, TimeoutPolicy,
    UpdateMode, Usage, skill_hash,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    pub name: String,
    pub seed: u64,
    pub config_hash: String,
    pub plan: RunPlan,
    #[serde(default)]
    pub origin: Option<Origin>,
    /// What came with the skill when it was read from a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<SkillFolder>,
    /// Unix milliseconds of `run_started`.
    pub started_at: u64,
    #[serde(default)]
    pub update_mode: UpdateMode,
    /// Where each setting came from, by key.
    #[serde(default)]
    pub origins: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    #[default]
    NotStarted,
    Running,
    Paused {
        by: Author,
    },
    Cancelling {
        by: Author,
    },
    Ended {
        status: EndStatus,
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillVersion {
    /// Without its text in a glance where nothing recent names it; [`RunState::skill_text`] tells.
    pub skill: Skill,
    /// Step that produced it; 0 is the initial skill.
    pub step: u32,
    pub accepted: bool,
}

/// One edit under review with its present decision and who made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewEdit {
    pub edit: Edit,
    pub decision: Decision,
    pub by: Option<Author>,
    /// Revision of the last decision on this edit; 0 when there was none.
    pub rev: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewState {
    pub mode: ReviewMode,
    pub edits: Vec<ReviewEdit>,
    pub current_hash: String,
    pub preview: String,
    /// Unix milliseconds when the timeout policy applies (from the last opening or host start).
    pub deadline: Option<u64>,
    pub timeout_s: Option<u64>,
    /// Who asked to close the review; the engine closes it next.
    pub submitted: Option<Author>,
    #[serde(default)]
    pub on_timeout: TimeoutPolicy,
    pub closed: Option<ReviewClose>,
    /// What the review left to be applied, amendments included.
    #[serde(default)]
    pub kept: Vec<Edit>,
    pub rejected: Vec<RejectedEdit>,
    #[serde(default)]
    pub comments: Vec<ReviewComment>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    pub source: SourceType,
    /// Counts from 0 in each batch of a step.
    #[serde(default)]
    pub batch: usize,
    pub minibatch: usize,
    pub items: Vec<String>,
    pub patch: Option<Patch>,
    pub failures: Vec<FailureNote>,
    #[serde(default)]
    pub success_patterns: Vec<String>,
    #[serde(default)]
    pub appendix_notes: Vec<String>,
    /// Of probed items.
    #[serde(default)]
    pub deep: bool,
    pub note: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepState {
    pub at: StepRef,
    pub phase: Option<Phase>,
    pub rollouts: Vec<ItemResult>,
    /// Where each batch begins in `rollouts`; empty for a step of one batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_starts: Vec<usize>,
    pub analyses: Vec<Analysis>,
    pub merged: Option<Patch>,
    #[serde(default)]
    pub lr_decision: Option<LrDecision>,
    pub ranked: Option<Patch>,
    #[serde(default)]
    pub ranking: Option<Ranking>,
    pub budget: Option<usize>,
    pub review: Option<ReviewState>,
    pub candidate: Option<Skill>,
    pub report: Option<EditReport>,
    #[serde(default)]
    pub rewrite: Option<Rewrite>,
    #[serde(default)]
    pub regions_restored: bool,
    #[serde(default)]
    pub probes: Vec<BatchProbe>,
    #[serde(default)]
    pub appendix: Option<AppendixFlush>,
    /// Id of the candidate's evaluation in [`RunState::evals`].
    pub eval: Option<String>,
    pub gate: Option<GateDecision>,
    /// The current and the best skill before that verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<(String, String)>,
    /// The last word of a person over the gate.
    #[serde(default)]
    pub overruling: Option<Overruling>,
    pub record: Option<StepRecord>,
    /// The current skill after the step; empty until it has finished.
    #[serde(default)]
    pub current_hash: String,
    /// Unix milliseconds: first event and the start of each phase seen.
    pub started_at: u64,
    pub finished_at: Option<u64>,
    pub phase_starts: Vec<(Phase, u64)>,
}

/// The probe of one batch of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchProbe {
    pub batch: usize,
    pub answer: ProbeAnswer,
}

/// A finished stage between two epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageState {
    /// The last step before it.
    pub at: StepRef,
    pub stage: EpochStage,
    /// The current skill after it.
    pub current_hash: String,
    /// Unix milliseconds.
    pub started_at: u64,
    pub finished_at: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalState {
    pub purpose: EvalPurpose,
    pub at: StepRef,
    pub skill_hash: String,
    pub n: usize,
    /// In evaluation order; `index` of each item is its place in the split.
    pub results: Vec<(usize, ItemResult)>,
    pub score: Option<GateScore>,
    pub curtailed: bool,
    pub missing: usize,
}

/// What an evaluation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvalOwner {
    Run,
    Step(u32),
    /// A stage after the steps of an epoch.
    Stage(u32, StageKind),
}

impl EvalState {
    /// `id`: its key in [`RunState::evals`], whose second part names a stage: `e02/slow/rescore`.
    pub fn owner(&self, id: &str) -> EvalOwner {
        let named = match id.split('/').nth(1) {
            Some("slow") => Some(StageKind::SlowUpdate),
            Some("meta_skill") => Some(StageKind::MetaSkill),
            Some("meta" | "meta_reflect") => Some(StageKind::MetaReflect),
            Some(_) | None => None,
        };
        match self.purpose {
            EvalPurpose::Baseline
            | EvalPurpose::RescoreBest
            | EvalPurpose::FinalSelection
            | EvalPurpose::TestBase
            | EvalPurpose::TestBest
            | EvalPurpose::TestFinal => EvalOwner::Run,
            EvalPurpose::Candidate | EvalPurpose::DeepProbe => EvalOwner::Step(self.at.step),
            EvalPurpose::Rescore => match named {
                Some(kind) => EvalOwner::Stage(self.at.epoch, kind),
                // Of a run that another one goes on from, before its first step.
                None if self.at.step == 0 => EvalOwner::Run,
                None => EvalOwner::Step(self.at.step),
            },
            EvalPurpose::LongitudinalPrev | EvalPurpose::LongitudinalCurr => {
                EvalOwner::Stage(self.at.epoch, named.unwrap_or(StageKind::SlowUpdate))
            }
            EvalPurpose::SlowCandidate => EvalOwner::Stage(self.at.epoch, StageKind::SlowUpdate),
            EvalPurpose::MetaReflectCandidate => EvalOwner::Stage(self.at.epoch, StageKind::MetaReflect),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    pub at: u64,
    pub level: LogLevel,
    /// Set for alerts.
    pub code: Option<String>,
    pub message: String,
}

/// The whole run as its journal tells it. Pure: `apply` in order gives the same state everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    pub seq: u64,
    /// Unix milliseconds of the last event.
    pub updated_at: u64,
    /// Unix milliseconds of the last event that was not merely told about the run: samples, alerts, logs.
    #[serde(default)]
    pub progress_at: u64,
    /// Raised by every outside command; what clients base decisions on.
    pub rev: u64,
    pub info: Option<RunInfo>,
    pub status: RunStatus,
    pub at: StepRef,
    pub phase: Option<Phase>,
    /// Unix milliseconds.
    #[serde(default)]
    pub phase_started_at: u64,
    pub steps: Vec<StepState>,
    /// Finished stages between epochs, in order.
    #[serde(default)]
    pub stages: Vec<StageState>,
    pub evals: BTreeMap<String, EvalState>,
    /// Evaluation ids in the order they began.
    pub eval_order: Vec<String>,
    pub skills: HashMap<String, SkillVersion>,
    pub initial_hash: String,
    pub current_hash: String,
    pub best_hash: String,
    pub current_score: Option<f64>,
    /// The current skill was changed outside the gate after that score was measured.
    #[serde(default)]
    pub current_score_stale: bool,
    pub best_score: Option<f64>,
    pub best_step: u32,
    pub baseline_score: Option<f64>,
    /// Of answered calls, by stage.
    pub usage: BTreeMap<String, Usage>,
    /// Of attempts without a reply, by stage.
    #[serde(default)]
    pub unanswered: BTreeMap<String, Usage>,
    /// The last skill's selection score when it was measured again before the test; and whether that made it the best.
    #[serde(default)]
    pub final_selection: Option<(GateScore, bool)>,
    pub test: Option<TestOutcome>,
    pub logs: VecDeque<LogLine>,
    pub host: Option<(String, u32)>,
    /// The configuration as the run began with it; `null` before.
    #[serde(default)]
    pub config: serde_json::Value,
    /// Changes asked for while the run went on, in order.
    #[serde(default)]
    pub retunes: Vec<Retune>,
    /// Settings that have taken effect since, in order.
    #[serde(default)]
    pub settings: Vec<Retuned>,
    /// Calls that people gave up, by path.
    #[serde(default)]
    pub cancelled_calls: BTreeMap<String, Author>,
}

impl RunState {
    /// The step under way, or the last one.
    pub fn step(&self) -> Option<&StepState> {
        self.steps.last()
    }

    /// Unix milliseconds of the last event that tells of progress; of the last one where none is known.
    pub fn last_progress(&self) -> u64 {
        if self.progress_at == 0 { self.updated_at } else { self.progress_at }
    }

    /// Why the run is paused, if a host that is down did it.
    pub fn outage(&self) -> Option<&str> {
        let RunStatus::Paused { by } = &self.status else { return None };
        let alert = self.logs.iter().rev().find(|line| line.code.as_deref() == Some(BREAKER_OPEN))?;
        (by.0 == BREAKER).then_some(&alert.message)
    }

    /// The role whose answers people give through files just now.
    pub fn handed_off(&self) -> Option<Role> {
        let role = self.phase.filter(|_| self.status == RunStatus::Running)?.asks()?;
        let backend = self.config.get("model")?.get(role.name())?.get("backend")?;
        (backend == "handoff").then_some(role)
    }

    /// The review that waits for a decision.
    pub fn open_review(&self) -> Option<(StepRef, &ReviewState)> {
        let step = self.steps.last()?;
        let review = step.review.as_ref()?;
        (review.closed.is_none() && !matches!(self.status, RunStatus::Ended { .. }))
            .then_some((step.at, review))
    }

    pub fn skill_text(&self, hash: &str) -> Option<&str> {
        let version = self.skills.get(hash).filter(|version| version.has_text())?;
        Some(&version.skill.text)
    }

    /// Sum over all stages, attempts without a reply included.
    pub fn total_usage(&self) -> Usage {
        let mut total = self.total_unanswered();
        self.usage.values().for_each(|usage| total += *usage);
        total
    }

    /// What attempts without a reply used, at most.
    pub fn total_unanswered(&self) -> Usage {
        let mut total = Usage::default();
        self.unanswered.values().for_each(|usage| total += *usage);
        total
    }

    /// The current skill as it was before a finished stage, by its place in [`RunState::stages`].
    pub fn skill_before_stage(&self, index: usize) -> Option<&str> {
        let step = self.stages.get(index)?.at.step;
        if let Some((_, word)) = self.overrides_at(step, index).next_back() {
            return self.skill_text(word.current_hash()?);
        }
        let earlier =
            index.checked_sub(1).map(|before| &self.stages[before]).filter(|one| one.at.step == step);
        let hash = match earlier {
            Some(stage) => &stage.current_hash,
            None => &self.steps.iter().rfind(|one| one.at.step == step)?.current_hash,
        };
        self.skill_text(hash)
    }

    /// What the best skill came from: `step 4`, or `epoch 2, slow update` when a stage between epochs made it.
    pub fn best_origin(&self) -> String {
        let made = |stage: &&StageState| {
            stage.current_hash == self.best_hash && stage.stage.action().changes_skill()
        };
        match self.stages.iter().rfind(made) {
            Some(stage) => format!("epoch {}, {}", stage.at.epoch, stage.stage.name()),
            None => format!("step {}", self.best_step),
        }
    }

    /// The finished stages after the steps of `epoch`.
    pub fn stages_of(&self, epoch: u32) -> impl Iterator<Item = &StageState> {
        self.stages.iter().filter(move |stage| stage.at.epoch == epoch)
    }
}

impl SkillVersion {
    pub(super) fn has_text(&self) -> bool {
        !self.skill.text.is_empty() || self.skill.hash == skill_hash("")
    }
}

impl ReviewEdit {
    /// What an amendment starts from: the last one, or else what the edit brings. What a deletion may keep is in its target.
    pub fn text_to_amend(&self) -> &str {
        match (&self.decision, self.edit.op) {
            (Decision::Amend { content, .. }, _) => content,
            (Decision::Undecided | Decision::Accept | Decision::Reject { .. }, EditOp::Delete) => {
                &self.edit.target
            }
            (Decision::Undecided | Decision::Accept | Decision::Reject { .. }, _) => &self.edit.content,
        }
    }

    pub(super) fn undecided(edit: &Edit) -> Self {
        Self { edit: edit.clone(), decision: Decision::Undecided, by: None, rev: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amendment_goes_on_from_the_last_one_or_from_the_text_at_stake() {
        let edit = |op: &str, content: &str, target: &str| -> Edit {
            let edit = serde_json::json!({ "op": op, "content": content, "target": target });
            serde_json::from_value(edit).unwrap()
        };
        let mut slot = ReviewEdit::undecided(&edit("replace", "new", "old"));
        assert_eq!(slot.text_to_amend(), "new");
        slot.decision = Decision::Reject { reason: String::new() };
        assert_eq!(slot.text_to_amend(), "new");
        slot.decision = Decision::Amend { content: "mine".into(), reason: String::new() };
        assert_eq!(slot.text_to_amend(), "mine");
        let mut slot = ReviewEdit::undecided(&edit("delete", "", "old"));
        assert_eq!(slot.text_to_amend(), "old");
        slot.decision = Decision::Amend { content: "half".into(), reason: String::new() };
        assert_eq!(slot.text_to_amend(), "half");
    }
}
