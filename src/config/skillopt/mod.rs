//! Import of SkillOpt and ReflACT configurations: YAML with its `_base_` chain (`yaml`, `layers`), both layouts and both
//! vocabularies (`flat`), into one planish TOML (`translate`, `document`). Must not decide what a setting means.

mod error;
mod node;
mod number;
mod yaml;

pub use error::ImportError;
pub use number::cast_value;
