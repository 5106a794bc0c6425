//! Events of `claude -p --output-format stream-json`. Its result says `success` beside `is_error`: the latter counts.

use serde_json::Value;

use super::Draft;
use super::part::{call, flag, list, number, status, text, texts};
use crate::domain::Usage;

pub fn read(event: &Value, draft: &mut Draft) {
    match text(event, "/type") {
        "system" => match text(event, "/subtype") {
            "init" | "status" | "thinking_tokens" | "hook_started" | "hook_response" | "compact_boundary" => {
            }
            "api_retry" => draft.trouble(text(event, "/error"), status(event, "/error_status")),
            other => draft.unknown(&format!("system {other}")),
        },
        "assistant" => assistant(event, draft),
        "user" => {
            for block in list(event, "/message/content").filter(|block| text(block, "/type") == "tool_result")
            {
                let output = block.get("content").map(texts).unwrap_or_default();
                draft.called(text(block, "/tool_use_id"), &output, None);
            }
        }
        "result" => result(event, draft),
        "stream_event" | "rate_limit_event" | "tool_progress" => {}
        other => draft.unknown(other),
    }
}

fn assistant(event: &Value, draft: &mut Draft) {
    // An error told as if the model had said it; the result says it again.
    if flag(event, "/is_api_error_message") {
        return draft.trouble(&said(event), status(event, "/api_error_status"));
    }
    draft.count_reply(text(event, "/message/id"));
    for block in list(event, "/message/content") {
        match text(block, "/type") {
            "text" => draft.say(text(block, "/text")),
            "thinking" => draft.think(text(block, "/thinking")),
            "tool_use" => {
                let arguments = block.get("input").unwrap_or(&Value::Null);
                draft.call(text(block, "/id"), &call(text(block, "/name"), arguments));
            }
            "redacted_thinking" => {}
            other => draft.unknown(&format!("block {other}")),
        }
    }
}

fn said(event: &Value) -> String {
    event.pointer("/message/content").map(texts).unwrap_or_default()
}

fn result(event: &Value, draft: &mut Draft) {
    let [fresh, cached, written] = ["input", "cache_read_input", "cache_creation_input"]
        .map(|kind| number(event, &format!("/usage/{kind}_tokens")));
    draft.usage += Usage {
        prompt_tokens: fresh + cached + written,
        completion_tokens: number(event, "/usage/output_tokens"),
        cached_tokens: cached,
        reasoning_tokens: number(event, "/usage/output_tokens_details/thinking_tokens"),
        cache_write_tokens: written,
        ..Usage::default()
    };
    draft.spend(event.get("total_cost_usd").and_then(Value::as_f64));
    let subtype = text(event, "/subtype");
    if flag(event, "/is_error") || subtype != "success" {
        let words = text(event, "/result");
        let errors: Vec<&str> = list(event, "/errors").filter_map(Value::as_str).collect();
        let words = if words.is_empty() { errors.join("; ") } else { words.to_owned() };
        let words = if words.is_empty() { subtype.to_owned() } else { words };
        return draft.fail(&words, status(event, "/api_error_status"));
    }
    match event.get("structured_output") {
        Some(value) if !value.is_null() => draft.last_word(&value.to_string()),
        _ => draft.last_word(text(event, "/result")),
    }
    draft.done();
}
