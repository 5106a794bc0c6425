//! What the mock server answers: rules that match the prompt, their answers, faults, and seeded chaos.
//! Must not know about sockets.

use std::collections::HashMap;
use std::path::Path;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::fingerprint;

/// Replies that try to harm a terminal or a reader.
pub mod hostile {
    /// Colours, cursor movement, a window title, and a clear screen.
    pub const ANSI: &str = "\u{1b}[31mred\u{1b}[2J\u{1b}[1;1H\u{1b}]0;owned\u{7}plain";
    /// Writes to the clipboard.
    pub const OSC52: &str = "before\u{1b}]52;c;b3duZWQ=\u{7}after";
    /// Direction overrides and isolates that reorder what a person reads.
    pub const BIDI: &str = "safe\u{202e}evil\u{2066}x\u{2069}\u{200f}";
}

/// One scripted answer: text, or a table with a fault or more detail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
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

/// Text with detail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detailed {
    pub text: String,
    /// The text this many times (a 1 MB line in a short script).
    #[serde(default = "one")]
    pub repeat: usize,
    /// `$1`, `$name` in the text are groups of the rule's `matches`, or of its `asked` without one.
    #[serde(default)]
    pub expand: bool,
    #[serde(default)]
    pub finish: Option<String>,
}

/// A JSON text. Groups of the rule's pattern are put into its strings, as with `expand`, so that they need no escapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Json {
    pub json: Value,
}

fn one() -> usize {
    1
}

/// What goes wrong instead of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error status with an error body.
    Status {
        status: u16,
        /// `error.code` of the body.
        #[serde(default)]
        code: Option<String>,
        #[serde(default)]
        message: Option<String>,
        /// Further header lines, such as `retry-after`.
        #[serde(default)]
        headers: HashMap<String, String>,
    },
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
    /// Bytes that are not UTF-8, inside a well-formed answer.
    InvalidUtf8,
    /// A complete stream without `[DONE]`.
    NoDone,
    /// A stream that ends cleanly in the middle of the reply (a proxy that lost its server).
    Cut,
    /// An answer of this many bytes, for limits.
    Huge { bytes: usize },
}

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
    /// Regular expression on the first message of the user, which is still there in later rounds; absent: any.
    #[serde(default)]
    pub asked: Option<String>,
    /// Only conversations that hold a reply already (true: repair rounds) or do not; absent: any.
    #[serde(default)]
    pub after_reply: Option<bool>,
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

/// Token counts that every answer reports, whatever its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
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
    pub chaos: Option<Chaos>,
    pub rules: Vec<Rule>,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("{file}: {why}")]
    Unreadable { file: String, why: String },
    #[error("rule {rule}: {why}")]
    BadRule { rule: usize, why: String },
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
    /// The file cannot be read or does not parse; the text names file and line.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |why: String| ScriptError::Unreadable { file: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        let script: Self = if path.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?
        } else {
            toml::from_str(&text).map_err(|error| unreadable(error.to_string()))?
        };
        Playbook::new(script.clone()).map_err(|error| unreadable(error.to_string()))?;
        Ok(script)
    }
}

/// A compiled script with its counters.
#[derive(Debug)]
pub(super) struct Playbook {
    script: Script,
    rules: Vec<Compiled>,
    seen: HashMap<String, u32>,
    answered: String,
}

/// The patterns of one rule and how often it answered.
#[derive(Debug)]
struct Compiled {
    system: Option<Regex>,
    asked: Option<Regex>,
    matches: Option<Regex>,
    count: usize,
}

/// What a request says, as far as rules look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    /// The first system message.
    pub system: String,
    /// The first message of the user.
    pub asked: String,
    /// The last message, or the text prompt.
    pub last: String,
    /// It holds a reply of the assistant.
    pub replied: bool,
}

/// What the server shall do with one request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Reply { text: String, finish: String },
    Fault(Fault),
}

