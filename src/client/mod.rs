//! The client side of a run: finding its host, keeping a link to it, and reading the journal when there is no
//! host. It hands out [`ClientEvent`]s and takes commands; it holds no state of the run and draws nothing.

mod author;
mod bridge;
mod catalog;
mod discovery;
mod journal;
mod link;
mod replay;
mod target;
mod wire;

use crate::domain::Author;
use crate::event::{HostLine, WatchRole};

pub use author::{author_at, author_here};
pub use bridge::bridge;
pub use catalog::{Catalog, Listing, list_runs, summarize};
pub use discovery::{Presence, presence};
pub use journal::{JournalRun, gone};
pub use link::{Connection, open};
pub use replay::replay;
pub use target::Target;

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// What follows was recorded: its clock is that of its records.
    Recording,
    Line(HostLine),
    /// The link is down (why); the client keeps trying.
    Lost(String),
    /// The link is up again; lines continue after the last seq.
    Restored,
}

/// How a client introduces itself.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub role: WatchRole,
    pub name: Author,
    /// Send token deltas and other news that is not journaled.
    pub live: bool,
    /// Wants a glance at a long run before its records.
    pub glance: bool,
    /// Only records after this one.
    pub after_seq: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0}")]
    Refused(String),
    #[error("cannot reach the host: {0}")]
    Unreachable(String),
    #[error("run {run} is in use by {host}; attach with `planish attach ssh://{}/{run}`", host.host)]
    Elsewhere { run: String, host: Box<crate::host::HostFile> },
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    #[error(transparent)]
    Announce(#[from] crate::host::AnnounceError),
    #[error("{0}")]
    Target(String),
}
