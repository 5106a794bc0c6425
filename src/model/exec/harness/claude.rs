//! `claude -p`: Claude Code with its prompt on the input and events on the output.

use super::{Call, effort};
use crate::config::Effort;
use crate::model::exec::job::{Job, Work};
use crate::model::exec::settings::{ClaudeOptions, ExecSettings};
use crate::model::exec::workspace::Workspace;

const KEY: &str = "ANTHROPIC_API_KEY";
/// Other ways of this vendor to log in.
const TOKENS: &[&str] = &["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
const TOOLS: &str = "Bash,Read,Write,Edit,Glob,Grep";

pub fn call(settings: &ExecSettings, options: &ClaudeOptions, job: &Job, workspace: &Workspace) -> Call {
    let mut call = Call::default();
    call.args(&["-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]);
    call.args(&["--strict-mcp-config", "--permission-mode", "dontAsk"]);
    if !settings.model.is_empty() {
        call.args(&["--model", &settings.model]);
        // Side questions go to the same model: another one is neither configured nor budgeted for.
        call.set("ANTHROPIC_DEFAULT_HAIKU_MODEL", settings.model.clone());
    }
    match settings.effort {
        Effort::NotSent | Effort::None | Effort::Minimal => {}
        _ => call.args(&["--effort", effort(settings).unwrap_or_default()]),
    }
    match &job.work {
        Work::Agent(_) => call.args(&["--tools", TOOLS, "--allowedTools", TOOLS]),
        Work::Chat { schema, max_tokens } => {
            if let Some(most) = max_tokens {
                call.set("CLAUDE_CODE_MAX_OUTPUT_TOKENS", most.to_string());
            }
            call.args(&["--tools", "", "--disable-slash-commands"]);
            if let Some(schema) = schema {
                call.args(&["--json-schema", &schema.to_string()]);
            }
        }
    }
    call.set("CLAUDE_CONFIG_DIR", workspace.home().join(".claude").to_string_lossy());
    for switch in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ] {
        call.set(switch, "1");
    }
    // Trying again is planish's business, which knows of all calls.
    call.set("CLAUDE_CODE_MAX_RETRIES", "2");
    if let Some(tokens) = options.thinking_tokens {
        call.set("MAX_THINKING_TOKENS", tokens.to_string());
    }
    if !settings.base_url.is_empty() {
        call.set("ANTHROPIC_BASE_URL", settings.base_url.clone());
    }
    let named = settings.key.as_ref().map(|key| key.variable.as_str());
    call.key(settings, named.filter(|name| TOKENS.contains(name)).unwrap_or(KEY));
    call
}
