//! Events of `opencode run --format json`.

use serde_json::Value;

use super::Draft;
use super::part::{call, exit, number, status, text};
use crate::domain::Usage;

pub fn read(event: &Value, draft: &mut Draft) {
    match text(event, "/type") {
        "step_start" => {}
        "text" => draft.say(text(event, "/part/text")),
        "reasoning" => draft.think(text(event, "/part/text")),
        "tool_use" => {
            let id = text(event, "/part/callID");
            let arguments = event.pointer("/part/state/input").unwrap_or(&Value::Null);
            draft.call(id, &call(text(event, "/part/tool"), arguments));
            let output = [text(event, "/part/state/output"), text(event, "/part/state/error")].concat();
            draft.called(id, &output, exit(event, "/part/state/metadata/exit"));
        }
        "step_finish" => {
            let cached = number(event, "/part/tokens/cache/read");
            let written = number(event, "/part/tokens/cache/write");
            let reasoning = number(event, "/part/tokens/reasoning");
            draft.usage += Usage {
                calls: 1,
                prompt_tokens: number(event, "/part/tokens/input") + cached + written,
                completion_tokens: number(event, "/part/tokens/output") + reasoning,
                cached_tokens: cached,
                reasoning_tokens: reasoning,
                cache_write_tokens: written,
                ..Usage::default()
            };
            draft.spend(event.pointer("/part/cost").and_then(Value::as_f64));
            if text(event, "/part/reason") != "tool-calls" {
                draft.done();
            }
        }
        "error" => {
            let words = [text(event, "/error/name"), text(event, "/error/data/message")].join(": ");
            draft.fail(&words, status(event, "/error/data/statusCode"));
        }
        other => draft.unknown(other),
    }
}
