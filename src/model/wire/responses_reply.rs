//! Replies of OpenAI Responses, whole or in events. The last event holds the whole reply; without one there, the items
//! that were done on the way make it up. Must not build requests.

use serde_json::{Value, json};

use super::{Answer, Heard, ServerError, arguments, list, logprobs, text, usage};
use crate::domain::{FinishReason, Part, Thinking, TokenLogprob, ToolCall};

#[derive(Debug, Default)]
pub(in crate::model) struct ResponsesReader {
    /// Items that are done, by their place in the output.
    done: Vec<(u64, Value)>,
    /// The response as its end tells it.
    response: Option<Value>,
}

impl ResponsesReader {
    pub(super) fn whole(&mut self, body: &Value) -> Result<Heard, ServerError> {
        if let Some(error) = ServerError::of(body) {
            return Err(error);
        }
        match text(body, "status") {
            "completed" | "incomplete" | "" => {}
            status => {
                let message = format!("the response has the status \"{status}\" and no answer");
                return Err(ServerError(json!({"error": {"message": message}})));
            }
        }
        self.response = Some(body.clone());
        let said = list(body, "output").iter().flat_map(|item| list(item, "content"));
        let said = said.filter(|part| part["type"] == "output_text");
        Ok(Heard::text(said.map(|part| text(part, "text")).collect::<String>()))
    }

    pub(super) fn event(&mut self, data: &Value) -> Result<Heard, ServerError> {
        match text(data, "type") {
            // Here code and message stand at the top, or in an object of their own.
            "error" => {
                Err(ServerError::of(data).unwrap_or_else(|| ServerError(json!({"error": data.clone()}))))
            }
            "response.output_text.delta" => Ok(Heard::text(text(data, "delta"))),
            "response.output_item.done" => {
                let place = data.get("output_index").and_then(Value::as_u64).unwrap_or(u64::MAX);
                self.done.push((place, data.get("item").cloned().unwrap_or_default()));
                Ok(Heard::default())
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.whole(data.get("response").unwrap_or(&Value::Null))?;
                Ok(Heard::over())
            }
            _ => match ServerError::of(data) {
                Some(error) => Err(error),
                None => Ok(Heard::default()),
            },
        }
    }

    pub(super) fn complete(&self) -> bool {
        self.response.is_some()
    }

    pub(super) fn finish(mut self) -> Answer {
        let response = self.response.unwrap_or_default();
        self.done.sort_by_key(|(place, _)| *place);
        let mut output = list(&response, "output").to_vec();
        if output.is_empty() {
            output = self.done.into_iter().map(|(_, item)| item).collect();
        }
        let mut answer = Answer {
            finish: finish_reason(&response),
            usage: response.get("usage").and_then(usage::responses),
            ..Answer::default()
        };
        for item in output {
            read_item(item, &mut answer);
        }
        answer
    }
}

fn finish_reason(response: &Value) -> Option<FinishReason> {
    match (text(response, "status"), response.pointer("/incomplete_details/reason").and_then(Value::as_str)) {
        ("completed", _) => Some(FinishReason::Stop),
        ("incomplete", Some("max_output_tokens")) => Some(FinishReason::Length),
        ("incomplete", Some("content_filter")) => Some(FinishReason::ContentFilter),
        ("incomplete", _) => Some(FinishReason::Other),
        (_, _) => None,
    }
}

fn read_item(item: Value, answer: &mut Answer) {
    match text(&item, "type") {
        "message" => {
            for part in list(&item, "content") {
                match text(part, "type") {
                    "output_text" => {
                        let said = text(part, "text");
                        if !said.is_empty() {
                            answer.parts.push(Part::Text(said.to_owned()));
                        }
                        let told: Vec<TokenLogprob> = logprobs(list(part, "logprobs")).collect();
                        answer.logprobs.extend(told);
                    }
                    "refusal" => {
                        answer.refusal.get_or_insert_default().push_str(text(part, "refusal"));
                    }
                    _ => {}
                }
            }
        }
        "function_call" => {
            let id = Some(text(&item, "call_id")).filter(|id| !id.is_empty()).unwrap_or(text(&item, "id"));
            answer.parts.push(Part::ToolCall(ToolCall {
                id: id.to_owned(),
                name: text(&item, "name").to_owned(),
                arguments: arguments(item.get("arguments").unwrap_or(&Value::Null)),
                opaque: Value::Null,
            }));
        }
        "reasoning" => {
            let texts = list(&item, "summary").iter().chain(list(&item, "content"));
            let texts: Vec<&str> = texts.map(|part| text(part, "text")).collect();
            answer.parts.push(Part::Thinking(Thinking { text: texts.join("\n\n"), opaque: item }));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(events: &[Value]) -> Result<Answer, ServerError> {
        let mut reader = ResponsesReader::default();
        for event in events {
            reader.event(event)?;
        }
        assert!(reader.complete());
        Ok(reader.finish())
    }

    #[test]
    fn ends_that_are_incomplete_or_failures() {
        for (reason, want) in [
            ("max_output_tokens", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("odd", FinishReason::Other),
        ] {
            let response = json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
            let events = [json!({"type": "response.incomplete", "response": response})];
            assert_eq!(answer(&events).unwrap().finish, Some(want));
        }
        let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "oops"}});
        let error = answer(&[json!({"type": "response.failed", "response": failed})]).unwrap_err();
        assert_eq!(error.0["error"]["message"], "oops");
        let error = answer(&[json!({"type": "error", "code": "x", "message": "top"})]).unwrap_err();
        assert_eq!(error.0["error"]["message"], "top");
        assert!(ResponsesReader::default().whole(&json!({"status": "queued"})).is_err());
    }

    #[test]
    fn items_on_the_way_make_up_for_an_empty_output() {
        let item =
            |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        let answer = answer(&[
            json!({"type": "response.output_item.done", "output_index": 1, "item": item("b")}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item("a")}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
        ]);
        assert_eq!(answer.unwrap().parts, [Part::Text("a".into()), Part::Text("b".into())]);
    }
}
