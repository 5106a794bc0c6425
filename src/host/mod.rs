//! The host side of a run: a private Unix socket, who is connected, and what each client still has to be sent.
//! It serves any [`RunService`](crate::engine::RunService); it never decides anything about a run, and nothing a
//! client does may slow the engine.

mod announcement;
mod lines;
mod outbox;
mod registry;
mod server;
mod session;
mod socket;

pub use announcement::{AnnounceError, HostFile, process_start_time};
pub use lines::{BoundedLines, LineError};
pub use server::{HostError, serve, serve_stream};
pub use socket::{HostSocket, SocketError, runtime_dir};
