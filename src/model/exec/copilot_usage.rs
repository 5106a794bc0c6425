//! Tokens of a Copilot job, which it tells in a file and not among its events. An absent or odd file tells nothing.

use std::io::Read;

use serde_json::Value;

use super::Cli;
use super::harness::USAGE_FILE;
use super::trace::Draft;
use super::workspace::Workspace;

const MOST_BYTES: u64 = 1 << 20;

pub fn add(cli: Cli, workspace: &Workspace, draft: &mut Draft) {
    if cli != Cli::Copilot {
        return;
    }
    let path = workspace.home().join(USAGE_FILE);
    // The agent could have put a pipe there, which would never open.
    if !path.symlink_metadata().is_ok_and(|file| file.is_file()) {
        return;
    }
    let Ok(file) = std::fs::File::open(path) else { return };
    let mut text = Vec::new();
    if file.take(MOST_BYTES).read_to_end(&mut text).is_ok()
        && let Ok(told) = serde_json::from_slice(&text)
    {
        read(&told, draft);
    }
}

fn read(told: &Value, draft: &mut Draft) {
    let models = told.get("modelMetrics").and_then(Value::as_object);
    let sum = |pointer: &str| -> u64 {
        let numbers = models.into_iter().flat_map(|models| models.values());
        numbers.filter_map(|model| model.pointer(pointer).and_then(Value::as_u64)).sum()
    };
    let usage = &mut draft.usage;
    usage.calls = usage.calls.max(sum("/requests/count"));
    usage.prompt_tokens = sum("/usage/inputTokens");
    usage.completion_tokens = usage.completion_tokens.max(sum("/usage/outputTokens"));
    usage.cached_tokens = sum("/usage/cacheReadTokens");
    usage.reasoning_tokens = sum("/usage/reasoningTokens");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn adds_up_all_models() {
        let mut draft = Draft::default();
        let model = |input: u64| json!({ "requests": { "count": 2 }, "usage": { "inputTokens": input, "outputTokens": 3 } });
        read(&json!({ "modelMetrics": { "a": model(10), "b": model(5) } }), &mut draft);
        let usage = draft.usage;
        assert_eq!((usage.calls, usage.prompt_tokens, usage.completion_tokens), (4, 15, 6));
        read(&json!({ "modelMetrics": [7] }), &mut draft);
        assert_eq!(draft.usage.calls, 4);
    }
}
