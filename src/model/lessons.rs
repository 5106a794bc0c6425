//! What servers refused once, by host and model: parameters that are not sent any more, and how far down the ladder of
//! output schemas to begin. What replies depend on is never dropped. Must not do any IO.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::dialect::TokenField;
use super::error_body::ErrorBody;
use super::rungs;
use crate::domain::Rung;

/// Takes texts for people; must be cheap and never block.
pub type Notice = Arc<dyn Fn(String) + Send + Sync>;

/// Shared by all roles of a run.
#[derive(Clone)]
pub struct Lessons {
    known: Arc<Mutex<HashMap<(String, String), Lesson>>>,
    notice: Notice,
}

impl Default for Lessons {
    fn default() -> Self {
        Self::new(Arc::new(|_| {}))
    }
}

/// What is known about one model of one host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lesson {
    /// Paths with dots.
    dropped: BTreeSet<String>,
    swapped: bool,
    pub(super) highest_rung: Rung,
    told: BTreeSet<String>,
}

impl Default for Lesson {
    fn default() -> Self {
        Self {
            dropped: BTreeSet::new(),
            swapped: false,
            highest_rung: Rung::JsonSchema,
            told: BTreeSet::new(),
        }
    }
}

impl Lesson {
    /// Leaves out of a body what the server does not want.
    pub(super) fn apply(&self, body: &mut Map<String, Value>) {
        if self.swapped {
            let swap = |field: TokenField, body: &mut Map<String, Value>| {
                let value = body.shift_remove(field.name());
                value.map(|value| (field.other(), value))
            };
            let found =
                swap(TokenField::MaxTokens, body).or_else(|| swap(TokenField::MaxCompletionTokens, body));
            if let Some((field, value)) = found {
                body.insert(field.name().into(), value);
            }
        }
        for path in &self.dropped {
            remove(body, path);
        }
    }
}

/// Removes a value by its path, and objects that become empty by that.
fn remove(body: &mut Map<String, Value>, path: &str) {
    match path.split_once('.') {
        None => {
            body.shift_remove(path);
        }
        Some((head, rest)) => {
            if let Some(Value::Object(inner)) = body.get_mut(head) {
                remove(inner, rest);
                if inner.is_empty() {
                    body.shift_remove(head);
                }
            }
        }
    }
}

/// What a call sent that was refused.
pub(super) struct Refusal<'a> {
    pub(super) host: &'a str,
    pub(super) model: &'a str,
    pub(super) body: &'a Map<String, Value>,
    pub(super) rung: Option<Rung>,
    /// What the dialect calls the most tokens of a reply, before any lesson.
    pub(super) token_field: TokenField,
    /// Fields that somebody configured by hand.
    pub(super) by_hand: &'a [&'a str],
    /// Whether thinking was switched on or off by hand.
    pub(super) thinking_asked: bool,
}

/// What a refusal teaches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taught {
    Nothing,
    /// The next attempt is another one; what changed.
    Learned(String),
    /// The parameter may not go; why, and what to do.
    Needed(String),
}

/// Parameters whose absence changes how well a model answers at most, not what is asked of it.
const DROPPABLE: [&str; 13] = [
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "logprobs",
    "top_logprobs",
    "stream_options",
    "include",
    "store",
    "parallel_tool_calls",
    "reasoning_effort",
    "reasoning",
    "output_config.effort",
];

const THINKING: [&str; 7] = [
    "reasoning_effort",
    "reasoning",
    "thinking",
    "enable_thinking",
    "chat_template_kwargs",
    "thinking_budget",
    "thinking_token_budget",
];

const PHRASES: [&str; 20] = [
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "do not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "not available",
    "not compatible",
    "not valid",
    "extra inputs",
    "extra fields",
    "extra_forbidden",
    "deprecated",
    "invalid parameter",
    "cannot both",
    "cannot find field",
];

