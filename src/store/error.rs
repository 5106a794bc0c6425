//! What can go wrong with a run directory. Every message names the path and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use super::Holder;
use crate::config::ConfigErrors;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("disk full: cannot {action} {} ({source}); free some space, then `planish resume`", path.display())]
    DiskFull { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is in use by {holder}; watch it with `planish attach`, or stop that process first", path.display())]
    Locked { path: PathBuf, holder: Holder },
    #[error("no run at {}; `planish ls` lists the runs", path.display())]
    NotARun { path: PathBuf },
    #[error("{} exists already; continue it with `planish resume`, or give another --name", path.display())]
    Exists { path: PathBuf },
    #[error("bad run name: {problem}; use letters, digits, `-`, `_` and `.`")]
    BadName { problem: String },
    #[error(
        "{}: {problem}; the journal was changed by something else: restore it from a copy, \
         or cut the file before that line to resume from there",
        path.display()
    )]
    Damaged { path: PathBuf, problem: String },
    #[error("{} was written by a newer planish (format {format}); update planish to open it", path.display())]
    TooNew { path: PathBuf, format: u32 },
    #[error("event {found} is not next in the journal (expected {expected})")]
    OutOfOrder { expected: u64, found: u64 },
    #[error("event {seq} would not read back from the journal as it is: {problem}")]
    Unreadable { seq: u64, problem: String },
    #[error("the journal {} failed earlier and takes no more events; resume the run", path.display())]
    Broken { path: PathBuf },
    #[error("cannot encode {}: {source}", path.display())]
    Encode { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

impl StoreError {
    /// For `map_err`: `action` completes "cannot … PATH".
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Self::DiskFull { action, path, source }
                }
                _ => Self::Io { action, path, source },
            }
        }
    }
}
