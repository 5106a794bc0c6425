//! Events of `gemini --output-format stream-json`. It tells no exit codes.

use serde_json::Value;

use super::Draft;
use super::part::{call, flag, number, text};
use crate::domain::Usage;

pub fn read(event: &Value, draft: &mut Draft) {
    match text(event, "/type") {
        "init" => {}
        "message" if text(event, "/role") != "assistant" => {}
        "message" if flag(event, "/delta") => draft.say_on(text(event, "/content")),
        "message" => draft.say(text(event, "/content")),
        "tool_use" => {
            let arguments = event.get("parameters").unwrap_or(&Value::Null);
            draft.call(text(event, "/tool_id"), &call(text(event, "/tool_name"), arguments));
        }
        "tool_result" => {
            let output = [text(event, "/output"), text(event, "/error/message")].concat();
            draft.called(text(event, "/tool_id"), &output, None);
        }
        "error" => draft.trouble(text(event, "/message"), None),
        "result" => {
            let [total, prompt, said] =
                ["total", "input", "output"].map(|kind| number(event, &format!("/stats/{kind}_tokens")));
            // Thinking is in the total only.
            let thought = total.saturating_sub(prompt + said);
            draft.usage += Usage {
                calls: 1 + draft.tool_calls() as u64,
                prompt_tokens: prompt,
                completion_tokens: said + thought,
                cached_tokens: number(event, "/stats/cached"),
                reasoning_tokens: thought,
                ..Usage::default()
            };
            match text(event, "/status") {
                "success" => draft.done(),
                _ => draft.fail(text(event, "/error/message"), None),
            }
        }
        other => draft.unknown(other),
    }
}
