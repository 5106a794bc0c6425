//! Coding agents as models: the parsers on recorded traces, the runner against programs that misbehave.
#![allow(clippy::unwrap_used, clippy::panic)]

mod live;
mod model;
mod runner;
mod traces;
