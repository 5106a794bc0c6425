//! Answers as scripts write them. Must not know rules or dialects.

use regex::Captures;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::fault::{Comments, Drip, Fault, Pace};
use super::reading::{table, variant};
use super::turn::{Call, DEFAULT_LOGPROB, Finish, Turn};

/// One scripted answer: text, or a table with a fault or more detail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
// Scripts hold few answers, and a box would only stand in the way of those who write them in code.
#[allow(clippy::large_enum_variant)]
pub enum Answer {
    Text(String),
    Fault(Fault),
    Detailed(Detailed),
    Json(Json),
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Detailed> for Answer {
    fn from(detailed: Detailed) -> Self {
        Self::Detailed(detailed)
    }
}

/// What is said, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Detailed {
    pub text: String,
    /// The text this many times (a 1 MB line in a short script).
    pub repeat: usize,
    /// `$1`, `$name` in the text and in arguments are groups of the rule's `matches`, or of its `asked` without one.
    pub expand: bool,
    /// `stop`, `length`, `tool_calls`, `content_filter` in the dialect's own word, or any other as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What the model thinks before it speaks, signed.
    pub thinking: String,
    /// A tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of that call: a table, or a text that goes out as it is.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    /// Further tool calls in the same turn.
    pub tools: Vec<ScriptedCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<FixedUsage>,
    /// Log-probability of every token, where a request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprob: Option<f64>,
    /// Slows the answer down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drip: Option<Drip>,
    /// Signs of life before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comments: Option<Comments>,
}

/// One of several tool calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    pub tool: String,
    #[serde(default)]
    pub arguments: Value,
}

/// A JSON text. Groups of the rule's pattern are put into its strings, as with `expand`, so that they need no escapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Json {
    pub json: Value,
}

/// Token counts that every answer reports, whatever its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedUsage {
    /// With cached tokens and those written to the cache.
    pub prompt_tokens: u64,
    /// With those of reasoning.
    pub completion_tokens: u64,
    #[serde(default)]
    pub cached_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl Default for Detailed {
    fn default() -> Self {
        Self {
            text: String::new(),
            repeat: 1,
            expand: false,
            finish: None,
            thinking: String::new(),
            tool: None,
            arguments: Value::Null,
            tools: Vec::new(),
            usage: None,
            logprob: None,
            drip: None,
            comments: None,
        }
    }
}

/// By hand, because a derived reader of variants cannot say what is wrong with the one that was meant.
impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Answer {
    /// # Errors
    /// What is wrong, with the key.
    pub(super) fn read(value: Value) -> Result<Self, String> {
        let fields = match value {
            Value::String(text) => return Ok(Self::Text(text)),
            Value::Object(fields) => fields,
            other => return Err(format!("an answer is a text or a table, not {other}")),
        };
        if fields.contains_key("fault") {
            return variant(fields, Some("fault")).map(Self::Fault);
        }
        if fields.contains_key("json") {
            return table(fields).map(Self::Json);
        }
        if !["text", "thinking", "tool", "tools"].iter().any(|key| fields.contains_key(*key)) {
            let found: Vec<&str> = fields.keys().map(String::as_str).collect();
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            return Err(format!(
                "an answer needs text, thinking, tool, tools, json or fault; this one has {found}"
            ));
        }
        table(fields).map(Self::Detailed)
    }
}

impl Detailed {
    /// `reply`: which reply of the conversation it is, from 1; calls are numbered by it.
    pub(super) fn turn(&self, groups: Option<&Captures<'_>>, reply: usize) -> Turn {
        let mut text = self.text.repeat(self.repeat);
        if self.expand {
            text = expanded(&text, groups);
        }
        let first = self.tool.iter().map(|tool| (tool, &self.arguments));
        let all = first.chain(self.tools.iter().map(|call| (&call.tool, &call.arguments)));
        let calls: Vec<Call> = all
            .enumerate()
            .map(|(index, (name, arguments))| Call {
                id: format!("{reply}_{}", index + 1),
                name: name.clone(),
                arguments: match arguments {
                    Value::Null => Value::Object(Map::new()),
                    given if self.expand => filled(given, groups),
                    given => given.clone(),
                },
            })
            .collect();
        let natural = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Turn {
            thinking: self.thinking.clone(),
            text,
            finish: self.finish.as_deref().map_or(natural, Finish::of),
            calls,
            usage: self.usage,
            logprob: self.logprob.unwrap_or(DEFAULT_LOGPROB),
        }
    }

    pub(super) fn pace(&self) -> Pace {
        Pace { drip: self.drip, comments: self.comments }
    }
}

/// `template` with the groups it names.
fn expanded(template: &str, groups: Option<&Captures<'_>>) -> String {
    let Some(groups) = groups else { return template.to_owned() };
    let mut text = String::new();
    groups.expand(template, &mut text);
    text
}

/// A JSON value with groups in its strings.
pub(super) fn filled(value: &Value, groups: Option<&Captures<'_>>) -> Value {
    match value {
        Value::String(text) => Value::String(expanded(text, groups)),
        Value::Array(list) => list.iter().map(|value| filled(value, groups)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled(value, groups))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
