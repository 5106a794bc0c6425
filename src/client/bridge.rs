//! The far end of `ssh://`: a host's lines over this process's stdin and stdout.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, copy};

use super::wire::connect;
use super::{ClientError, JournalRun};

/// Carries lines between the run's host and a stream; a run without a host is served read-only from its journal.
/// Returns when either side closes.
pub async fn bridge<R, W>(run_dir: &Path, mut reader: R, mut writer: W) -> Result<(), ClientError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    match connect(run_dir).await? {
        Some(mut socket) => {
            let (mut from_host, mut to_host) = socket.split();
            // Whichever side goes away first, it is an ordinary end.
            tokio::select! {
                _ = copy(&mut reader, &mut to_host) => {}
                _ = copy(&mut from_host, &mut writer) => {}
            }
        }
        None => {
            let service = Arc::new(JournalRun::open(run_dir)?);
            crate::host::serve_stream(service, run_dir, reader, writer).await;
        }
    }
    Ok(())
}
