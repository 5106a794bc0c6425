//! What a server tells beside replies: its models, counts of tokens, and what is left of the rate limit.
//! Must not decide what to answer.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::dialect::Dialect;
use super::route::Route;
use super::script::RateHeaders;

/// The models, in the shape that the asker expects; headers tell Google's and Anthropic's clients.
pub(super) fn models(route: &Route, headers: &HashMap<String, String>, names: &[String]) -> Value {
    let default = ["mock".to_owned()];
    let names = if names.is_empty() { &default } else { names };
    let all = |one: &dyn Fn(&String) -> Value| -> Vec<Value> { names.iter().map(one).collect() };
    if route.dialect == Dialect::Gemini || headers.contains_key("x-goog-api-key") {
        let model = |name: &String| {
            json!({
                "name": format!("models/{name}"), "displayName": name, "inputTokenLimit": 1_000_000,
                "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"],
            })
        };
        return json!({"models": all(&model)});
    }
    if headers.contains_key("anthropic-version") {
        let model = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
        return json!({"data": all(&model), "has_more": false, "first_id": names.first(), "last_id": names.last()});
    }
    let model =
        |name: &String| json!({"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "mock"});
    json!({"object": "list", "data": all(&model)})
}

/// A quarter of the bytes of what was sent.
pub(super) fn token_count(route: &Route, body: &[u8]) -> Value {
    let count = body.len().div_ceil(4);
    match route.dialect {
        Dialect::Gemini => json!({ "totalTokens": count }),
        Dialect::Chat | Dialect::Text | Dialect::Responses | Dialect::Messages => {
            json!({ "input_tokens": count })
        }
    }
}

/// Header lines about the rate limit in the dialect's own names.
pub(super) fn rate_headers(dialect: Dialect, rate: Option<&RateHeaders>) -> Vec<(String, String)> {
    let Some(rate) = rate else { return Vec::new() };
    let (prefix, reset) = match dialect {
        Dialect::Messages => ("anthropic-ratelimit", rate.reset_ms.and_then(moment)),
        Dialect::Chat | Dialect::Text | Dialect::Responses | Dialect::Gemini => {
            ("x-ratelimit", rate.reset_ms.map(duration))
        }
    };
    let mut lines = Vec::new();
    for (thing, limit, remaining) in [
        ("requests", rate.limit_requests, rate.remaining_requests),
        ("tokens", rate.limit_tokens, rate.remaining_tokens),
    ] {
        let known = limit.is_some() || remaining.is_some();
        for (what, value) in [
            ("limit", limit.map(|limit| limit.to_string())),
            ("remaining", remaining.map(|remaining| remaining.to_string())),
            ("reset", reset.clone().filter(|_| known)),
        ] {
            let name = match dialect {
                Dialect::Messages => format!("{prefix}-{thing}-{what}"),
                Dialect::Chat | Dialect::Text | Dialect::Responses | Dialect::Gemini => {
                    format!("{prefix}-{what}-{thing}")
                }
            };
            lines.extend(value.map(|value| (name, value)));
        }
    }
    lines
}

/// Such as `6m0s`, `1s` or `120ms`.
fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}s", ms as f64 / 1000.0),
        _ => format!("{}m{}s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// The time so long from now.
fn moment(ms: u64) -> Option<String> {
    let then = SystemTime::now().checked_add(Duration::from_millis(ms))?;
    Timestamp::try_from(then).ok().map(|then| then.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_are_written_as_servers_do() {
        assert_eq!([120, 1500, 1000, 360_000].map(duration), ["120ms", "1.5s", "1s", "6m0s"]);
    }
}
