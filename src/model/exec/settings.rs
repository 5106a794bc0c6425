//! How an agent program is run for a role: which one, with which model, key, place and bounds. Must not start it.

use std::path::PathBuf;

use secrecy::SecretString;

use super::Cli;
use super::process::Caps;
use crate::config::{CodexApproval, CodexSandbox, CursorSandbox, Effort};

/// Variables of planish's own environment that an agent gets as well. Everything else it gets is made for the job.
const INHERITED: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// An agent with the options only it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agent {
    Codex(CodexOptions),
    Claude(ClaudeOptions),
    Copilot(CopilotOptions),
    Cursor { sandbox: CursorSandbox },
    Opencode,
    Pi,
    Gemini,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodexOptions {
    pub sandbox: CodexSandbox,
    pub approval: CodexApproval,
    pub network: bool,
    pub web_search: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaudeOptions {
    /// `None`: the program's own choice.
    pub thinking_tokens: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopilotOptions {
    /// A folder with the program's own login; `None`: a private one.
    pub home: Option<PathBuf>,
    /// Every tool, not only those that read, write and run.
    pub all_tools: bool,
}

impl Agent {
    pub fn cli(&self) -> Cli {
        match self {
            Self::Codex(_) => Cli::Codex,
            Self::Claude(_) => Cli::Claude,
            Self::Copilot(_) => Cli::Copilot,
            Self::Cursor { .. } => Cli::Cursor,
            Self::Opencode => Cli::Opencode,
            Self::Pi => Cli::Pi,
            Self::Gemini => Cli::Gemini,
        }
    }
}

/// The key of the model's vendor, and the variable the configuration has it in ("" if it is in none).
#[derive(Clone, Debug)]
pub struct ExecKey {
    pub variable: String,
    pub secret: SecretString,
}

/// An agent program as a role's model.
#[derive(Clone, Debug)]
pub struct ExecSettings {
    pub agent: Agent,
    /// A name to be found on the path, or a path.
    pub program: String,
    /// Empty: the program's own choice.
    pub model: String,
    /// Address of a server that speaks the program's dialect; empty: the vendor's.
    pub base_url: String,
    pub key: Option<ExecKey>,
    pub effort: Effort,
    /// The same where a whole skill is rewritten; not set: as everywhere.
    pub rewrite_effort: Effort,
    pub caps: Caps,
    /// Where jobs get their folders: outside of any project, whose instructions an agent would read.
    pub scratch: PathBuf,
    /// See [`inherited`].
    pub inherited: Vec<(String, String)>,
}

/// What an agent gets of the environment that `env` reads.
pub fn inherited(env: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), env(name)?))).collect()
}
