//! Finds the JSON value in a model's reply. Owns where it may stand (fence, prose around it); must not judge what it
//! says, and never guesses at broken JSON.

use serde_json::Value;

/// The first fenced JSON value, else the span from the first `{` to the last `}`, each only if it parses strictly.
/// Reasoning up to a closing `</think>` tag is left out. `None`: the reply holds no single JSON value.
pub fn extract_json(reply: &str) -> Option<Value> {
    let reply = reply.rsplit_once("</think>").map_or(reply, |(_, answer)| answer);
    fenced(reply).and_then(|body| serde_json::from_str(body).ok()).or_else(|| {
        let (start, end) = (reply.find('{')?, reply.rfind('}')?);
        serde_json::from_str(reply.get(start..=end)?).ok()
    })
}

/// Content of the first fence opened by exactly three backticks and `json`.
fn fenced(reply: &str) -> Option<&str> {
    const OPEN: &str = "```json";
    let (at, _) = reply.match_indices(OPEN).find(|(at, _)| !reply[..*at].ends_with('`'))?;
    let body = &reply[at + OPEN.len()..];
    Some(body[..body.find("```")?].trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_longer_fence_is_not_a_json_fence() {
        assert_eq!(extract_json("````json\n[1]\n````"), None);
        assert_eq!(extract_json("```json\n[1]\n```"), Some(json!([1])));
    }

    #[test]
    fn a_closing_brace_before_the_first_opening_one_is_no_span() {
        assert_eq!(extract_json("} then {"), None);
    }

    #[test]
    fn reasoning_is_left_out_and_only_the_answer_read() {
        let reply = "<think>maybe {\"x\": 1}</think>\n```json\n{\"y\": 2}\n```";
        assert_eq!(extract_json(reply), Some(json!({"y": 2})));
    }

    #[test]
    fn deep_nesting_is_refused_without_a_crash() {
        assert_eq!(extract_json(&"{\"a\":".repeat(100_000)), None);
        assert_eq!(extract_json(&format!("{}{}", "{\"a\":[".repeat(50_000), "]}".repeat(50_000))), None);
    }
}
