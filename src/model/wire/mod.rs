//! Requests and replies as the three APIs write them: bodies out, answers in. One message model on this side. Must not
//! do any IO, nor know how an answer is judged.

mod chat;
mod chat_reply;
mod inline_think;
mod messages;
mod messages_reply;
mod responses;
mod responses_reply;
mod thinking;
mod usage;

#[cfg(test)]
mod stream_tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::chat_reply::ChatReader;
use self::messages_reply::MessagesReader;
use self::responses_reply::ResponsesReader;
pub(super) use self::thinking::check as check_thinking;
pub use self::thinking::{ThinkingError, ThinkingMode};
use super::address::Operation;
use super::dialect::{Api, Dialect, Feature};
use crate::config::Effort;
use crate::domain::{
    ChatRequest, FinishReason, Message, OutputSchema, Part, Prompt, Rung, Speaker, TokenLogprob, Tool,
    ToolChoice, Usage,
};

/// One request and how its server wants it.
pub(super) struct Call<'a> {
    pub(super) request: &'a ChatRequest,
    pub(super) dialect: &'a Dialect,
    pub(super) model: &'a str,
    pub(super) stream: bool,
    pub(super) effort: Effort,
    pub(super) thinking: ThinkingMode,
    pub(super) thinking_budget: Option<u32>,
    /// How an output schema is put; set where one is asked for.
    pub(super) rung: Option<Rung>,
}

/// What is posted.
#[derive(Debug, PartialEq)]
pub(super) struct Outgoing {
    pub(super) operation: Operation,
    pub(super) body: Map<String, Value>,
    /// What was asked for and the dialect lacks, in words for people.
    pub(super) left_out: Vec<&'static str>,
}

/// A request that the dialect has no form for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsendable {
    #[error("dialect {0} continues no raw texts; use chat prompts")]
    Completions(String),
    #[error("dialect {0} has no tools; choose another model or an environment without tools")]
    Tools(String),
    #[error("dialect {0} takes no images; choose another model, or items without images")]
    Images(String),
    #[error(
        "dialect {0} has no stop texts and replies would go on past them; leave them out of the template"
    )]
    Stop(String),
}

pub(super) fn outgoing(call: &Call<'_>) -> Result<Outgoing, Unsendable> {
    let (dialect, request) = (call.dialect, call.request);
    let name = || dialect.name.clone();
    if !request.asks.tools.is_empty() && !dialect.has(Feature::Tools) {
        return Err(Unsendable::Tools(name()));
    }
    if !request.sampling.stop.is_empty() && !dialect.has(Feature::Stop) {
        return Err(Unsendable::Stop(name()));
    }
    match &request.prompt {
        Prompt::Chat(messages) => {
            if messages.iter().any(|message| message.content.images() > 0) && !dialect.has(Feature::Images) {
                return Err(Unsendable::Images(name()));
            }
            let messages = with_schema(messages, call.schema_in_prompt());
            let mut left_out = Vec::new();
            let body = match dialect.api {
                Api::Chat => chat::body(call, &messages, &mut left_out),
                Api::Responses => responses::body(call, &messages, &mut left_out),
                Api::Messages => messages::body(call, &messages, &mut left_out),
            };
            Ok(Outgoing { operation: Operation::Reply(dialect.api), body, left_out })
        }
        Prompt::Text(text) => {
            if dialect.api != Api::Chat || !dialect.has(Feature::Completions) {
                return Err(Unsendable::Completions(name()));
            }
            let mut left_out = Vec::new();
            let body = chat::completion_body(call, text, &mut left_out);
            Ok(Outgoing { operation: Operation::Continue, body, left_out })
        }
    }
}

impl Call<'_> {
    /// An output schema and whether `rung` is the way it is put.
    fn output_on(&self, rung: Rung) -> Option<&OutputSchema> {
        self.request.asks.output.as_ref().filter(|_| self.rung == Some(rung))
    }

    fn schema_in_prompt(&self) -> Option<&Value> {
        let output = self.output_on(Rung::JsonObject).or(self.output_on(Rung::Text))?;
        Some(&output.schema)
    }

    /// The tools to offer, and which of them may be used.
    fn tools(&self) -> (Vec<Cow<'_, Tool>>, ToolChoice) {
        let asks = &self.request.asks;
        let (tools, choice) = match self.output_on(Rung::ForcedTool) {
            Some(output) => {
                let tool = Tool {
                    name: output.name.clone(),
                    description: "Takes the reply.".into(),
                    parameters: output.schema.clone(),
                };
                (vec![Cow::Owned(tool)], ToolChoice::Named(output.name.clone()))
            }
            None => (asks.tools.iter().map(Cow::Borrowed).collect(), asks.tool_choice.clone()),
        };
        match choice {
            // The same, for servers that cannot be told a name.
            ToolChoice::Named(name) if !self.dialect.has(Feature::ForcedTool) => {
                (tools.into_iter().filter(|tool| tool.name == name).collect(), ToolChoice::Required)
            }
            choice => (tools, choice),
        }
    }

    /// Optional parameters that are asked for and supported, under the names of this API.
    fn optional(
        &self,
        rows: &[(&'static str, Option<Feature>, Option<Value>)],
        body: &mut Map<String, Value>,
        left_out: &mut Vec<&'static str>,
    ) {
        for (name, feature, value) in rows {
            match (value, feature) {
                (None, _) => {}
                (Some(_), Some(feature)) if !self.dialect.has(*feature) => left_out.push(feature.lacked()),
                (Some(value), _) => {
                    body.insert((*name).into(), value.clone());
                }
            }
        }
    }
}

/// The messages with a schema told at the end of the first system message, where it stays the same for every item.
fn with_schema<'a>(messages: &'a [Message], schema: Option<&Value>) -> Cow<'a, [Message]> {
    let Some(schema) = schema else { return Cow::Borrowed(messages) };
    let told =
        format!("Reply with one JSON object and nothing else. It must fit this JSON Schema:\n{schema}");
    let mut messages = messages.to_vec();
    match messages.iter_mut().find(|message| message.role == Speaker::System) {
        Some(system) => {
            *system = Message::new(Speaker::System, format!("{}\n\n{told}", system.content.text()));
        }
        None => messages.insert(0, Message::new(Speaker::System, told)),
    }
    Cow::Owned(messages)
}

