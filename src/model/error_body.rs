//! Error bodies in all the shapes that servers send: message, codes, the parameter that is meant, the status they name.
//! Untrusted. Must not judge what an error means for the call.

use serde_json::Value;

/// Longest error text that is kept.
const MESSAGE_CHARS: usize = 400;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorBody {
    pub(super) message: String,
    pub(super) codes: Vec<String>,
    /// The parameter that the error names, as a path with dots.
    pub(super) param: Option<String>,
    /// A content filter in front of the model objects, not the login.
    pub(super) moderated: bool,
}

impl ErrorBody {
    pub(super) fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            return Self { message: one_line(&text), ..Self::default() };
        };
        let value = value.get(0).unwrap_or(&value);
        let error = error_object(value);
        let found = [error.get("message"), error.get("detail"), Some(error), value.get("detail")]
            .into_iter()
            .flatten()
            .find_map(|message| message.as_str().filter(|message| !message.is_empty()));
        let first_detail = error.get("detail").or(value.get("detail")).and_then(|detail| detail.get(0));
        let message = found.or(first_detail.and_then(|detail| detail.get("msg")?.as_str()));
        let mut message = one_line(message.unwrap_or(&text));
        // What a server behind the aggregator said is told apart from the aggregator's own words.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            message = one_line(&format!("{message}: {raw}"));
        }
        let code = |pointer: &&str| error.pointer(pointer)?.as_str().map(str::to_owned);
        let codes = [
            "/code",
            "/type",
            "/status",
            "/details/error_code",
            "/innererror/code",
            "/details/0/reason",
            "/metadata/error_type",
        ];
        let detail_code = first_detail.and_then(|detail| detail.get("type")?.as_str().map(str::to_owned));
        let metadata = error.get("metadata");
        Self {
            message,
            codes: codes.iter().filter_map(code).chain(detail_code).collect(),
            param: named_parameter(error).or_else(|| {
                let place = first_detail?.get("loc")?.as_array()?;
                let names = place.iter().filter_map(Value::as_str).filter(|name| *name != "body");
                Some(names.collect::<Vec<_>>().join(".")).filter(|path| !path.is_empty())
            }),
            moderated: metadata
                .is_some_and(|data| data.get("flagged_input").is_some() || data.get("reasons").is_some()),
        }
    }
}

fn named_parameter(error: &Value) -> Option<String> {
    let named = error.get("param").or_else(|| error.pointer("/details/0/fieldViolations/0/field"))?;
    named.as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The error inside a body: under `error`, in a failed response, or the body itself.
fn error_object(value: &Value) -> &Value {
    let inside = [value.get("error"), value.pointer("/response/error")];
    inside.into_iter().flatten().find(|error| !error.is_null()).unwrap_or(value)
}

/// Status an error object names itself (in streams, and inside a 200 of aggregators), else 200.
pub(super) fn status_in_error(body: &Value) -> u16 {
    let body = body.get(0).unwrap_or(body);
    let error = error_object(body);
    let code = error.get("code");
    let number = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    let number = number.and_then(|number| u16::try_from(number).ok());
    let words = ["code", "type", "status"].iter().filter_map(|key| error.get(key)?.as_str());
    number
        .filter(|number| (400..600).contains(number))
        .or_else(|| words.into_iter().find_map(status_of_word))
        .unwrap_or(200)
}

fn status_of_word(word: &str) -> Option<u16> {
    let status = match word {
        "invalid_request_error" | "invalid_prompt" | "INVALID_ARGUMENT" | "FAILED_PRECONDITION" => 400,
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "billing_error" => 402,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "api_error" | "server_error" | "internal_server_error" | "INTERNAL" => 500,
        "UNAVAILABLE" => 503,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        "overloaded_error" => 529,
        _ => return None,
    };
    Some(status)
}

/// One inert line of untrusted text.
pub(super) fn one_line(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_CHARS).collect();
    let line = line.trim();
    if line.is_empty() { "no message".to_owned() } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> ErrorBody {
        ErrorBody::read(body.to_string().as_bytes())
    }

    #[test]
    fn reads_every_shape_of_error_body() {
        for (body, want) in [
            (r#"{"error":{"message":"deep"}}"#, "deep"),
            (r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
            (r#"{"error":"plain"}"#, "plain"),
            (r#"{"message":"top","object":"error"}"#, "top"),
            (r#"{"detail":"of a framework"}"#, "of a framework"),
            (r#"{"detail":[{"msg":"of a field","loc":["body","seed"]}]}"#, "of a field"),
            (r#"{"type":"response.failed","response":{"error":{"message":"failed"}}}"#, "failed"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"slow down"}}}"#,
                "Provider returned error: slow down",
            ),
            ("<html>\u{1b}[31mbad\r\ngateway", "<html> [31mbad  gateway"),
            ("", "no message"),
        ] {
            assert_eq!(ErrorBody::read(body.as_bytes()).message, want);
        }
        assert_eq!(ErrorBody::read("x".repeat(9999).as_bytes()).message.len(), 400);
    }

    #[test]
    fn finds_codes_parameters_and_moderation() {
        let openai = read(&json!({"error": {"message": "m", "type": "invalid_request_error",
            "param": "seed", "code": "unsupported_parameter"}}));
        assert_eq!(openai.codes, ["unsupported_parameter", "invalid_request_error"]);
        assert_eq!(openai.param.as_deref(), Some("seed"));
        let anthropic = read(&json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m",
            "details": {"error_code": "enforced_spend_limit_reached"}}}));
        assert!(anthropic.codes.contains(&"enforced_spend_limit_reached".to_owned()));
        let framework = read(&json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "a", "b"]}]}));
        assert_eq!(
            (framework.param.as_deref(), framework.codes),
            (Some("a.b"), vec!["extra_forbidden".into()])
        );
        let google = read(&json!([{"error": {"details": [{"fieldViolations": [{"field": "seed"}]}]}}]));
        assert_eq!(google.param.as_deref(), Some("seed"));
        assert!(read(&json!({"error": {"code": 403, "metadata": {"reasons": ["violence"]}}})).moderated);
        assert!(!openai.moderated);
    }

    #[test]
    fn an_error_may_name_its_status() {
        for (error, want) in [
            (json!({"error": {"code": 502}}), 502),
            (json!({"error": {"code": "429"}}), 429),
            (json!({"error": {"code": "server_error"}}), 500),
            (json!({"error": {"type": "overloaded_error"}}), 529),
            (json!([{"error": {"status": "RESOURCE_EXHAUSTED"}}]), 429),
            (json!({"error": {"code": "odd"}}), 200),
            (json!({"error": "text"}), 200),
        ] {
            assert_eq!(status_in_error(&error), want, "{error}");
        }
    }
}
