//! Events of `pi --mode json` since 1.0. Its exit code is 0 even when every call failed: the last stop reason counts.

use serde_json::Value;

use super::Draft;
use super::part::{call, exit, flag, list, number, text, texts};
use crate::domain::Usage;

pub fn read(event: &Value, draft: &mut Draft) {
    match text(event, "/type") {
        "message_end" if text(event, "/message/role") == "assistant" => assistant(event, draft),
        "tool_execution_start" => {
            let arguments = event.get("args").unwrap_or(&Value::Null);
            draft.call(text(event, "/toolCallId"), &call(text(event, "/toolName"), arguments));
        }
        "tool_execution_end" => {
            let output = event.pointer("/result/content").map(texts).unwrap_or_default();
            let code = exit(event, "/result/structuredContent/exit_code");
            draft.called(text(event, "/toolCallId"), &output, code);
        }
        // The only sure end: an `agent_end` may be followed by another try.
        "agent_settled" if flag(event, "/aborted") => draft.fail("aborted", None),
        "agent_settled" => draft.settle(),
        "session"
        | "agent_start"
        | "agent_end"
        | "turn_start"
        | "turn_end"
        | "message_start"
        | "message_end"
        | "message_update"
        | "tool_execution_update"
        | "entry_appended"
        | "auto_retry_start"
        | "auto_retry_end"
        | "queue_update" => {}
        other => draft.unknown(other),
    }
}

fn assistant(event: &Value, draft: &mut Draft) {
    let [fresh, cached, written] =
        ["input", "cacheRead", "cacheWrite"].map(|kind| number(event, &format!("/message/usage/{kind}")));
    draft.usage += Usage {
        calls: 1,
        prompt_tokens: fresh + cached + written,
        completion_tokens: number(event, "/message/usage/output"),
        cached_tokens: cached,
        reasoning_tokens: number(event, "/message/usage/reasoning"),
        cache_write_tokens: written,
        ..Usage::default()
    };
    draft.spend(event.pointer("/message/usage/cost/total").and_then(Value::as_f64));
    for block in list(event, "/message/content") {
        match text(block, "/type") {
            "text" => draft.say(text(block, "/text")),
            "thinking" => draft.think(text(block, "/thinking")),
            _ => {}
        }
    }
    if matches!(text(event, "/message/stopReason"), "error" | "aborted") {
        draft.trouble(text(event, "/message/errorMessage"), None);
    }
}
