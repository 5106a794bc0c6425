//! The client side of a run: finding its host, keeping a link to it, and reading the journal when there is no
//! host. It hands out [`ClientEvent`]s and takes commands; it holds no state of the run and draws nothing.

mod bridge;
mod discovery;
mod journal;
mod link;
mod replay;
mod target;
mod wire;

use crate::domain::Author;
use crate::event::{HostLine, WatchRole};

pub use bridge::bridge;
pub use discovery::{Presence, presence};
pub use journal::JournalRun;
pub use link::{Connection, open};
pub use replay::replay;
pub use target::Target;

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
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
    /// Only records after this one.
    pub after_seq: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0}")]
    Refused(String),
    #[error("cannot reach the host: {0}")]
    Unreachable(String),
    #[error("run {run} is hosted on {host}; attach with `planish attach ssh://{host}/{run}`")]
    Elsewhere { run: String, host: String },
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    #[error(transparent)]
    Announce(#[from] crate::host::AnnounceError),
    #[error("{0}")]
    Target(String),
}

/// Login name of this process's user by the system's user file, else `uid N`.
fn user_of_process() -> String {
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    user_named(&users, uid).unwrap_or_else(|| format!("uid {uid}"))
}

fn user_named(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid.to_string()).then(|| name.to_owned())
    })
}

/// `user@tty` (or `user@pid N` without a terminal).
pub fn author_here() -> Author {
    let user = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(user_of_process);
    let place = rustix::termios::ttyname(std::io::stdin(), Vec::new())
        .ok()
        .and_then(|name| name.into_string().ok())
        .map(|name| name.trim_start_matches("/dev/").to_owned())
        .unwrap_or_else(|| format!("pid {}", std::process::id()));
    Author(format!("{user}@{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_uid() {
        let users = "root:x:0:0:root:/r:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(user_named(users, 1000).as_deref(), Some("ann"));
        assert_eq!(user_named(users, 10), None);
    }
}
