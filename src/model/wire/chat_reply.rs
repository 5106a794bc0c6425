//! Replies of OpenAI chat and text completions, whole or in chunks; both have one shape. Must not build requests.

use serde_json::Value;

use super::inline_think::{LiveFilter, split};
use super::{Answer, Heard, ServerError, arguments, list, logprobs, text, usage};
use crate::domain::{FinishReason, Part, Thinking, TokenLogprob, ToolCall, Usage};
use crate::model::dialect::Dialect;

#[derive(Debug, Default)]
pub(in crate::model) struct ChatReader {
    reasoning_fields: Vec<String>,
    /// Set where thinking may come inside the text.
    inline: Option<LiveFilter>,
    thinking: String,
    /// `reasoning_details`: what the provider wants back unchanged.
    details: Vec<Value>,
    text: String,
    refusal: String,
    /// Tool calls by the index of the wire.
    calls: Vec<(u64, ToolCall)>,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
    logprobs: Vec<TokenLogprob>,
}

impl ChatReader {
    pub(super) fn new(dialect: &Dialect) -> Self {
        Self {
            reasoning_fields: dialect.reasoning_fields.clone(),
            inline: dialect.inline_think.then(LiveFilter::default),
            ..Self::default()
        }
    }

    /// A whole body or one chunk. Everything is optional: servers leave out what they like.
    pub(super) fn piece(&mut self, data: &Value) -> Result<Heard, ServerError> {
        if let Some(error) = ServerError::of(data).or_else(|| status_in_reply(data)) {
            return Err(error);
        }
        if let Some(usage) = data.get("usage").and_then(usage::chat) {
            self.usage = Some(usage);
        }
        // One answer was asked for; a server that sends more is read as if it had sent the first.
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let Some(choice) = list(data, "choices").iter().find(first) else { return Ok(Heard::default()) };
        let reason = text(choice, "finish_reason");
        if !reason.is_empty() {
            self.finish = Some(finish_reason(reason));
        }
        self.hear_logprobs(choice.get("logprobs").unwrap_or(&Value::Null));
        let message = choice.get("delta").filter(|delta| delta.is_object()).or(choice.get("message"));
        let message = message.unwrap_or(&Value::Null);
        self.hear_thinking(message);
        self.refusal.push_str(text(message, "refusal"));
        for (place, call) in list(message, "tool_calls").iter().enumerate() {
            self.hear_call(call, place as u64);
        }
        let mut new = content(message.get("content").unwrap_or(&Value::Null));
        new.push_str(text(choice, "text"));
        self.text.push_str(&new);
        Ok(Heard::text(match &mut self.inline {
            Some(filter) => filter.push(&new),
            None => new,
        }))
    }

    fn hear_thinking(&mut self, message: &Value) {
        // Servers in between two versions send the same under two names.
        let fields = self.reasoning_fields.iter().map(|field| text(message, field));
        if let Some(more) = fields.into_iter().find(|more| !more.is_empty()) {
            self.thinking.push_str(more);
        }
        for detail in list(message, "reasoning_details") {
            self.hear_detail(detail);
        }
    }

