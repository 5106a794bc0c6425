//! The HTTP model against the mock server: golden requests, every fault, retries, redaction, record and replay, budget.
#![allow(clippy::unwrap_used, clippy::panic)]

mod canned;
mod dialects;
mod faults;
mod golden;
mod golden_dialects;
mod policy;
mod stack;
mod support;
mod table;
