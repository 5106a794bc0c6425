//! Reads the output folder of a SkillOpt or ReflACT run into typed records. Read-only and tolerant: every file may be
//! absent, torn or odd, and each oddity becomes one note. Must not decide what a record means for a planish run.

mod fields;
mod folder;
mod python_json;
mod rollouts;

pub use folder::Oddity;
pub use rollouts::ForeignRollouts;
