//! OpenAI Responses: output items, and events that are numbered in sequence. Must not decide what to answer.

use serde_json::{Map, Value, json};

use super::super::answer::FixedUsage;
use super::super::conversation::{Said, Speaker};
use super::super::turn::{Call, Finish, Refusal, Turn};
use super::chat::{self, SIGNATURE};
use super::{CREATED, Event, Frame, Place, Wants, content_text, list, logprobs, pieces};

pub(super) fn read(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    if let Some(instructions) = body["instructions"].as_str() {
        said.push(Said::new(Speaker::System, instructions));
    }
    if let Some(text) = body["input"].as_str() {
        said.push(Said::new(Speaker::User, text));
    }
    said.extend(list(&body["input"]).iter().map(read_item));
    said
}

fn read_item(item: &Value) -> Said {
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let by = match item["role"].as_str().unwrap_or_default() {
                "system" | "developer" => Speaker::System,
                "assistant" => Speaker::Model,
                _ => Speaker::User,
            };
            Said::new(by, content_text(&item["content"]))
        }
        kind if kind.ends_with("_output") => Said::new(Speaker::Tool, content_text(&item["output"])),
        // Calls of every kind, and reasoning.
        _ => Said::new(Speaker::Model, ""),
    }
}

pub(super) fn wants(body: &Value) -> Wants {
    let includes = |wanted: &str| list(&body["include"]).iter().any(|name| name == wanted);
    let text_tools = list(&body["tools"])
        .iter()
        .filter(|tool| tool["type"] == "custom")
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect();
    Wants {
        stream_usage: true,
        logprobs: includes("message.output_text.logprobs"),
        encrypted_reasoning: includes("reasoning.encrypted_content"),
        text_tools,
    }
}

/// One item of the output.
enum Item<'a> {
    Reasoning(&'a str),
    Message(&'a str),
    Call(&'a Call),
    /// A call of a tool that takes a text.
    TextCall(&'a Call),
}

fn items<'a>(frame: &Frame, turn: &'a Turn) -> Vec<Item<'a>> {
    let reasoning = (!turn.thinking.is_empty()).then_some(Item::Reasoning(&turn.thinking));
    let message = (!turn.text.is_empty()).then_some(Item::Message(&turn.text));
    let calls = turn.calls.iter().map(|call| {
        if frame.wants.text_tools.contains(&call.name) { Item::TextCall(call) } else { Item::Call(call) }
    });
    reasoning.into_iter().chain(message).chain(calls).collect()
}

/// How far an item, or a whole response, has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Begun,
    Done,
}

impl Item<'_> {
    fn id(&self, frame: &Frame) -> String {
        match self {
            Self::Reasoning(_) => format!("rs_{}", frame.id),
            Self::Message(_) => format!("msg_{}", frame.id),
            Self::Call(call) => format!("fc_{}", call.id),
            Self::TextCall(call) => format!("ctc_{}", call.id),
        }
    }

    fn json(&self, frame: &Frame, turn: &Turn, progress: Progress) -> Value {
        let id = self.id(frame);
        let done = progress == Progress::Done;
        let status = if done { "completed" } else { "in_progress" };
        match self {
            Self::Reasoning(text) => {
                let summary = if done { json!([{"type": "summary_text", "text": text}]) } else { json!([]) };
                let sealed = (done && frame.wants.encrypted_reasoning).then_some(SIGNATURE);
                json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": sealed})
            }
            Self::Message(text) => {
                let content = if done { json!([text_part(frame, turn, text)]) } else { json!([]) };
                json!({"type": "message", "id": id, "status": status, "role": "assistant", "content": content})
            }
            Self::Call(call) => {
                let arguments = if done { call.arguments_text() } else { String::new() };
                json!({
                    "type": "function_call", "id": id, "call_id": format!("call_{}", call.id),
                    "name": call.name, "arguments": arguments, "status": status,
                })
            }
            Self::TextCall(call) => {
                let input = if done { text_input(call) } else { String::new() };
                json!({
                    "type": "custom_tool_call", "id": id, "call_id": format!("call_{}", call.id),
                    "name": call.name, "input": input, "status": status,
                })
            }
        }
    }
}

/// The text for a tool that takes one: the arguments, or what stands in them under `input`.
fn text_input(call: &Call) -> String {
    call.arguments["input"].as_str().map_or_else(|| call.arguments_text(), str::to_owned)
}

fn text_part(frame: &Frame, turn: &Turn, text: &str) -> Value {
    json!({
        "type": "output_text", "text": text, "annotations": [],
        "logprobs": part_logprobs(frame, turn, text),
    })
}

fn part_logprobs(frame: &Frame, turn: &Turn, text: &str) -> Vec<Value> {
    if frame.wants.logprobs { logprobs(text, frame.chunk, turn.logprob) } else { Vec::new() }
}

pub(super) fn whole(frame: &Frame, turn: &Turn) -> Value {
    let output = items(frame, turn).iter().map(|item| item.json(frame, turn, Progress::Done)).collect();
    let (status, details) = status(&turn.finish);
    response(frame, status, Value::Array(output), json!({"incomplete_details": details}))
}

fn status(finish: &Finish) -> (&str, Value) {
    match finish {
        Finish::Stop | Finish::ToolCalls => ("completed", Value::Null),
        Finish::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
        Finish::ContentFilter => ("incomplete", json!({"reason": "content_filter"})),
        Finish::Other(word) => (word, Value::Null),
    }
}

