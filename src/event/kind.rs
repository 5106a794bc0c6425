//! The event enum: externally tagged, past tense, additive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::{EvalPurpose, ItemResult, TestOutcome};
use crate::domain::{
    AppendixFlush, Author, Decision, Edit, EditReport, EffectKey, EpochStage, FailureNote, GateDecision,
    GateScore, MachineSample, Origin, Patch, Phase, Retuned, ReviewClose, ReviewComment, ReviewMode, Rewrite,
    Role, Ruling, Skill, SkillFolder, SourceType, StepRecord, StepRef, TimeoutPolicy, Usage,
};

/// What is known before the first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    pub epochs: u32,
    pub steps_per_epoch: u32,
    pub total_steps: u32,
    pub batch_size: usize,
    pub train: usize,
    pub val: usize,
    pub test: usize,
    pub target: String,
    pub optimizer: String,
    /// "": no answer is judged by a model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub judge: String,
    pub env: String,
    pub review: ReviewMode,
}

/// Code of the alert that a host is down and the run paused.
pub const BREAKER_OPEN: &str = "breaker_open";
/// Who pauses the run then.
pub const BREAKER: &str = "circuit breaker";

/// How the optimizer ranked the merged proposals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranking {
    pub reasoning: String,
    pub selected_indices: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    Completed,
    Cancelled,
    Failed,
    BudgetExhausted,
    /// The journal was made from another program's output; how that ended is not told.
    Imported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// Everything that happens to a run. Two kinds of event share the journal: *engine* events, which the
