//! cli

pub mod assembly;
