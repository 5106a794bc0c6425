//! Bodies of Anthropic Messages. Must not read replies.

use serde_json::{Map, Value, json};

use super::{Call, replays, thinking};
use crate::domain::{Message, Part, Rung, Speaker, ToolChoice};
use crate::model::dialect::Feature;

pub(super) fn body(
    call: &Call<'_>,
    messages: &[Message],
    left_out: &mut Vec<&'static str>,
) -> Map<String, Value> {
    let mut body = Map::new();
    let sampling = &call.request.sampling;
    body.insert("model".into(), call.model.into());
    body.insert("max_tokens".into(), sampling.max_tokens.into());
    let mut system = system(messages);
    let (tools, choice) = call.tools();
    let mut tools: Vec<Value> = tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
        })
        .collect();
    // Tools come before the system text, so a mark at its end covers both.
    if let Some(last) = system.last_mut().or(tools.last_mut()).filter(|_| call.dialect.prefix_cache) {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), self::messages(call, messages).into());
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
        let choice = match choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({"type": "none"})),
            ToolChoice::Required => Some(json!({"type": "any"})),
            ToolChoice::Named(name) => Some(json!({"type": "tool", "name": name})),
        };
        if let Some(choice) = choice {
            body.insert("tool_choice".into(), choice);
        }
    }
    thinking::apply(call, &mut body, left_out);
    if let Some(output) = call.output_on(Rung::JsonSchema) {
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["format"] = json!({"type": "json_schema", "schema": output.schema});
    }
    let stop = (!sampling.stop.is_empty()).then(|| sampling.stop.as_slice().into());
    let rows = [
        ("temperature", None, sampling.temperature.map(Value::from)),
        ("top_p", None, sampling.top_p.map(Value::from)),
        ("top_k", Some(Feature::TopK), sampling.top_k.map(Value::from)),
        ("stop_sequences", Some(Feature::Stop), stop),
        ("stream", None, call.stream.then(|| true.into())),
    ];
    call.optional(&rows, &mut body, left_out);
    if sampling.seed.is_some() {
        left_out.push("`seed`");
    }
    body
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn system(messages: &[Message]) -> Vec<Value> {
    let texts = messages.iter().filter(|message| message.role == Speaker::System);
    let texts = texts.map(|message| message.content.text()).filter(|text| !text.is_empty());
    texts.map(|text| text_block(&text)).collect()
}

/// Roles alternate: results of tools and what the user adds to them are one message, results first.
fn messages(call: &Call<'_>, messages: &[Message]) -> Vec<Value> {
    let mut wire: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = match message.role {
            Speaker::System => continue,
            Speaker::User | Speaker::Tool => "user",
            Speaker::Assistant => "assistant",
        };
        let blocks = blocks(call, message);
        match wire.last_mut() {
            Some((last, earlier)) if *last == role => earlier.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => wire.push((role, blocks)),
        }
    }
    let message = |(role, mut blocks): (&str, Vec<Value>)| {
        blocks.sort_by_key(|block| block["type"] != "tool_result");
        let content = match blocks.as_slice() {
            [only] if only["type"] == "text" => only["text"].clone(),
            _ => Value::Array(blocks),
        };
        json!({"role": role, "content": content})
    };
    wire.into_iter().map(message).collect()
}

fn blocks(call: &Call<'_>, message: &Message) -> Vec<Value> {
    let block = |part: &Part| match part {
        // Empty texts are refused.
        Part::Text(text) => (!text.is_empty()).then(|| text_block(text)),
        // Only what the provider signed is taken back.
        Part::Thinking(thinking) => {
            let signed = thinking.opaque.get("type").is_some() && replays(call.dialect, message);
            signed.then(|| thinking.opaque.clone())
        }
        Part::Image(image) => {
            let source = json!({"type": "base64", "media_type": image.media_type, "data": image.data});
            Some(json!({"type": "image", "source": source}))
        }
        Part::ToolCall(call) => {
            // What the model wrote badly went to the tool as text; here only objects have a place.
            let input = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
            let input = input.unwrap_or_else(|| match call.arguments.trim() {
                "" => json!({}),
                written => json!({"arguments": written}),
            });
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
        }
        Part::ToolResult(result) => {
            let mut block =
                json!({"type": "tool_result", "tool_use_id": result.call, "content": result.text});
            if result.is_error {
                block["is_error"] = true.into();
            }
            Some(block)
        }
    };
    message.content.parts().iter().filter_map(block).collect()
}
