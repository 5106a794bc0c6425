//! What the optimiser is shown: training trajectories, the skill, the step buffer.

use serde::{Deserialize, Serialize};

use super::{ComparisonPair, Item, Patch, Rollout, SharedText, SourceType, Turn, UpdateMode, Usage};

/// A *training* rollout as an analyst sees it. Built only from training items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    pub item: String,
    pub task_type: String,
    pub task: String,
    pub gold: String,
    pub system_prompt: SharedText,
    pub user_prompt: String,
    pub reply: String,
    pub answer: String,
    pub hard: f64,
    pub soft: f64,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// The environment's reference material for this item; only deep reflection attaches it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

impl Trajectory {
    /// `item` proves that the rollout's content is training data: held-out items are `HeldOut<Item>`.
    pub fn of_training(item: &Item, rollout: &Rollout) -> Self {
        Self {
            item: item.id.clone(),
            task_type: rollout.task_type.clone(),
            task: rollout.task.clone(),
            gold: rollout.gold.clone(),
            system_prompt: rollout.system_prompt.clone(),
            user_prompt: rollout.user_prompt.clone(),
            reply: rollout.reply.clone(),
            answer: rollout.answer.clone(),
            hard: rollout.score.hard,
            soft: rollout.score.soft,
            reason: rollout.score.reason.clone(),
            turns: rollout.turns.clone(),
            reference: String::new(),
        }
    }
}

/// A kind of failure that an analyst saw in its minibatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureNote {
    pub failure_type: String,
    /// As the analyst counted; `None` when it gave no whole number.
    pub count: Option<usize>,
    pub description: String,
}

/// One edit that did not survive, with the reason: by the gate or by a reviewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    pub summary: String,
    /// `gate` or `rejected by reviewer because …`.
    pub why: String,
}

/// What a reviewer said about an edit, kept or not, or about a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewerNote {
    /// The edit in one line; "" for the step.
    pub about: String,
    pub text: String,
}

/// What earlier steps of this epoch tell the optimiser (the step buffer holds one per step).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepMemory {
    pub step: u32,
    pub action: String,
    pub n_total: usize,
    pub n_fail: usize,
    /// (pattern text, count, item ids)
    pub failure_patterns: Vec<(String, usize, Vec<String>)>,
    /// Set on a gate rejection: (current score, candidate score).
    pub scores: Option<(f64, f64)>,
    /// The candidate's score is the best it could still have come to: its evaluation was stopped early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    pub failed_attempts: Vec<FailedAttempt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewer_notes: Vec<ReviewerNote>,
}

/// The structured twin of an optimiser prompt, one variant per stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brief {
    Analyze {
        #[serde(default)]
        mode: UpdateMode,
        source: SourceType,
        skill: String,
        /// At most this many proposals are wanted; a whole rewrite has no budget.
        budget: usize,
        trajectories: Vec<Trajectory>,
        memory: Vec<StepMemory>,
        /// The optimiser's memory of the previous epoch; "" without one.
        #[serde(default)]
        meta_skill: String,
        /// Ask for notes on lapses: the skill's rule exists and was not followed.
        #[serde(default)]
        appendix: bool,
    },
    Merge {
        #[serde(default)]
        mode: UpdateMode,
        /// `None` for the final merge of the failure and success patches.
        source: Option<SourceType>,
        level: u32,
        skill: String,
        patches: Vec<Patch>,
        #[serde(default)]
        meta_skill: String,
    },
    Rank {
        #[serde(default)]
        mode: UpdateMode,
        skill: String,
        patch: Patch,
        budget: usize,
        #[serde(default)]
        meta_skill: String,
    },
    LearningRate {
        mode: UpdateMode,
        skill: String,
        patch: Patch,
        rollout_n: usize,
        rollout_hard: f64,
        rollout_soft: f64,
        memory: Vec<StepMemory>,
        meta_skill: String,
    },
    /// One new document from accepted suggestions.
    Rewrite {
        skill: String,
        suggestions: Patch,
        memory: Vec<StepMemory>,
    },
    SlowUpdate {
        prev_skill: String,
        skill: String,
        /// What the region says now; "" without guidance.
        previous_guidance: String,
        pairs: Vec<ComparisonPair>,
    },
    MetaSkill {
        prev_skill: String,
        skill: String,
        /// The memory of the previous epoch; "" without one.
        previous: String,
        pairs: Vec<ComparisonPair>,
    },
    MetaReflect {
        mode: UpdateMode,
        skill: String,
        budget: usize,
        /// The previous epoch's summary; "" in the first.
        previous_summary: String,
        /// Steps of the epoch, their edits and scores, as text.
        history: String,
    },
    /// One diagnostic instruction for a second look at these items.
    Probe {
        skill: String,
        trajectories: Vec<Trajectory>,
        memory: Vec<StepMemory>,
        meta_skill: String,
    },
    Consolidate {
        notes: Vec<String>,
    },
}

/// Usage of one stage, as `history.json` writes it.
pub type TokenUsage = std::collections::BTreeMap<String, Usage>;
