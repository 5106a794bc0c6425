//! What the stages between two epochs found: slow update, meta skill, meta-reflect. Training content only.

use serde::{Deserialize, Serialize};

use super::{EditReport, GateDecision, Patch, Phase, Skill, Verdict};

/// How one training item fared under the skill of the previous epoch and under the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairCategory {
    Improved,
    Regressed,
    PersistentFail,
    StableSuccess,
}

impl PairCategory {
    pub const ALL: [Self; 4] = [Self::Improved, Self::Regressed, Self::PersistentFail, Self::StableSuccess];

    pub fn of(prev_passes: bool, curr_passes: bool) -> Self {
        match (prev_passes, curr_passes) {
            (false, true) => Self::Improved,
            (true, false) => Self::Regressed,
            (false, false) => Self::PersistentFail,
            (true, true) => Self::StableSuccess,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::PersistentFail => "persistent_fail",
            Self::StableSuccess => "stable_success",
        }
    }
}

/// Which comparison pairs the slow update and the meta skill look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairPolicy {
    #[default]
    Mixed,
    /// Improved and regressed, topped up to the sample size.
    Changed,
    Unchanged,
}

impl PairPolicy {
    pub fn keeps(self, category: PairCategory) -> bool {
        let changed = matches!(category, PairCategory::Improved | PairCategory::Regressed);
        match self {
            Self::Mixed => true,
            Self::Changed => changed,
            Self::Unchanged => !changed,
        }
    }
}

/// One skill's result on the item of a pair; names are SkillOpt's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairSide {
    /// 1 passed, 0 failed.
    pub hard: u8,
    pub soft: f64,
    pub predicted_answer: String,
    pub fail_reason: String,
}

/// One training item under two skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonPair {
    pub id: String,
    pub task: String,
    pub category: PairCategory,
    pub prev: PairSide,
    pub curr: PairSide,
    /// Conversations as an analyst reads them; left out where pairs are kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prev_trajectory: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub curr_trajectory: String,
}

impl ComparisonPair {
    /// For journal and files, which hold the rollouts elsewhere.
    pub fn without_trajectories(&self) -> Self {
        Self { prev_trajectory: String::new(), curr_trajectory: String::new(), ..self.clone() }
    }
}

/// How a stage between two epochs ended; names are SkillOpt's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageAction {
    /// First epoch: nothing to compare, an empty region was put in.
    InjectPlaceholder,
    SkipFirstEpoch,
    /// The optimizer had nothing to say, or its reply could not be used (the note says why).
    NoContent,
    WriteMetaSkill,
    ForceAccept,
    Accept,
    AcceptNewBest,
    Reject,
    Undecided,
    SkipNoEdits,
    SkipNoSuggestions,
    SkipNoRewrite,
    /// The candidate equals the current skill: nothing was measured.
    SkipNoChange,
}

impl StageAction {
    pub fn name(self) -> &'static str {
        match self {
            Self::InjectPlaceholder => "inject_placeholder",
            Self::SkipFirstEpoch => "skip_first_epoch",
            Self::NoContent => "no_content",
            Self::WriteMetaSkill => "write_meta_skill",
            Self::ForceAccept => "force_accept",
            Self::Accept => "accept",
            Self::AcceptNewBest => "accept_new_best",
            Self::Reject => "reject",
            Self::Undecided => "undecided",
            Self::SkipNoEdits => "skip_no_edits",
            Self::SkipNoSuggestions => "skip_no_suggestions",
            Self::SkipNoRewrite => "skip_no_rewrite",
            Self::SkipNoChange => "skip_no_change",
        }
    }
}

impl StageAction {
    /// Another skill became the current one.
    pub fn changes_skill(self) -> bool {
        match self {
            Self::InjectPlaceholder | Self::ForceAccept | Self::Accept | Self::AcceptNewBest => true,
            Self::SkipFirstEpoch
            | Self::NoContent
            | Self::WriteMetaSkill
            | Self::Reject
            | Self::Undecided
            | Self::SkipNoEdits
            | Self::SkipNoSuggestions
            | Self::SkipNoRewrite
            | Self::SkipNoChange => false,
        }
    }
}

impl From<Verdict> for StageAction {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::AcceptNewBest => Self::AcceptNewBest,
            Verdict::Accept => Self::Accept,
            Verdict::ForceAccept => Self::ForceAccept,
            Verdict::Reject => Self::Reject,
            Verdict::Undecided => Self::Undecided,
            Verdict::SkipNoPatches => Self::SkipNoEdits,
            Verdict::SkipNoRewrite => Self::SkipNoRewrite,
            Verdict::SkipNoChange => Self::SkipNoChange,
        }
    }
}

/// The slow update of one epoch: guidance for the target in a protected region, from a comparison of two epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowUpdate {
    pub action: StageAction,
    pub reasoning: String,
    pub content: String,
    /// Means over the sampled items; `None` without a comparison.
    pub prev_hard: Option<f64>,
    pub curr_hard: Option<f64>,
    /// The pairs the optimizer saw, and all pairs where those were more.
    pub pairs: Vec<ComparisonPair>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub all_pairs: Vec<ComparisonPair>,
    pub candidate: Option<Skill>,
    /// Set when the stage is gated.
    pub decision: Option<GateDecision>,
    pub note: String,
}

/// The optimizer's memory of one epoch for the next. Never changes the skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetaSkill {
    pub action: StageAction,
    pub reasoning: String,
    pub content: String,
    pub note: String,
}

/// One gated revision from the edit and score history of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetaReflect {
    pub action: StageAction,
    pub meta_summary: String,
    pub patch: Patch,
    pub candidate: Option<Skill>,
    pub report: Option<EditReport>,
    pub change_summary: Vec<String>,
    pub decision: Option<GateDecision>,
    pub note: String,
}

/// The stages between two epochs, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StageKind {
    SlowUpdate,
    MetaSkill,
    MetaReflect,
}

impl StageKind {
    pub const ALL: [Self; 3] = [Self::SlowUpdate, Self::MetaSkill, Self::MetaReflect];

    pub fn phase(self) -> Phase {
        match self {
            Self::SlowUpdate => Phase::SlowUpdate,
            Self::MetaSkill => Phase::MetaSkill,
            Self::MetaReflect => Phase::MetaReflect,
        }
    }

    pub fn name(self) -> &'static str {
        self.phase().name()
    }
}

/// A finished stage between two epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochStage {
    SlowUpdate(Box<SlowUpdate>),
    MetaSkill(MetaSkill),
    MetaReflect(Box<MetaReflect>),
}

impl EpochStage {
    pub fn kind(&self) -> StageKind {
        match self {
            Self::SlowUpdate(_) => StageKind::SlowUpdate,
            Self::MetaSkill(_) => StageKind::MetaSkill,
            Self::MetaReflect(_) => StageKind::MetaReflect,
        }
    }

    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    pub fn action(&self) -> StageAction {
        match self {
            Self::SlowUpdate(found) => found.action,
            Self::MetaSkill(found) => found.action,
            Self::MetaReflect(found) => found.action,
        }
    }

    /// The skill it proposed, and the gate's word on it.
    pub fn candidate(&self) -> (Option<&Skill>, Option<&GateDecision>) {
        match self {
            Self::SlowUpdate(found) => (found.candidate.as_ref(), found.decision.as_ref()),
            Self::MetaSkill(_) => (None, None),
            Self::MetaReflect(found) => (found.candidate.as_ref(), found.decision.as_ref()),
        }
    }
}
