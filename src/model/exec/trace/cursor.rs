//! Events of `cursor-agent -p --output-format stream-json`, by its documentation: no client was at hand.

use serde_json::Value;

use super::Draft;
use super::part::{call, exit, flag, list, number, text};
use crate::domain::Usage;

pub fn read(event: &Value, draft: &mut Draft) {
    match (text(event, "/type"), text(event, "/subtype")) {
        ("system" | "user" | "interaction_query", _) => {}
        ("thinking", "delta") => {}
        ("thinking", _) => draft.think(text(event, "/text")),
        ("assistant", _) => {
            let blocks = list(event, "/message/content").filter(|block| text(block, "/type") == "text");
            let said: String = blocks.map(|block| text(block, "/text")).collect();
            draft.say_on(&said);
        }
        ("tool_call", "started") => {
            draft.count_reply(text(event, "/model_call_id"));
            if let Some((name, tool)) = tool(event) {
                let arguments = tool.get("args").unwrap_or(&Value::Null);
                draft.call(text(event, "/call_id"), &call(name, arguments));
            }
        }
        ("tool_call", "completed") => {
            if let Some((_, tool)) = tool(event) {
                draft.called(text(event, "/call_id"), &output(tool), exit(tool, "/result/success/exitCode"));
            }
        }
        ("tool_call", _) => {}
        ("result", subtype) => {
            draft.usage += Usage {
                calls: 1,
                prompt_tokens: number(event, "/usage/inputTokens")
                    + number(event, "/usage/cacheReadTokens")
                    + number(event, "/usage/cacheWriteTokens"),
                completion_tokens: number(event, "/usage/outputTokens"),
                cached_tokens: number(event, "/usage/cacheReadTokens"),
                cache_write_tokens: number(event, "/usage/cacheWriteTokens"),
                ..Usage::default()
            };
            if flag(event, "/is_error") || subtype != "success" {
                return draft.fail(text(event, "/result"), None);
            }
            // The result repeats all that was said; it is the last word only where nothing was streamed.
            if !draft.has_spoken() {
                draft.say(text(event, "/result"));
            }
            draft.done();
        }
        (other, _) => draft.unknown(other),
    }
}

/// The one tool of the call: `{"shellToolCall": {"args": …, "result": …}}`.
fn tool(event: &Value) -> Option<(&str, &Value)> {
    let (name, tool) = event.get("tool_call")?.as_object()?.iter().next()?;
    Some((name.strip_suffix("ToolCall").unwrap_or(name), tool))
}

fn output(tool: &Value) -> String {
    let texts = ["/result/success/stdout", "/result/success/stderr", "/result/success/content"];
    let said: Vec<&str> = texts.iter().map(|at| text(tool, at)).filter(|text| !text.is_empty()).collect();
    match (said.is_empty(), tool.get("result")) {
        (true, Some(result)) => result.to_string(),
        _ => said.join("\n"),
    }
}
