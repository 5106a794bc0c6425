//! From the route of a role to the settings of an agent program: where it is, what it may. Must not start it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ApiKey;
use super::exec::{
    Agent, Caps, ClaudeOptions, Cli, CodexOptions, CopilotOptions, ExecError, ExecKey, ExecSettings,
    inherited,
};
use crate::config::{Agent as Named, Effort, ModelConfig, Program, SdkUse};
use crate::domain::Role;

/// How the program of a role is run; relative paths start at `base_dir`.
///
/// # Errors
/// The configuration asks for what this version does not do, or the program is not there.
pub fn program_settings(
    config: &ModelConfig,
    role: Role,
    program: Program,
    key: Option<ApiKey>,
    base_dir: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ExecSettings, ExecError> {
    let (codex, claude, copilot) = (&config.codex, &config.claude_code, &config.copilot);
    let (agent, path, effort) = match program.agent {
        Named::Codex => {
            not_done("codex_exec_use_sdk", codex.codex_exec_use_sdk == SdkUse::Always)?;
            not_done("codex_exec_profile", !codex.codex_exec_profile.is_empty())?;
            let options = CodexOptions {
                sandbox: codex.codex_exec_sandbox,
                approval: codex.codex_exec_approval_policy,
                network: codex.codex_exec_network_access.unwrap_or(false),
                web_search: codex.codex_exec_web_search.unwrap_or(false),
            };
            (Agent::Codex(options), &codex.codex_exec_path, codex.codex_exec_reasoning_effort)
        }
        Named::ClaudeCode => {
            not_done("claude_code_exec_use_sdk", claude.claude_code_exec_use_sdk == SdkUse::Always)?;
            not_done("claude_code_exec_profile", !claude.claude_code_exec_profile.is_empty())?;
            let most = claude.claude_code_exec_max_thinking_tokens;
            let options = ClaudeOptions { thinking_tokens: (most > 0).then_some(most) };
            (Agent::Claude(options), &claude.claude_code_exec_path, claude.claude_code_exec_effort)
        }
        Named::Copilot => {
            let home = &copilot.copilot_exec_home;
            let options = CopilotOptions {
                home: (!home.is_empty()).then(|| base_dir.join(home)),
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
    // The time of an attempt is the clock; only Copilot has one of its own.
    let wall = match program.agent == Named::Copilot && program.as_chat {
        true => Duration::from_secs(copilot.copilot_chat_timeout.unwrap_or(600).into()),
        false => Duration::MAX,
    };
    let caps = Caps { wall, ..Caps::default() };
    let variable = config.role(role).api_key_env.clone();
    let of_role = config.role(role).reasoning_effort;
    Ok(ExecSettings {
        program: found(agent.cli(), path, base_dir, env)?,
        agent,
        model: program.model,
        base_url: program.base_url.trim_end_matches('/').to_owned(),
        key: key.map(|key| ExecKey { variable, secret: key.secret }),
        effort: [of_role, effort, config.reasoning.reasoning_effort]
            .into_iter()
            .find(|effort| *effort != Effort::NotSent)
            .unwrap_or(Effort::NotSent),
        rewrite_effort: config.reasoning.rewrite_reasoning_effort,
        caps,
        scratch: scratch(env),
        inherited: inherited(env),
    })
}

/// An absolute path: a job's own folder is where a relative one would be looked for.
fn found(
    cli: Cli,
    named: &str,
    base_dir: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<String, ExecError> {
    let name = if named.is_empty() { cli.program() } else { named };
    let found = match name.contains('/') {
        true => Some(base_dir.join(name)).filter(|path| path.is_file()),
        false => on_path(name, &env("PATH").unwrap_or_default()),
    };
    let found = found.and_then(|path| std::path::absolute(path).ok());
    let missing = || ExecError::Missing { program: name.to_owned(), remedy: cli.remedy() };
    Ok(found.ok_or_else(missing)?.to_string_lossy().into_owned())
}

fn not_done(key: &str, asked: bool) -> Result<(), ExecError> {
    if !asked {
        return Ok(());
    }
    let message =
        format!("model.{key}: planish drives the program itself, in a home of its own; leave the key out");
    Err(ExecError::Settings { message })
}

fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Of this user alone, and outside of any project.
fn scratch(env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let temporary = env("TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or_else(|| "/tmp".to_owned());
    Path::new(&temporary).join(format!("planish-jobs-{}", rustix::process::getuid().as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Backend, Route};

    fn settings(change: impl FnOnce(&mut ModelConfig), role: Role) -> Result<ExecSettings, String> {
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("codex"), "").unwrap();
        std::fs::write(bin.path().join("copilot"), "").unwrap();
        let path = bin.path().to_string_lossy().into_owned();
        let mut model = ModelConfig::default();
        change(&mut model);
        let env = |name: &str| (name == "PATH").then(|| path.clone());
        let Ok(Route::Program(program)) = model.route(role) else { panic!("no program") };
        let settings = program_settings(&model, role, program, None, bin.path(), &env);
        let settings = settings.map_err(|error| error.to_string())?;
        assert_eq!(Path::new(&settings.program).parent(), Some(bin.path()));
        Ok(settings)
    }

    #[test]
    fn a_backend_is_a_program_with_its_options() {
        let codex = |model: &mut ModelConfig| {
            model.target.backend = Backend::CodexExec;
            model.target.model = "gpt-5.5".into();
            model.codex.codex_exec_network_access = Some(true);
            model.reasoning.reasoning_effort = Effort::High;
        };
        let settings = settings(codex, Role::Target).unwrap();
        assert_eq!((settings.model.as_str(), settings.effort), ("gpt-5.5", Effort::High));
        assert!(matches!(
            settings.agent,
            Agent::Codex(CodexOptions { network: true, web_search: false, .. })
        ));
    }

    #[test]
    fn only_copilot_as_chat_has_a_clock_of_its_own() {
        let copilot = |model: &mut ModelConfig| {
            model.optimizer.backend = Backend::CopilotChat;
            model.optimizer.model = "m".into();
            model.copilot.copilot_chat_timeout = Some(7);
        };
        let settings = settings(copilot, Role::Optimizer).unwrap();
        assert_eq!((settings.model.as_str(), settings.caps.wall), ("m", Duration::from_secs(7)));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let missing = settings(|model| model.target.backend = Backend::PiExec, Role::Target).unwrap_err();
        assert!(missing.starts_with("cannot find the program pi; install it with"), "{missing}");
        let profile = |model: &mut ModelConfig| {
            model.target.backend = Backend::CodexExec;
            model.codex.codex_exec_profile = "work".into();
        };
        assert!(settings(profile, Role::Target).unwrap_err().starts_with("model.codex_exec_profile: "));
    }
}
