//! Chat completions, with the manners of the vendors that copy it. Must not decide what to answer.

use serde_json::{Map, Value, json};

use super::super::answer::FixedUsage;
use super::super::conversation::{Said, Speaker};
use super::super::turn::{Cause, Finish, Refusal, Turn};
use super::{CREATED, Event, Frame, Place, Vendor, Wants, content_text, list, logprobs, pieces};

/// What thinking is signed with; clients of some dialects take nothing but base64.
pub(super) const SIGNATURE: &str = "bW9jay1zaWduYXR1cmU=";

pub(super) fn read(body: &Value) -> Vec<Said> {
    list(&body["messages"])
        .iter()
        .map(|message| {
            let by = match message["role"].as_str().unwrap_or_default() {
                "system" | "developer" => Speaker::System,
                "assistant" => Speaker::Model,
                "tool" | "function" => Speaker::Tool,
                _ => Speaker::User,
            };
            Said::new(by, content_text(&message["content"]))
        })
        .collect()
}

pub(super) fn wants(body: &Value) -> Wants {
    Wants {
        stream_usage: body["stream_options"]["include_usage"] == true,
        logprobs: body["logprobs"] == true,
        ..Wants::default()
    }
}

pub(super) fn whole(frame: &Frame, turn: &Turn) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let silent = turn.text.is_empty() && !turn.calls.is_empty();
    message.insert("content".into(), if silent { Value::Null } else { turn.text.as_str().into() });
    message.insert("refusal".into(), Value::Null);
    if !turn.thinking.is_empty() {
        message.extend(thinking(frame.vendor, &turn.thinking, true));
    }
    if !turn.calls.is_empty() {
        let calls = (0..turn.calls.len()).map(|index| call(frame.vendor, turn, index, None)).collect();
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    let logprobs = frame
        .wants
        .logprobs
        .then(|| json!({"content": logprobs(&turn.text, frame.chunk, turn.logprob), "refusal": null}));
    let choice = json!({
        "index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish(&turn.finish),
    });
    let mut body = head(frame, "chat.completion");
    body.insert("choices".into(), json!([choice]));
    if let Some(usage) = &frame.usage {
        body.insert("usage".into(), usage_json(usage));
    }
    Value::Object(body)
}

