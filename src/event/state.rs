//! `RunState`: the fold of a journal. Live runs, attached clients and replays all look at this.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{
    EndStatus, EvalPurpose, Event, ItemResult, LogLevel, Record, RejectedEdit, RunPlan, TestOutcome,
};
use crate::domain::{
    Author, Decision, Edit, EditReport, FailureNote, GateDecision, GateScore, Patch, Phase, ReviewClose,
    ReviewMode, Skill, SourceType, StepRecord, StepRef, TimeoutPolicy, Usage,
};

/// Log lines kept in memory; older ones stay in the journal.
const LOG_LINES: usize = 2000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    pub name: String,
    pub seed: u64,
    pub config_hash: String,
    pub plan: RunPlan,
    /// Unix milliseconds of `run_started`.
    pub started_at: u64,
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
    pub rejected: Vec<RejectedEdit>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    pub source: SourceType,
    pub minibatch: usize,
    pub items: Vec<String>,
    pub patch: Option<Patch>,
    pub failures: Vec<FailureNote>,
    pub note: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepState {
    pub at: StepRef,
    pub phase: Option<Phase>,
    pub rollouts: Vec<ItemResult>,
    pub analyses: Vec<Analysis>,
    pub merged: Option<Patch>,
    pub ranked: Option<Patch>,
    pub budget: Option<usize>,
    pub review: Option<ReviewState>,
    pub candidate: Option<Skill>,
    pub report: Option<EditReport>,
    /// Id of the candidate's evaluation in [`RunState::evals`].
    pub eval: Option<String>,
    pub gate: Option<GateDecision>,
    pub record: Option<StepRecord>,
    /// Unix milliseconds: first event and the start of each phase seen.
    pub started_at: u64,
    pub finished_at: Option<u64>,
    pub phase_starts: Vec<(Phase, u64)>,
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
    /// Raised by every outside command; what clients base decisions on.
    pub rev: u64,
    pub info: Option<RunInfo>,
    pub status: RunStatus,
    pub at: StepRef,
    pub phase: Option<Phase>,
    pub steps: Vec<StepState>,
    pub evals: BTreeMap<String, EvalState>,
    /// Evaluation ids in the order they began.
    pub eval_order: Vec<String>,
    pub skills: HashMap<String, SkillVersion>,
    pub initial_hash: String,
    pub current_hash: String,
    pub best_hash: String,
    pub current_score: Option<f64>,
    pub best_score: Option<f64>,
    pub best_step: u32,
    pub baseline_score: Option<f64>,
    pub usage: BTreeMap<String, Usage>,
    pub test: Option<TestOutcome>,
    pub logs: VecDeque<LogLine>,
    pub host: Option<(String, u32)>,
}

impl RunState {
    /// Folds records in order.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Applies the next record. Records at or below `seq` are ignored, so a resent one does no harm.
    pub fn apply(&mut self, record: &Record) {
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        self.updated_at = record.at;
        self.apply_event(&record.event, record.at);
    }

    /// The step under way, or the last one.
    pub fn step(&self) -> Option<&StepState> {
        self.steps.last()
    }

    /// The review that waits for a decision.
    pub fn open_review(&self) -> Option<(StepRef, &ReviewState)> {
        let step = self.steps.last()?;
        let review = step.review.as_ref()?;
        (review.closed.is_none() && !matches!(self.status, RunStatus::Ended { .. }))
            .then_some((step.at, review))
    }

    pub fn skill_text(&self, hash: &str) -> Option<&str> {
        self.skills.get(hash).map(|version| version.skill.text.as_str())
    }

    /// Sum over all stages.
    pub fn total_usage(&self) -> Usage {
        let mut total = Usage::default();
        for usage in self.usage.values() {
            total += *usage;
        }
        total
    }

    fn step_mut(&mut self, at: StepRef, now: u64) -> &mut StepState {
        // Nearly always the last one.
        let index = match self.steps.iter().rposition(|step| step.at.step == at.step) {
            Some(index) => index,
            None => {
                self.steps.push(StepState { at, started_at: now, ..StepState::default() });
                self.steps.len() - 1
            }
        };
        &mut self.steps[index]
    }

