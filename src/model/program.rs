//! From the route of a role to the settings of an agent program. Must not start it.

use std::time::Duration;

use super::ApiKey;
use super::exec::{
    Agent, Caps, ClaudeOptions, CodexOptions, CopilotOptions, ExecKey, ExecSettings, inherited,
};
use crate::config::{Agent as Named, Effort, ModelConfig, Program};
use crate::domain::Role;

/// How the program of a role is run.
pub fn program_settings(
    config: &ModelConfig,
    role: Role,
    program: Program,
    key: Option<ApiKey>,
    env: &dyn Fn(&str) -> Option<String>,
) -> ExecSettings {
    let (codex, claude, copilot) = (&config.codex, &config.claude_code, &config.copilot);
    let (agent, path, effort) = match program.agent {
        Named::Codex => {
            let options = CodexOptions {
                sandbox: codex.codex_exec_sandbox,
                approval: codex.codex_exec_approval_policy,
                network: codex.codex_exec_network_access.unwrap_or(false),
                web_search: codex.codex_exec_web_search.unwrap_or(false),
            };
            (Agent::Codex(options), &codex.codex_exec_path, codex.codex_exec_reasoning_effort)
        }
        Named::ClaudeCode => {
            let most = claude.claude_code_exec_max_thinking_tokens;
            let options = ClaudeOptions { thinking_tokens: (most > 0).then_some(most) };
            (Agent::Claude(options), &claude.claude_code_exec_path, claude.claude_code_exec_effort)
        }
        Named::Copilot => {
            let home = &copilot.copilot_exec_home;
            let options = CopilotOptions {
                home: (!home.is_empty()).then(|| home.into()),
                all_tools: copilot.copilot_exec_allow_all_tools.unwrap_or(false),
            };
            (Agent::Copilot(options), &copilot.copilot_exec_path, Effort::NotSent)
        }
        Named::Cursor => {
            let sandbox = config.cursor.cursor_exec_sandbox;
            (Agent::Cursor { sandbox }, &config.cursor.cursor_exec_path, Effort::NotSent)
        }
        Named::Pi => (Agent::Pi, &config.agents.pi_exec_path, Effort::NotSent),
        Named::Opencode => (Agent::Opencode, &config.agents.opencode_exec_path, Effort::NotSent),
        Named::Gemini => (Agent::Gemini, &config.agents.gemini_exec_path, Effort::NotSent),
    };
    let mut caps = Caps::default();
    if program.agent == Named::Copilot && program.as_chat {
        caps.wall = Duration::from_secs(copilot.copilot_chat_timeout.unwrap_or(600).into());
    }
    let variable = config.role(role).api_key_env.clone();
    let of_role = config.role(role).reasoning_effort;
    ExecSettings {
        program: if path.is_empty() { agent.cli().program().to_owned() } else { path.clone() },
        agent,
        model: program.model,
        base_url: program.base_url,
        key: key.map(|key| ExecKey { variable, secret: key.secret }),
        effort: [of_role, effort, config.reasoning.reasoning_effort]
            .into_iter()
            .find(|effort| *effort != Effort::NotSent)
            .unwrap_or(Effort::NotSent),
        rewrite_effort: config.reasoning.rewrite_reasoning_effort,
        caps,
        scratch: std::env::temp_dir(),
        inherited: inherited(env),
    }
}
