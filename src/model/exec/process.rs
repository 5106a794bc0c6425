//! One run of a program: its input written, its lines read within bounds, and everything it started ended.
//! Must not know what the lines mean.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::family::Family;
use super::lines::{Line, Lines};
use super::trace::{Cap, Ending};
use super::workspace::Workspace;

/// Bytes kept of the end of error output.
const STDERR_TAIL: usize = 4096;
/// How long output may stay open after the program itself has ended: something it started holds it.
const DRAIN: Duration = Duration::from_secs(1);

/// No clock counts further.
const FOREVER: Duration = Duration::from_secs(86_400 * 30);

/// What to start. The environment is complete: nothing is inherited.
#[derive(Clone, Debug)]
pub struct Launch {
    pub program: OsString,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub folder: PathBuf,
    pub stdin: String,
    /// A text only this run has in its environment: what the program starts is known by it.
    pub mark: String,
}

/// Bounds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub wall: Duration,
    pub tool_calls: usize,
    /// A longer line is passed over.
    pub line_bytes: usize,
    /// Of output and error output together.
    pub total_bytes: usize,
    /// Between the word to end and the end.
    pub grace: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(600),
            tool_calls: 200,
            line_bytes: 8 << 20,
            total_bytes: 128 << 20,
            grace: Duration::from_secs(2),
        }
    }
}

/// Why reading stops before the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cap(Cap),
    /// All that matters has been said.
    Enough,
}

/// How it went, with the end of the error output.
#[derive(Debug)]
pub struct Finished {
    pub ending: Ending,
    pub stderr: String,
}

/// A program under way. Dropped, it and all it started are ended.
pub struct Process {
    child: Child,
    family: Family,
    lines: Lines<tokio::process::ChildStdout>,
    errors: ErrorOutput,
    caps: Caps,
    deadline: Instant,
}

impl Process {
    /// # Errors
    /// The program cannot be started.
    pub fn start(launch: Launch, caps: Caps, workspace: Arc<Workspace>) -> std::io::Result<Self> {
        let mut child = Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(launch.env)
            .current_dir(&launch.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-c in the terminal is for planish, and one signal reaches all that stay in the group.
            .process_group(0)
            .spawn()?;
        let family = Family::new(child.id(), launch.mark, caps.grace, workspace);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("the program has no pipes"));
        };
        tokio::spawn(write(stdin, launch.stdin));
        let read = Arc::new(AtomicUsize::new(0));
        let errors = ErrorOutput::follow(stderr, read.clone(), caps.total_bytes);
        let lines = Lines::new(stdout, caps.line_bytes, read);
        Ok(Self { child, family, lines, errors, caps, deadline: Instant::now() + caps.wall.min(FOREVER) })
    }

    /// Reads to the end, or until `on_line` or a bound says stop; then nothing of the program is left.
    ///
    /// # Errors
    /// Its output cannot be read.
    pub async fn follow(
        mut self,
        mut on_line: impl FnMut(Line) -> ControlFlow<Stop>,
    ) -> std::io::Result<Finished> {
        let told = self.read(&mut on_line).await;
        self.family.end(&mut self.child).await;
        let stderr = self.errors.tail().await;
        Ok(Finished { ending: told?, stderr })
    }

    async fn read(&mut self, on_line: &mut impl FnMut(Line) -> ControlFlow<Stop>) -> std::io::Result<Ending> {
        let mut exited = None;
        let mut open = true;
        let mut until = self.deadline;
        while open || exited.is_none() {
            tokio::select! {
                () = sleep_until(until) => match exited {
                    Some(code) => return Ok(Ending::Exited(code)),
                    None => return Ok(Ending::Cut(Cap::WallClock)),
                },
                () = self.errors.flooded.notified() => return Ok(Ending::Cut(Cap::OutputBytes)),
                line = self.lines.next(), if open => match line? {
                    None => open = false,
                    Some(_) if self.lines.total() > self.caps.total_bytes => {
                        return Ok(Ending::Cut(Cap::OutputBytes));
                    }
                    Some(line) => match on_line(line) {
                        ControlFlow::Continue(()) => {}
                        ControlFlow::Break(Stop::Cap(cap)) => return Ok(Ending::Cut(cap)),
                        ControlFlow::Break(Stop::Enough) => return Ok(Ending::Exited(None)),
                    },
                },
                status = self.child.wait(), if exited.is_none() => {
                    exited = Some(status?.code());
                    until = until.min(Instant::now() + DRAIN);
                }
            }
        }
        Ok(Ending::Exited(exited.flatten()))
    }
}

/// A program that does not read its input to the end is no fault of ours.
async fn write(mut stdin: ChildStdin, text: String) {
    let _ = stdin.write_all(text.as_bytes()).await;
    let _ = stdin.shutdown().await;
}

/// Reads error output so that the program never waits, and keeps its end.
struct ErrorOutput {
    task: JoinHandle<()>,
    tail: Arc<std::sync::Mutex<Vec<u8>>>,
    flooded: Arc<Notify>,
}

impl ErrorOutput {
    fn follow(mut from: impl AsyncRead + Unpin + Send + 'static, read: Arc<AtomicUsize>, cap: usize) -> Self {
        let tail = Arc::new(std::sync::Mutex::new(Vec::new()));
        let flooded = Arc::new(Notify::new());
        let (kept, flood) = (tail.clone(), flooded.clone());
        let task = tokio::spawn(async move {
            let mut chunk = vec![0; 8192];
            while let Ok(count @ 1..) = from.read(&mut chunk).await {
                if read.fetch_add(count, Ordering::Relaxed) + count > cap {
                    flood.notify_one();
                }
                let Ok(mut kept) = kept.lock() else { return };
                kept.extend_from_slice(&chunk[..count]);
                let over = kept.len().saturating_sub(STDERR_TAIL);
                kept.drain(..over);
            }
        });
        Self { task, tail, flooded }
    }

    async fn tail(&mut self) -> String {
        // A process that survived everything may hold it open.
        let _ = timeout(DRAIN, &mut self.task).await;
        self.task.abort();
        self.tail.lock().map(|tail| String::from_utf8_lossy(&tail).into_owned()).unwrap_or_default()
    }
}

impl Drop for ErrorOutput {
    fn drop(&mut self) {
        self.task.abort();
    }
}
