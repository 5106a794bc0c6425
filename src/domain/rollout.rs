//! One attempt of the target at one item, with its score.

use serde::{Deserialize, Serialize};

use super::{FinishReason, Turn, Usage};

/// `hard` is 0/1 correctness (or a fraction of parts), `soft` partial credit, both in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    pub hard: f64,
    pub soft: f64,
    /// Why, short: `kind: detail`; the part before the first `:` groups failures.
    pub reason: String,
}

impl Score {
    /// A failure in the analyst's sense: hard missing, 0 or below 1e-9.
    pub fn failed(&self) -> bool {
        self.hard.is_nan() || self.hard < 1e-9
    }
}

/// A finished rollout. Texts are untrusted and capped (the complete reply stays in `calls/`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    pub item: String,
    pub task_type: String,
    /// The task as the user template rendered it.
    pub task: String,
    /// Reference answer(s), for people and for analysts of training items.
    pub gold: String,
    pub system_prompt: String,
    pub user_prompt: String,
    pub reply: String,
    pub answer: String,
    /// What happened turn by turn, where that is more than one prompt and its reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    pub score: Score,
    pub finish: FinishReason,
    pub usage: Usage,
    /// Wall time of the call in milliseconds.
    pub ms: u64,
}
