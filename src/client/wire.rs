//! One connection to a host, up to and including the welcome line.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::journal::folder_name;
use super::target::ssh_arguments;
use super::{ClientError, ClientOptions, Presence, Target, presence};
use crate::event::{ClientLine, HostLine, PROTOCOL};
use crate::host::BoundedLines;

/// Longest line a host may send (a record holds whole skills and replies).
const HOST_LINE: usize = 64 * 1024 * 1024;
const WELCOME_TIME: Duration = Duration::from_secs(10);
/// An ssh login may ask for a password.
const SSH_WELCOME_TIME: Duration = Duration::from_secs(120);
/// A host that is just leaving has a live process and no socket for a moment.
const LEAVING_TRIES: u32 = 20;
const LEAVING_PAUSE: Duration = Duration::from_millis(50);
/// Environment variable that names another program than `ssh`.
const SSH_VARIABLE: &str = "PLANISH_SSH";

pub(super) struct Welcome {
    pub line: HostLine,
    pub last_seq: u64,
}

pub(super) struct Wire {
    pub lines: BoundedLines<Box<dyn AsyncRead + Send + Unpin>>,
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Killed when the wire is dropped.
    _ssh: Option<Child>,
}

impl Wire {
    fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        ssh: Option<Child>,
    ) -> Self {
        let lines = BoundedLines::new(Box::new(reader) as Box<dyn AsyncRead + Send + Unpin>, HOST_LINE);
        Self { lines, writer: Box::new(writer), _ssh: ssh }
    }

    pub async fn send(&mut self, line: &ClientLine) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.writer.write_all(&bytes).await?;
        self.writer.flush().await
    }

    /// The next line of the host; `Err` is the reason why there is none.
    pub async fn receive(&mut self) -> Result<HostLine, String> {
        match self.lines.next().await {
            Ok(Some(line)) => serde_json::from_slice(line)
                .map_err(|error| format!("unreadable line from the host: {error}")),
            Ok(None) => Err("the host closed the connection".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn greet(&mut self, options: &ClientOptions, after_seq: u64) -> Result<Welcome, ClientError> {
        let hello = ClientLine::Hello {
            proto: PROTOCOL,
            role: options.role,
            name: options.name.clone(),
            after_seq,
            live: options.live,
            glance: options.glance,
        };
        self.send(&hello).await.map_err(|error| ClientError::Unreachable(error.to_string()))?;
        match self.receive().await.map_err(ClientError::Unreachable)? {
            HostLine::Welcome { proto, version, .. } if proto != PROTOCOL => {
                Err(ClientError::Refused(format!(
                    "the host speaks protocol {proto} (planish {version}), this client {PROTOCOL}; use the same version"
                )))
            }
            line @ HostLine::Welcome { last_seq, .. } => Ok(Welcome { line, last_seq }),
            HostLine::Error { message } => Err(ClientError::Refused(message)),
            _ => Err(ClientError::Refused("the host did not begin with a welcome".into())),
        }
    }
}

/// Finds the host of `target` and says hello; `None` when there is no host, so that the journal is all there is.
/// `ask`: ssh may ask for a password.
pub(super) async fn dial(
    target: &Target,
    options: &ClientOptions,
    after_seq: u64,
    ask: bool,
) -> Result<Option<(Wire, Welcome)>, ClientError> {
    let (mut wire, time) = match target {
        Target::Folder(run_dir) => match connect(run_dir).await? {
            Some(stream) => {
                let (reader, writer) = stream.into_split();
                (Wire::new(reader, writer, None), WELCOME_TIME)
            }
            None => return Ok(None),
        },
        Target::Ssh { host, run } => (spawn_ssh(host, run, ask)?, SSH_WELCOME_TIME),
    };
    let welcome = match timeout(time, wire.greet(options, after_seq)).await {
        Ok(welcome) => welcome,
        Err(_) => Err(ClientError::Unreachable(format!("no welcome within {} s", time.as_secs()))),
    };
    match (welcome, target) {
        (Ok(welcome), _) => Ok(Some((wire, welcome))),
        // It was about to leave: a host withdraws its announcement before it hangs up.
        (Err(ClientError::Unreachable(_)), Target::Folder(run_dir))
            if matches!(presence(run_dir), Ok(Presence::Dead)) =>
        {
            Ok(None)
        }
        (Err(error), _) => Err(error),
    }
}

/// The socket of a living host; `None` when the run has none.
pub(super) async fn connect(run_dir: &Path) -> Result<Option<UnixStream>, ClientError> {
    let mut tries = 0;
    loop {
        let file = match presence(run_dir)? {
            Presence::Live(file) => file,
            Presence::Elsewhere(host) => {
                let (run, host) = (folder_name(run_dir), Box::new(host));
                return Err(ClientError::Elsewhere { run, host });
            }
            Presence::Dead => return Ok(None),
        };
        match UnixStream::connect(&file.socket).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error)
                if tries < LEAVING_TRIES
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                tries += 1;
                tokio::time::sleep(LEAVING_PAUSE).await;
            }
            Err(error) => {
                return Err(ClientError::Unreachable(format!("{}: {error}", file.socket.display())));
            }
        }
    }
}

fn spawn_ssh(host: &str, run: &str, ask: bool) -> Result<Wire, ClientError> {
    let program = std::env::var_os(SSH_VARIABLE).unwrap_or_else(|| "ssh".into());
    let failed =
        |message: String| ClientError::Unreachable(format!("{}: {message}", program.to_string_lossy()));
    let mut child = Command::new(&program)
        .args(ssh_arguments(host, run, ask))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Its complaints are for the person at the first login; later they would tear the screen.
        .stderr(if ask { Stdio::inherit() } else { Stdio::null() })
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(reader), Some(writer)) => Ok(Wire::new(reader, writer, Some(child))),
        _ => Err(failed("its stdio is not piped".into())),
    }
}
