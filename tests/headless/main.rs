//! The `planish` program without a terminal: exit codes, messages, JSON lines, hosts that outlive their starter.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_inputs;
mod comparisons;
mod foreign;
mod estimates;
mod evals;
mod imports;
mod listings;
mod lives;
mod place;
mod reads;
mod reports;
mod runs;
mod skills;
mod steers;
