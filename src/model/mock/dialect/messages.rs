//! Anthropic Messages: content blocks, and events that open and close them. Must not decide what to answer.

use serde_json::{Value, json};

use super::super::answer::FixedUsage;
use super::super::conversation::{Said, Speaker};
use super::super::turn::{Call, Cause, Finish, Refusal, Turn};
use super::chat::SIGNATURE;
use super::{Event, Frame, Place, content_text, list, pieces};

pub(super) fn read(body: &Value) -> Vec<Said> {
    let system = &body["system"];
    let mut said = Vec::new();
    if !system.is_null() {
        said.push(Said::new(Speaker::System, content_text(system)));
    }
    for message in list(&body["messages"]) {
        let content = &message["content"];
        if message["role"] == "assistant" {
            said.push(Said::new(Speaker::Model, content_text(content)));
            continue;
        }
        let results: Vec<&Value> =
            list(content).iter().filter(|block| block["type"] == "tool_result").collect();
        said.extend(results.iter().map(|block| Said::new(Speaker::Tool, content_text(&block["content"]))));
        let text = content_text(content);
        if results.is_empty() || !text.is_empty() {
            said.push(Said::new(Speaker::User, text));
        }
    }
    said
}

/// One block of the content.
enum Block<'a> {
    Thinking(&'a str),
    Text(&'a str),
    Call(&'a Call),
}

fn blocks(turn: &Turn) -> Vec<Block<'_>> {
    let thinking = (!turn.thinking.is_empty()).then_some(Block::Thinking(&turn.thinking));
    let text = (!turn.text.is_empty()).then_some(Block::Text(&turn.text));
    thinking.into_iter().chain(text).chain(turn.calls.iter().map(Block::Call)).collect()
}

impl Block<'_> {
    fn whole(&self) -> Value {
        match self {
            Self::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Call(call) => tool_use(call, &call.arguments),
        }
    }

    /// The block before anything is said in it.
    fn begun(&self) -> Value {
        match self {
            Self::Thinking(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Text(_) => json!({"type": "text", "text": ""}),
            Self::Call(call) => tool_use(call, &json!({})),
        }
    }

    fn deltas(&self, chunk: usize) -> Vec<Value> {
        match self {
            Self::Thinking(text) => pieces(text, chunk)
                .iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .chain([json!({"type": "signature_delta", "signature": SIGNATURE})])
                .collect(),
            Self::Text(text) => {
                pieces(text, chunk).iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect()
            }
            Self::Call(call) => pieces(&call.arguments_text(), chunk)
                .iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
        }
    }
}

fn tool_use(call: &Call, input: &Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.name, "input": input})
}

pub(super) fn whole(frame: &Frame, turn: &Turn) -> Value {
    let content = blocks(turn).iter().map(Block::whole).collect();
    message(frame, content, Some(finish(&turn.finish)), frame.usage.as_ref().map(usage_json))
}

fn message(frame: &Frame, content: Vec<Value>, stop_reason: Option<&str>, usage: Option<Value>) -> Value {
    let mut body = json!({
        "id": format!("msg_{}", frame.id), "type": "message", "role": "assistant", "model": frame.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
    });
    if let Some(usage) = usage {
        body["usage"] = usage;
    }
    body
}

/// Cached tokens are no part of `input_tokens` here.
fn usage_json(usage: &FixedUsage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens.saturating_sub(usage.cached_tokens + usage.cache_write_tokens),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
    })
}

fn event(name: &'static str, mut data: Value, place: Place) -> Event {
    data["type"] = name.into();
    Event { name: Some(name), data: data.to_string(), place }
}

pub(super) fn events(frame: &Frame, turn: &Turn) -> Vec<Event> {
    let opening = frame.usage.as_ref().map(|usage| {
        let mut usage = usage_json(usage);
        usage["output_tokens"] = 1.into();
        usage
    });
    let start = json!({"type": "", "message": message(frame, Vec::new(), None, opening)});
    let mut events = vec![event("message_start", start, Place::Around)];
    for (index, block) in blocks(turn).iter().enumerate() {
        let start = json!({"type": "", "index": index, "content_block": block.begun()});
        events.push(event("content_block_start", start, Place::Around));
        if index == 0 {
            events.push(event("ping", json!({}), Place::Around));
        }
        for delta in block.deltas(frame.chunk) {
            let delta = json!({"type": "", "index": index, "delta": delta});
            events.push(event("content_block_delta", delta, Place::Said));
        }
        events.push(event("content_block_stop", json!({"type": "", "index": index}), Place::Around));
    }
    let stop = json!({"stop_reason": finish(&turn.finish), "stop_sequence": null});
    let mut delta = json!({"type": "", "delta": stop});
    if let Some(usage) = &frame.usage {
        delta["usage"] = usage_json(usage);
    }
    events.push(event("message_delta", delta, Place::Around));
    events.push(event("message_stop", json!({}), Place::Last));
    events
}

fn finish(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter => "refusal",
        Finish::Other(word) => word,
    }
}

pub(super) fn refusal(id: &str, refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let mut error = json!({"type": kind, "message": refusal.message});
    let code = match refusal.cause {
        Cause::SpendLimit => Some(Value::from("enforced_spend_limit_reached")),
        _ => refusal.scripted_code().cloned(),
    };
    if let Some(code) = code {
        error["details"] = json!({"error_code": code});
    }
    json!({"type": "error", "error": error, "request_id": id})
}

pub(super) fn refusal_event(frame: &Frame, told: &Refusal) -> Event {
    event("error", refusal(&frame.id, told), Place::Last)
}
