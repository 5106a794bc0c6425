//! One call of a language model: request, reply, usage.

use serde::{Deserialize, Serialize};

use super::{Brief, EffectKey, fingerprint};

/// Whom a call serves; routing, keys, limits and usage are per role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Target,
    Optimizer,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Target => "target",
            Role::Optimizer => "optimizer",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    System,
    User,
    Assistant,
}

impl Speaker {
    pub fn name(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Speaker,
    pub content: String,
}

impl Message {
    pub fn new(role: Speaker, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

/// Chat messages, or raw text to be continued (document style, no chat template).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    Chat(Vec<Message>),
    Text(String),
}

/// Sampling parameters. `None` means: not sent, the server decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Upper bound of generated tokens.
    pub max_tokens: u32,
    /// 0 is greedy.
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// Per-call seed, derived from the run's seed and the call's path.
    pub seed: Option<u64>,
    /// Generation ends before any of these texts.
    pub stop: Vec<String>,
}

/// One model call. `brief` is the same task in structured form for the built-in edit search; it is never sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// Where in the run this call happens; makes repeats of one prompt distinct draws.
    pub path: String,
    pub role: Role,
    /// Stage for usage accounting: `rollout`, `analyst`, `merge`, `ranking`.
    pub stage: String,
    pub prompt: Prompt,
    pub sampling: Sampling,
    pub brief: Option<Box<Brief>>,
}

impl ChatRequest {
    /// Path plus fingerprint of everything the wire would carry to `model`.
    pub fn key(&self, model: &str) -> EffectKey {
        let prompt = serde_json::to_string(&self.prompt).unwrap_or_default();
        let sampling = serde_json::to_string(&self.sampling).unwrap_or_default();
        let brief = serde_json::to_string(&self.brief).unwrap_or_default();
        let fingerprint =
            fingerprint([self.path.as_str(), model, self.role.name(), &prompt, &sampling, &brief]);
        EffectKey { path: self.path.clone(), fingerprint }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    Other,
}

/// Tokens of one or more calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    #[serde(default)]
    pub cached_tokens: u64,
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.prompt_tokens += other.prompt_tokens;
        self.completion_tokens += other.completion_tokens;
        self.cached_tokens += other.cached_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
    }
}

/// A complete, non-empty reply (an empty one is a retryable fault, never a reply).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// Untrusted text, exactly as received (invalid UTF-8 replaced).
    pub text: String,
    pub finish: FinishReason,
    pub usage: Usage,
    /// Wall time of the successful attempt, milliseconds.
    pub ms: u64,
    /// Request id header of the server, when it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
