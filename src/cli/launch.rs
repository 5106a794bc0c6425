//! Starting a host process and waiting until it serves its run, or relaying why it does not: no third state.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::json_lines::Launch;
use super::{Failure, exit};
use crate::store::RunDir;

/// Lines of the host's log that are shown when it died without a word.
const LOG_LINES: usize = 10;

/// The one line a host writes to the pipe on its stdout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostWord {
    Launch(Launch),
    Failed { code: u8, message: String },
}

/// Spawns `planish host` for a prepared run. The host makes a session of its own, so it outlives this terminal.
/// Ctrl-c while waiting kills it.
pub async fn launch(run: &RunDir) -> Result<Launch, Failure> {
    let log_path = run.host_log();
    let trouble = |what: &str, error: std::io::Error| Failure::run(format!("cannot {what}: {error}"));
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log_path)
        .map_err(|error| trouble(&format!("open {}", log_path.display()), error))?;
    let program = std::env::current_exe().map_err(|error| trouble("find the planish program", error))?;
    let mut command = Command::new(program);
    command.arg("host").arg(run.path());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| trouble("start the host process", error))?;

    let mut word = String::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        tokio::select! {
            read = stdout.read_line(&mut word) => {
                read.map_err(|error| trouble("hear from the host process", error))?;
            }
            _ = tokio::signal::ctrl_c() => {
                let _ = child.kill().await;
                let text = "interrupted before the run was served; `planish resume` continues it".into();
                return Err(Failure::Message { code: exit::INTERRUPTED, text });
            }
        }
    }
    match serde_json::from_str(&word) {
        Ok(HostWord::Launch(launch)) => Ok(launch),
        Ok(HostWord::Failed { code, message }) => Err(Failure::Message { code, text: message }),
        Err(_) => {
            let status = child.wait().await.map_err(|error| trouble("wait for the host process", error))?;
            let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
            let text = format!("the host ended before it served the run ({status}){}", last_words(&log_path));
            Err(Failure::Message { code: code.unwrap_or(exit::RUN_FAILED), text })
        }
    }
}

fn last_words(log: &Path) -> String {
    let text =
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    match &lines[lines.len().saturating_sub(LOG_LINES)..] {
        [] => format!("; {} is empty", log.display()),
        last => format!("; the end of {}:\n{}", log.display(), last.join("\n")),
    }
}