/// Whether the thinking of an assistant message goes back to the server.
fn replays(dialect: &Dialect, message: &Message) -> bool {
    use super::dialect::ReplayReasoning;
    match dialect.replay_reasoning {
        ReplayReasoning::Never => false,
        ReplayReasoning::ToolTurns => {
            message.content.parts().iter().any(|part| matches!(part, Part::ToolCall(_)))
        }
        ReplayReasoning::Always => true,
    }
}

/// A reply as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// In order; thinking, texts and tool calls.
    pub(super) parts: Vec<Part>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<Usage>,
    pub(super) logprobs: Vec<TokenLogprob>,
    /// Why the model did not answer, in its own words.
    pub(super) refusal: Option<String>,
}

/// What an event of a stream brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// More of the reply's text, without thinking.
    pub(super) text: String,
    /// Nothing more is to come.
    pub(super) over: bool,
}

impl Heard {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), over: false }
    }

    fn over() -> Self {
        Self { text: String::new(), over: true }
    }
}

/// An error in place of an answer: a JSON text with an `error` in it, as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerError(pub(super) Value);

impl ServerError {
    /// The error of a body or event that holds one.
    fn of(data: &Value) -> Option<Self> {
        let data = match data {
            Value::Array(list) => list.first()?,
            _ => data,
        };
        let error = data.get("error").filter(|error| !error.is_null())?;
        (error != "").then(|| Self(data.clone()))
    }
}

/// Reads the replies of one API, whole or in events.
#[derive(Debug)]
pub(super) enum Reader {
    Chat(ChatReader),
    Responses(ResponsesReader),
    Messages(MessagesReader),
}

impl Reader {
    pub(super) fn new(dialect: &Dialect) -> Self {
        match dialect.api {
            Api::Chat => Reader::Chat(ChatReader::new(dialect)),
            Api::Responses => Reader::Responses(ResponsesReader::default()),
            Api::Messages => Reader::Messages(MessagesReader::default()),
        }
    }

    /// The whole body of an answer that is no stream.
    pub(super) fn whole(&mut self, body: &Value) -> Result<Heard, ServerError> {
        match self {
            Reader::Chat(reader) => reader.piece(body),
            Reader::Responses(reader) => reader.whole(body),
            Reader::Messages(reader) => reader.whole(body),
        }
    }

    /// The data of one event of a stream.
    pub(super) fn event(&mut self, data: &Value) -> Result<Heard, ServerError> {
        match self {
            Reader::Chat(reader) => reader.piece(data),
            Reader::Responses(reader) => reader.event(data),
            Reader::Messages(reader) => reader.event(data),
        }
    }

    /// Whether the stream said that the reply is complete; without that nobody can tell a short reply from a cut one.
    pub(super) fn complete(&self) -> bool {
        match self {
            Reader::Chat(reader) => reader.complete(),
            Reader::Responses(reader) => reader.complete(),
            Reader::Messages(reader) => reader.complete(),
        }
    }

    pub(super) fn finish(self) -> Answer {
        let mut answer = match self {
            Reader::Chat(reader) => reader.finish(),
            Reader::Responses(reader) => reader.finish(),
            Reader::Messages(reader) => reader.finish(),
        };
        let calls = answer.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        // Some servers call tools and say that they stopped.
        if calls && matches!(answer.finish, Some(FinishReason::Stop | FinishReason::Other)) {
            answer.finish = Some(FinishReason::ToolCalls);
        }
        answer
    }
}

/// A text in a JSON object; "" where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Arguments of a tool call: a JSON text, or an object where servers forget to write it as one.
fn arguments(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn logprobs(entries: &[Value]) -> impl Iterator<Item = TokenLogprob> {
    entries.iter().filter_map(|entry| {
        let logprob = entry.get("logprob")?.as_f64()?;
        Some(TokenLogprob { token: text(entry, "token").to_owned(), logprob })
    })
}
