//! Hosts and clients in one process over real sockets: roles, conflicts, slow readers, lost links.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/fake_run.rs"]
mod fake_run;
mod glance;
mod links;
mod sessions;
mod stage;
