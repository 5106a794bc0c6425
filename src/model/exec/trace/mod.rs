//! What a coding agent did, whichever program it was: one trace, read from the JSON lines each program writes.
//! Must not start anything and must not trust a line: what it does not know is counted, never fatal.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod draft;
mod failure;
mod gemini;
mod opencode;
mod pi;

use std::collections::BTreeMap;

use serde::Serialize;

use super::Cli;
use crate::domain::{Turn, Usage};

pub use draft::{Draft, Ending, News};
pub use failure::FailureClass;

/// What a coding agent did in one job. All texts are untrusted and not redacted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// Messages and tool calls in order; long texts are shortened.
    pub turns: Vec<Turn>,
    /// The last thing the agent said, complete.
    pub final_text: String,
    pub usage: Usage,
    pub tool_calls: usize,
    /// Kinds of events and lines that were passed over, with how often.
    pub unknown_events: BTreeMap<String, u64>,
    pub end: End,
}

impl Trace {
    /// Whether anything the agent did worked: the workspace was in its reach.
    fn reached_workspace(&self) -> bool {
        self.turns.iter().any(|turn| matches!(turn, Turn::ToolCall { exit: Some(0), .. }))
    }

    /// The trace of a job that cannot be done without a look at the workspace. Codex answers even when its sandbox did
    /// not start, with confidence and exit code 0.
    pub fn of_workspace_job(mut self, cli: Cli) -> Self {
        if cli == Cli::Codex && self.end == End::Completed && !self.reached_workspace() {
            let message = "it answered without one command that worked, not even to read its task: its sandbox may not have started".to_owned();
            self.end = End::Failed { class: FailureClass::Sandbox, message };
        }
        self
    }
}

/// How a job ended. Only [`End::Completed`] is an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Completed,
    /// It ended well and said nothing.
    Empty,
    /// Infrastructure: never a score.
    Failed {
        class: FailureClass,
        message: String,
    },
    /// One of the caller's limits was reached and the program was ended.
    Cut {
        cap: Cap,
    },
}

/// What bounds a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    WallClock,
    ToolCalls,
    OutputBytes,
}

impl Cap {
    pub fn name(self) -> &'static str {
        match self {
            Self::WallClock => "wall clock",
            Self::ToolCalls => "tool calls",
            Self::OutputBytes => "bytes of output",
        }
    }
}

/// Takes one line of a program's output into the draft.
pub fn read_line(cli: Cli, line: &str, draft: &mut Draft) {
    if line.trim().is_empty() {
        return;
    }
    let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else {
        draft.unknown("(not JSON)");
        return;
    };
    match cli {
        Cli::Codex => codex::read(&event, draft),
        Cli::Claude => claude::read(&event, draft),
        Cli::Copilot => copilot::read(&event, draft),
        Cli::Cursor => cursor::read(&event, draft),
        Cli::Opencode => opencode::read(&event, draft),
        Cli::Pi => pi::read(&event, draft),
        Cli::Gemini => gemini::read(&event, draft),
    }
}

/// Short access to parts of an untrusted event.
mod part {
    use serde_json::Value;

    pub fn text<'a>(event: &'a Value, pointer: &str) -> &'a str {
        event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn number(event: &Value, pointer: &str) -> u64 {
        event.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
    }

    pub fn status(event: &Value, pointer: &str) -> Option<u16> {
        event.pointer(pointer).and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok())
    }

    pub fn exit(event: &Value, pointer: &str) -> Option<i32> {
        event.pointer(pointer).and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok())
    }

    pub fn flag(event: &Value, pointer: &str) -> bool {
        event.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub fn list<'a>(event: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
        event.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
    }

    /// Texts of a list of content blocks, or of a plain text.
    pub fn texts(content: &Value) -> String {
        match content {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                let texts: Vec<&str> =
                    blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
                texts.join("\n")
            }
            _ => String::new(),
        }
    }

    /// A tool call as one line of text: the command of a shell, else the name with its arguments.
    pub fn call(name: &str, arguments: &Value) -> String {
        match arguments.get("command").or_else(|| arguments.get("cmd")) {
            Some(Value::String(command)) => command.clone(),
            _ if arguments.is_null() => name.to_owned(),
            _ => format!("{name} {arguments}"),
        }
    }
}