    fn add_usage(&mut self, stage: &str, usage: Usage) {
        *self.usage.entry(stage.to_owned()).or_default() += usage;
    }

    fn log(&mut self, at: u64, level: LogLevel, code: Option<String>, message: String) {
        if self.logs.len() == LOG_LINES {
            self.logs.pop_front();
        }
        self.logs.push_back(LogLine { at, level, code, message });
    }

    fn apply_event(&mut self, event: &Event, now: u64) {
        match event {
            Event::RunStarted { run, seed, config_hash, skill, plan, .. } => {
                self.info = Some(RunInfo {
                    name: run.clone(),
                    seed: *seed,
                    config_hash: config_hash.clone(),
                    plan: plan.clone(),
                    started_at: now,
                });
                self.status = RunStatus::Running;
                for hash in [&mut self.initial_hash, &mut self.current_hash, &mut self.best_hash] {
                    hash.clone_from(&skill.hash);
                }
                let version = SkillVersion { skill: skill.clone(), step: 0, accepted: true };
                self.skills.insert(skill.hash.clone(), version);
            }
            Event::PhaseStarted { at, phase } => {
                self.at = *at;
                self.phase = Some(*phase);
                if at.step > 0 && *phase != Phase::Test {
                    let step = self.step_mut(*at, now);
                    step.phase = Some(*phase);
                    step.phase_starts.push((*phase, now));
                }
            }
            Event::RolloutFinished { at, result, .. } => {
                if let Some(rollout) = result.rollout() {
                    self.add_usage("rollout", rollout.usage);
                }
                self.step_mut(*at, now).rollouts.push(result.clone());
            }
            Event::AnalysisFinished {
                at, source, minibatch, items, patch, failures, note, usage, ..
            } => {
                self.add_usage("analyst", *usage);
                self.step_mut(*at, now).analyses.push(Analysis {
                    source: *source,
                    minibatch: *minibatch,
                    items: items.clone(),
                    patch: patch.clone(),
                    failures: failures.clone(),
                    note: note.clone(),
                });
            }
            Event::MergeFinished { at, patch, usage, .. } => {
                self.add_usage("merge", *usage);
                self.step_mut(*at, now).merged = Some(patch.clone());
            }
            Event::EditsSelected { at, budget, patch, usage, .. } => {
                self.add_usage("ranking", *usage);
                let step = self.step_mut(*at, now);
                step.ranked = Some(patch.clone());
                step.budget = Some(*budget);
            }
            Event::ReviewOpened { at, mode, edits, current_hash, preview, timeout_s, on_timeout } => {
                let review = ReviewState {
                    mode: *mode,
                    edits: edits.iter().map(ReviewEdit::undecided).collect(),
                    current_hash: current_hash.clone(),
                    preview: preview.clone(),
                    deadline: timeout_s.map(|seconds| now + seconds * 1000),
                    timeout_s: *timeout_s,
                    submitted: None,
                    on_timeout: *on_timeout,
                    closed: None,
                    rejected: Vec::new(),
                };
                self.step_mut(*at, now).review = Some(review);
            }
            Event::ReviewClosed { at, close, rejected, .. } => {
                if let Some(review) = &mut self.step_mut(*at, now).review {
                    review.closed = Some(close.clone());
                    review.rejected.clone_from(rejected);
                }
            }
            Event::SkillUpdated { at, candidate, report } => {
                let version = SkillVersion { skill: candidate.clone(), step: at.step, accepted: false };
                self.skills.entry(candidate.hash.clone()).or_insert(version);
                let step = self.step_mut(*at, now);
                step.candidate = Some(candidate.clone());
                step.report = Some(report.clone());
            }
            Event::EvaluationStarted { eval, purpose, at, skill_hash, n } => {
                let state = EvalState {
                    purpose: *purpose,
                    at: *at,
                    skill_hash: skill_hash.clone(),
                    n: *n,
                    results: Vec::new(),
                    score: None,
                    curtailed: false,
                    missing: 0,
                };
                self.evals.insert(eval.clone(), state);
                self.eval_order.push(eval.clone());
                if *purpose == EvalPurpose::Candidate {
                    self.step_mut(*at, now).eval = Some(eval.clone());
                }
            }
            Event::EvaluationItemFinished { eval, index, result, .. } => {
                if let Some(rollout) = result.rollout() {
                    self.add_usage("evaluation", rollout.usage);
                }
                if let Some(state) = self.evals.get_mut(eval) {
                    state.results.push((*index, result.clone()));
                }
            }
            Event::EvaluationFinished { eval, score, curtailed, missing } => {
                if let Some(state) = self.evals.get_mut(eval) {
                    state.score = Some(score.clone());
                    state.curtailed = *curtailed;
                    state.missing = *missing;
                    if state.purpose == EvalPurpose::Baseline {
                        self.baseline_score = Some(score.gate);
                        self.current_score = Some(score.gate);
                        self.best_score = Some(score.gate);
                    }
                }
            }
            Event::GateDecided { at, decision } => {
                if decision.verdict.accepted()
                    && let Some(version) = self.skills.get_mut(&decision.candidate_hash)
                {
                    version.accepted = true;
                }
                self.step_mut(*at, now).gate = Some((**decision).clone());
            }
            Event::StepFinished { record, current_hash, best_hash } => {
                self.current_hash.clone_from(current_hash);
                self.best_hash.clone_from(best_hash);
                self.current_score = Some(record.current_score);
                self.best_score = Some(record.best_score);
                self.best_step = record.best_step;
                let step = self.step_mut(record.at, now);
                step.record = Some((**record).clone());
                step.finished_at = Some(now);
            }
            Event::TestFinished { outcome } => self.test = Some(outcome.clone()),
            Event::RunFinished { status, reason, .. } => {
                self.status = RunStatus::Ended { status: *status, reason: reason.clone() };
            }
            Event::HostStarted { host, pid, resumed } => self.host_started(host, *pid, *resumed, now),
            Event::EditDecided { at, edit, decision, by, rev } => {
                self.rev = self.rev.max(*rev);
                if let Some(review) = &mut self.step_mut(*at, now).review
                    && let Some(slot) = review.edits.get_mut(*edit)
                {
                    slot.decision = decision.clone();
                    slot.by = Some(by.clone());
                    slot.rev = *rev;
                }
            }
            Event::ReviewSubmitted { at, by, rev } => {
                self.rev = self.rev.max(*rev);
                if let Some(review) = &mut self.step_mut(*at, now).review {
                    review.submitted = Some(by.clone());
                }
            }
            Event::Paused { by } => self.status = RunStatus::Paused { by: by.clone() },
            Event::Resumed { .. } => {
                self.status = RunStatus::Running;
                self.restart_review_clock(now);
            }
            Event::CancelRequested { by } => self.status = RunStatus::Cancelling { by: by.clone() },
            Event::ConfigChanged { keys } => {
                self.log(now, LogLevel::Warn, None, format!("config changed: {}", keys.join(", ")));
            }
            Event::Alert { level, code, message } => {
                self.log(now, *level, Some(code.clone()), message.clone());
            }
            Event::Log { level, message } => self.log(now, *level, None, message.clone()),
            Event::Unknown(map) => {
                let kind = map.keys().next().map_or("?", String::as_str);
                self.log(now, LogLevel::Debug, None, format!("event of an unknown kind: {kind}"));
            }
        }
    }

    /// A new host lets a stopped run go on, and gives an open review its full time again.
    fn host_started(&mut self, host: &str, pid: u32, resumed: bool, now: u64) {
        self.host = Some((host.to_owned(), pid));
        if self.info.is_some() {
            self.status = RunStatus::Running;
        }
        self.restart_review_clock(now);
        if resumed {
            self.log(now, LogLevel::Info, None, format!("resumed by process {pid} on {host}"));
        }
    }

    /// Time in which nobody could decide does not count.
    fn restart_review_clock(&mut self, now: u64) {
        if let Some(review) = self.steps.last_mut().and_then(|step| step.review.as_mut())
            && review.closed.is_none()
        {
            review.deadline = review.timeout_s.map(|seconds| now + seconds * 1000);
        }
    }
}

impl ReviewEdit {
    fn undecided(edit: &Edit) -> Self {
        Self { edit: edit.clone(), decision: Decision::Undecided, by: None, rev: 0 }
    }
}
