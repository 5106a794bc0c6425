//! How each agent program is called: arguments, environment, files of its private home. One file per program.
//! Must not start anything; a secret goes into one variable of the environment and nowhere else.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod pi;
#[cfg(test)]
mod launch_tests;

use secrecy::ExposeSecret;

pub use copilot::USAGE_FILE;

use super::job::{Job, Work};
use super::process::Launch;
use super::settings::{Agent, ExecSettings};
use super::workspace::{Workspace, skill_file};
use super::{Cli, ExecError};
use crate::config::Effort;

/// The variable a key is handed over in when the configuration names an address: no vendor's own name.
const OWN_KEY: &str = "PLANISH_API_KEY";
/// Name of the provider that stands for such an address.
const PROVIDER: &str = "planish";

/// What is particular to one program.
#[derive(Debug, Default)]
struct Call {
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// Files of the home, by their path in it.
    files: Vec<(&'static str, String)>,
}

impl Call {
    fn arg(&mut self, text: impl Into<String>) {
        self.args.push(text.into());
    }

    fn args(&mut self, texts: &[&str]) {
        self.args.extend(texts.iter().map(|text| (*text).to_owned()));
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.env.push((name.to_owned(), value.into()));
    }

    /// The key, in the variable the program looks into.
    fn key(&mut self, settings: &ExecSettings, variable: &str) {
        if let Some(key) = &settings.key {
            self.set(variable, key.secret.expose_secret());
        }
    }
}

/// Where a program looks for skills in a project.
pub fn skills(cli: Cli) -> &'static str {
    match cli {
        Cli::Claude => ".claude/skills",
        Cli::Codex | Cli::Copilot | Cli::Cursor | Cli::Opencode | Cli::Pi | Cli::Gemini => ".agents/skills",
    }
}

/// Writes the program's configuration into the workspace's home, and says how to start it.
///
/// # Errors
/// The settings ask for what the program cannot do, or a file cannot be written.
pub fn launch(settings: &ExecSettings, job: &Job, workspace: &Workspace) -> Result<Launch, ExecError> {
    let cli = settings.agent.cli();
    let chat = matches!(job.work, Work::Chat { .. });
    check(settings)?;
    let mut call = match &settings.agent {
        Agent::Codex(options) => codex::call(settings, options, job, workspace),
        Agent::Claude(options) => claude::call(settings, options, job, workspace),
        Agent::Copilot(options) => copilot::call(settings, options, chat, workspace),
        Agent::Cursor { sandbox } => cursor::call(settings, *sandbox, chat, workspace)?,
        Agent::Opencode => opencode::call(settings, &job.work, workspace)?,
        Agent::Pi => pi::call(settings, &job.work, workspace)?,
        Agent::Gemini => gemini::call(settings, chat),
    };
    for (file, text) in std::mem::take(&mut call.files) {
        workspace.configure(file, &text)?;
    }
    let mut env = environment(settings, workspace);
    // What the program itself is told wins.
    env.retain(|(name, _)| call.env.iter().all(|(own, _)| own != name));
    env.append(&mut call.env);
    Ok(Launch {
        program: settings.program.clone().into(),
        args: call.args,
        env,
        folder: workspace.work(),
        stdin: job.prompt(&skill_file(skills(cli))),
        mark: workspace.mark(),
    })
}

/// What no program could do with these settings.
fn check(settings: &ExecSettings) -> Result<(), ExecError> {
    if settings.base_url.is_empty() || !settings.model.is_empty() {
        return Ok(());
    }
    let message =
        format!("{} needs the name of a model of {}", settings.agent.cli().name(), settings.base_url);
    Err(ExecError::Settings { message })
}

/// The environment every program gets.
pub fn environment(settings: &ExecSettings, workspace: &Workspace) -> Vec<(String, String)> {
    let home = workspace.home();
    let at = |folder: &str| home.join(folder).to_string_lossy().into_owned();
    let temporary = workspace.temporary().to_string_lossy().into_owned();
    let own = [
        ("HOME", home.to_string_lossy().into_owned()),
        ("TMPDIR", temporary),
        ("XDG_CONFIG_HOME", at(".config")),
        ("XDG_DATA_HOME", at(".local/share")),
        ("XDG_STATE_HOME", at(".local/state")),
        ("XDG_CACHE_HOME", at(".cache")),
        ("TERM", "dumb".to_owned()),
        ("NO_COLOR", "1".to_owned()),
    ];
    let inherited = settings.inherited.iter().filter(|(name, _)| own.iter().all(|(made, _)| made != name));
    let inherited: Vec<_> = inherited.cloned().collect();
    inherited.into_iter().chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// The effort as a word, where one is to be sent.
fn effort(settings: &ExecSettings) -> Option<&'static str> {
    (settings.effort != Effort::NotSent).then(|| settings.effort.word())
}

/// The model as the programs with many vendors name it: `provider/model`; an address of one's own is a provider too.
fn provider_and_model(settings: &ExecSettings) -> Result<(String, String), ExecError> {
    if !settings.base_url.is_empty() {
        return Ok((PROVIDER.to_owned(), settings.model.clone()));
    }
    let split =
        settings.model.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    let (provider, model) = split.ok_or_else(|| ExecError::Settings {
        message: format!(
            "{} needs the model as PROVIDER/MODEL (for example anthropic/claude-sonnet-4-6), or the base_url of a server; it is \"{}\"",
            settings.agent.cli().name(),
            settings.model
        ),
    })?;
    Ok((provider.to_owned(), model.to_owned()))
}

/// The variable for a key of a program with many vendors: ours for an address of one's own, else the one it came from.
fn key_variable(settings: &ExecSettings) -> String {
    match &settings.key {
        Some(key) if settings.base_url.is_empty() && !key.variable.is_empty() => key.variable.clone(),
        _ => OWN_KEY.to_owned(),
    }
}
