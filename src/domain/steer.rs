//! What people change of a run under way, besides single edits: a verdict of the gate, settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A person's word over the gate's verdict on a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// The candidate becomes the current skill; the best stays what the measurements say.
    Accept,
    /// The candidate becomes the current and the best skill.
    AcceptAsBest,
    /// The skill, and the best, go back to what they were before the step.
    Reject,
}

impl Ruling {
    pub const ALL: [Ruling; 3] = [Ruling::Accept, Ruling::AcceptAsBest, Ruling::Reject];

    pub fn name(self) -> &'static str {
        match self {
            Ruling::Accept => "accept",
            Ruling::AcceptAsBest => "accept as best",
            Ruling::Reject => "reject",
        }
    }
}

/// One setting of a run with another value, as JSON; `null` when not set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retuned {
    pub key: String,
    pub old: Value,
    pub new: Value,
}