pub(super) fn events(frame: &Frame, turn: &Turn) -> Vec<Event> {
    let chunk = |delta: Value, finish: Option<&str>, logprobs: Option<Value>| {
        let mut body = head(frame, "chat.completion.chunk");
        let choice = json!({"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish});
        body.insert("choices".into(), json!([choice]));
        if frame.wants.stream_usage {
            body.insert("usage".into(), Value::Null);
        }
        Value::Object(body)
    };
    let said = |delta: Value| Event::data(&chunk(delta, None, None), Place::Said);
    let mut events =
        vec![Event::data(&chunk(json!({"role": "assistant", "content": ""}), None, None), Place::Around)];
    let thoughts = pieces(&turn.thinking, frame.chunk);
    for (at, piece) in thoughts.iter().enumerate() {
        let fields = thinking(frame.vendor, piece, at + 1 == thoughts.len());
        events.push(said(Value::Object(fields.into_iter().collect())));
    }
    for piece in pieces(&turn.text, frame.chunk) {
        let logprobs = frame
            .wants
            .logprobs
            .then(|| json!({"content": logprobs(&piece, frame.chunk, turn.logprob), "refusal": null}));
        events.push(Event::data(&chunk(json!({"content": piece}), None, logprobs), Place::Said));
    }
    for index in 0..turn.calls.len() {
        events.push(said(json!({"tool_calls": [call(frame.vendor, turn, index, Some(""))]})));
        for piece in pieces(&turn.calls[index].arguments_text(), frame.chunk) {
            events.push(said(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
    }
    events.push(Event::data(&chunk(json!({}), Some(finish(&turn.finish)), None), Place::Around));
    if let (Some(usage), true) = (&frame.usage, frame.wants.stream_usage) {
        let mut body = head(frame, "chat.completion.chunk");
        body.insert("choices".into(), json!([]));
        body.insert("usage".into(), usage_json(usage));
        events.push(Event::data(&Value::Object(body), Place::Around));
    }
    events.push(done());
    events
}

/// The end of a stream.
pub(super) fn done() -> Event {
    Event { name: None, data: "[DONE]".into(), place: Place::Last }
}

/// What every body begins with.
fn head(frame: &Frame, object: &str) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("id".into(), format!("chatcmpl-{}", frame.id).into());
    body.insert("object".into(), object.into());
    body.insert("created".into(), CREATED.into());
    body.insert("model".into(), frame.model.as_str().into());
    body
}

/// Fields that hold thinking; `last`: this is its end, which is signed.
fn thinking(vendor: Vendor, text: &str, last: bool) -> Vec<(String, Value)> {
    match vendor {
        Vendor::OpenRouter => {
            let signature = last.then_some(SIGNATURE);
            let detail = json!({
                "type": "reasoning.text", "text": text, "signature": signature, "format": "unknown", "index": 0,
            });
            vec![("reasoning".into(), text.into()), ("reasoning_details".into(), json!([detail]))]
        }
        Vendor::Plain | Vendor::Azure | Vendor::Google => vec![("reasoning_content".into(), text.into())],
    }
}

/// A tool call, whole or, with the beginning of its arguments, as the first piece in a stream.
fn call(vendor: Vendor, turn: &Turn, index: usize, begun: Option<&str>) -> Value {
    let call = &turn.calls[index];
    let mut fields = Map::new();
    if begun.is_some() {
        fields.insert("index".into(), index.into());
    }
    fields.insert("id".into(), format!("call_{}", call.id).into());
    fields.insert("type".into(), "function".into());
    let arguments = begun.map_or_else(|| call.arguments_text(), str::to_owned);
    fields.insert("function".into(), json!({"name": call.name, "arguments": arguments}));
    if vendor == Vendor::Google && index == 0 {
        fields.insert("extra_content".into(), json!({"google": {"thought_signature": SIGNATURE}}));
    }
    Value::Object(fields)
}

pub(super) fn finish(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    }
}

pub(super) fn usage_json(usage: &FixedUsage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

/// The body of an error answer.
pub(super) fn refusal(vendor: Vendor, refusal: &Refusal) -> Value {
    match vendor {
        Vendor::Google => json!([error(vendor, refusal)]),
        Vendor::Plain | Vendor::Azure | Vendor::OpenRouter => error(vendor, refusal),
    }
}

/// An object with an error in it.
pub(super) fn error(vendor: Vendor, refusal: &Refusal) -> Value {
    let (kind, code, param) = words(refusal);
    match vendor {
        Vendor::Plain => {
            json!({"error": {"message": refusal.message, "type": kind, "param": param, "code": code}})
        }
        Vendor::Azure => {
            let mut error = json!({"message": refusal.message, "type": kind, "param": param, "code": code, "status": refusal.status});
            if refusal.cause == Cause::ContentFilter {
                error["innererror"] = json!({
                    "code": "ResponsibleAIPolicyViolation",
                    "content_filter_result": {"violence": {"filtered": true, "severity": "high"}},
                });
            }
            json!({ "error": error })
        }
        Vendor::OpenRouter => {
            let number = code.as_u64().unwrap_or_else(|| u64::from(refusal.status));
            let metadata = json!({"provider_name": "Mock", "raw": code});
            json!({"error": {"code": number, "message": refusal.message, "metadata": metadata}})
        }
        Vendor::Google => super::gemini::refusal(refusal),
    }
}

/// Type, code and parameter of an error.
fn words(refusal: &Refusal) -> (&'static str, Value, Option<&str>) {
    let invalid = "invalid_request_error";
    match &refusal.cause {
        Cause::Status { code } => {
            let kind = match refusal.status {
                429 => "rate_limit_exceeded",
                500.. => "server_error",
                _ => invalid,
            };
            (kind, code.clone().unwrap_or(Value::Null), None)
        }
        Cause::RateLimit { .. } => ("requests", "rate_limit_exceeded".into(), None),
        Cause::SpendLimit => ("insufficient_quota", "insufficient_quota".into(), None),
        Cause::ContentFilter => (invalid, "content_filter".into(), Some("prompt")),
        Cause::ContextLength => (invalid, "context_length_exceeded".into(), Some("messages")),
        Cause::UnknownParameter { name } => (invalid, "unsupported_parameter".into(), Some(name)),
        Cause::Key => (invalid, "invalid_api_key".into(), None),
    }
}
