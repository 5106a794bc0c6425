//! One scripted turn of the model and the failures a server tells of, in no dialect. Must not know how either looks on the wire.

use std::time::Duration;

use serde_json::Value;

use super::answer::FixedUsage;

/// What the model says in one reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) thinking: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Finish,
    /// Absent: what the script says for all answers, else counted.
    pub(super) usage: Option<FixedUsage>,
    /// Log-probability of every token, where a request asks for it.
    pub(super) logprob: f64,
}

/// One tool call of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// Without a dialect's prefix.
    pub(super) id: String,
    pub(super) name: String,
    /// A text stands as it is (arguments that are not JSON), all else as JSON.
    pub(super) arguments: Value,
}

/// Why a turn ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
    /// A word that goes out as it is.
    Other(String),
}

impl Turn {
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        Self {
            thinking: String::new(),
            text: text.into(),
            calls: Vec::new(),
            finish: Finish::Stop,
            usage: None,
            logprob: DEFAULT_LOGPROB,
        }
    }

    /// Bytes of all that is said.
    pub(super) fn len(&self) -> usize {
        let calls: usize = self.calls.iter().map(|call| call.name.len() + call.arguments_text().len()).sum();
        self.thinking.len() + self.text.len() + calls
    }
}

/// Log-probability of a token where the script gives none.
pub(super) const DEFAULT_LOGPROB: f64 = -0.25;

impl Call {
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl Finish {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// An error that the server tells instead of a reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) cause: Cause,
    pub(super) message: String,
}

/// What a refusal is about; each dialect has its own words for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    /// Nothing beyond the status, or a code from the script.
    Status { code: Option<Value> },
    /// Too many requests; come back after this time.
    RateLimit { wait: Duration },
    /// Nothing left to spend: asking again is no use.
    SpendLimit,
    /// What was asked, or would be answered, is not allowed.
    ContentFilter,
    /// More was asked than the model can hold.
    ContextLength,
    /// A field that this server does not know.
    UnknownParameter { name: String },
    /// No key, or a wrong one.
    Key,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, cause: Cause::Status { code: None }, message: message.into() }
    }

    /// The code that the script gives, if it is one.
    pub(super) fn scripted_code(&self) -> Option<&Value> {
        match &self.cause {
            Cause::Status { code } => code.as_ref(),
            Cause::RateLimit { .. }
            | Cause::SpendLimit
            | Cause::ContentFilter
            | Cause::ContextLength
            | Cause::UnknownParameter { .. }
            | Cause::Key => None,
        }
    }
}
