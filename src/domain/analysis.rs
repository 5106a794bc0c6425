//! What the optimiser is shown: training trajectories, the skill, the step buffer.

use serde::{Deserialize, Serialize};

use super::{Item, Patch, Rollout, SourceType, Usage};

/// A *training* rollout as an analyst sees it. Built only from training items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    pub item: String,
    pub task_type: String,
    pub task: String,
    pub gold: String,
    pub system_prompt: String,
    pub user_prompt: String,
    pub reply: String,
    pub answer: String,
    pub hard: f64,
    pub soft: f64,
    pub reason: String,
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
    pub failed_attempts: Vec<FailedAttempt>,
}

/// The structured twin of an optimiser prompt, one variant per stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brief {
    Analyze {
        source: SourceType,
        skill: String,
        /// At most this many edits are wanted.
        budget: usize,
        trajectories: Vec<Trajectory>,
        memory: Vec<StepMemory>,
    },
    Merge {
        /// `None` for the final merge of the failure and success patches.
        source: Option<SourceType>,
        level: u32,
        skill: String,
        patches: Vec<Patch>,
    },
    Rank {
        skill: String,
        patch: Patch,
        budget: usize,
    },
}

/// Usage of one stage, as `history.json` writes it.
pub type TokenUsage = std::collections::BTreeMap<String, Usage>;