/// The object that the whole is about; `changes` go over its fields.
fn response(frame: &Frame, status: &str, output: Value, changes: Value) -> Value {
    let finished = status != "in_progress";
    let mut body = json!({
        "id": format!("resp_{}", frame.id), "object": "response", "created_at": CREATED, "status": status,
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "model": frame.model, "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "store": false, "tool_choice": "auto", "tools": [],
        "usage": frame.usage.as_ref().filter(|_| finished).map(usage_json), "metadata": {},
    });
    if let (Some(body), Value::Object(changes)) = (body.as_object_mut(), changes) {
        body.extend(changes);
    }
    body
}

fn usage_json(usage: &FixedUsage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    })
}

/// Numbers events as they are added.
#[derive(Default)]
struct Sequence {
    events: Vec<Event>,
}

impl Sequence {
    fn add(&mut self, name: &'static str, fields: Value, place: Place) {
        let mut data = Map::new();
        data.insert("type".into(), name.into());
        data.insert("sequence_number".into(), self.events.len().into());
        if let Value::Object(fields) = fields {
            data.extend(fields);
        }
        self.events.push(Event { name: Some(name), data: Value::Object(data).to_string(), place });
    }
}

pub(super) fn events(frame: &Frame, turn: &Turn) -> Vec<Event> {
    let mut sequence = Sequence::default();
    let begun = response(frame, "in_progress", json!([]), json!({}));
    sequence.add("response.created", json!({"response": begun}), Place::Around);
    sequence.add("response.in_progress", json!({"response": begun}), Place::Around);
    for (index, item) in items(frame, turn).iter().enumerate() {
        let added = json!({"output_index": index, "item": item.json(frame, turn, Progress::Begun)});
        sequence.add("response.output_item.added", added, Place::Around);
        item_events(&mut sequence, frame, turn, index, item);
        let done = json!({"output_index": index, "item": item.json(frame, turn, Progress::Done)});
        sequence.add("response.output_item.done", done, Place::Around);
    }
    let last = match &turn.finish {
        Finish::Stop | Finish::ToolCalls => "response.completed",
        Finish::Length | Finish::ContentFilter => "response.incomplete",
        Finish::Other(_) => "response.failed",
    };
    sequence.add(last, json!({"response": whole(frame, turn)}), Place::Last);
    sequence.events
}

fn item_events(sequence: &mut Sequence, frame: &Frame, turn: &Turn, index: usize, item: &Item<'_>) {
    let about = |more: Value| {
        let mut fields = json!({"item_id": item.id(frame), "output_index": index});
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            fields.extend(more);
        }
        fields
    };
    match item {
        Item::Reasoning(text) => {
            let part =
                |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
            sequence.add("response.reasoning_summary_part.added", about(part("")), Place::Around);
            for piece in pieces(text, frame.chunk) {
                let delta = about(json!({"summary_index": 0, "delta": piece}));
                sequence.add("response.reasoning_summary_text.delta", delta, Place::Said);
            }
            let done = about(json!({"summary_index": 0, "text": text}));
            sequence.add("response.reasoning_summary_text.done", done, Place::Around);
            sequence.add("response.reasoning_summary_part.done", about(part(text)), Place::Around);
        }
        Item::Message(text) => {
            let part = |text: &str| json!({"content_index": 0, "part": text_part(frame, turn, text)});
            sequence.add("response.content_part.added", about(part("")), Place::Around);
            for piece in pieces(text, frame.chunk) {
                let logprobs = part_logprobs(frame, turn, &piece);
                let delta = about(json!({"content_index": 0, "delta": piece, "logprobs": logprobs}));
                sequence.add("response.output_text.delta", delta, Place::Said);
            }
            let logprobs = part_logprobs(frame, turn, text);
            let done = about(json!({"content_index": 0, "text": text, "logprobs": logprobs}));
            sequence.add("response.output_text.done", done, Place::Around);
            sequence.add("response.content_part.done", about(part(text)), Place::Around);
        }
        Item::Call(call) => {
            let arguments = call.arguments_text();
            for piece in pieces(&arguments, frame.chunk) {
                let delta = about(json!({"delta": piece}));
                sequence.add("response.function_call_arguments.delta", delta, Place::Said);
            }
            let done = about(json!({"name": call.name, "arguments": arguments}));
            sequence.add("response.function_call_arguments.done", done, Place::Around);
        }
        Item::TextCall(call) => {
            let input = text_input(call);
            for piece in pieces(&input, frame.chunk) {
                let delta = about(json!({"delta": piece}));
                sequence.add("response.custom_tool_call_input.delta", delta, Place::Said);
            }
            let done = about(json!({"input": input}));
            sequence.add("response.custom_tool_call_input.done", done, Place::Around);
        }
    }
}

/// A response that has failed.
pub(super) fn failed(frame: &Frame, refusal: &Refusal) -> Value {
    let error = &chat::error(frame.vendor, refusal)["error"];
    let error = json!({"code": error["code"], "message": refusal.message});
    response(frame, "failed", json!([]), json!({"error": error, "usage": null}))
}

/// How a stream tells it.
pub(super) fn refusal_event(frame: &Frame, refusal: &Refusal, number: usize) -> Event {
    let name = "response.failed";
    let data = json!({"type": name, "sequence_number": number, "response": failed(frame, refusal)});
    Event { name: Some(name), data: data.to_string(), place: Place::Last }
}
