//! Events of `codex exec --json`. Usage comes once per turn, without the number of model calls: a lower bound is kept.

use serde_json::Value;

use super::Draft;
use super::part::{exit, number, text};
use crate::domain::Usage;

pub fn read(event: &Value, draft: &mut Draft) {
    match text(event, "/type") {
        "thread.started" | "turn.started" => {}
        "item.started" | "item.updated" => {
            if let Some(command) = command(event) {
                draft.call(text(event, "/item/id"), &command);
            }
        }
        "item.completed" => item(event, draft),
        "turn.completed" => {
            draft.usage += Usage {
                calls: 1 + draft.tool_calls() as u64,
                prompt_tokens: number(event, "/usage/input_tokens"),
                completion_tokens: number(event, "/usage/output_tokens"),
                cached_tokens: number(event, "/usage/cached_input_tokens"),
                reasoning_tokens: number(event, "/usage/reasoning_output_tokens"),
                cache_write_tokens: number(event, "/usage/cache_write_input_tokens"),
                ..Usage::default()
            };
            draft.done();
        }
        "turn.failed" => draft.fail(text(event, "/error/message"), None),
        "error" => draft.trouble(text(event, "/message"), None),
        other => draft.unknown(other),
    }
}

fn item(event: &Value, draft: &mut Draft) {
    let id = text(event, "/item/id");
    match text(event, "/item/type") {
        "agent_message" => draft.say(text(event, "/item/text")),
        "reasoning" => draft.think(text(event, "/item/text")),
        // A warning about its configuration, not the end of anything.
        "error" | "todo_list" => {}
        kind => match command(event) {
            Some(command) => {
                draft.call(id, &command);
                draft.called(id, text(event, "/item/aggregated_output"), exit(event, "/item/exit_code"));
            }
            None => draft.unknown(&format!("item {kind}")),
        },
    }
}

/// The item as a tool call, if it is one.
fn command(event: &Value) -> Option<String> {
    let item = event.get("item")?;
    match text(event, "/item/type") {
        "command_execution" => Some(text(event, "/item/command").to_owned()),
        "file_change" => Some(format!("apply_patch {}", item.get("changes").unwrap_or(&Value::Null))),
        "mcp_tool_call" => Some(format!("{}/{}", text(event, "/item/server"), text(event, "/item/tool"))),
        "web_search" => Some(format!("web_search {}", text(event, "/item/query"))),
        _ => None,
    }
}
