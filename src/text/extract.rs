//! Finds the JSON value in a model's reply. Owns where it may stand (fence, prose around it) and which slips are read
//! past; must not judge what it says, and never guesses where a reply could mean two things.

use std::ops::Range;

use serde_json::Value;

/// The first fenced JSON value, else the span from the first `{` to the last `}`; each must parse, if need be after
/// [`tidied`]. Reasoning up to a closing `</think>` tag is left out, unless the tag stands inside the answer. `None`: the
/// reply holds no single JSON value.
pub fn extract_json(reply: &str) -> Option<Value> {
    after_reasoning(reply).and_then(value).or_else(|| value(reply))
}

fn after_reasoning(reply: &str) -> Option<&str> {
    reply.rsplit_once("</think>").map(|(_, answer)| answer)
}

fn value(reply: &str) -> Option<Value> {
    fenced(reply).and_then(parse).or_else(|| {
        let (start, end) = (reply.find('{')?, reply.rfind('}')?);
        parse(reply.get(start..=end)?)
    })
}

/// The first fenced JSON value, else the only list at the top level of the text that parses.
pub fn extract_json_array(reply: &str) -> Option<Value> {
    after_reasoning(reply).and_then(list).or_else(|| list(reply))
}

fn list(reply: &str) -> Option<Value> {
    fenced(reply).and_then(parse).or_else(|| {
        let outer = brackets(reply).into_iter().filter(|span| reply[span.clone()].starts_with('['));
        let mut lists = outer.filter_map(|span| parse(&reply[span]));
        lists.next().filter(|_| lists.next().is_none())
    })
}

/// Balanced `{…}` and `[…]` that lie in no other one, outside of quotes. A bracket without a partner counts as text.
fn brackets(text: &str) -> Vec<Range<usize>> {
    let (mut open, mut outer) = (Vec::new(), Vec::<Range<usize>>::new());
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' if !in_string => open.push((at, if c == '{' { '}' } else { ']' })),
            '}' | ']' if !in_string => {
                if let Some((start, _)) = open.pop_if(|(_, close)| *close == c) {
                    while outer.pop_if(|inner| inner.start > start).is_some() {}
                    outer.push(start..at + 1);
                }
            }
            _ => {}
        }
        in_string ^= c == '"' && !escaped;
        escaped = in_string && c == '\\' && !escaped;
    }
    outer
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&tidied(text))).ok()
}

/// The text with the two slips of models repaired that leave no doubt: raw control characters in strings are escaped, a
/// comma before a closing bracket is dropped.
fn tidied(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        let closes = || text[at + 1..].trim_start().starts_with(['}', ']']);
        match c {
            '\n' if in_string => tidy.push_str("\\n"),
            '\t' if in_string => tidy.push_str("\\t"),
            c if in_string && c < ' ' => tidy.push_str(&format!("\\u{:04x}", u32::from(c))),
            ',' if !in_string && closes() => {}
            c => tidy.push(c),
        }
        in_string ^= c == '"' && !escaped;
        escaped = in_string && c == '\\' && !escaped;
    }
    tidy
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
    fn a_closing_tag_inside_the_answer_ends_no_reasoning() {
        let reply = r#"{"content": "Close </think> before answering"}"#;
        assert_eq!(extract_json(reply), Some(json!({"content": "Close </think> before answering"})));
    }

    #[test]
    fn reasoning_is_left_out_and_only_the_answer_read() {
        let reply = "<think>maybe {\"x\": 1}</think>\n```json\n{\"y\": 2}\n```";
        assert_eq!(extract_json(reply), Some(json!({"y": 2})));
    }

    #[test]
    fn slips_without_a_second_reading_are_read_past() {
        let reply = "{\"a\": [1, 2,\n], \"b\": \"x\\\\\", \"c\": \"one\r\n\ttwo \\\" ,} three\u{1}\",}";
        let wanted = json!({"a": [1, 2], "b": "x\\", "c": "one\r\n\ttwo \" ,} three\u{1}"});
        assert_eq!(extract_json(reply), Some(wanted));
        assert_eq!(extract_json("{\"a\": 1,, \"b\": 2}"), None);
        assert_eq!(extract_json("{\"a\": [,]}"), Some(json!({"a": []})));
    }

    #[test]
    fn deep_nesting_is_refused_without_a_crash() {
        assert_eq!(extract_json(&"{\"a\":".repeat(100_000)), None);
        assert_eq!(extract_json(&format!("{}{}", "{\"a\":[".repeat(50_000), "]}".repeat(50_000))), None);
    }
}
