//! Properties of all readers: cuts change nothing, and nothing makes them panic.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::model::TokenField;
use crate::model::dialects::Dialects;
use crate::model::error_body::{ErrorBody, status_in_error};
use crate::model::lessons::{Lessons, Refusal};
use crate::model::sse::SseReader;

fn golden(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire/golden").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The answer and the text that was heard on the way.
fn read(dialect: &Dialect, body: &[u8], cuts: &[usize]) -> (Answer, String) {
    let (mut reader, mut events, mut heard) = (Reader::new(dialect), SseReader::default(), String::new());
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.push(body.len());
    cuts.sort_unstable();
    let mut from = 0;
    let mut arrived = Vec::new();
    for cut in cuts {
        arrived.extend(events.push(&body[from..cut], 1 << 20).unwrap());
        from = cut;
    }
    arrived.extend(events.finish());
    for data in arrived.iter().filter(|data| data.trim() != "[DONE]") {
        heard.push_str(&reader.event(&serde_json::from_str(data).unwrap()).unwrap().text);
    }
    assert!(reader.complete());
    (reader.finish(), heard)
}

#[test]
fn live_text_is_the_text_of_the_reply() {
    for dialect in Dialects::built_in().unwrap().rows() {
        let stream = golden(&format!("{}.stream.txt", dialect.name));
        let (answer, heard) = read(dialect, stream.as_bytes(), &[]);
        let text = answer.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(heard, text.collect::<String>(), "{}", dialect.name);
        let mut whole = Reader::new(dialect);
        let body: Value = serde_json::from_str(&golden(&format!("{}.reply.json", dialect.name))).unwrap();
        let heard_at_once = whole.whole(&body).unwrap().text;
        assert_eq!((whole.finish(), heard_at_once), (answer, heard), "{}", dialect.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_of_a_stream_change_nothing(cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        for dialect in Dialects::built_in().unwrap().rows() {
            let stream = golden(&format!("{}.stream.txt", dialect.name));
            let whole = read(dialect, stream.as_bytes(), &[]);
            prop_assert_eq!(read(dialect, stream.as_bytes(), &cuts), whole);
        }
    }
}

const KEYS: [&str; 46] = [
    "choices",
    "delta",
    "message",
    "content",
    "text",
    "type",
    "index",
    "id",
    "name",
    "function",
    "arguments",
    "tool_calls",
    "reasoning_details",
    "reasoning_content",
    "reasoning",
    "refusal",
    "finish_reason",
    "logprobs",
    "tokens",
    "token_logprobs",
    "logprob",
    "usage",
    "prompt_tokens",
    "cost",
    "error",
    "code",
    "status",
    "base_resp",
    "status_code",
    "content_block",
    "partial_json",
    "thinking",
    "signature",
    "stop_reason",
    "input",
    "response",
    "output",
    "item",
    "output_index",
    "summary",
    "encrypted_content",
    "incomplete_details",
    "reason",
    "extra_content",
    "detail",
    "loc",
];

const WORDS: [&str; 22] = [
    "",
    "x",
    "text",
    "thinking",
    "tool_use",
    "message",
    "reasoning",
    "function_call",
    "output_text",
    "refusal",
    "content_block_start",
    "content_block_delta",
    "text_delta",
    "input_json_delta",
    "signature_delta",
    "message_delta",
    "message_start",
    "response.completed",
    "response.output_item.done",
    "response.output_text.delta",
    "completed",
    "error",
];

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
        "[\\PC]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..8).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_json_makes_a_reader_panic(events in prop::collection::vec(json(), 1..5)) {
        for dialect in ["openai_compatible", "openrouter", "minimax", "openai_responses", "anthropic"] {
            let table = Dialects::built_in().unwrap();
            let dialect = table.get(dialect).unwrap();
            let (mut streamed, mut whole) = (Reader::new(dialect), Reader::new(dialect));
            for event in &events {
                let _ = streamed.event(event);
                let _ = whole.whole(event);
                // What is hidden behind a shape that readers look for.
                let _ = streamed.event(&serde_json::json!({"type": "content_block_start", "content_block": event}));
                let _ = streamed.event(&serde_json::json!({"type": "content_block_delta", "delta": event}));
                let _ = streamed.event(&serde_json::json!({"choices": [{"delta": event}]}));
                let _ = whole.whole(&serde_json::json!({"output": [event], "content": [event]}));
            }
            let _ = (streamed.finish(), whole.finish());
        }
        for event in &events {
            let error = ErrorBody::read(event.to_string().as_bytes());
            let _ = status_in_error(event);
            let body = event.as_object().cloned().unwrap_or_default();
            let refusal =
                Refusal { host: "h", model: "m", body: &body, rung: None, token_field: TokenField::MaxTokens, by_hand: &[], thinking_asked: false };
            let _ = Lessons::default().learn(&refusal, &error);
        }
    }
}
