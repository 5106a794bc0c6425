//! Token counts and money in replies. Servers leave out what they like. Must not estimate.

use serde_json::Value;

use crate::domain::Usage;

fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// `usage` of chat and text completions, with the additions of DeepSeek and OpenRouter.
pub(super) fn chat(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        calls: 1,
        prompt_tokens: count(usage, "/prompt_tokens"),
        completion_tokens: count(usage, "/completion_tokens"),
        cached_tokens: count(usage, "/prompt_tokens_details/cached_tokens")
            .max(count(usage, "/prompt_cache_hit_tokens")),
        reasoning_tokens: count(usage, "/completion_tokens_details/reasoning_tokens"),
        cache_write_tokens: count(usage, "/prompt_tokens_details/cache_write_tokens"),
        nanodollars: usage.get("cost").and_then(Value::as_f64).map_or(0, nanodollars),
    })
}

pub(super) fn responses(usage: &Value) -> Option<Usage> {
    usage.is_object().then(|| Usage {
        calls: 1,
        prompt_tokens: count(usage, "/input_tokens"),
        completion_tokens: count(usage, "/output_tokens"),
        cached_tokens: count(usage, "/input_tokens_details/cached_tokens"),
        reasoning_tokens: count(usage, "/output_tokens_details/reasoning_tokens"),
        ..Usage::default()
    })
}

/// `usage` of Messages, where `input_tokens` are only those that no cache had to do with. `None`: no object.
pub(super) fn messages(usage: &Value) -> Option<Usage> {
    let (read, written) =
        (count(usage, "/cache_read_input_tokens"), count(usage, "/cache_creation_input_tokens"));
    usage.is_object().then(|| Usage {
        calls: 1,
        prompt_tokens: count(usage, "/input_tokens").saturating_add(read).saturating_add(written),
        completion_tokens: count(usage, "/output_tokens"),
        cached_tokens: read,
        cache_write_tokens: written,
        ..Usage::default()
    })
}

fn nanodollars(dollars: f64) -> u64 {
    // Casting saturates; what is no amount of money is 0.
    (dollars * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn money_and_both_ways_to_tell_cached_tokens() {
        let usage = chat(&json!({"prompt_tokens": 20, "completion_tokens": 9, "cost": 0.000_123_4,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 3}}))
        .unwrap();
        assert_eq!((usage.nanodollars, usage.cached_tokens, usage.cache_write_tokens), (123_400, 4, 2));
        let usage = chat(&json!({"prompt_tokens": 20, "prompt_cache_hit_tokens": 8})).unwrap();
        assert_eq!(usage.cached_tokens, 8);
        assert_eq!(chat(&Value::Null), None);
        assert_eq!(nanodollars(f64::NAN), 0);
        assert_eq!(nanodollars(-1.0), 0);
    }

    #[test]
    fn a_prompt_counts_its_cached_part_in_every_api() {
        let usage = messages(&json!({"input_tokens": 20, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 7, "output_tokens": 9}))
        .unwrap();
        assert_eq!((usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens), (127, 100, 7));
        let usage =
            responses(&json!({"input_tokens": 20, "input_tokens_details": {"cached_tokens": 5}})).unwrap();
        assert_eq!((usage.prompt_tokens, usage.cached_tokens), (20, 5));
    }
}
