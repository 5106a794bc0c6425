//! Events of `copilot --output-format json`. It tells no tokens here, and masks its key's value wherever it occurs.

use serde_json::Value;

use super::Draft;
use super::part::{call, exit, number, status, text, texts};

pub fn read(event: &Value, draft: &mut Draft) {
    match text(event, "/type") {
        "assistant.message" => {
            draft.count_reply(text(event, "/data/messageId"));
            draft.usage.completion_tokens += number(event, "/data/outputTokens");
            draft.think(text(event, "/data/reasoningText"));
            draft.say(text(event, "/data/content"));
        }
        "tool.execution_start" => {
            let arguments = event.pointer("/data/arguments").unwrap_or(&Value::Null);
            draft.call(text(event, "/data/toolCallId"), &call(text(event, "/data/toolName"), arguments));
        }
        "tool.execution_complete" => {
            let result =
                event.pointer("/data/result/content").or_else(|| event.pointer("/data/error/message"));
            let code = exit(event, "/data/shellExecution/exitCode");
            draft.called(text(event, "/data/toolCallId"), &result.map(texts).unwrap_or_default(), code);
        }
        "session.error" => {
            let words = [text(event, "/data/errorType"), text(event, "/data/message")].join(": ");
            draft.trouble(&words, status(event, "/data/statusCode"));
        }
        "result" => match exit(event, "/exitCode") {
            Some(0) => draft.done(),
            _ => draft.fail("", None),
        },
        kind if is_noise(kind) => {}
        other => draft.unknown(other),
    }
}

fn is_noise(kind: &str) -> bool {
    const NOISE: &[&str] = &["session.", "model.", "user.", "hook.", "skill.", "system."];
    NOISE.iter().any(|family| kind.starts_with(family))
        || matches!(
            kind,
            "assistant.turn_start"
                | "assistant.turn_end"
                | "assistant.turn_retry"
                | "assistant.idle"
                | "assistant.intent"
                | "assistant.usage"
                | "assistant.reasoning"
                | "assistant.message_delta"
                | "assistant.message_start"
                | "assistant.reasoning_delta"
                | "assistant.streaming_delta"
                | "tool.shell_output"
                | "tool.execution_progress"
                | "tool.execution_partial_result"
        )
}
