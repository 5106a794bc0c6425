//! Bodies of OpenAI chat completions, and of the text completions beside them. Must not read replies.

use serde_json::{Map, Value, json};

use super::{Call, replays, thinking};
use crate::config::Effort;
use crate::domain::{Image, Message, Part, Rung, Speaker, Thinking, ToolCall, ToolChoice};
use crate::model::dialect::{Feature, SystemRole};

pub(super) fn body(
    call: &Call<'_>,
    messages: &[Message],
    left_out: &mut Vec<&'static str>,
) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), call.model.into());
    body.insert("messages".into(), self::messages(call, messages).into());
    thinking::apply(call, &mut body, left_out);
    let (tools, choice) = call.tools();
    if !tools.is_empty() {
        let function = |tool: &crate::domain::Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        let tools = tools.iter().map(|tool| json!({"type": "function", "function": function(tool)}));
        body.insert("tools".into(), tools.collect());
        let choice = match choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": name}})),
        };
        if let Some(choice) = choice {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let Some(output) = call.output_on(Rung::JsonSchema) {
        let schema = json!({"name": output.name, "schema": output.schema, "strict": true});
        body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": schema}));
    }
    if call.output_on(Rung::JsonObject).is_some() {
        body.insert("response_format".into(), json!({"type": "json_object"}));
    }
    let logprobs = call.request.asks.logprobs.then(|| true.into());
    common(call, logprobs, &mut body, left_out);
    body
}

pub(super) fn completion_body(
    call: &Call<'_>,
    prompt: &str,
    left_out: &mut Vec<&'static str>,
) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), call.model.into());
    body.insert("prompt".into(), prompt.into());
    // Here it is the number of tokens to tell at each place.
    let logprobs = call.request.asks.logprobs.then(|| 1.into());
    common(call, logprobs, &mut body, left_out);
    body
}

fn common(
    call: &Call<'_>,
    logprobs: Option<Value>,
    body: &mut Map<String, Value>,
    left_out: &mut Vec<&'static str>,
) {
    let sampling = &call.request.sampling;
    body.insert(call.dialect.token_field.name().into(), sampling.max_tokens.into());
    let stop = (!sampling.stop.is_empty()).then(|| sampling.stop.as_slice().into());
    let rows = [
        ("temperature", None, sampling.temperature.map(Value::from)),
        ("top_p", None, sampling.top_p.map(Value::from)),
        ("top_k", Some(Feature::TopK), sampling.top_k.map(Value::from)),
        ("seed", Some(Feature::Seed), sampling.seed.map(Value::from)),
        ("stop", Some(Feature::Stop), stop),
        ("logprobs", Some(Feature::Logprobs), logprobs),
    ];
    call.optional(&rows, body, left_out);
    if call.stream {
        body.insert("stream".into(), true.into());
        if call.dialect.has(Feature::StreamUsage) {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
    }
}

fn messages(call: &Call<'_>, messages: &[Message]) -> Vec<Value> {
    let role = match call.dialect.system_role {
        SystemRole::Developer if call.effort != Effort::NotSent => Some("developer"),
        SystemRole::System | SystemRole::Developer => Some("system"),
        SystemRole::FirstUser => None,
    };
    let mut wire = Vec::new();
    let mut waiting = String::new();
    for message in messages {
        match (message.role, role) {
            (Speaker::System, Some(role)) => {
                wire.push(json!({"role": role, "content": message.content.text()}));
            }
            (Speaker::System, None) => {
                waiting.push_str(&message.content.text());
                waiting.push_str("\n\n");
            }
            (Speaker::User, _) => {
                let content = user_content(&std::mem::take(&mut waiting), message);
                wire.push(json!({"role": "user", "content": content}));
            }
            (Speaker::Assistant, _) => wire.push(assistant(call, message)),
            (Speaker::Tool, _) => {}
        }
        let results = message.content.parts().iter().filter_map(|part| match part {
            Part::ToolResult(result) => {
                Some(json!({"role": "tool", "tool_call_id": result.call, "content": result.text}))
            }
            Part::Text(_) | Part::Thinking(_) | Part::Image(_) | Part::ToolCall(_) => None,
        });
        wire.extend(results);
    }
    if !waiting.is_empty() {
        wire.push(json!({"role": "user", "content": waiting.trim_end()}));
    }
    wire
}

/// A plain string where the message is nothing but text: some servers know nothing else.
fn user_content(before: &str, message: &Message) -> Value {
    if let Some(text) = message.content.as_text() {
        return format!("{before}{text}").into();
    }
    let before = (!before.is_empty()).then(|| json!({"type": "text", "text": before}));
    let parts = message.content.parts().iter().filter_map(|part| match part {
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Image(image) => Some(json!({"type": "image_url", "image_url": {"url": data_url(image)}})),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    });
    before.into_iter().chain(parts).collect()
}

pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.data)
}

fn assistant(call: &Call<'_>, message: &Message) -> Value {
    let mut wire = Map::new();
    let mut content = message.content.text();
    wire.insert("role".into(), "assistant".into());
    let mut calls = Vec::new();
    for part in message.content.parts() {
        match part {
            Part::ToolCall(call) => calls.push(tool_call(call)),
            Part::Thinking(thinking) if replays(call.dialect, message) => {
                replay(call, thinking, &mut content, &mut wire);
            }
            Part::Text(_) | Part::Thinking(_) | Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    let silent = content.is_empty() && !calls.is_empty();
    wire.insert("content".into(), if silent { Value::Null } else { content.into() });
    if !calls.is_empty() {
        wire.insert("tool_calls".into(), calls.into());
    }
    Value::Object(wire)
}

/// Thinking goes back the way it came.
fn replay(call: &Call<'_>, thinking: &Thinking, content: &mut String, wire: &mut Map<String, Value>) {
    if thinking.opaque.is_array() {
        wire.insert("reasoning_details".into(), thinking.opaque.clone());
    } else if call.dialect.inline_think {
        *content = format!("<think>\n{}\n</think>\n\n{content}", thinking.text);
    } else if let Some(field) = call.dialect.reasoning_fields.first() {
        wire.insert(field.clone(), thinking.text.as_str().into());
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    let mut wire = json!({"id": call.id, "type": "function", "function": function});
    if !call.opaque.is_null() {
        wire["extra_content"] = call.opaque.clone();
    }
    wire
}