/// deterministic control flow produces in the same order on every resume, and *outside* events
/// ([`Event::is_outside`]): what people and the machine did, at any time.
///
/// Read as part of a [`super::Record`], which tells known kinds from unknown ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Event {
    // --- engine events, in the order of the control flow ---
    RunStarted {
        v: u32,
        run: String,
        seed: u64,
        /// The resolved configuration; holds no secret.
        config: serde_json::Value,
        config_hash: String,
        skill: Skill,
        plan: RunPlan,
        /// Set when the run did not begin with that skill alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// Set when the skill was read from a folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<SkillFolder>,
        /// Where each setting of the configuration came from, by key; empty in older journals.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        origins: BTreeMap<String, String>,
    },
    PhaseStarted {
        at: StepRef,
        phase: Phase,
    },
    RolloutFinished {
        key: EffectKey,
        at: StepRef,
        index: usize,
        result: ItemResult,
    },
    AnalysisFinished {
        key: EffectKey,
        at: StepRef,
        source: SourceType,
        minibatch: usize,
        items: Vec<String>,
        /// `None`: the reply could not be used; `note` says why.
        patch: Option<Patch>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failures: Vec<FailureNote>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        success_patterns: Vec<String>,
        /// Notes on execution lapses (skill-aware reflection).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        appendix_notes: Vec<String>,
        /// The analyst read probed items.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deep: bool,
        note: String,
        usage: Usage,
    },
    /// An optimizer call of its own kind: `lr_autonomous`, `rewrite`, `slow_update`, `meta_skill`, `meta_reflect`,
    /// `deep_probe`, `appendix_consolidate`.
    OptimizerAnswered {
        path: String,
        at: StepRef,
        stage: String,
        /// What the reply came to, in the shape of the stage; `None`: it could not be used, `note` says why.
        answer: Option<serde_json::Value>,
        note: String,
        usage: Usage,
    },
    MergeFinished {
        at: StepRef,
        patch: Patch,
        model_merges: usize,
        fallbacks: usize,
        usage: Usage,
    },
    EditsSelected {
        at: StepRef,
        /// `None`: no selection takes place (whole rewrites).
        budget: Option<usize>,
        patch: Patch,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ranking: Option<Ranking>,
        note: String,
        usage: Usage,
    },
    ReviewOpened {
        at: StepRef,
        mode: ReviewMode,
        edits: Vec<Edit>,
        current_hash: String,
        /// The current skill with all edits applied, for the diff.
        preview: String,
        /// Seconds until `on_timeout` applies; `None` waits for ever.
        timeout_s: Option<u64>,
        /// What the timeout does to undecided edits.
        #[serde(default)]
        on_timeout: TimeoutPolicy,
    },
    ReviewClosed {
        at: StepRef,
        close: ReviewClose,
        kept: Vec<Edit>,
        rejected: Vec<RejectedEdit>,
        /// What was said in the review, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        comments: Vec<ReviewComment>,
    },
    SkillUpdated {
        at: StepRef,
        candidate: Skill,
        report: EditReport,
        /// Set in the rewrite modes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rewrite: Option<Rewrite>,
        /// The rewrite had lost or changed a protected region, which was put back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        regions_restored: bool,
    },
    /// Notes on execution lapses changed the current skill, outside the gate. Before the first step: room for them.
    AppendixUpdated {
        at: StepRef,
        flush: AppendixFlush,
        skill: Skill,
    },
    EvaluationStarted {
        eval: String,
        purpose: EvalPurpose,
        at: StepRef,
        skill_hash: String,
        n: usize,
    },
    EvaluationItemFinished {
        key: EffectKey,
        eval: String,
        index: usize,
        result: ItemResult,
    },
    EvaluationFinished {
        eval: String,
        score: GateScore,
        curtailed: bool,
        missing: usize,
    },
    GateDecided {
        at: StepRef,
        decision: Box<GateDecision>,
    },
    StepFinished {
        record: Box<StepRecord>,
        current_hash: String,
        best_hash: String,
    },
    /// A stage between two epochs. `current` is the current skill after it.
    EpochStageFinished {
        at: StepRef,
        stage: EpochStage,
        current: Skill,
        best_hash: String,
        /// The current skill has no score of its own: it was changed outside the gate.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stale: bool,
        usage: Usage,
    },
    /// What a person's override came to. `None` as score: it has yet to be measured.
    OverrideApplied {
        at: StepRef,
        ruling: Ruling,
        by: Author,
        reason: String,
        current_hash: String,
        best_hash: String,
        current_score: Option<f64>,
        best_score: f64,
        best_step: u32,
        /// What made the two skills, as the records name it: `step_0004`.
        #[serde(default)]
        current_origin: String,
        #[serde(default)]
        best_origin: String,
        /// The current skill where it is a text of its own: with the notes of the step in its appendix.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<Skill>,
    },
    /// A person's override came to nothing: the skill it was about is no longer the current one.
    OverrideLapsed {
        at: StepRef,
        ruling: Ruling,
        by: Author,
        why: String,
    },
    /// Settings that results depend on, from this boundary on.
    RetuneApplied {
        at: StepRef,
        changes: Vec<Retuned>,
    },
    /// The last skill was measured again before the test; `promoted`: it became the best.
    FinalSelectionFinished {
        score: GateScore,
        promoted: bool,
    },
    TestFinished {
        outcome: TestOutcome,
    },
    RunFinished {
        status: EndStatus,
        reason: String,
        best_hash: String,
        best_step: u32,
        /// `None`: nothing was measured.
        best_score: Option<f64>,
        /// The selection score the run began with.
        baseline_score: Option<f64>,
    },

    // --- outside events ---
    HostStarted {
        host: String,
        pid: u32,
        resumed: bool,
    },
    EditDecided {
        at: StepRef,
        edit: usize,
        decision: Decision,
        by: Author,
        rev: u64,
    },
    ReviewSubmitted {
        at: StepRef,
        by: Author,
        rev: u64,
    },
    Paused {
        by: Author,
    },
    Resumed {
        by: Author,
    },
    CancelRequested {
        by: Author,
    },
    /// A resume brought other settings than the run began with; `changes` are those that are new.
    ConfigChanged {
        keys: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<Retuned>,
    },
    /// Words of a reviewer for the optimizer, on one edit or on the step as a whole.
    ReviewCommented {
        at: StepRef,
        edit: Option<usize>,
        text: String,
        by: Author,
        rev: u64,
    },
    /// A person overrules the gate; [`Event::OverrideApplied`] follows at the next boundary.
    OverrideRequested {
        at: StepRef,
        ruling: Ruling,
        reason: String,
        by: Author,
        rev: u64,
    },
    /// Settings are to change. Those that no result depends on change at once, the others with
    /// [`Event::RetuneApplied`] at the next boundary.
    RetuneRequested {
        changes: Vec<Retuned>,
        reason: String,
        by: Author,
        rev: u64,
    },
    /// The call under way at `path` is given up: its item counts as missing.
    RolloutCancelled {
        path: String,
        by: Author,
        rev: u64,
    },
    /// The call under way at `path` begins anew.
    RolloutRequeued {
        path: String,
        by: Author,
        rev: u64,
    },
    /// An attempt at a call was paid for and gave no reply; what is not known of its usage is the most it can have been.
    AttemptsSpent {
        role: Role,
        stage: String,
        usage: Usage,
    },
    /// What the run took of its machine, sampled at leisure.
    MachineSampled {
        sample: MachineSample,
        tokens_per_s: f64,
        in_flight: usize,
    },
    /// Numbers by name, for curves; `step` on the x axis of the program that made them.
    Metric {
        step: Option<u64>,
        values: BTreeMap<String, f64>,
    },
    Alert {
        level: LogLevel,
        code: String,
        message: String,
    },
    Log {
        level: LogLevel,
        message: String,
    },
    /// A kind this version does not know (kept, shown raw).
    #[serde(skip)]
    Unknown(serde_json::Map<String, serde_json::Value>),
}

