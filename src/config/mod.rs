//! Typed configuration: sections (`settings`), the key registry (`keys`), layers with origins (`layer`, `load`),
//! validation (`value`, `rules`), what a resume may change (`change`), the printed reference (`reference`).
//! Holds names of secrets, never secrets.

mod change;
mod error;
mod keys;
mod layer;
mod load;
mod nearest;
mod reference;
mod rules;
mod settings;
mod value;

#[cfg(test)]
mod load_tests;

pub use change::{ChangedKey, changed_keys};
pub use error::{ConfigError, ConfigErrors, Origin, Place};
pub use keys::{Expect, Key, Kind, find as find_key, flatten, keys};
pub use load::Loaded;
pub use nearest::nearest;
pub use reference::{reference_json, reference_toml};
pub use rules::check_run_name;
pub use settings::{
    AnswerRule, Backend, BudgetConfig, Config, EnvConfig, EnvKind, EvaluationConfig, GradientConfig,
    InsertAfterFallback, ModelConfig, OptimizerConfig, PromptStyle, ReviewConfig, RoleConfig, RunConfig,
    Scheduler, ScorerKind, SplitMode, TrainConfig,
};
