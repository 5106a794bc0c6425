//! A served fake run in fresh folders, and a client that speaks raw lines.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use planish::client::{ClientEvent, ClientOptions, Connection, Target, open};
use planish::domain::{Author, Decision};
use planish::event::{AckResult, ClientLine, Command, HostLine, PROTOCOL, WatchRole};
use planish::host::{HostFile, HostSocket, serve};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::fake_run::{FakeRun, step};

/// Generous: only a hang gets there.
const DEADLINE: Duration = Duration::from_secs(30);

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("timed out")
}

pub struct Stage {
    pub run: Arc<FakeRun>,
    pub run_dir: TempDir,
    runtime_dir: TempDir,
    stop: CancellationToken,
    /// Of the host alone, so that it can be killed.
    runtime: Option<Runtime>,
    host: JoinHandle<()>,
}

impl Stage {
    pub fn new() -> Self {
        let private = Permissions::from_mode(0o700);
        let runtime_dir = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let run_dir = tempfile::tempdir().unwrap();
        let run = FakeRun::new(run_dir.path());
        let stop = CancellationToken::new();
        let runtime = host_runtime();
        let host = host(&run, &runtime, runtime_dir.path(), run_dir.path(), stop.clone());
        Self { run, run_dir, runtime_dir, stop, runtime: Some(runtime), host }
    }

    /// Ends the host, as SIGTERM does; the run goes on being a folder.
    pub async fn stop_host(&mut self) {
        self.stop.cancel();
        within(&mut self.host).await.unwrap();
    }

    /// As SIGKILL: no farewell, and `host.json` stays behind.
    pub fn kill_host(&mut self) {
        let mut left_behind = HostFile::read(self.run_dir.path()).unwrap().unwrap();
        self.runtime.take().unwrap().shutdown_background();
        // This process lives on; the announced one must not.
        left_behind.start_time += 1;
        left_behind.write(self.run_dir.path()).unwrap();
    }

    /// As SIGKILL, leaving `host.json` as it is.
    pub fn hang_up(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    pub fn start_host(&mut self) {
        self.stop = CancellationToken::new();
        let runtime = self.runtime.insert(host_runtime());
        self.host = host(&self.run, runtime, self.runtime_dir.path(), self.run_dir.path(), self.stop.clone());
    }

    /// Until the host leaves by itself.
    pub async fn host_left(&mut self) {
        within(&mut self.host).await.unwrap();
    }

    pub fn sockets(&self) -> usize {
        std::fs::read_dir(self.runtime_dir.path()).unwrap().count()
    }

    pub async fn attach(&self, name: &str, role: WatchRole, after_seq: u64) -> Attached {
        let options = ClientOptions { role, name: Author(name.into()), live: true, glance: false, after_seq };
        let target = Target::Folder(self.run_dir.path().to_owned());
        Attached(within(open(target, options)).await.unwrap())
    }

    pub async fn raw(&self) -> Raw {
        let file = HostFile::read(self.run_dir.path()).unwrap().unwrap();
        let (reader, writer) = UnixStream::connect(file.socket).await.unwrap().into_split();
        Raw { reader: BufReader::new(reader), writer }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn host_runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn host(
    run: &Arc<FakeRun>,
    runtime: &Runtime,
    runtime_dir: &Path,
    run_dir: &Path,
    stop: CancellationToken,
) -> JoinHandle<()> {
    let _entered = runtime.enter();
    let socket = HostSocket::bind_in(runtime_dir, run_dir).unwrap();
    // Announced here already, so that a test may look for it at once.
    HostFile::of_this_process(socket.path()).unwrap().write(run_dir).unwrap();
    let (run, run_dir) = (Arc::clone(run), run_dir.to_owned());
    runtime.spawn(async move { serve(run, socket, &run_dir, stop, |_| {}).await.unwrap() })
}

pub fn decide(cmd_id: &str, edit: usize, expect_rev: u64) -> ClientLine {
    ClientLine::Command {
        cmd_id: cmd_id.into(),
        expect_rev: Some(expect_rev),
        body: Command::Decide { at: step(), edit, decision: Decision::Accept },
    }
}

/// A client with the real link.
pub struct Attached(pub Connection);

impl Attached {
    pub async fn next(&mut self) -> ClientEvent {
        within(self.0.events.recv()).await.expect("the link ended")
    }

    /// Skips to the first event that `pick` takes.
    pub async fn until<T>(&mut self, mut pick: impl FnMut(&ClientEvent) -> Option<T>) -> T {
        loop {
            let event = self.next().await;
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    }

    pub async fn ack(&mut self, cmd_id: &str) -> (AckResult, u64) {
        self.until(|event| match event {
            ClientEvent::Line(HostLine::Ack { cmd_id: id, result, rev }) if id == cmd_id => {
                Some((result.clone(), *rev))
            }
            _ => None,
        })
        .await
    }

    /// Takes records up to `last`, checking that none is missing or repeated.
    pub async fn records(&mut self, after: u64, last: u64) {
        let mut seq = after;
        while seq < last {
            if let ClientEvent::Line(HostLine::Event(record)) = self.next().await {
                assert_eq!(record.seq, seq + 1);
                seq += 1;
            }
        }
    }
}

/// A client without manners.
pub struct Raw {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Raw {
    pub async fn send(&mut self, bytes: &[u8]) {
        // The host may hang up while a bad client is still writing.
        let _ = within(self.writer.write_all(bytes)).await;
    }

    pub async fn hello(&mut self, proto: u32, after_seq: u64) {
        let name = Author("raw".into());
        let hello =
            ClientLine::Hello { proto, role: WatchRole::Steer, name, after_seq, live: true, glance: false };
        self.send_line(&hello).await;
    }

    pub async fn send_line(&mut self, line: &ClientLine) {
        let mut bytes = serde_json::to_vec(line).unwrap();
        bytes.push(b'\n');
        self.send(&bytes).await;
    }

    /// `None` at the end of the connection.
    pub async fn line(&mut self) -> Option<HostLine> {
        let mut line = Vec::new();
        within(self.reader.read_until(b'\n', &mut line)).await.ok().filter(|read| *read > 0)?;
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// The last line must be an error, and the connection ends.
    pub async fn final_error(&mut self) -> String {
        let mut error = None;
        while let Some(line) = self.line().await {
            assert_eq!(error, None, "a line after the error");
            if let HostLine::Error { message } = line {
                error = Some(message);
            }
        }
        error.expect("no error line")
    }
}

pub const PROTO: u32 = PROTOCOL;
