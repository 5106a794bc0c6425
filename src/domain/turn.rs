//! One turn of a rollout's conversation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened in one turn. All texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// A tool call and what it gave back; with the exit code where the program that made the call tells it.
    ToolCall {
        cmd: String,
        obs: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<i32>,
    },
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

impl Turn {
    /// A tool call of which no exit code is known.
    pub fn tool(cmd: impl Into<String>, obs: impl Into<String>) -> Self {
        Self::ToolCall { cmd: cmd.into(), obs: obs.into(), exit: None }
    }

    /// A row of SkillOpt's `conversation.json`, its texts after `cut`. Whatever is no known kind of row is a message.
    pub fn of_row(row: &Value, cut: impl Fn(String) -> String) -> Self {
        let text = |key: &str| match row.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => cut(text.clone()),
            Some(other) => cut(other.to_string()),
        };
        let message = |role: &str, content| Self::Message { role: role.to_owned(), content };
        if !row.is_object() {
            return message("agent", cut(row.as_str().map_or_else(|| row.to_string(), str::to_owned)));
        }
        if text("type") == "tool_call" {
            return Self::tool(text("cmd"), text("obs"));
        }
        if row.get("action").is_some() && row.get("env_feedback").is_some() {
            return Self::Step {
                step: row.get("step").and_then(Value::as_u64),
                reasoning: text("reasoning"),
                action: text("action"),
                feedback: text("env_feedback"),
            };
        }
        match text("role").as_str() {
            "system" => Self::Verification { content: text("content") },
            "" => message("agent", text("content")),
            role => message(role, text("content")),
        }
    }
}
