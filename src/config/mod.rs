//! Typed configuration. `settings` holds the sections; loading, layers, origins and validation live beside it.

mod settings;

pub use settings::{
    AnswerRule, Backend, BudgetConfig, Config, EnvConfig, EnvKind, EvaluationConfig, GradientConfig,
    ModelConfig, OptimizerConfig, PromptStyle, ReviewConfig, RoleConfig, RunConfig, Scheduler, ScorerKind,
    SplitMode, TrainConfig, UpdateMode,
};
