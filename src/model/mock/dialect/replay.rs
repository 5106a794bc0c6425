//! Whether a conversation brings back what its tool calls were signed with, as some servers demand. Must not decide what
//! becomes of it.

use serde_json::Value;

use super::{Dialect, Vendor, list};

/// Some tool call of the model came back without the reasoning that led to it.
pub(super) fn lost(dialect: Dialect, vendor: Vendor, body: &Value) -> bool {
    match dialect {
        Dialect::Chat => list(&body["messages"]).iter().any(|message| lost_in_chat(vendor, message)),
        Dialect::Text => false,
        Dialect::Responses => lost_in_items(list(&body["input"])),
        Dialect::Messages => {
            list(&body["messages"]).iter().any(|message| lost_in_blocks(list(&message["content"])))
        }
        Dialect::Gemini => {
            list(&body["contents"]).iter().any(|content| lost_in_parts(list(&content["parts"])))
        }
    }
}

fn filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn lost_in_chat(vendor: Vendor, message: &Value) -> bool {
    let Some(first) = list(&message["tool_calls"]).first() else { return false };
    match vendor {
        Vendor::Plain | Vendor::Azure => {
            !filled(&message["reasoning_content"]) && !filled(&message["reasoning"])
        }
        Vendor::OpenRouter => list(&message["reasoning_details"]).is_empty(),
        Vendor::Google => !filled(&first["extra_content"]["google"]["thought_signature"]),
    }
}

/// Reasoning stands before the call that it led to, in the same reply.
fn lost_in_items(items: &[Value]) -> bool {
    let mut reasoned = false;
    items.iter().any(|item| match item["type"].as_str().unwrap_or("message") {
        "reasoning" => {
            reasoned = filled(&item["encrypted_content"]);
            false
        }
        "function_call" | "custom_tool_call" => !reasoned,
        kind => {
            let ends_reply = kind.ends_with("_output") || item["role"] == "user";
            reasoned &= !ends_reply;
            false
        }
    })
}

fn lost_in_blocks(blocks: &[Value]) -> bool {
    let calls = blocks.iter().any(|block| block["type"] == "tool_use");
    calls && !blocks.first().is_some_and(|block| block["type"] == "thinking" && filled(&block["signature"]))
}

fn lost_in_parts(parts: &[Value]) -> bool {
    let call = parts.iter().find(|part| part["functionCall"].is_object());
    call.is_some_and(|part| !filled(&part["thoughtSignature"]) && !filled(&part["thought_signature"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_without_their_reasoning_are_noticed() {
        let call = json!({"id": "c"});
        let chat = |fields: Value| {
            let mut message = json!({"role": "assistant", "tool_calls": [call]});
            message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            json!({"messages": [{"role": "user", "content": "x"}, message]})
        };
        let items = |sealed: Value| {
            json!({"input": [
                {"role": "user", "content": "x"}, {"type": "reasoning", "encrypted_content": sealed},
                {"type": "function_call"}, {"type": "function_call"}, {"type": "function_call_output"},
            ]})
        };
        let blocks = |first: Value| json!({"messages": [{"role": "assistant", "content": [first, {"type": "tool_use"}]}]});
        let parts = |signature: Value| json!({"contents": [{"parts": [{"functionCall": {}, "thoughtSignature": signature}, {"functionCall": {}}]}]});
        let signed = json!([{"id": "c", "extra_content": {"google": {"thought_signature": "s"}}}]);
        for (dialect, vendor, kept, lost_body) in [
            (Dialect::Chat, Vendor::Plain, chat(json!({"reasoning_content": "r"})), chat(json!({}))),
            (
                Dialect::Chat,
                Vendor::OpenRouter,
                chat(json!({"reasoning_details": [1]})),
                chat(json!({"reasoning": "r"})),
            ),
            (Dialect::Chat, Vendor::Google, chat(json!({"tool_calls": signed})), chat(json!({}))),
            (Dialect::Responses, Vendor::Plain, items("s".into()), items(Value::Null)),
            (
                Dialect::Messages,
                Vendor::Plain,
                blocks(json!({"type": "thinking", "signature": "s"})),
                blocks(json!({"type": "thinking", "thinking": "t"})),
            ),
            (Dialect::Gemini, Vendor::Google, parts("s".into()), parts(Value::Null)),
        ] {
            assert!(!lost(dialect, vendor, &kept), "{kept}");
            assert!(lost(dialect, vendor, &lost_body), "{lost_body}");
        }
        let second = json!({"input": [
            {"type": "reasoning", "encrypted_content": "s"}, {"type": "function_call"}, {"type": "function_call_output"},
            {"type": "function_call"},
        ]});
        assert!(lost(Dialect::Responses, Vendor::Plain, &second));
    }
}
