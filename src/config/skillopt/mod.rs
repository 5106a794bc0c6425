//! Import of SkillOpt and ReflACT configurations: YAML with its `_base_` chain (`yaml`, `layers`), both layouts and both
//! vocabularies (`flat`), into one planish TOML (`translate`, `document`). Must not decide what a setting means.

mod error;
mod flat;
mod layers;
mod names;
mod node;
mod number;
mod yaml;

pub use error::ImportError;
pub use layers::Merged;
pub use node::{Mapping, Node};
pub use number::cast_value;

pub use super::roles::{default_model, label, role_backends};