impl Playbook {
    pub(super) fn new(script: Script) -> Result<Self, ScriptError> {
        let mut rules = Vec::new();
        for (index, rule) in script.rules.iter().enumerate() {
            let bad = |why: String| ScriptError::BadRule { rule: index + 1, why };
            if rule.answers.is_empty() {
                return Err(bad("no answers".into()));
            }
            let compile = |pattern: &Option<String>| {
                pattern.as_deref().map(Regex::new).transpose().map_err(|error| bad(error.to_string()))
            };
            let (system, asked) = (compile(&rule.system)?, compile(&rule.asked)?);
            rules.push(Compiled { system, asked, matches: compile(&rule.matches)?, count: 0 });
        }
        Ok(Self { script, rules, seen: HashMap::new(), answered: String::new() })
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// Name of the rule that the last request was answered by; "" where none did or it has no name.
    pub(super) fn answered(&self) -> &str {
        &self.answered
    }

    /// Decides on one request; `body` is all of it.
    pub(super) fn act(&mut self, said: &Conversation, body: &str) -> Act {
        self.answered.clear();
        if let Some(fault) = self.chaos(body) {
            return Act::Fault(fault);
        }
        for (rule, compiled) in self.script.rules.iter().zip(&mut self.rules) {
            if !compiled.fits(said) || rule.after_reply.is_some_and(|wanted| wanted != said.replied) {
                continue;
            }
            let n = rule.answers.len();
            let index = match rule.pick {
                Pick::Prompt => (draw(&[&said.system, &said.last]) * n as f64) as usize,
                Pick::RoundRobin => compiled.count % n,
                Pick::Sequence => compiled.count,
            };
            compiled.count += 1;
            let groups = match (&compiled.matches, &compiled.asked) {
                (Some(pattern), _) => pattern.captures(&said.last),
                (None, Some(pattern)) => pattern.captures(&said.asked),
                (None, None) => None,
            };
            self.answered.clone_from(&rule.name);
            return rule.answers[index.min(n - 1)].act(groups);
        }
        Act::Fault(Fault::Status {
            status: 404,
            code: Some("no_rule".into()),
            message: Some("no rule of the mock script matches".into()),
            headers: HashMap::new(),
        })
    }

    fn chaos(&mut self, body: &str) -> Option<Fault> {
        let chaos = self.script.chaos.as_ref().filter(|chaos| !chaos.faults.is_empty())?;
        let times = self.seen.entry(fingerprint([body])).or_default();
        *times += 1;
        let draw = |salt: &str| draw(&[&chaos.seed.to_string(), body, &times.to_string(), salt]);
        if draw("hit") >= chaos.rate {
            return None;
        }
        let index = (draw("which") * chaos.faults.len() as f64) as usize;
        chaos.faults.get(index).cloned()
    }
}

impl Compiled {
    fn fits(&self, said: &Conversation) -> bool {
        let fits = |pattern: &Option<Regex>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
        };
        fits(&self.system, &said.system) && fits(&self.asked, &said.asked) && fits(&self.matches, &said.last)
    }
}

impl Answer {
    fn act(&self, groups: Option<Captures<'_>>) -> Act {
        match self {
            Answer::Text(text) => Act::Reply { text: text.clone(), finish: "stop".into() },
            Answer::Fault(fault) => Act::Fault(fault.clone()),
            Answer::Detailed(detailed) => {
                let mut text = detailed.text.repeat(detailed.repeat);
                if detailed.expand {
                    text = expanded(&text, groups.as_ref());
                }
                Act::Reply { text, finish: detailed.finish.clone().unwrap_or_else(|| "stop".into()) }
            }
            Answer::Json(Json { json }) => {
                let text = filled(json, groups.as_ref()).to_string();
                Act::Reply { text, finish: "stop".into() }
            }
        }
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
fn filled(value: &Value, groups: Option<&Captures<'_>>) -> Value {
    match value {
        Value::String(text) => Value::String(expanded(text, groups)),
        Value::Array(list) => list.iter().map(|value| filled(value, groups)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled(value, groups))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A number in [0, 1) that depends on nothing but the texts.
fn draw(texts: &[&str]) -> f64 {
    let digest = fingerprint(texts.iter().copied());
    u32::from_str_radix(&digest[..8], 16).map_or(0.0, |bits| f64::from(bits) / 4_294_967_296.0)
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
