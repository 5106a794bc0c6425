//! `copilot` with its prompt on the input. With an address of one's own it needs no login of its vendor.

use super::{Call, effort};
use crate::model::exec::settings::{CopilotOptions, ExecSettings};
use crate::model::exec::workspace::Workspace;

const PROVIDER_KEY: &str = "COPILOT_PROVIDER_API_KEY";
const LOGIN: &str = "COPILOT_GITHUB_TOKEN";
/// What an agent needs; the others reach beyond the workspace.
const TOOLS: &str =
    "bash,read_bash,write_bash,stop_bash,view,create,edit,str_replace_editor,apply_patch,grep,glob";
/// Where it tells the tokens it used.
pub const USAGE_FILE: &str = "usage.json";

pub fn call(settings: &ExecSettings, options: &CopilotOptions, chat: bool, workspace: &Workspace) -> Call {
    let mut call = Call::default();
    call.args(&["--output-format", "json", "--stream", "off", "--no-color", "--log-level", "none"]);
    call.args(&["--disable-builtin-mcps", "--no-custom-instructions", "--no-auto-update"]);
    call.args(&["--no-ask-user", "--no-remote", "--secret-env-vars", &format!("{PROVIDER_KEY},{LOGIN}")]);
    match (chat, options.all_tools) {
        // There is no tool of that name, hence none at all.
        (true, _) => call.args(&["--available-tools", "none"]),
        (false, true) => call.args(&["--allow-all-tools"]),
        (false, false) => call.args(&["--allow-all-tools", "--available-tools", TOOLS]),
    }
    call.arg("--usage-output-file");
    call.arg(workspace.home().join(USAGE_FILE).to_string_lossy());
    if let Some(effort) = effort(settings) {
        call.args(&["--reasoning-effort", effort]);
    }
    call.arg("-C");
    call.arg(workspace.work().to_string_lossy());
    let home = options.home.clone().unwrap_or_else(|| workspace.home().join(".copilot"));
    call.set("COPILOT_HOME", home.to_string_lossy());
    // The program unpacks itself there, some 240 MB: once, not for every job.
    call.set("XDG_CACHE_HOME", settings.scratch.join("copilot-cache").to_string_lossy());
    if !settings.model.is_empty() {
        call.set("COPILOT_MODEL", settings.model.clone());
    }
    if settings.base_url.is_empty() {
        call.key(settings, LOGIN);
    } else {
        call.set("COPILOT_PROVIDER_BASE_URL", settings.base_url.clone());
        call.set("COPILOT_PROVIDER_TYPE", "openai");
        call.key(settings, PROVIDER_KEY);
    }
    call
}
