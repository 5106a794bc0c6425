//! Bodies of OpenAI Responses. Nothing is stored at the provider: reasoning comes encrypted and goes back with the next
//! request. Must not read replies.

use serde_json::{Map, Value, json};

use super::chat::data_url;
use super::{Call, replays, thinking};
use crate::config::Effort;
use crate::domain::{Message, Part, Rung, Speaker, ToolChoice};
use crate::model::dialect::{Feature, SystemRole};

pub(super) fn body(
    call: &Call<'_>,
    messages: &[Message],
    left_out: &mut Vec<&'static str>,
) -> Map<String, Value> {
    let mut body = Map::new();
    let sampling = &call.request.sampling;
    body.insert("model".into(), call.model.into());
    body.insert("input".into(), messages.iter().flat_map(|message| items(call, message)).collect());
    body.insert("max_output_tokens".into(), sampling.max_tokens.into());
    body.insert("store".into(), false.into());
    thinking::apply(call, &mut body, left_out);
    let (tools, choice) = call.tools();
    if !tools.is_empty() {
        let tools = tools.iter().map(|tool| {
            let (name, description, parameters) = (&tool.name, &tool.description, &tool.parameters);
            // Strict is the default here, and not every schema is fit for it.
            json!({"type": "function", "name": name, "description": description, "parameters": parameters,
                "strict": false})
        });
        body.insert("tools".into(), tools.collect());
        let choice = match choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Named(name) => Some(json!({"type": "function", "name": name})),
        };
        if let Some(choice) = choice {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let Some(output) = call.output_on(Rung::JsonSchema) {
        let (name, schema) = (&output.name, &output.schema);
        let format = json!({"type": "json_schema", "name": name, "schema": schema, "strict": true});
        body.insert("text".into(), json!({"format": format}));
    }
    if call.output_on(Rung::JsonObject).is_some() {
        body.insert("text".into(), json!({"format": {"type": "json_object"}}));
    }
    let logprobs = call.request.asks.logprobs && call.dialect.has(Feature::Logprobs);
    let encrypted = std::iter::once("reasoning.encrypted_content");
    let include = encrypted.chain(logprobs.then_some("message.output_text.logprobs"));
    body.insert("include".into(), include.collect());
    let rows = [
        ("temperature", None, sampling.temperature.map(Value::from)),
        ("top_p", None, sampling.top_p.map(Value::from)),
        ("stream", None, call.stream.then(|| true.into())),
    ];
    call.optional(&rows, &mut body, left_out);
    let asked = [
        ("`top_k`", sampling.top_k.is_some()),
        ("`seed`", sampling.seed.is_some()),
        ("`logprobs`", call.request.asks.logprobs && !logprobs),
    ];
    left_out.extend(asked.into_iter().filter(|(_, asked)| *asked).map(|(name, _)| name));
    body
}

/// The items of one message; calls and results of tools are items of their own.
fn items(call: &Call<'_>, message: &Message) -> Vec<Value> {
    let role = match message.role {
        Speaker::System => match call.dialect.system_role {
            SystemRole::Developer if call.effort != Effort::NotSent => "developer",
            SystemRole::System | SystemRole::Developer => "system",
            SystemRole::FirstUser => "user",
        },
        Speaker::User | Speaker::Tool => "user",
        Speaker::Assistant => "assistant",
    };
    let kind = if message.role == Speaker::Assistant { "output_text" } else { "input_text" };
    let mut items: Vec<Value> = Vec::new();
    let mut said: Vec<Value> = Vec::new();
    let say = |said: &mut Vec<Value>, items: &mut Vec<Value>| {
        if !said.is_empty() {
            items.push(json!({"role": role, "content": std::mem::take(said)}));
        }
    };
    for part in message.content.parts() {
        let item = match part {
            Part::Text(text) => {
                said.push(json!({"type": kind, "text": text}));
                continue;
            }
            Part::Image(image) => {
                said.push(json!({"type": "input_image", "image_url": data_url(image)}));
                continue;
            }
            // Nothing was stored there, so only what holds its content can be read again.
            Part::Thinking(thinking) => {
                let readable = thinking.opaque.get("encrypted_content").is_some_and(Value::is_string);
                if !readable || !replays(call.dialect, message) {
                    continue;
                }
                thinking.opaque.clone()
            }
            Part::ToolCall(call) => {
                let (id, name, arguments) = (&call.id, &call.name, &call.arguments);
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
            }
            Part::ToolResult(result) => {
                json!({"type": "function_call_output", "call_id": result.call, "output": result.text})
            }
        };
        say(&mut said, &mut items);
        items.push(item);
    }
    say(&mut said, &mut items);
    items
}
