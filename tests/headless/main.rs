//! The `planish` program without a terminal: exit codes, messages, JSON lines, hosts that outlive their starter.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_inputs;
mod comparisons;
mod doctors;
mod foreign;
mod estimates;
mod evals;
mod handoffs;
mod imports;
mod listings;
mod lives;
mod mock_serve;
mod place;
mod reads;
mod reports;
mod runs;
mod secrets;
mod served;
mod skills;
mod steers;
