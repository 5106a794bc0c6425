//! The OpenAI-compatible wire format: request bodies out, completions and stream chunks in. Must not do any IO.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config::Effort;
use crate::domain::{ChatRequest, FinishReason, Prompt, Usage};

/// Endpoint path below the base URL and body of a request.
pub fn request_body(
    request: &ChatRequest,
    model: &str,
    limit_field: &str,
    stream: bool,
    effort: Effort,
) -> (&'static str, Value) {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    let endpoint = match &request.prompt {
        Prompt::Chat(messages) => {
            let messages = messages
                .iter()
                .map(|message| json!({"role": message.role.name(), "content": message.content.text()}))
                .collect();
            body.insert("messages".into(), Value::Array(messages));
            if effort != Effort::NotSent {
                body.insert("reasoning_effort".into(), effort.word().into());
            }
            "chat/completions"
        }
        Prompt::Text(text) => {
            body.insert("prompt".into(), text.as_str().into());
            "completions"
        }
    };
    let sampling = &request.sampling;
    body.insert(limit_field.into(), sampling.max_tokens.into());
    let optional = [
        ("temperature", sampling.temperature.map(Value::from)),
        ("top_p", sampling.top_p.map(Value::from)),
        ("top_k", sampling.top_k.map(Value::from)),
        ("seed", sampling.seed.map(Value::from)),
        ("stop", (!sampling.stop.is_empty()).then(|| sampling.stop.as_slice().into())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            body.insert(name.into(), value);
        }
    }
    if stream {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    (endpoint, Value::Object(body))
}

/// What one body or one stream chunk says. Everything is optional: servers leave out what they like.
#[derive(Debug, Default, PartialEq)]
pub struct Piece {
    pub text: String,
    pub finish: Option<FinishReason>,
    pub usage: Option<Usage>,
    /// An error object in place of, or beside, an answer.
    pub error: Option<Value>,
}

impl Piece {
    /// # Errors
    /// The text is not JSON of the expected shape.
    pub fn read(data: &str) -> Result<Self, serde_json::Error> {
        let wire: WireCompletion = serde_json::from_str(data)?;
        // One answer was asked for; a server that sends more is read as if it had sent the first.
        let choice =
            wire.choices.unwrap_or_default().into_iter().find(|choice| choice.index.unwrap_or(0) == 0);
        let mut piece = Self { usage: wire.usage.map(Usage::from), error: wire.error, ..Self::default() };
        if let Some(choice) = choice {
            let content = choice.delta.or(choice.message).and_then(|content| content.content);
            piece.text = content.or(choice.text).unwrap_or_default();
            piece.finish =
                choice.finish_reason.as_deref().filter(|reason| !reason.is_empty()).map(finish_reason);
        }
        Ok(piece)
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" | "stop_sequence" => FinishReason::Stop,
        "length" | "max_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

#[derive(Deserialize)]
struct WireCompletion {
    choices: Option<Vec<WireChoice>>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WireChoice {
    index: Option<u64>,
    delta: Option<WireContent>,
    message: Option<WireContent>,
    text: Option<String>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireContent {
    content: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<WirePromptDetails>,
    completion_tokens_details: Option<WireCompletionDetails>,
}

#[derive(Deserialize)]
struct WirePromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct WireCompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        Self {
            calls: 1,
            prompt_tokens: wire.prompt_tokens.unwrap_or(0),
            completion_tokens: wire.completion_tokens.unwrap_or(0),
            cached_tokens: wire.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
            reasoning_tokens: wire
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or(0),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_chat_text_and_stream_shapes() {
        let whole = Piece::read(
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"length"}],
               "usage":{"prompt_tokens":20,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4},
               "completion_tokens_details":{"reasoning_tokens":3}}}"#,
        )
        .unwrap();
        let usage = Usage {
            calls: 1,
            prompt_tokens: 20,
            completion_tokens: 9,
            cached_tokens: 4,
            reasoning_tokens: 3,
            ..Usage::default()
        };
        let want =
            Piece { text: "hi".into(), finish: Some(FinishReason::Length), usage: Some(usage), error: None };
        assert_eq!(whole, want);
        assert_eq!(Piece::read(r#"{"choices":[{"text":"raw"}]}"#).unwrap().text, "raw");
        let delta =
            Piece::read(r#"{"choices":[{"delta":{"content":"d"},"finish_reason":null}],"usage":null}"#);
        assert_eq!(delta.unwrap(), Piece { text: "d".into(), ..Piece::default() });
    }

    #[test]
    fn tolerates_what_servers_leave_out() {
        for data in [
            r#"{}"#,
            r#"{"choices":[]}"#,
            r#"{"choices":null}"#,
            r#"{"choices":[{"delta":{"role":"assistant","content":null},"finish_reason":""}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"other answer"}}]}"#,
        ] {
            assert_eq!(Piece::read(data).unwrap(), Piece::default(), "{data}");
        }
        assert!(Piece::read(r#"{"error":{"code":502}}"#).unwrap().error.is_some());
        assert!(Piece::read("nonsense").is_err());
    }

    #[test]
    fn maps_finish_reasons() {
        for (wire, want) in [
            ("stop", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("tool_calls", FinishReason::Other),
        ] {
            assert_eq!(finish_reason(wire), want);
        }
    }
}
