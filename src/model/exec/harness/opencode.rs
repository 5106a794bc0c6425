//! `opencode run`: its configuration goes into one variable, the key into another that it names.

use serde_json::json;

use super::{Call, PROVIDER, effort, key_variable, provider_and_model};
use crate::model::exec::ExecError;
use crate::model::exec::job::Work;
use crate::model::exec::settings::ExecSettings;
use crate::model::exec::workspace::Workspace;

/// What is taken for granted of a model nobody described.
const CONTEXT: u32 = 128_000;

pub fn call(settings: &ExecSettings, work: &Work, workspace: &Workspace) -> Result<Call, ExecError> {
    let (provider, model) = provider_and_model(settings)?;
    let chat = matches!(work, Work::Chat { .. });
    let variable = key_variable(settings);
    let mut config = json!({
        "share": "disabled",
        "autoupdate": false,
        "permission": if chat {
            json!({ "*": "deny" })
        } else {
            json!({ "*": "allow", "webfetch": "deny", "websearch": "deny", "task": "deny", "question": "deny" })
        },
    });
    if !settings.base_url.is_empty() {
        let mut options = json!({ "baseURL": settings.base_url });
        if settings.key.is_some() {
            options["apiKey"] = json!(format!("{{env:{variable}}}"));
        }
        let mut limits = json!({ "name": model });
        if let Some(most) = work.max_tokens() {
            limits["limit"] = json!({ "context": CONTEXT, "output": most });
        }
        config["provider"] = json!({ PROVIDER: {
            "npm": "@ai-sdk/openai-compatible",
            "name": PROVIDER,
            "options": options,
            "models": { &model: limits },
        }});
        // Small side questions go to the same model.
        config["small_model"] = json!(format!("{provider}/{model}"));
    }
    let mut call = Call::default();
    call.args(&["run", "--pure", "--format", "json", "--title", "task"]);
    call.args(&["--model", &format!("{provider}/{model}"), "--dir", &workspace.work().to_string_lossy()]);
    if let Some(effort) = effort(settings) {
        call.args(&["--variant", effort]);
    }
    call.set("OPENCODE_CONFIG_CONTENT", config.to_string());
    call.set("OPENCODE_DISABLE_AUTOUPDATE", "1");
    if !settings.base_url.is_empty() {
        call.set("OPENCODE_DISABLE_MODELS_FETCH", "1");
    }
    call.key(settings, &variable);
    Ok(call)
}
