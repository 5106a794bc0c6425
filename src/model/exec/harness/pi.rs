//! `pi --mode json`: a provider of one's own is a file of its private folder, which names the key's variable.

use serde_json::json;

use super::{Call, PROVIDER, effort, key_variable, provider_and_model};
use crate::model::exec::ExecError;
use crate::model::exec::job::Work;
use crate::model::exec::settings::ExecSettings;
use crate::model::exec::workspace::Workspace;

/// What it takes for granted of a model it does not know.
const CONTEXT: u32 = 128_000;
const REPLY: u32 = 16_000;

pub fn call(settings: &ExecSettings, work: &Work, workspace: &Workspace) -> Result<Call, ExecError> {
    let (provider, model) = provider_and_model(settings)?;
    let variable = key_variable(settings);
    let chat = matches!(work, Work::Chat { .. });
    let mut call = Call::default();
    call.args(&["-p", "--mode", "json", "--no-session", "--no-extensions", "--no-context-files"]);
    call.args(&["--provider", &provider, "--model", &model]);
    if chat {
        call.args(&["--no-tools", "--no-skills", "--no-approve"]);
    } else {
        // Skills of the folder are read only where it is trusted.
        call.args(&["--tools", "read,write,edit,bash", "--approve"]);
    }
    if let Some(effort) = effort(settings) {
        call.args(&["--thinking", if effort == "none" { "off" } else { effort }]);
    }
    if !settings.base_url.is_empty() {
        let provider = json!({
            "baseUrl": settings.base_url,
            "api": "openai-completions",
            "apiKey": variable,
            "models": [{
                "id": model,
                "contextWindow": CONTEXT,
                "maxTokens": work.max_tokens().unwrap_or(REPLY),
                "reasoning": effort(settings).is_some(),
            }],
        });
        let models = json!({ "providers": { PROVIDER: provider } });
        call.files.push((".pi/agent/models.json", models.to_string()));
    }
    call.set("PI_CODING_AGENT_DIR", workspace.home().join(".pi/agent").to_string_lossy());
    call.set("PI_OFFLINE", "1");
    call.set("PI_TELEMETRY", "0");
    match &settings.key {
        Some(_) => call.key(settings, &variable),
        // It refuses to call a server without any.
        None if !settings.base_url.is_empty() => call.set(&variable, "none"),
        None => {}
    }
    Ok(call)
}
