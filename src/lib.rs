//! planish: a terminal workbench that trains agents.
//!
//! Modules are listed in import order: each may use only those above it (a test enforces it), and `tui`
//! never sees `engine`. See `ARCHITECTURE.md` for how data flows through a run.

pub mod domain;
pub mod text;
pub mod config;
pub mod event;
pub mod store;
pub mod skill;
pub mod model;
pub mod env;
pub mod optim;
pub mod gate;
pub mod engine;
pub mod host;
pub mod client;
pub mod telemetry;
pub mod plain;
pub mod tui;
pub mod cli;
