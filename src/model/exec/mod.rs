//! Coding agents on the command line as targets and optimizers: each is a program with arguments, an environment, a
//! prompt on its input and JSON lines on its output, which become one trace. Must not score or try again.

mod cli;
mod copilot_usage;
mod endpoint;
mod family;
mod harness;
mod job;
mod lines;
mod process;
mod run;
mod settings;
mod trace;
mod workspace;

pub use cli::{Cli, Version};
pub use endpoint::ExecEndpoint;
pub use job::{Job, Work};
pub use process::Caps;
pub use run::{ExecError, run, version};
pub use settings::{Agent, ClaudeOptions, CodexOptions, CopilotOptions, ExecKey, ExecSettings, inherited};
pub use trace::{Cap, Draft, End, Ending, FailureClass, News, Trace, read_line};
