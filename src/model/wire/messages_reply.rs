//! Replies of Anthropic Messages, whole or in events. Blocks of thinking are kept as they come, signature and all. Must
//! not build requests.

use serde_json::Value;

use super::{Answer, Heard, ServerError, list, text, usage};
use crate::domain::{FinishReason, Part, Thinking, ToolCall, Usage};

#[derive(Debug, Default)]
pub(in crate::model) struct MessagesReader {
    blocks: Vec<Block>,
    finish: Option<FinishReason>,
    /// The `usage` objects so far, later numbers over earlier ones.
    usage: Value,
    refused: bool,
}

#[derive(Debug)]
struct Block {
    index: u64,
    value: Value,
    /// Arguments of a tool call as they arrive.
    input: String,
}

impl MessagesReader {
    pub(super) fn whole(&mut self, body: &Value) -> Result<Heard, ServerError> {
        if let Some(error) = ServerError::of(body) {
            return Err(error);
        }
        for (index, block) in list(body, "content").iter().enumerate() {
            self.blocks.push(Block { index: index as u64, value: block.clone(), input: String::new() });
        }
        self.hear_end(body);
        self.hear_usage(body);
        let texts = self.blocks.iter().map(|block| &block.value).filter(|block| block["type"] == "text");
        Ok(Heard::text(texts.map(|block| text(block, "text")).collect::<String>()))
    }

    pub(super) fn event(&mut self, data: &Value) -> Result<Heard, ServerError> {
        if let Some(error) = ServerError::of(data) {
            return Err(error);
        }
        let index = data.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text(data, "type") {
            "message_start" => {
                let message = data.get("message").unwrap_or(&Value::Null);
                self.hear_usage(message);
                Ok(Heard::default())
            }
            "content_block_start" => {
                let value = data.get("content_block").cloned().unwrap_or_default();
                let heard = if value["type"] == "text" { text(&value, "text") } else { "" };
                let heard = Heard::text(heard);
                self.blocks.push(Block { index, value, input: String::new() });
                Ok(heard)
            }
            "content_block_delta" => Ok(self.hear_delta(index, data.get("delta").unwrap_or(&Value::Null))),
            "message_delta" => {
                self.hear_end(data.get("delta").unwrap_or(&Value::Null));
                self.hear_usage(data);
                Ok(Heard::default())
            }
            "message_stop" => Ok(Heard::over()),
            // Pings, ends of blocks, and what is new.
            _ => Ok(Heard::default()),
        }
    }

    fn hear_delta(&mut self, index: u64, delta: &Value) -> Heard {
        let known = self.blocks.iter_mut().rev().find(|block| block.index == index);
        let Some(block) = known.filter(|block| block.value.is_object()) else { return Heard::default() };
        let mut append = |field: &str| {
            let more = text(delta, field);
            match block.value.get_mut(field) {
                Some(Value::String(known)) => known.push_str(more),
                Some(_) | None => block.value[field] = more.into(),
            }
        };
        match text(delta, "type") {
            "text_delta" => {
                append("text");
                return Heard::text(text(delta, "text"));
            }
            "thinking_delta" => append("thinking"),
            "signature_delta" => append("signature"),
            "input_json_delta" => block.input.push_str(text(delta, "partial_json")),
            _ => {}
        }
        Heard::default()
    }

    fn hear_end(&mut self, delta: &Value) {
        let reason = text(delta, "stop_reason");
        self.refused |= reason == "refusal";
        if !reason.is_empty() {
            self.finish = Some(finish_reason(reason));
        }
    }

    /// Counts of an event replace earlier ones; what it does not tell stays.
    fn hear_usage(&mut self, holder: &Value) {
        let Some(Value::Object(new)) = holder.get("usage") else { return };
        if !self.usage.is_object() {
            self.usage = Value::Object(serde_json::Map::new());
        }
        for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
            self.usage[name.as_str()] = value.clone();
        }
    }

    pub(super) fn complete(&self) -> bool {
        self.finish.is_some()
    }

    pub(super) fn finish(self) -> Answer {
        let usage: Option<Usage> = usage::messages(&self.usage);
        let refusal = self.refused.then(|| "the provider's safety rules ended the reply".to_owned());
        let parts = self.blocks.into_iter().filter_map(part).collect();
        Answer { parts, finish: self.finish, usage, logprobs: Vec::new(), refusal }
    }
}

fn part(block: Block) -> Option<Part> {
    let value = block.value;
    match text(&value, "type") {
        "text" => {
            let text = text(&value, "text");
            (!text.is_empty()).then(|| Part::Text(text.to_owned()))
        }
        "thinking" | "redacted_thinking" => {
            let text = text(&value, "thinking").to_owned();
            Some(Part::Thinking(Thinking { text, opaque: value }))
        }
        "tool_use" => {
            let arguments = match (block.input, value.get("input")) {
                (pieces, _) if !pieces.is_empty() => pieces,
                (_, Some(input)) if input.is_object() => input.to_string(),
                (_, _) => "{}".to_owned(),
            };
            let (id, name) = (text(&value, "id").to_owned(), text(&value, "name").to_owned());
            Some(Part::ToolCall(ToolCall { id, name, arguments, opaque: Value::Null }))
        }
        _ => None,
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        // `pause_turn` too: a turn of the provider's own tools, which are never asked for.
        _ => FinishReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_stop_reasons() {
        for (wire, want) in [
            ("end_turn", FinishReason::Stop),
            ("stop_sequence", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("tool_use", FinishReason::ToolCalls),
            ("refusal", FinishReason::ContentFilter),
            ("pause_turn", FinishReason::Other),
        ] {
            let mut reader = MessagesReader::default();
            reader.whole(&serde_json::json!({"stop_reason": wire})).unwrap();
            let answer = reader.finish();
            assert_eq!(answer.finish, Some(want), "{wire}");
            assert_eq!(answer.refusal.is_some(), wire == "refusal");
        }
    }
}
