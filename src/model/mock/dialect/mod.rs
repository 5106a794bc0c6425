//! The wire formats that the mock server speaks: one file each. Must not decide what to answer, nor do IO.

mod chat;
mod completion;
mod gemini;
mod messages;
mod replay;
mod responses;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::FixedUsage;
use super::conversation::Said;
use super::turn::{Refusal, Turn};

/// A wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Chat completions.
    #[default]
    Chat,
    /// Text completions.
    Text,
    /// Responses.
    Responses,
    /// Messages.
    Messages,
    /// `generateContent` and `streamGenerateContent`.
    Gemini,
}

/// Whose manners a server of a dialect has; the path of a request tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vendor {
    #[default]
    Plain,
    Azure,
    OpenRouter,
    /// The dialect of others at Google's address.
    Google,
}

/// How a reply travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// One JSON value.
    Whole,
    /// Server-sent events.
    Events,
    /// One JSON list that grows.
    List,
}

/// What a request wants of the form of its answer.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) dialect: Dialect,
    pub(super) vendor: Vendor,
    pub(super) transport: Transport,
    pub(super) model: String,
    /// Different for each request.
    pub(super) id: String,
    /// Absent: usage is left out.
    pub(super) usage: Option<FixedUsage>,
    /// Characters per piece of a stream, and per token of log-probabilities.
    pub(super) chunk: usize,
    /// What the request asks for beyond the reply itself.
    pub(super) wants: Wants,
}

/// Extras that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// Usage at the end of a stream.
    pub(super) stream_usage: bool,
    pub(super) logprobs: bool,
    pub(super) encrypted_reasoning: bool,
    /// Tools whose input is a text instead of JSON.
    pub(super) text_tools: Vec<String>,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
    pub(super) place: Place,
}

/// Where in a reply an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before and between what is said.
    Around,
    /// A piece of what is said.
    Said,
    /// What tells the reader that the stream is complete.
    Last,
}

impl Event {
    fn data(data: &Value, place: Place) -> Self {
        Self { name: None, data: data.to_string(), place }
    }
}

/// What all messages of a request say, in order.
pub(super) fn read(dialect: Dialect, body: &Value) -> Vec<Said> {
    match dialect {
        Dialect::Chat => chat::read(body),
        Dialect::Text => completion::read(body),
        Dialect::Responses => responses::read(body),
        Dialect::Messages => messages::read(body),
        Dialect::Gemini => gemini::read(body),
    }
}

/// What a request asks for beyond the reply.
pub(super) fn wants(dialect: Dialect, body: &Value) -> Wants {
    match dialect {
        Dialect::Chat => chat::wants(body),
        Dialect::Text => completion::wants(body),
        Dialect::Responses => responses::wants(body),
        Dialect::Messages => Wants::default(),
        Dialect::Gemini => gemini::wants(body),
    }
}

/// The reply as one JSON value.
pub(super) fn whole(frame: &Frame, turn: &Turn) -> Value {
    match frame.dialect {
        Dialect::Chat => chat::whole(frame, turn),
        Dialect::Text => completion::whole(frame, turn),
        Dialect::Responses => responses::whole(frame, turn),
        Dialect::Messages => messages::whole(frame, turn),
        Dialect::Gemini => gemini::whole(frame, turn),
    }
}

/// The reply as the events of a stream.
pub(super) fn events(frame: &Frame, turn: &Turn) -> Vec<Event> {
    match frame.dialect {
        Dialect::Chat => chat::events(frame, turn),
        Dialect::Text => completion::events(frame, turn),
        Dialect::Responses => responses::events(frame, turn),
        Dialect::Messages => messages::events(frame, turn),
        Dialect::Gemini => gemini::events(frame, turn),
    }
}

/// The body of an answer that tells an error.
pub(super) fn refusal(dialect: Dialect, vendor: Vendor, id: &str, refusal: &Refusal) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Text | Dialect::Responses => chat::refusal(vendor, refusal),
        Dialect::Messages => messages::refusal(id, refusal),
        Dialect::Gemini => gemini::refusal(refusal),
    }
}

/// Some tool call of the model came back without the reasoning that led to it.
pub(super) fn lost_reasoning(dialect: Dialect, vendor: Vendor, body: &Value) -> bool {
    replay::lost(dialect, vendor, body)
}

/// An error in place of a reply whose status says that all is well.
pub(super) fn failure(frame: &Frame, told: &Refusal) -> Value {
    match frame.dialect {
        Dialect::Responses => responses::failed(frame, told),
        Dialect::Chat | Dialect::Text | Dialect::Messages | Dialect::Gemini => {
            refusal(frame.dialect, frame.vendor, &frame.id, told)
        }
    }
}

/// An error that is told inside a stream; `number` events went before.
pub(super) fn refusal_event(frame: &Frame, refusal: &Refusal, number: usize) -> Event {
    match frame.dialect {
        Dialect::Chat | Dialect::Text => Event::data(&chat::error(frame.vendor, refusal), Place::Last),
        Dialect::Responses => responses::refusal_event(frame, refusal, number),
        Dialect::Messages => messages::refusal_event(frame, refusal),
        Dialect::Gemini => Event::data(&gemini::refusal(refusal), Place::Last),
    }
}

impl Dialect {
    /// The header that names a request.
    pub(super) fn request_id_header(self, vendor: Vendor) -> &'static str {
        match (self, vendor) {
            (Dialect::Messages, _) => "request-id",
            (_, Vendor::Azure) => "apim-request-id",
            (Dialect::Chat | Dialect::Text | Dialect::Responses | Dialect::Gemini, _) => "x-request-id",
        }
    }
}

/// The text in pieces of `size` characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// The text of a content that is a text or a list of parts.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Tokens with their log-probabilities, as chat completions, Responses and others write them.
fn logprobs(text: &str, chunk: usize, logprob: f64) -> Vec<Value> {
    let token = |token: &String| {
        let top = json!({"token": token, "logprob": logprob, "bytes": token.as_bytes()});
        json!({"token": token, "logprob": logprob, "bytes": token.as_bytes(), "top_logprobs": [top]})
    };
    pieces(text, chunk).iter().map(token).collect()
}

/// Creation time of every answer: the same, so that answers can be compared.
const CREATED: u64 = 1_700_000_000;

#[cfg(test)]
#[path = "dialect_tests.rs"]
mod tests;
