//! `gemini` with its prompt on the input: how to log in and which tools there are is a file of its private home.

use serde_json::json;

use super::Call;
use crate::model::exec::settings::ExecSettings;

const KEY: &str = "GEMINI_API_KEY";
const BEYOND: &[&str] = &["web_fetch", "google_web_search", "invoke_agent", "ask_user", "save_memory"];

pub fn call(settings: &ExecSettings, chat: bool) -> Call {
    let mut config = json!({
        "security": {
            "auth": { "selectedType": "gemini-api-key" },
            // What the agent runs has no use for its key.
            "environmentVariableRedaction": { "enabled": true, "blocked": [KEY] },
        },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "disableAutoUpdate": true, "disableUpdateNag": true },
    });
    config["tools"] = if chat {
        // There is no tool of that name, hence none at all.
        json!({ "core": ["none"] })
    } else {
        json!({ "exclude": BEYOND })
    };
    if chat {
        config["skills"] = json!({ "enabled": false });
        config["agents"] = json!({ "enabled": false });
    }
    let mut call = Call::default();
    if !settings.model.is_empty() {
        call.args(&["-m", &settings.model]);
    }
    call.args(&["--output-format", "stream-json", "--skip-trust"]);
    call.args(&["--approval-mode", if chat { "default" } else { "yolo" }]);
    call.files.push((".gemini/settings.json", config.to_string()));
    if !settings.base_url.is_empty() {
        call.set("GOOGLE_GEMINI_BASE_URL", settings.base_url.clone());
    }
    call.key(settings, KEY);
    call
}
