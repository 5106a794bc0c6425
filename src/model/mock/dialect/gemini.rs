//! Gemini's own format: candidates of parts, and Google's error object. Must not decide what to answer.

use serde_json::{Map, Value, json};

use super::super::answer::FixedUsage;
use super::super::conversation::{Said, Speaker};
use super::super::turn::{Call, Cause, Finish, Refusal, Turn};
use super::chat::SIGNATURE;
use super::{Event, Frame, Place, Wants, list, pieces};

pub(super) fn read(body: &Value) -> Vec<Said> {
    let system = either(body, "systemInstruction", "system_instruction");
    let mut said = Vec::new();
    if !system.is_null() {
        said.push(Said::new(Speaker::System, parts_text(system)));
    }
    for content in list(&body["contents"]) {
        let text = parts_text(content);
        if content["role"] == "model" {
            said.push(Said::new(Speaker::Model, text));
            continue;
        }
        let results: Vec<Said> = list(&content["parts"])
            .iter()
            .map(|part| either(part, "functionResponse", "function_response"))
            .filter(|result| !result.is_null())
            .map(|result| Said::new(Speaker::Tool, result_text(&result["response"])))
            .collect();
        if results.is_empty() || !text.is_empty() {
            said.push(Said::new(Speaker::User, text));
        }
        said.extend(results);
    }
    said
}

fn either<'a>(value: &'a Value, name: &str, other: &str) -> &'a Value {
    let found = &value[name];
    if found.is_null() { &value[other] } else { found }
}

fn parts_text(content: &Value) -> String {
    let texts: Vec<&str> = list(&content["parts"]).iter().filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

/// A result is an object; by custom its text stands under one of these names.
fn result_text(response: &Value) -> String {
    let named = ["output", "result", "error"].iter().find_map(|name| response[name].as_str());
    named.map_or_else(|| response.to_string(), str::to_owned)
}

pub(super) fn wants(body: &Value) -> Wants {
    let logprobs = body["generationConfig"]["responseLogprobs"] == true;
    Wants { stream_usage: true, logprobs, ..Wants::default() }
}

pub(super) fn whole(frame: &Frame, turn: &Turn) -> Value {
    let thinking = (!turn.thinking.is_empty()).then(|| thought(&turn.thinking));
    let text = (!turn.text.is_empty()).then(|| json!({"text": turn.text}));
    let calls = turn.calls.iter().enumerate().map(|(index, call)| call_part(call, index));
    let parts = thinking.into_iter().chain(text).chain(calls).collect();
    chunk(frame, turn, parts, true)
}

pub(super) fn events(frame: &Frame, turn: &Turn) -> Vec<Event> {
    let said = |part: Value| Event::data(&chunk(frame, turn, vec![part], false), Place::Said);
    let mut events = Vec::new();
    events.extend(pieces(&turn.thinking, frame.chunk).iter().map(|piece| said(thought(piece))));
    events.extend(pieces(&turn.text, frame.chunk).iter().map(|piece| said(json!({"text": piece}))));
    events.extend(turn.calls.iter().enumerate().map(|(index, call)| said(call_part(call, index))));
    let end = if events.is_empty() { Vec::new() } else { vec![json!({"text": ""})] };
    events.push(Event::data(&chunk(frame, turn, end, true), Place::Last));
    events
}

fn thought(text: &str) -> Value {
    json!({"text": text, "thought": true})
}

fn call_part(call: &Call, index: usize) -> Value {
    let function = json!({"id": call.id, "name": call.name, "args": call.arguments});
    match index {
        0 => json!({"functionCall": function, "thoughtSignature": SIGNATURE}),
        _ => json!({"functionCall": function}),
    }
}

fn chunk(frame: &Frame, turn: &Turn, parts: Vec<Value>, last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}});
    if last {
        candidate["finishReason"] = finish(&turn.finish).into();
        if frame.wants.logprobs {
            let chosen: Vec<Value> = pieces(&turn.text, frame.chunk)
                .iter()
                .map(|token| json!({"token": token, "logProbability": turn.logprob}))
                .collect();
            candidate["avgLogprobs"] = turn.logprob.into();
            candidate["logprobsResult"] = json!({"topCandidates": [], "chosenCandidates": chosen});
        }
    }
    candidate["index"] = 0.into();
    let mut body = Map::new();
    body.insert("candidates".into(), json!([candidate]));
    if let (Some(usage), true) = (&frame.usage, last) {
        body.insert("usageMetadata".into(), usage_json(usage));
    }
    body.insert("modelVersion".into(), frame.model.as_str().into());
    body.insert("responseId".into(), frame.id.as_str().into());
    Value::Object(body)
}

/// Thoughts are no part of the candidates' tokens here.
fn usage_json(usage: &FixedUsage) -> Value {
    json!({
        "promptTokenCount": usage.prompt_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": usage.completion_tokens.saturating_sub(usage.reasoning_tokens),
        "thoughtsTokenCount": usage.reasoning_tokens,
        "totalTokenCount": usage.prompt_tokens + usage.completion_tokens,
    })
}

fn finish(finish: &Finish) -> &str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Other(word) => word,
    }
}

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let status = match refusal.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let code = refusal.scripted_code().and_then(Value::as_u64).unwrap_or_else(|| refusal.status.into());
    let mut error = json!({"code": code, "message": refusal.message, "status": status});
    let info = |reason: &str| json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"});
    let detail = match &refusal.cause {
        Cause::RateLimit { wait } => Some(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", wait.as_secs_f64()),
        })),
        Cause::SpendLimit => Some(info("QUOTA_EXCEEDED")),
        Cause::Key => Some(info("API_KEY_INVALID")),
        Cause::UnknownParameter { name } => Some(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": name, "description": refusal.message}],
        })),
        Cause::Status { code: Some(Value::String(code)) } => Some(info(code)),
        Cause::Status { .. } | Cause::ContentFilter | Cause::ContextLength => None,
    };
    if let Some(detail) = detail {
        error["details"] = json!([detail]);
    }
    json!({ "error": error })
}
