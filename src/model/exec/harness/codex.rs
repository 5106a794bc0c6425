//! `codex exec`: its configuration goes into arguments, so that the private home stays empty.

use serde_json::Value;

use super::{Call, OWN_KEY, PROVIDER, effort};
use crate::config::{CodexApproval, CodexSandbox, Effort};
use crate::model::exec::job::{Job, Work};
use crate::model::exec::settings::{CodexOptions, ExecSettings};
use crate::model::exec::workspace::Workspace;

const KEY: &str = "CODEX_API_KEY";
/// Tools a plain chat has no use for; the sandbox denies what is left of them.
const TOOLS: &[&str] = &["shell_tool", "unified_exec", "multi_agent", "goals", "hooks"];

pub fn call(settings: &ExecSettings, options: &CodexOptions, job: &Job, workspace: &Workspace) -> Call {
    let mut call = Call::default();
    let home = workspace.home().join(".codex");
    let sandbox = match (&job.work, options.sandbox) {
        (Work::Chat { .. }, _) => CodexSandbox::ReadOnly,
        (Work::Agent(_), CodexSandbox::Unset) => CodexSandbox::WorkspaceWrite,
        (Work::Agent(_), sandbox) => sandbox,
    };
    let approval = match options.approval {
        CodexApproval::Unset => CodexApproval::Never,
        approval => approval,
    };
    call.args(&["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never", "-C"]);
    call.arg(workspace.work().to_string_lossy());
    call.args(&["-s", sandbox.word()]);
    if !settings.model.is_empty() {
        call.args(&["-m", &settings.model]);
    }
    let mut set = |key: &str, value: &str| call.args(&["-c", &format!("{key}={value}")]);
    set("approval_policy", &quoted(approval.word()));
    set("web_search", &quoted(if options.web_search { "live" } else { "disabled" }));
    if options.network {
        set("sandbox_workspace_write.network_access", "true");
    }
    if let Some(effort) = effort(settings).filter(|_| settings.effort != Effort::None) {
        set("model_reasoning_effort", &quoted(effort));
    }
    // What the agent runs has no use for its key.
    set("shell_environment_policy.exclude", &format!("[{}, {}]", quoted(OWN_KEY), quoted(KEY)));
    if !settings.base_url.is_empty() {
        set("model_provider", &quoted(PROVIDER));
        let key =
            if settings.key.is_some() { format!(", env_key = {}", quoted(OWN_KEY)) } else { String::new() };
        let url = quoted(&settings.base_url);
        let provider =
            format!("{{ name = {}, base_url = {url}, wire_api = \"responses\"{key} }}", quoted(PROVIDER));
        set(&format!("model_providers.{PROVIDER}"), &provider);
    }
    if let Work::Chat { schema, .. } = &job.work {
        for tool in TOOLS {
            set(&format!("features.{tool}"), "false");
        }
        if let Some(schema) = schema {
            call.arg("--output-schema");
            call.arg(workspace.home().join(SCHEMA).to_string_lossy());
            call.files.push((SCHEMA, schema.to_string()));
        }
    }
    call.arg("-");
    call.set("CODEX_HOME", home.to_string_lossy());
    call.files.push((".codex/config.toml", String::new()));
    call.key(settings, if settings.base_url.is_empty() { KEY } else { OWN_KEY });
    call
}

const SCHEMA: &str = "schema.json";

/// As TOML: its strings escape as those of JSON do.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
