//! What can go wrong with an answer, as scripts write it. Must not know how it looks on the wire.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What goes wrong instead of an answer, or with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error status with an error body.
    Status {
        status: u16,
        /// The error's code in the body.
        #[serde(default)]
        code: Option<String>,
        #[serde(default)]
        message: Option<String>,
        /// Further header lines, such as `retry-after`.
        #[serde(default)]
        headers: HashMap<String, String>,
    },
    /// 429, with the time to wait in one of the forms that servers use.
    RateLimit {
        wait_ms: u64,
        #[serde(default)]
        form: WaitForm,
    },
    /// 429 (402 where the vendor does so): the credit is used up, and asking again is no use.
    SpendLimit,
    /// The prompt is refused by a content filter.
    ContentFilter,
    /// More was asked than the model can hold.
    ContextLength,
    /// Nothing is ever sent.
    Hang,
    /// The answer starts, then silence.
    Stall,
    /// The connection closes in the middle of the answer.
    Drop,
    /// 200 with no text.
    Empty,
    /// Data that is not JSON.
    Malformed,
    /// An error object inside a 200.
    ErrorInBody { code: Value },
    /// An error inside a 200 after the reply began; without a stream the same as `error_in_body`.
    ErrorInStream { code: Value },
    /// Bytes that are not UTF-8, inside a well-formed answer.
    InvalidUtf8,
    /// A complete stream without the event that ends it.
    NoDone,
    /// A stream that ends cleanly in the middle of the reply (a proxy that lost its server).
    Cut,
    /// An answer of this many bytes, for limits.
    Huge { bytes: usize },
    /// A page of HTML where an answer should be.
    Html {
        #[serde(default = "ok")]
        status: u16,
    },
    /// The answer comes whole, but this slowly. Chaos slows the answer of the rule.
    Drip(Drip),
    /// The answer comes whole, after signs of life. Chaos delays the answer of the rule.
    Comments(Comments),
}

/// How a 429 says when to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitForm {
    /// `retry-after: 2`, rounded up.
    #[default]
    Seconds,
    /// `retry-after: 1.5`.
    Fraction,
    /// `retry-after: Wed, 21 Oct 2026 07:28:00 GMT`, rounded up.
    Date,
    /// `retry-after-ms: 1500`.
    Milliseconds,
    /// No header (Gemini tells it in the body).
    None,
}

/// A body that comes in small pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drip {
    pub bytes: usize,
    pub every_ms: u64,
}

/// Comments of a stream, or blank lines before a JSON body, while the model is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comments {
    pub for_ms: u64,
    #[serde(default = "often")]
    pub every_ms: u64,
}

/// How fast an answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) drip: Option<Drip>,
    pub(super) comments: Option<Comments>,
}

impl Fault {
    /// The status of an answer with this fault; 200 where none is ever told.
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Status { status, .. } | Self::Html { status } => *status,
            Self::RateLimit { .. } | Self::SpendLimit => 429,
            Self::ContentFilter | Self::ContextLength => 400,
            Self::Hang
            | Self::Stall
            | Self::Drop
            | Self::Empty
            | Self::Malformed
            | Self::ErrorInBody { .. }
            | Self::ErrorInStream { .. }
            | Self::InvalidUtf8
            | Self::NoDone
            | Self::Cut
            | Self::Huge { .. }
            | Self::Drip(_)
            | Self::Comments(_) => 200,
        }
    }
}

fn ok() -> u16 {
    200
}

fn often() -> u64 {
    10
}
