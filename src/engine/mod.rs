//! The run loop: deterministic control flow around memoised effects.

mod service;

pub use service::RunService;
