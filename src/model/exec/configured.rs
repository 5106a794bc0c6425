//! Settings of an agent program from a run's configuration: which backend is which program, where it is, what it may.
//! Must not start it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cli::Cli;
use super::process::Caps;
use super::run::ExecError;
use super::settings::{Agent, ClaudeOptions, CodexOptions, CopilotOptions, ExecKey, ExecSettings, inherited};
use crate::config::{Backend, Effort, ModelConfig, RoleConfig, SdkUse};
use crate::domain::{Delivery, Role};

/// What a role's agent is made of.
pub struct Configured<'a> {
    pub role: Role,
    pub model: &'a ModelConfig,
    pub config: &'a RoleConfig,
    pub key: Option<ExecKey>,
    /// Relative paths start here.
    pub base_dir: &'a Path,
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

/// The program of a backend; `None`: it is no agent.
pub fn cli_of(backend: Backend) -> Option<Cli> {
    match backend {
        Backend::CodexExec => Some(Cli::Codex),
        Backend::ClaudeCodeExec | Backend::ClaudeChat => Some(Cli::Claude),
        Backend::CopilotExec | Backend::CopilotChat => Some(Cli::Copilot),
        Backend::CursorExec => Some(Cli::Cursor),
        Backend::OpencodeExec => Some(Cli::Opencode),
        Backend::PiExec => Some(Cli::Pi),
        Backend::GeminiExec => Some(Cli::Gemini),
        Backend::OpenaiChat
        | Backend::Local
        | Backend::EditSearch
        | Backend::QwenChat
        | Backend::MinimaxChat => None,
    }
}