impl Lessons {
    pub fn new(notice: Notice) -> Self {
        Self { known: Arc::default(), notice }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Lesson>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn of(&self, host: &str, model: &str) -> Lesson {
        self.lock().get(&(host.to_owned(), model.to_owned())).cloned().unwrap_or_default()
    }

    /// Tells people something about a model once.
    pub(super) fn tell(&self, host: &str, model: &str, text: String) {
        let key = (host.to_owned(), model.to_owned());
        let new = self.lock().entry(key).or_default().told.insert(text.clone());
        if new {
            (self.notice)(text);
        }
    }

    /// Learns from a 400 or 422.
    pub(super) fn learn(&self, refusal: &Refusal<'_>, error: &ErrorBody) -> Taught {
        let (host, model) = (refusal.host, refusal.model);
        let said = format!("{} {}", error.message, error.codes.join(" ")).to_lowercase();
        if let Some(text) = self.step_down(refusal, error, &said) {
            self.tell(host, model, text.clone());
            return Taught::Learned(text);
        }
        let Some(path) = refused_path(refusal.body, error, &said) else { return Taught::Nothing };
        let top = path.split('.').next().unwrap_or(&path);
        if let Some(field) = [TokenField::MaxTokens, TokenField::MaxCompletionTokens]
            .into_iter()
            .find(|field| field.name() == top)
        {
            // Calls under way when the first was refused sent the dialect's own field too: they learn the same.
            if field != refusal.token_field {
                return Taught::Needed(format!(
                    "{host} takes neither `max_tokens` nor `max_completion_tokens`"
                ));
            }
            self.change(refusal, |lesson| lesson.swapped = true);
            let (old, new) = (field.name(), field.other().name());
            let text = format!("{host} refuses `{old}` for {model}; `{new}` is sent instead");
            self.tell(host, model, text.clone());
            return Taught::Learned(text);
        }
        if let Some(why) = needed(refusal, &path, top) {
            return Taught::Needed(format!("{host} refuses `{path}` for {model}, {why}"));
        }
        let droppable = DROPPABLE.contains(&path.as_str()) || DROPPABLE.contains(&top);
        if !droppable && path != "output_config" {
            return Taught::Nothing;
        }
        self.change(refusal, |lesson| {
            lesson.dropped.insert(path.clone());
        });
        let text = format!("{host} refuses `{path}` for {model}; it is not sent any more");
        self.tell(host, model, text.clone());
        Taught::Learned(text)
    }

    fn change(&self, refusal: &Refusal<'_>, change: impl FnOnce(&mut Lesson)) {
        let key = (refusal.host.to_owned(), refusal.model.to_owned());
        change(self.lock().entry(key).or_default());
    }

    fn step_down(&self, refusal: &Refusal<'_>, error: &ErrorBody, said: &str) -> Option<String> {
        let rung = refusal.rung?;
        let next = rungs::below(rung)?;
        let param = error.param.as_deref().unwrap_or_default();
        rungs::marks(rung).iter().find(|mark| said.contains(*mark) || param.contains(*mark))?;
        self.change(refusal, |lesson| lesson.highest_rung = lesson.highest_rung.max(next));
        let (host, model, way) = (refusal.host, refusal.model, rungs::word(rung));
        Some(format!("{host} refuses to take an output schema as {way} for {model}; the next way is tried"))
    }
}

/// Why a parameter that was sent must not be dropped.
fn needed(refusal: &Refusal<'_>, path: &str, top: &str) -> Option<&'static str> {
    if refusal.by_hand.contains(&top) {
        return Some("which the configuration asks for; take it out of extra_body");
    }
    match top {
        "stop" | "stop_sequences" => {
            Some("without which replies would go on; take the stop texts out of the template")
        }
        _ if refusal.thinking_asked && (THINKING.contains(&top) || path == "extra_body") => {
            Some("the switch for thinking; set thinking = \"server_default\", or choose another dialect")
        }
        _ => None,
    }
}

/// The path of the refused parameter, if it is one of those that were sent.
fn refused_path(body: &Map<String, Value>, error: &ErrorBody, said: &str) -> Option<String> {
    if !PHRASES.iter().any(|phrase| said.contains(phrase) || said.contains(&phrase.replace(' ', "_"))) {
        return None;
    }
    let sent = |path: &str| {
        let mut value = body.get(path.split('.').next()?)?;
        for name in path.split('.').skip(1) {
            value = value.get(name)?;
        }
        Some(path.to_owned())
    };
    if let Some(path) = error.param.as_deref().and_then(sent) {
        return Some(path);
    }
    // Of all that is mentioned the first is the culprit; what stands in quotes is surely a name.
    let mentions = body.keys().filter_map(|key| mention(&error.message, key).map(|place| (place, key)));
    let (_, key) = mentions.min()?;
    let inner = body.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let nested = inner.map(|name| format!("{key}.{name}")).find(|path| error.message.contains(path.as_str()));
    Some(nested.unwrap_or_else(|| key.clone()))
}

/// Where a message names a parameter: names in quotes come first.
fn mention(message: &str, key: &str) -> Option<(bool, usize)> {
    // Ordinary words are names only where they are marked as such.
    const ORDINARY: [&str; 12] = [
        "model",
        "messages",
        "input",
        "prompt",
        "system",
        "stream",
        "tools",
        "stop",
        "text",
        "reasoning",
        "thinking",
        "include",
    ];
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let whole = message.match_indices(key).filter(|(at, _)| {
        let (before, after) = (&message[..*at], &message[at + key.len()..]);
        !before.ends_with(part) && !after.starts_with(part)
    });
    let marked = |at: usize| {
        let (before, after) = (&message[..at], &message[at + key.len()..]);
        before.ends_with(['`', '\'', '"'])
            || after.starts_with(':')
            || after.starts_with('.') && after.len() > 1
    };
    let ranked = whole.map(|(at, _)| (!marked(at), at));
    ranked.filter(|(unmarked, _)| !*unmarked || !ORDINARY.contains(&key)).min()
}

#[cfg(test)]
#[path = "lessons_tests.rs"]
mod tests;
