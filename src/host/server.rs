//! Accepts clients on a run's socket until the run has ended or the host is told to stop.
//! It announces the socket in `host.json` and takes both away at the end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::announcement::{AnnounceError, HostFile};
use super::session::{self, Hub};
use super::socket::{HostSocket, peer_allowed};
use crate::engine::RunService;

/// How long clients may keep a host whose run has ended.
const LINGER: Duration = Duration::from_secs(2);
/// How long sessions may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause after the system refused a connection (out of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    Announce(#[from] AnnounceError),
}

/// Serves a run until it has ended (and its clients left, or two seconds passed) or `stop` is cancelled.
/// `announced` is called once clients can find the host, before any is answered.
pub async fn serve(
    service: Arc<dyn RunService>,
    socket: HostSocket,
    run_dir: &Path,
    stop: CancellationToken,
    announced: impl FnOnce(&HostFile),
) -> Result<(), HostError> {
    let host_file = HostFile::of_this_process(socket.path())?;
    host_file.write(run_dir)?;
    announced(&host_file);

    let hub = Arc::new(Hub::new(service, run_dir.to_owned()));
    let sessions = TaskTracker::new();
    let accept = async {
        loop {
            match socket.listener().accept().await {
                Ok((stream, _)) if same_user(&stream) => {
                    let hub = Arc::clone(&hub);
                    sessions.spawn(async move {
                        let (reader, writer) = stream.into_split();
                        session::run(&hub, reader, writer).await;
                    });
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = ended_and_left(&hub) => {}
        () = stop.cancelled() => {}
    }
    // Gone from discovery first, so that no client comes back while the others are seen off.
    host_file.remove(run_dir);
    drop(socket);
    hub.stopping.cancel();
    sessions.close();
    let _ = timeout(FAREWELL, sessions.wait()).await;
    Ok(())
}

/// Serves one client over any stream (stdio of `planish bridge`), as [`serve`] does on the socket.
pub async fn serve_stream<R, W>(service: Arc<dyn RunService>, run_dir: &Path, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    session::run(&Hub::new(service, run_dir.to_owned()), reader, writer).await;
}

async fn ended_and_left(hub: &Hub) {
    let mut ended = hub.service.ended();
    if ended.wait_for(|ended| *ended).await.is_err() {
        // The engine is gone without an end; only `stop` ends the host then.
        std::future::pending::<()>().await;
    }
    let _ = timeout(LINGER, hub.registry.emptied()).await;
}

fn same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::getuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer_allowed(peer.uid(), own))
}
