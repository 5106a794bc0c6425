//! The keys of scripts with an example and a meaning each; a test holds them against what the reader of scripts knows.
//! Must not know what keys do.

use std::fmt::Write;

/// One key: its name, a value as TOML, and what it says.
type Key = (&'static str, &'static str, &'static str);

const SCRIPT: &[Key] = &[
    ("latency_ms", "50", "pause before every answer"),
    ("chunk", "8", "characters per piece of a stream"),
    ("chunk_delay_ms", "20", "pause before every piece of a stream"),
    ("no_usage", "true", "leave usage out of answers"),
    (
        "usage",
        "{ prompt_tokens = 20, completion_tokens = 9 }",
        "usage of every answer; else a quarter of the characters",
    ),
    ("models", "[\"m\"]", "models that the server lists; else `mock`"),
    ("require_key", "{ value = \"k\" }", "the key a request must show, where its dialect has it"),
    ("refuse_params", "[\"seed\", \"generationConfig.seed\"]", "fields that are refused with status 400"),
    (
        "require_reasoning",
        "true",
        "refuse tool calls that come back without the thinking before them (give all calls some)",
    ),
    ("rate_headers", "{ remaining_requests = 3, reset_ms = 1500 }", "rate limit told in every answer"),
    (
        "chaos",
        "{ seed = 7, rate = 0.3, faults = [{ fault = \"drop\" }] }",
        "faults thrown at a share of requests",
    ),
    ("rules", "[[rules]]", "the first rule that fits answers; none: status 404"),
];

const RULE: &[Key] = &[
    ("name", "\"city\"", "what records of requests call it"),
    ("matches", "'in (\\w+)'", "regular expression on the last message"),
    ("system", "'analyst'", "... on the first system message"),
    ("asked", "'6\\*7'", "... on what the user says before the first reply"),
    ("tool_result", "'42'", "... on the last result of a tool"),
    ("model", "'^m$'", "... on the name of the model"),
    ("after_reply", "true", "only where the conversation holds a reply (false: only where not)"),
    ("after_tool", "true", "only where it holds the result of a tool (false: only where not)"),
    ("dialect", "\"messages\"", "chat, text, responses, messages or gemini"),
    ("answers", "[\"42\"]", "texts, or tables with the keys below"),
    (
        "pick",
        "\"turn\"",
        "prompt: by the prompt's hash; round_robin, sequence: as they come; turn: by replies so far",
    ),
];

const ANSWER: &[Key] = &[
    ("text", "\"42\"", "what is said"),
    ("repeat", "1000", "the text this many times"),
    ("expand", "true", "put groups of `matches` ($1, $name), else of `asked`, into text and arguments"),
    ("finish", "\"length\"", "stop, length, tool_calls, content_filter, or any word as it is"),
    ("thinking", "\"six by seven\"", "said before the text, signed, in the dialect's own field"),
    ("tool", "\"bash\"", "a tool call"),
    ("arguments", "{ command = \"echo 42\" }", "of that call; a text goes out as it is"),
    ("tools", "[{ tool = \"bash\", arguments = {} }]", "further calls in the same turn"),
    ("usage", "{ prompt_tokens = 20, completion_tokens = 9, cached_tokens = 4 }", "usage of this answer"),
    ("logprob", "-0.5", "of every token, where a request asks for them"),
    ("drip", "{ bytes = 10, every_ms = 5 }", "the answer in small pieces"),
    ("comments", "{ for_ms = 200, every_ms = 10 }", "signs of life before the answer"),
];

const USAGE: &[Key] = &[
    ("prompt_tokens", "20", "with cached ones and those written to the cache"),
    ("completion_tokens", "9", "with those of reasoning"),
    ("cached_tokens", "4", "read from the cache"),
    ("cache_write_tokens", "2", "written to the cache"),
    ("reasoning_tokens", "3", "spent on thinking"),
];

const REQUIRE_KEY: &[Key] = &[
    ("value", "\"k\"", "the key"),
    ("header", "\"x-key\"", "the header that holds it, with or without `Bearer`; else the dialect's own"),
    ("status", "403", "of the refusal; else 401"),
];

const RATE_HEADERS: &[Key] = &[
    ("limit_requests", "100", "in the dialect's own header, like the others"),
    ("remaining_requests", "3", ""),
    ("limit_tokens", "10000", ""),
    ("remaining_tokens", "-1", ""),
    ("reset_ms", "1500", "until both are full again"),
];

/// Every fault, as it may stand in `answers` and in `chaos.faults`.
const FAULTS: &[(&str, &str)] = &[
    (
        r#"fault = "status", status = 500, code = "c", message = "m", headers = { retry-after = "1" }"#,
        "an error status",
    ),
    (
        r#"fault = "rate_limit", wait_ms = 1500, form = "seconds""#,
        "429; form: seconds, fraction, date, milliseconds, none",
    ),
    (r#"fault = "spend_limit""#, "429 or 402 that no waiting helps"),
    (r#"fault = "content_filter""#, "the prompt is refused"),
    (r#"fault = "context_length""#, "the prompt is too long"),
    (r#"fault = "hang""#, "nothing is ever sent"),
    (r#"fault = "stall""#, "the answer begins, then silence"),
    (r#"fault = "drop""#, "the connection closes in the middle"),
    (r#"fault = "cut""#, "a stream that ends cleanly in the middle"),
    (r#"fault = "no_done""#, "a whole stream without the event that ends it"),
    (r#"fault = "empty""#, "200 that says nothing"),
    (r#"fault = "malformed""#, "data that is not JSON"),
    (r#"fault = "invalid_utf8""#, "bytes that are no text"),
    (r#"fault = "error_in_body", code = 502"#, "an error inside a 200"),
    (r#"fault = "error_in_stream", code = 502"#, "the same after the reply began"),
    (r#"fault = "html", status = 200"#, "a page where an answer should be"),
    (r#"fault = "huge", bytes = 9000000"#, "an answer of this many bytes"),
    (r#"fault = "drip", bytes = 10, every_ms = 5"#, "a whole answer, slowly"),
    (r#"fault = "comments", for_ms = 200, every_ms = 10"#, "a whole answer after signs of life"),
];

/// Columns of an example; the meaning of a longer one begins on the next line.
const WIDTH: usize = 44;

/// All keys, for people.
pub fn reference() -> String {
    let mut text = String::from("A script in TOML; every key may be left out, but a rule needs answers.\n");
    for (title, keys) in [
        ("At the top", SCRIPT),
        ("In [[rules]]", RULE),
        ("In an answer", ANSWER),
        ("In usage", USAGE),
        ("In require_key", REQUIRE_KEY),
        ("In rate_headers", RATE_HEADERS),
    ] {
        let lines = keys.iter().map(|(key, example, meaning)| match *key {
            "rules" => ((*example).to_owned(), *meaning),
            key => (format!("{key} = {example}"), *meaning),
        });
        section(&mut text, title, lines);
    }
    let json = ("json = { n = [1, \"$1\"] }".to_owned(), "a text of JSON, with groups put into its strings");
    section(&mut text, "Or an answer that is JSON", [json].into_iter());
    let faults = FAULTS.iter().map(|(example, meaning)| (format!("{{ {example} }}"), *meaning));
    section(&mut text, "Or an answer that goes wrong", faults);
    text
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = (String, &'static str)>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{title}:");
    for (example, meaning) in lines {
        let gap = if example.len() > WIDTH { format!("\n{:1$}", "", WIDTH + 4) } else { "  ".to_owned() };
        let line = format!("  {example:<WIDTH$}{gap}{meaning}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::super::{Answer, Detailed, Fault, FixedUsage, RateHeaders, RequiredKey, Rule, Script};
    use super::*;

    /// The keys that the reader names when it meets one it does not know.
    fn known<T: DeserializeOwned>() -> Vec<String> {
        let Err(error) = serde_json::from_str::<T>(r#"{"?": 0}"#) else { panic!("takes any key") };
        let names = error.to_string();
        let mut names: Vec<String> = names.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        names.sort();
        names
    }

    fn documented(keys: &[Key]) -> Vec<String> {
        let mut names: Vec<String> = keys.iter().map(|(key, ..)| (*key).to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_key_is_told_and_no_other() {
        assert_eq!(known::<Script>(), documented(SCRIPT));
        assert_eq!(known::<Rule>(), documented(RULE));
        assert_eq!(known::<Detailed>(), documented(ANSWER));
        assert_eq!(known::<FixedUsage>(), documented(USAGE));
        assert_eq!(known::<RequiredKey>(), documented(REQUIRE_KEY));
        assert_eq!(known::<RateHeaders>(), documented(RATE_HEADERS));
    }

    #[test]
    fn every_fault_is_told() {
        let Err(error) = serde_json::from_str::<Fault>(r#"{"fault": "?"}"#) else {
            panic!("takes any fault")
        };
        let words = error.to_string();
        let mut words: Vec<&str> = words.split('`').skip(3).step_by(2).collect();
        let mut told: Vec<&str> =
            FAULTS.iter().filter_map(|(example, _)| example.split('"').nth(1)).collect();
        words.sort_unstable();
        told.sort_unstable();
        assert_eq!(words, told);
    }

    #[test]
    fn every_example_is_right() {
        let script = |line: String| {
            let value = toml::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            super::super::reading::script(value).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        for (key, example, _) in SCRIPT.iter().filter(|(key, ..)| *key != "rules") {
            script(format!("{key} = {example}"));
        }
        for (key, example, _) in RULE {
            let answers = if *key == "answers" { "" } else { "answers = []" };
            script(format!("[[rules]]\n{key} = {example}\n{answers}"));
        }
        for (key, example, _) in ANSWER {
            let text = if *key == "text" { "" } else { "text = \"t\", " };
            let script = script(format!("[[rules]]\nanswers = [{{ {text}{key} = {example} }}]"));
            assert!(matches!(script.rules[0].answers[0], Answer::Detailed(_)));
        }
        for (example, _) in FAULTS {
            let script = script(format!("[[rules]]\nanswers = [{{ {example} }}]"));
            assert!(matches!(script.rules[0].answers[0], Answer::Fault(_)), "{example}");
        }
    }
}