impl Configured<'_> {
    /// # Errors
    /// The configuration asks for what this version does not do, or the program is not there.
    pub fn settings(self, cli: Cli) -> Result<ExecSettings, ExecError> {
        let agent = self.agent(cli)?;
        let effort = self.effort(cli);
        let mut caps = Caps::default();
        // The time of an attempt is the clock; only Copilot has one of its own.
        caps.wall = match (self.config.backend, self.model.copilot.copilot_chat_timeout) {
            (Backend::CopilotChat, seconds) => Duration::from_secs(seconds.unwrap_or(600).into()),
            _ => Duration::MAX,
        };
        Ok(ExecSettings {
            program: self.program(cli)?,
            agent,
            model: self.model_name().to_owned(),
            base_url: self.config.base_url.trim_end_matches('/').to_owned(),
            effort,
            rewrite_effort: self.model.reasoning.rewrite_reasoning_effort,
            caps,
            scratch: scratch(self.env),
            inherited: inherited(self.env),
            key: self.key,
        })
    }

    /// A target that works on files gets its skill as one.
    pub fn delivery(&self) -> Delivery {
        match (self.role, self.config.backend) {
            (Role::Target, Backend::ClaudeChat | Backend::CopilotChat) => Delivery::Prompt,
            (Role::Target, _) => Delivery::Files,
            (Role::Optimizer | Role::Judge, _) => Delivery::Prompt,
        }
    }

    fn agent(&self, cli: Cli) -> Result<Agent, ExecError> {
        let ModelConfig { codex, claude_code, cursor, copilot, .. } = self.model;
        Ok(match cli {
            Cli::Codex => {
                not_done("codex_exec_use_sdk", codex.codex_exec_use_sdk == SdkUse::Always)?;
                not_done("codex_exec_profile", !codex.codex_exec_profile.is_empty())?;
                Agent::Codex(CodexOptions {
                    sandbox: codex.codex_exec_sandbox,
                    approval: codex.codex_exec_approval_policy,
                    network: codex.codex_exec_network_access.unwrap_or_default(),
                    web_search: codex.codex_exec_web_search.unwrap_or_default(),
                })
            }
            Cli::Claude => {
                not_done("claude_code_exec_use_sdk", claude_code.claude_code_exec_use_sdk == SdkUse::Always)?;
                not_done("claude_code_exec_profile", !claude_code.claude_code_exec_profile.is_empty())?;
                let thinking_tokens = Some(claude_code.claude_code_exec_max_thinking_tokens);
                Agent::Claude(ClaudeOptions { thinking_tokens })
            }
            Cli::Copilot => {
                let home = &copilot.copilot_exec_home;
                Agent::Copilot(CopilotOptions {
                    home: (!home.is_empty()).then(|| self.base_dir.join(home)),
                    all_tools: copilot.copilot_exec_allow_all_tools.unwrap_or_default(),
                })
            }
            Cli::Cursor => Agent::Cursor { sandbox: cursor.cursor_exec_sandbox },
            Cli::Opencode => Agent::Opencode,
            Cli::Pi => Agent::Pi,
            Cli::Gemini => Agent::Gemini,
        })
    }

    fn effort(&self, cli: Cli) -> Effort {
        let own = match cli {
            Cli::Codex => self.model.codex.codex_exec_reasoning_effort,
            Cli::Claude => self.model.claude_code.claude_code_exec_effort,
            Cli::Copilot | Cli::Cursor | Cli::Opencode | Cli::Pi | Cli::Gemini => Effort::NotSent,
        };
        if own == Effort::NotSent { self.model.reasoning.reasoning_effort } else { own }
    }

    fn model_name(&self) -> &str {
        let copilot = &self.model.copilot;
        let own = match (self.config.backend, self.role) {
            (Backend::CopilotChat, Role::Target) => &copilot.copilot_chat_target_model,
            (Backend::CopilotChat, Role::Optimizer) => &copilot.copilot_chat_optimizer_model,
            _ => return &self.config.model,
        };
        if own.is_empty() { &self.config.model } else { own }
    }

    /// An absolute path: a job's own folder is where a relative one would be looked for.
    fn program(&self, cli: Cli) -> Result<String, ExecError> {
        let named = match cli {
            Cli::Codex => &self.model.codex.codex_exec_path,
            Cli::Claude => &self.model.claude_code.claude_code_exec_path,
            Cli::Copilot => &self.model.copilot.copilot_exec_path,
            Cli::Cursor => &self.model.cursor.cursor_exec_path,
            Cli::Opencode => &self.model.agents.opencode_exec_path,
            Cli::Pi => &self.model.agents.pi_exec_path,
            Cli::Gemini => &self.model.agents.gemini_exec_path,
        };
        let name = if named.is_empty() { cli.program() } else { named };
        let found = match name.contains('/') {
            true => Some(self.base_dir.join(name)).filter(|path| path.is_file()),
            false => on_path(name, &(self.env)("PATH").unwrap_or_default()),
        };
        let found = found.and_then(|path| std::path::absolute(path).ok());
        let missing = || ExecError::Missing { program: name.to_owned(), remedy: cli.remedy() };
        Ok(found.ok_or_else(missing)?.to_string_lossy().into_owned())
    }
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

    fn settings(
        change: impl FnOnce(&mut ModelConfig),
        role: Role,
    ) -> Result<(ExecSettings, Delivery), String> {
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("codex"), "").unwrap();
        std::fs::write(bin.path().join("copilot"), "").unwrap();
        let path = bin.path().to_string_lossy().into_owned();
        let mut model = ModelConfig::default();
        change(&mut model);
        let config = if role == Role::Target { &model.target } else { &model.optimizer };
        let env = |name: &str| (name == "PATH").then(|| path.clone());
        let base_dir = bin.path();
        let configured = Configured { role, model: &model, config, key: None, base_dir, env: &env };
        let delivery = configured.delivery();
        let settings =
            configured.settings(cli_of(config.backend).unwrap()).map_err(|error| error.to_string())?;
        assert_eq!(Path::new(&settings.program).parent(), Some(bin.path()));
        Ok((settings, delivery))
    }

    #[test]
    fn a_backend_is_a_program_with_its_options() {
        let codex = |model: &mut ModelConfig| {
            model.target.backend = Backend::CodexExec;
            model.target.model = "gpt-5.5".into();
            model.codex.codex_exec_network_access = Some(true);
            model.reasoning.reasoning_effort = Effort::High;
        };
        let (settings, delivery) = settings(codex, Role::Target).unwrap();
        assert_eq!(
            (delivery, settings.model.as_str(), settings.effort),
            (Delivery::Files, "gpt-5.5", Effort::High)
        );
        assert!(matches!(
            settings.agent,
            Agent::Codex(CodexOptions { network: true, web_search: false, .. })
        ));
    }

    #[test]
    fn an_optimizer_is_asked_plain_questions() {
        let copilot = |model: &mut ModelConfig| {
            model.optimizer.backend = Backend::CopilotChat;
            model.copilot.copilot_chat_optimizer_model = "m".into();
            model.copilot.copilot_chat_timeout = Some(7);
        };
        let (settings, delivery) = settings(copilot, Role::Optimizer).unwrap();
        assert_eq!((delivery, settings.model.as_str()), (Delivery::Prompt, "m"));
        assert_eq!(settings.caps.wall, Duration::from_secs(7));
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
