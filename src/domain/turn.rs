//! One turn of a rollout's conversation.

use serde::{Deserialize, Serialize};

/// What happened in one turn. All texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// A tool call and what it gave back.
    ToolCall { cmd: String, obs: String },
    /// A step of an episodic environment.
    Step {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reasoning: String,
        action: String,
        feedback: String,
    },
    /// The scorer's word on the outcome; holds the reference answer.
    Verification { content: String },
    /// A message; the role of a message without one is `agent`.
    Message { role: String, content: String },
}
