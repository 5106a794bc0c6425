//! Typed configuration: sections (`settings`, `backends`, `benchmarks`), the key registry (`keys`), other spellings of
//! keys and words (`aliases`), layers with origins (`layer`, `load`), values that follow from others (`derive`, `roles`),
//! validation (`value`, `rules`, `body_fields`), what a resume may change (`change`), the printed reference (`reference`), the import of
//! SkillOpt's files (`skillopt`). Holds names of secrets, never secrets.

mod aliases;
mod backends;
mod benchmarks;
mod body_fields;
mod change;
mod derive;
mod error;
mod group;
mod keys;
mod layer;
mod load;
mod nearest;
mod reference;
mod role;
mod roles;
mod route;
mod rules;
mod settings;
pub mod skillopt;
mod value;

#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod names_tests;
#[cfg(test)]
mod route_tests;

pub use aliases::{by_flat_name, canonical_word, flat_name, secret_variable};
pub use backends::{
    ApiChoice, AzureAuth, Backend, BackendLabel, ClaudeVia, CodexApproval, CodexSandbox, CursorSandbox,
    Effort, SdkUse, ThinkingMode,
};
pub use benchmarks::{Benchmark, BenchmarkConfig};
pub use body_fields::instead_of;
pub use change::{ChangedKey, changed_keys, with_changes};
pub use error::{ConfigError, ConfigErrors, Origin, Place};
pub use keys::{Effective, Expect, Key, Kind, find as find_key, flatten, keys};
pub use load::Loaded;
pub use nearest::nearest;
pub use reference::{reference_json, reference_toml};
pub use role::RoleConfig;
pub use roles::needs_responses_api;
pub use route::{Agent, Azure, AzureLogin, AzureVersion, DialectChoice, Misrouted, Program, Route, Server};
pub use rules::check_run_name;
pub use settings::{
    AnswerRule, BudgetConfig, Config, EngineConfig, EnvConfig, EnvKind, EvaluationConfig, GradientConfig,
    InsertAfterFallback, ModelConfig, OptimizerConfig, PromptStyle, ReviewConfig, RunConfig, Scheduler,
    ScorerKind, SplitMode, TrainConfig,
};