/// Not derived for `Unknown`: an untagged variant would make reading any event go through a generic value first.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Event::Unknown(map) => map.serialize(serializer),
            known => Event::serialize(known, serializer),
        }
    }
}

/// An edit a reviewer struck out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedEdit {
    pub edit: Edit,
    pub reason: String,
    pub by: Option<Author>,
}

impl Event {
    /// Not produced by the engine's control flow, so a resume passes over it. An end that is not a completion
    /// (cancelled, failed, out of budget) is outside too: a resumed run goes on where it stopped.
    pub fn is_outside(&self) -> bool {
        if let Event::RunFinished { status, .. } = self {
            return *status != EndStatus::Completed;
        }
        matches!(
            self,
            Event::HostStarted { .. }
                | Event::EditDecided { .. }
                | Event::ReviewSubmitted { .. }
                | Event::Paused { .. }
                | Event::Resumed { .. }
                | Event::CancelRequested { .. }
                | Event::ConfigChanged { .. }
                | Event::ReviewCommented { .. }
                | Event::OverrideRequested { .. }
                | Event::RetuneRequested { .. }
                | Event::RolloutCancelled { .. }
                | Event::RolloutRequeued { .. }
                | Event::AttemptsSpent { .. }
                | Event::MachineSampled { .. }
                | Event::Metric { .. }
                | Event::Alert { .. }
                | Event::Log { .. }
                | Event::Unknown(_)
        )
    }

    /// Something happened: not a sample, an alert or a log line.
    pub fn is_progress(&self) -> bool {
        !matches!(
            self,
            Event::AttemptsSpent { .. }
                | Event::MachineSampled { .. }
                | Event::Metric { .. }
                | Event::Alert { .. }
                | Event::Log { .. }
        )
    }

    /// The tag of this event in the journal.
    pub fn kind(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The memoised effect this event is the result of.
    pub fn effect(&self) -> Option<&EffectKey> {
        match self {
            Event::RolloutFinished { key, .. }
            | Event::AnalysisFinished { key, .. }
            | Event::EvaluationItemFinished { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Must be on disk before the run goes on.
    pub fn is_milestone(&self) -> bool {
        !matches!(
            self,
            Event::PhaseStarted { .. }
                | Event::Log { .. }
                | Event::EvaluationStarted { .. }
                | Event::AttemptsSpent { .. }
                | Event::MachineSampled { .. }
                | Event::Metric { .. }
        )
    }
}
