//! One running worker process: spawning, handshake, model load, writing requests, and what is left to say when it has
//! ended. Routes nothing and restarts nothing.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::{LocalSettings, WORKER, unexpected};
use crate::model::child_env;
use crate::model::worker_protocol::{
    Device, Load, Loaded, Reply, ReplyLine, Request, RequestLine, WORKER_PROTOCOL,
};

const STDERR_LINES: usize = 20;
const HELLO_ID: u64 = 1;
const LOAD_ID: u64 = 2;
/// Ids below it belong to the handshake.
pub const FIRST_CALL_ID: u64 = 3;

/// A running worker process and the two ends of its conversation.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    pub lines: Lines<BufReader<ChildStdout>>,
    /// Ends with the last lines of stderr.
    stderr: JoinHandle<Vec<String>>,
    pub pid: u32,
}

impl Worker {
    /// Starts the process, shakes hands, loads the model.
    pub async fn launch(settings: &LocalSettings) -> Result<(Self, Loaded), String> {
        let [program, arguments @ ..] = settings.command.as_slice() else {
            return Err("the worker command is empty".into());
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(child_env::allowed(child_env::WORKER))
            .env("OMP_WAIT_POLICY", "passive")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-c in the terminal goes to planish, which decides what becomes of the worker.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                format!("cannot start the worker {program}: {error}; build it with `make worker`, or set [model] worker_command")
            })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the worker has no pipes".into());
        };
        let stderr = tokio::spawn(tail(BufReader::new(stderr).lines()));
        let pid = child.id().unwrap_or_default();
        let mut worker = Self { child, stdin, lines: BufReader::new(stdout).lines(), stderr, pid };
        match worker.load(settings).await {
            Ok(loaded) => Ok((worker, loaded)),
            Err(Refusal::Said(message)) => Err(message),
            Err(Refusal::Silent(fault)) => Err(worker.last_words(&fault).await),
        }
    }

    async fn load(&mut self, settings: &LocalSettings) -> Result<Loaded, Refusal> {
        match self.ask(HELLO_ID, &Request::Hello { proto: WORKER_PROTOCOL }).await? {
            Reply::Hello { pid, .. } => self.pid = pid,
            other => return Err(Refusal::Said(unexpected(&other).to_string())),
        }
        let load = Load {
            model_file: settings.model_file.clone(),
            threads: settings.threads,
            max_batch: settings.max_batch,
            device: Device::Auto,
        };
        match self.ask(LOAD_ID, &Request::Load(load)).await? {
            Reply::Loaded(loaded) => Ok(loaded),
            other => Err(Refusal::Said(unexpected(&other).to_string())),
        }
    }

    async fn ask(&mut self, id: u64, request: &Request) -> Result<Reply, Refusal> {
        self.send(id, request).await.map_err(Refusal::Silent)?;
        let line = line_text(self.lines.next_line().await).map_err(Refusal::Silent)?;
        match parse(&line).map_err(Refusal::Said)?.body {
            Reply::Error { message, .. } => Err(Refusal::Said(message)),
            reply => Ok(reply),
        }
    }

    pub async fn send(&mut self, id: u64, request: &Request) -> Result<(), String> {
        let line = RequestLine { id, body: request.clone() };
        let mut line = serde_json::to_vec(&line).map_err(|error| error.to_string())?;
        line.push(b'\n');
        self.stdin.write_all(&line).await.map_err(|error| format!("cannot write to it: {error}"))
    }

    pub async fn send_cancel(&mut self, target: u64) -> Result<(), String> {
        // Id 0 belongs to no call, so the answer is dropped by the router.
        self.send(0, &Request::Cancel { target }).await
    }

    /// What there is to say about a worker that has stopped talking: exit status and the end of its stderr.
    pub async fn last_words(&mut self, fault: &str) -> String {
        // It may hang rather than be dead; either way it is of no use any more.
        let _ = self.child.start_kill();
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        // A grandchild may hold stderr open after the worker's end.
        let tail = tokio::time::timeout(Duration::from_secs(1), &mut self.stderr).await;
        let tail = tail.ok().and_then(Result::ok).unwrap_or_default();
        let said = if tail.is_empty() { String::new() } else { format!("; stderr: {}", tail.join(" | ")) };
        format!("{WORKER} ended ({fault}; {status}{said})")
    }
}

/// Why a worker cannot be used: its own words, or it went silent.
enum Refusal {
    Said(String),
    Silent(String),
}

async fn tail<R: tokio::io::AsyncBufRead + Unpin>(mut lines: Lines<R>) -> Vec<String> {
    let mut kept = std::collections::VecDeque::new();
    while let Ok(Some(line)) = lines.next_line().await {
        if kept.len() == STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    kept.into()
}

pub fn line_text(line: std::io::Result<Option<String>>) -> Result<String, String> {
    match line {
        Ok(Some(line)) => Ok(line),
        Ok(None) => Err("it closed its output".into()),
        Err(error) => Err(format!("cannot read from it: {error}")),
    }
}

pub fn parse(line: &str) -> Result<ReplyLine, String> {
    serde_json::from_str(line).map_err(|error| {
        let start: String = line.chars().take(80).collect();
        format!("it wrote a line that is no reply: {error}: {start:?}")
    })
}
