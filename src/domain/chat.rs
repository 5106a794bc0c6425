//! One call of a language model: messages, tools, request, reply. What providers add of their own is kept opaque and
//! goes back to them unchanged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::{Content, Part};
use super::usage::Usage;
use super::{Brief, EffectKey, Turn, fingerprint};

/// Whom a call serves; routing, keys, limits and usage are per role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Target,
    Optimizer,
    /// Scores replies that no rule can score.
    Judge,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Target, Role::Optimizer, Role::Judge];

    pub fn name(self) -> &'static str {
        match self {
            Role::Target => "target",
            Role::Optimizer => "optimizer",
            Role::Judge => "judge",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    System,
    User,
    Assistant,
    /// Gives back what tools said; holds [`Part::ToolResult`]s only.
    Tool,
}

impl Speaker {
    pub fn name(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::Tool => "tool",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Speaker,
    pub content: Content,
}

impl Message {
    pub fn new(role: Speaker, content: impl Into<Content>) -> Self {
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

impl Prompt {
    /// Bytes of all texts, tool calls and results; images are not counted.
    pub fn text_bytes(&self) -> usize {
        match self {
            Prompt::Chat(messages) => messages.iter().map(|message| message.content.text_bytes()).sum(),
            Prompt::Text(text) => text.len(),
        }
    }
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

/// A function the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments object.
    pub parameters: Value,
}

impl Tool {
    pub fn text_bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.parameters.to_string().len()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    Required,
    /// This one.
    Named(String),
}

/// The shape a reply shall have: a JSON object by schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// An object schema with `additionalProperties: false` and every property required, as strict servers want it.
    pub schema: Value,
}

/// How a schema was put to the model, strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    JsonSchema,
    /// Any JSON object, the schema in the prompt.
    JsonObject,
    /// The arguments of one forced tool call.
    ForcedTool,
    /// The schema in the prompt and nothing more.
    Text,
}

/// What a request asks for beyond text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asks {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(skip_serializing_if = "is_default")]
    pub tool_choice: ToolChoice,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// Log-probabilities of the reply's tokens, where the server gives them.
    #[serde(skip_serializing_if = "is_default")]
    pub logprobs: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A task for a coding agent: files it finds in a fresh workspace instead of texts in its prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The skill document; becomes `SKILL.md`.
    pub skill: String,
    /// Further files of the skill's folder, by path inside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skill_files: Vec<(String, Vec<u8>)>,
    /// Files of the task, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<(String, Vec<u8>)>,
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
    pub asks: Asks,
    /// Set for models that work in one ([`crate::domain::Delivery::Files`]); the prompt is then the task alone.
    pub workspace: Option<Box<Workspace>>,
    pub brief: Option<Box<Brief>>,
}

impl ChatRequest {
    /// Path plus fingerprint of everything the wire would carry to `model`.
    pub fn key(&self, model: &str) -> EffectKey {
        let json = |value: Result<String, _>| value.unwrap_or_default();
        let prompt = json(serde_json::to_string(&self.prompt));
        let sampling = json(serde_json::to_string(&self.sampling));
        let brief = json(serde_json::to_string(&self.brief));
        // What is absent adds nothing, so that older recordings still answer.
        let asks = (!is_default(&self.asks)).then(|| json(serde_json::to_string(&self.asks)));
        let workspace = self.workspace.as_ref().map(|files| json(serde_json::to_string(files)));
        let parts = [self.path.as_str(), model, self.role.name(), &prompt, &sampling, &brief];
        let more = [asks.as_deref(), workspace.as_deref()].into_iter().flatten();
        EffectKey { path: self.path.clone(), fingerprint: fingerprint(parts.into_iter().chain(more)) }
    }
}

/// How a model gets the skill document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Inside its prompt.
    Prompt,
    /// As files of a [`Workspace`].
    Files,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    Length,
    /// The model waits for the results of tools.
    ToolCalls,
    ContentFilter,
    Other,
}

/// One token of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f64,
}

/// A complete, non-empty reply (an empty one is a retryable fault, never a reply).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// Untrusted text, exactly as received (invalid UTF-8 replaced); "" if the model only called tools.
    pub text: String,
    /// The whole reply in its order, thinking and tool calls included; empty where it is nothing but `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    pub finish: FinishReason,
    pub usage: Usage,
    /// Wall time of the successful attempt, milliseconds.
    pub ms: u64,
    /// Request id header of the server, when it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<TokenLogprob>,
    /// Set where an output schema was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<Rung>,
    /// What a coding agent did on its way to the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
}

impl ChatReply {
    /// A reply that is nothing but text.
    pub fn of_text(text: impl Into<String>, finish: FinishReason, usage: Usage, ms: u64) -> Self {
        Self {
            text: text.into(),
            parts: Vec::new(),
            finish,
            usage,
            ms,
            request_id: None,
            logprobs: Vec::new(),
            rung: None,
            turns: Vec::new(),
        }
    }

    /// The reply as the next request repeats it.
    pub fn message(&self) -> Message {
        match self.parts.as_slice() {
            [] => Message::new(Speaker::Assistant, self.text.as_str()),
            parts => Message::new(Speaker::Assistant, Content::new(parts.to_vec())),
        }
    }
}