    /// Pieces of one detail have one index and one type; their texts continue each other.
    fn hear_detail(&mut self, detail: &Value) {
        let same = |known: &&mut Value| {
            let index = detail.get("index").filter(|index| index.is_number());
            index.is_some() && known.get("index") == index && known.get("type") == detail.get("type")
        };
        let (Some(known), Some(fields)) = (self.details.iter_mut().find(same), detail.as_object()) else {
            self.details.push(detail.clone());
            return;
        };
        let Some(known) = known.as_object_mut() else { return };
        for (name, value) in fields {
            match (known.get_mut(name), value) {
                (Some(Value::String(known)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    known.push_str(more);
                }
                (Some(_), Value::Null) => {}
                (Some(_) | None, _) => {
                    known.insert(name.clone(), value.clone());
                }
            }
        }
    }

    fn hear_call(&mut self, piece: &Value, place: u64) {
        let (id, function) = (text(piece, "id"), piece.get("function").unwrap_or(&Value::Null));
        let index = piece.get("index").and_then(Value::as_u64).unwrap_or_else(|| {
            // Without an index an id that is new begins a call, and anything else continues the last one.
            match self.calls.iter().find(|(_, call)| !id.is_empty() && call.id == id) {
                Some((index, _)) => *index,
                None if id.is_empty() && !self.calls.is_empty() && place == 0 => {
                    self.calls.last().map_or(0, |(index, _)| *index)
                }
                None => self.calls.last().map_or(place, |(index, _)| index.saturating_add(1)),
            }
        });
        // Some servers give every call the index 0.
        let known = self.calls.iter_mut().rev().find(|(known, _)| *known == index).map(|(_, call)| call);
        let known = known.filter(|call| id.is_empty() || call.id.is_empty() || call.id == id);
        let call = match known {
            Some(call) => call,
            None => {
                let blank = ToolCall {
                    id: String::new(),
                    name: String::new(),
                    arguments: String::new(),
                    opaque: Value::Null,
                };
                self.calls.push((index, blank));
                let Some((_, call)) = self.calls.last_mut() else { return };
                call
            }
        };
        if call.id.is_empty() {
            call.id = id.to_owned();
        }
        if call.name.is_empty() {
            call.name = text(function, "name").to_owned();
        }
        call.arguments.push_str(&arguments(function.get("arguments").unwrap_or(&Value::Null)));
        if let Some(extra) = piece.get("extra_content").filter(|extra| !extra.is_null()) {
            call.opaque = extra.clone();
        }
    }

    /// Of chat, or of text completions, which keep tokens and numbers apart.
    fn hear_logprobs(&mut self, wire: &Value) {
        self.logprobs.extend(logprobs(list(wire, "content")));
        let tokens = list(wire, "tokens").iter().zip(list(wire, "token_logprobs"));
        self.logprobs.extend(tokens.filter_map(|(token, logprob)| {
            Some(TokenLogprob { token: token.as_str()?.to_owned(), logprob: logprob.as_f64()? })
        }));
    }

    pub(super) fn complete(&self) -> bool {
        self.finish.is_some()
    }

    pub(super) fn finish(self) -> Answer {
        let (inline, text) = match self.inline {
            Some(_) => split(&self.text),
            None => (String::new(), self.text),
        };
        let opaque = if self.details.is_empty() { Value::Null } else { Value::Array(self.details) };
        let thinking = Thinking { text: self.thinking + &inline, opaque };
        let mut parts = Vec::new();
        if thinking != Thinking::default() {
            parts.push(Part::Thinking(thinking));
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        let calls = self.calls.into_iter().enumerate().map(|(place, (_, mut call))| {
            if call.id.is_empty() {
                // Results must name their call.
                call.id = format!("call_{place}");
            }
            Part::ToolCall(call)
        });
        parts.extend(calls);
        let refusal = (!self.refusal.is_empty()).then_some(self.refusal);
        Answer { parts, finish: self.finish, usage: self.usage, logprobs: self.logprobs, refusal }
    }
}

/// A text, or a list of texts.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(part, "text")).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// MiniMax tells errors in a status of its own, beside a 200.
fn status_in_reply(data: &Value) -> Option<ServerError> {
    let status = data.get("base_resp")?;
    let code = status.get("status_code")?.as_i64().filter(|code| *code != 0)?;
    let code = match code {
        1002 => 429,
        1004 => 401,
        1008 => 402,
        2013 => 400,
        other => other,
    };
    let error = serde_json::json!({"error": {"code": code, "message": text(status, "status_msg")}});
    Some(ServerError(error))
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" | "stop_sequence" | "end_turn" => FinishReason::Stop,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pieces: &[Value]) -> Answer {
        let mut reader = ChatReader::new(&Dialect::plain("test"));
        for piece in pieces {
            reader.piece(piece).unwrap();
        }
        reader.finish()
    }

    fn calls(answer: &Answer) -> Vec<(String, String, String)> {
        let call = |part: &Part| match part {
            Part::ToolCall(call) => Some((call.id.clone(), call.name.clone(), call.arguments.clone())),
            _ => None,
        };
        answer.parts.iter().filter_map(call).collect()
    }

    fn delta(calls: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    }

    #[test]
    fn tolerates_what_servers_leave_out() {
        for data in [
            json!({}),
            json!({"choices": []}),
            json!({"choices": null, "error": null}),
            json!({"choices": [{"delta": {"role": "assistant", "content": null}, "finish_reason": ""}]}),
            json!({"choices": [{"index": 1, "delta": {"content": "other answer"}}]}),
            json!({"usage": null}),
        ] {
            assert_eq!(read(std::slice::from_ref(&data)), Answer::default(), "{data}");
        }
        assert_eq!(read(&[json!({"choices": [{"text": "raw"}]})]).parts, [Part::Text("raw".into())]);
        let mut reader = ChatReader::new(&Dialect::plain("test"));
        assert!(reader.piece(&json!({"error": {"code": 502}})).is_err());
        assert!(reader.piece(&json!([{"error": {"code": 400}}])).is_err());
        assert!(reader.piece(&json!({"base_resp": {"status_code": 1002, "status_msg": "slow"}})).is_err());
        assert!(reader.piece(&json!({"base_resp": {"status_code": 0}})).is_ok());
    }

    #[test]
    fn pieces_of_parallel_calls_find_together_whatever_the_server_leaves_out() {
        let want = [("a", "f", "{\"x\":1}"), ("b", "g", "{}")];
        let want = want.map(|(id, name, text)| (id.to_owned(), name.to_owned(), text.to_owned())).to_vec();
        let first = json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\""}});
        let second = json!({"id": "b", "function": {"name": "g", "arguments": "{}"}});
        let rest = json!({"function": {"arguments": ":1}"}});
        let indexed = |value: &Value, index: u64| {
            let mut value = value.clone();
            value["index"] = index.into();
            value
        };
        // In turns by index; everything in one chunk; without an index; every call with the index 0.
        for pieces in [
            vec![
                delta(json!([indexed(&first, 0)])),
                delta(json!([indexed(&second, 1)])),
                delta(json!([indexed(&rest, 0)])),
            ],
            vec![delta(json!([indexed(&first, 0), indexed(&rest, 0), indexed(&second, 1)]))],
            vec![delta(json!([first])), delta(json!([rest])), delta(json!([second]))],
            vec![
                delta(json!([indexed(&first, 0)])),
                delta(json!([indexed(&rest, 0)])),
                delta(json!([indexed(&second, 0)])),
            ],
        ] {
            assert_eq!(calls(&read(&pieces)), want, "{pieces:?}");
        }
        let whole = json!({"choices": [{"message": {"tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}},
            {"id": "b", "function": {"name": "g", "arguments": {}}}]}}]});
        assert_eq!(calls(&read(&[whole])), want);
        let nameless = json!([{"function": {"name": "f"}}, {"function": {"name": "g"}}]);
        let ids: Vec<String> = calls(&read(&[delta(nameless)])).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, ["call_0", "call_1"]);
    }

    #[test]
    fn details_of_reasoning_are_joined_by_index_and_otherwise_left_alone() {
        let piece = |details: Value| json!({"choices": [{"delta": {"reasoning_details": details}}]});
        let answer = read(&[
            piece(json!([{"type": "reasoning.text", "text": "a", "index": 0, "signature": null}])),
            piece(json!([{"type": "reasoning.text", "text": "b", "index": 0, "signature": "s"}])),
            piece(json!([{"type": "reasoning.encrypted", "data": "x", "index": 0}, {"type": "odd"}])),
        ]);
        let want = json!([
            {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"},
            {"type": "reasoning.encrypted", "data": "x", "index": 0},
            {"type": "odd"},
        ]);
        assert_eq!(answer.parts, [Part::Thinking(Thinking { text: String::new(), opaque: want })]);
    }

    #[test]
    fn maps_finish_reasons() {
        for (wire, want) in [
            ("stop", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("tool_calls", FinishReason::ToolCalls),
            ("error", FinishReason::Other),
        ] {
            assert_eq!(finish_reason(wire), want);
        }
    }

    #[test]
    fn logprobs_of_both_operations() {
        let chat = json!({"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b"}]}}]});
        let text = json!({"choices": [{"logprobs": {"tokens": ["a", "b"], "token_logprobs": [-0.5, null]}}]});
        let want = [TokenLogprob { token: "a".into(), logprob: -0.5 }];
        assert_eq!(read(&[chat]).logprobs, want);
        assert_eq!(read(&[text]).logprobs, want);
    }
}
