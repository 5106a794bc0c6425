//! What the mock server answers, as scripts write it: rules that match a conversation, chaos, and the manners of the
//! server. Must not know about sockets.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::answer::{Answer, FixedUsage};
use super::dialect::Dialect;
use super::fault::Fault;
use super::playbook::Playbook;
use super::reading;

/// Which of a rule's answers a request gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// By the hash of the prompt: the same prompt always gets the same answer, in whatever order requests come.
    #[default]
    Prompt,
    /// In order of arrival, starting over at the end.
    RoundRobin,
    /// In order of arrival, then the last one for ever.
    Sequence,
    /// By how many replies the conversation holds already, then the last one for ever: the turns of an agent, however
    /// many agents ask at a time.
    Turn,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What tests call it; requests it answered are remembered with it.
    #[serde(default)]
    pub name: String,
    /// Regular expression on the last message, or on the text prompt; absent: any.
    #[serde(default)]
    pub matches: Option<String>,
    /// Regular expression on the first system message (what tells the stages apart); absent: any.
    #[serde(default)]
    pub system: Option<String>,
    /// Regular expression on what the user says before the first reply, which is still there in later rounds; absent: any.
    #[serde(default)]
    pub asked: Option<String>,
    /// Only conversations that hold a reply already (true: repair rounds) or do not; absent: any.
    #[serde(default)]
    pub after_reply: Option<bool>,
    /// Only conversations that hold the result of a tool, or do not; absent: any.
    #[serde(default)]
    pub after_tool: Option<bool>,
    /// Regular expression on the last result of a tool; absent: any.
    #[serde(default)]
    pub tool_result: Option<String>,
    /// Only requests in this dialect; absent: any.
    #[serde(default)]
    pub dialect: Option<Dialect>,
    /// Regular expression on the name of the model; absent: any.
    #[serde(default)]
    pub model: Option<String>,
    pub answers: Vec<Answer>,
    #[serde(default)]
    pub pick: Pick,
}

/// Faults thrown at random: which requests they hit depends on the seed, the body and how often that body came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chaos {
    pub seed: u64,
    /// Share of requests that a fault hits, 0 to 1.
    pub rate: f64,
    pub faults: Vec<Fault>,
}

/// The key that a request must show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredKey {
    pub value: String,
    /// The header that holds it, with or without `Bearer `; absent: where the dialect and the vendor have it.
    #[serde(default)]
    pub header: Option<String>,
    /// What a request without it gets: 401 or 403.
    #[serde(default = "unauthorized")]
    pub status: u16,
}

fn unauthorized() -> u16 {
    401
}

/// What is left of the rate limit, told in the headers of every answer; absent ones are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateHeaders {
    pub limit_requests: Option<i64>,
    pub remaining_requests: Option<i64>,
    pub limit_tokens: Option<i64>,
    pub remaining_tokens: Option<i64>,
    /// When both are full again.
    pub reset_ms: Option<u64>,
}

/// A whole script. The first rule that matches answers; a request that none matches gets status 404.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub latency_ms: u64,
    /// Characters per stream chunk; 0: 8.
    pub chunk: usize,
    /// Pause before every stream chunk, to watch text arrive.
    pub chunk_delay_ms: u64,
    /// Leave usage out of answers.
    pub no_usage: bool,
    /// Absent: a quarter of the characters.
    pub usage: Option<FixedUsage>,
    /// Names of models that the server lists; none: `mock`.
    pub models: Vec<String>,
    pub require_key: Option<RequiredKey>,
    /// Fields of a request that are refused with status 400; `a.b` is field `b` in `a`.
    pub refuse_params: Vec<String>,
    /// Refuse tool calls of the model that come back without the reasoning that led to them.
    pub require_reasoning: bool,
    pub rate_headers: Option<RateHeaders>,
    pub chaos: Option<Chaos>,
    pub rules: Vec<Rule>,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("{file}: {why}")]
    Unreadable { file: String, why: String },
    #[error("{why}")]
    BadKey { why: String },
    #[error("rule {rule}{}: {why}", in_brackets(name))]
    BadRule { rule: usize, name: String, why: String },
}

fn in_brackets(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

impl Script {
    /// Every request gets these answers, one after the other, the last one for ever.
    pub fn sequence(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = answers.into_iter().collect();
        Self { rules: vec![Rule { answers, pick: Pick::Sequence, ..Rule::default() }], ..Self::default() }
    }

    /// Reads a script: JSON if the name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read or is no script; the text names the file and the line, or the rule and the key.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |why: String| ScriptError::Unreadable { file: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let value: serde_json::Value = if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?
        } else {
            toml::from_str(&text).map_err(|error| unreadable(error.to_string()))?
        };
        let script = reading::script(value).map_err(|error| unreadable(error.to_string()))?;
        Playbook::new(script.clone()).map_err(|error| unreadable(error.to_string()))?;
        Ok(script)
    }
}
