//! The sections of a resolved configuration. Section and key names are SkillOpt's where SkillOpt has them.

use serde::{Deserialize, Serialize};

use super::backends::{
    Agents, AzureOpenai, BackendLabel, ClaudeCode, Codex, Copilot, Cursor, MinimaxChat, QwenChat, Reasoning,
};
use super::benchmarks::BenchmarkConfig;
use super::role::RoleConfig;
use crate::domain::{
    AppendixSource, GateMetric, LrControlMode, PairPolicy, ReviewMode, TimeoutPolicy, UpdateMode,
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub run: RunConfig,
    pub model: ModelConfig,
    pub train: TrainConfig,
    pub gradient: GradientConfig,
    pub optimizer: OptimizerConfig,
    pub evaluation: EvaluationConfig,
    pub review: ReviewConfig,
    pub budget: BudgetConfig,
    pub engine: EngineConfig,
    pub env: EnvConfig,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Folder name under the runs root; empty: made from the config's file name and the time.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelConfig {
    /// Fills the roles that name no backend.
    pub backend: BackendLabel,
    pub target: RoleConfig,
    pub optimizer: RoleConfig,
    /// Used where `env.scorer` is `judge`.
    pub judge: RoleConfig,
    /// TOML file with further dialects; empty: none.
    pub dialects: String,
    /// Worker command; empty: `planish-torch` beside the `planish` binary, else on PATH.
    pub worker_command: Vec<String>,
    /// GGUF file for `local`; empty: the demo model under `$PLANISH_HOME`.
    pub model_file: String,
    /// Intra-op threads of the worker; 0: all cores.
    pub worker_threads: usize,
    /// Most sequences the worker decodes at once.
    pub worker_batch: usize,
    /// Most tokens of a reply that holds a whole new skill.
    pub rewrite_max_completion_tokens: u32,
    /// Replay recorded calls from this `calls` folder and make none; empty: off.
    pub replay_from: String,
    /// Retries of one call after a retryable fault.
    pub max_retries: u32,
    pub connect_timeout_s: f64,
    /// Longest silence inside a reply.
    pub read_timeout_s: f64,
    /// Longest time for one attempt.
    pub total_timeout_s: f64,
    /// Longest time for all attempts of one call and the waits between them.
    pub call_timeout_s: f64,
    /// Calls in a row to one host without a reply that pause the run; 0: never.
    pub breaker_failures: u32,
    #[serde(flatten)]
    pub reasoning: Reasoning,
    #[serde(flatten)]
    pub azure: AzureOpenai,
    #[serde(flatten)]
    pub qwen: QwenChat,
    #[serde(flatten)]
    pub minimax: MinimaxChat,
    #[serde(flatten)]
    pub codex: Codex,
    #[serde(flatten)]
    pub claude_code: ClaudeCode,
    #[serde(flatten)]
    pub cursor: Cursor,
    #[serde(flatten)]
    pub copilot: Copilot,
    #[serde(flatten)]
    pub agents: Agents,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            backend: BackendLabel::None,
            target: RoleConfig::default(),
            optimizer: RoleConfig::default(),
            judge: RoleConfig::default(),
            dialects: String::new(),
            worker_command: Vec::new(),
            model_file: String::new(),
            worker_threads: 0,
            worker_batch: 32,
            rewrite_max_completion_tokens: 64_000,
            replay_from: String::new(),
            max_retries: 5,
            connect_timeout_s: 10.0,
            read_timeout_s: 60.0,
            total_timeout_s: 300.0,
            call_timeout_s: 900.0,
            breaker_failures: 5,
            reasoning: Reasoning::default(),
            azure: AzureOpenai::default(),
            qwen: QwenChat::default(),
            minimax: MinimaxChat::default(),
            codex: Codex::default(),
            claude_code: ClaudeCode::default(),
            cursor: Cursor::default(),
            copilot: Copilot::default(),
            agents: Agents::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    pub num_epochs: u32,
    /// 0: the loaded split's length; any other number must equal it.
    pub train_size: usize,
    pub batch_size: usize,
    pub accumulation: usize,
    pub seed: u64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self { num_epochs: 4, train_size: 0, batch_size: 40, accumulation: 1, seed: 42 }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradientConfig {
    /// Trajectories per analyst call.
    pub minibatch_size: usize,
    /// Patches per merge call, at least 2.
    pub merge_batch_size: usize,
    pub analyst_workers: usize,
    pub failure_only: bool,
    /// Longest conversation that an analyst is shown, in characters; 0: uncut.
    pub max_trajectory_chars: usize,
    pub use_deep_reflect: bool,
    /// Representative items probed per batch.
    pub deep_reflect_failures: usize,
    pub deep_reflect_successes: usize,
}

impl Default for GradientConfig {
    fn default() -> Self {
        Self {
            minibatch_size: 8,
            merge_batch_size: 8,
            analyst_workers: 16,
            failure_only: false,
            max_trajectory_chars: 12_000,
            use_deep_reflect: false,
            deep_reflect_failures: 4,
            deep_reflect_successes: 2,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    Constant,
    Linear,
    #[default]
    Cosine,
    /// No limit from the schedule; for an optimizer that limits itself.
    Autonomous,
}

/// What an `insert_after` does whose target does not occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertAfterFallback {
    /// It is reported as not applied.
    #[default]
    Report,
    /// Its content is appended, as SkillOpt does.
    Append,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Most edits per step (the edit budget).
    pub learning_rate: usize,
    pub min_learning_rate: usize,
    pub lr_scheduler: Scheduler,
    pub lr_control_mode: LrControlMode,
    pub skill_update_mode: UpdateMode,
    pub insert_after_fallback: InsertAfterFallback,
    /// Most proposals of one meta-reflection.
    pub meta_learning_rate: usize,
    pub use_slow_update: bool,
    /// Training items compared between two epochs.
    pub slow_update_samples: usize,
    pub slow_update_gate_with_selection: bool,
    pub longitudinal_pair_policy: PairPolicy,
    pub use_meta_skill: bool,
    pub use_meta_reflect: bool,
    pub use_skill_aware_reflection: bool,
    pub skill_aware_appendix_source: AppendixSource,
    /// More notes than this are consolidated; 0: never.
    pub skill_aware_consolidate_threshold: usize,
    /// Folder with prompts that replace the built-in ones; empty: none.
    pub prompts_dir: String,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 4,
            min_learning_rate: 2,
            lr_scheduler: Scheduler::Cosine,
            lr_control_mode: LrControlMode::Fixed,
            skill_update_mode: UpdateMode::Patch,
            insert_after_fallback: InsertAfterFallback::Report,
            meta_learning_rate: 4,
            use_slow_update: true,
            slow_update_samples: 20,
            slow_update_gate_with_selection: false,
            longitudinal_pair_policy: PairPolicy::Mixed,
            use_meta_skill: true,
            use_meta_reflect: false,
            use_skill_aware_reflection: false,
            skill_aware_appendix_source: AppendixSource::Both,
            skill_aware_consolidate_threshold: 0,
            prompts_dir: String::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationConfig {
    pub use_gate: bool,
    pub gate_metric: GateMetric,
    /// Weight of soft in the mixed metric.
    pub gate_mixed_weight: f64,
    /// Add a bonus for the share of `leading_words` in the skill.
    pub use_semantic_density: bool,
    pub semantic_density_weight: f64,
    pub leading_words: Vec<String>,
    /// First N items of the selection split; 0: all.
    pub sel_env_num: usize,
    pub test_env_num: usize,
    pub eval_test: bool,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        Self {
            use_gate: true,
            gate_metric: GateMetric::Hard,
            gate_mixed_weight: 0.5,
            use_semantic_density: false,
            semantic_density_weight: 0.05,
            leading_words: Vec::new(),
            sel_env_num: 0,
            test_env_num: 0,
            eval_test: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReviewConfig {
    pub mode: ReviewMode,
    /// Seconds until `on_timeout` applies to undecided edits; 0: no timeout.
    pub timeout_s: u64,
    pub on_timeout: TimeoutPolicy,
}

impl Default for ReviewConfig {
    fn default() -> Self {
        Self { mode: ReviewMode::Auto, timeout_s: 0, on_timeout: TimeoutPolicy::Wait }
    }
}

/// Hard limits, checked before every attempt at a call; 0: no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    pub max_calls: u64,
    pub max_tokens: u64,
    /// US dollars.
    pub max_usd: f64,
    pub max_seconds: u64,
    /// TOML file with prices that come before the built-in ones; empty: none.
    pub prices: String,
}

/// The control flow itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Seconds without any event of a working run until an alert; 0: none.
    pub stall_alert_s: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { stall_alert_s: 600 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvKind {
    #[default]
    Qa,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitMode {
    #[default]
    Ratio,
    SplitDir,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptStyle {
    #[default]
    Chat,
    /// System and user template rendered one after the other as raw text to be continued.
    Document,
}

/// How the answer is found in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerRule {
    /// Inside the last `<answer_tag>…</answer_tag>`.
    Tag,
    /// As `tag`, and the last non-blank line of a reply without the tag.
    TagOrLastLine,
    /// First group (or whole match) of `answer_pattern`, last match.
    Regex,
    /// Last non-blank line.
    #[default]
    LastLine,
    Whole,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScorerKind {
    #[default]
    Exact,
    NormalizedExact,
    F1,
    Contains,
    Regex,
    Numeric,
    Choice,
    /// The model of `model.judge` says.
    Judge,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvConfig {
    pub kind: EnvKind,
    /// Markdown file of the seed skill, relative to the config file; empty: start from the empty skill.
    pub skill_init: String,
    pub split_mode: SplitMode,
    /// Data file for `ratio`, relative to the config file. `demo:city|domain|upper` generates the demo task.
    pub data_path: String,
    /// Folder with train/, val/ and test/ for `split_dir`.
    pub split_dir: String,
    /// `a:b:c`, positive whole numbers.
    pub split_ratio: String,
    /// 0: `train.seed`.
    pub split_seed: u64,
    /// First N items of every split; 0: all.
    pub limit: usize,
    /// Rollouts in flight.
    pub workers: usize,
    pub prompt_style: PromptStyle,
    /// minijinja over the item's fields and `skill`.
    pub system_template: String,
    pub user_template: String,
    pub answer_rule: AnswerRule,
    pub answer_tag: String,
    pub answer_pattern: String,
    pub scorer: ScorerKind,
    /// Item field with the reference answer (text, number or list of them).
    pub answer_field: String,
    /// Item field with the task type; absent in an item: "qa".
    pub type_field: String,
    /// Absolute tolerance of `numeric`.
    pub numeric_tolerance: f64,
    /// minijinja over the item's fields, `question`, `reference` and `answer`; empty: the built-in one.
    pub judge_template: String,
    #[serde(flatten)]
    pub benchmark: BenchmarkConfig,
}

impl Default for EnvConfig {
    fn default() -> Self {
        Self {
            kind: EnvKind::Qa,
            skill_init: String::new(),
            split_mode: SplitMode::Ratio,
            data_path: String::new(),
            split_dir: String::new(),
            split_ratio: "2:1:7".into(),
            split_seed: 42,
            limit: 0,
            workers: 16,
            prompt_style: PromptStyle::Chat,
            system_template: "{{ skill }}".into(),
            user_template: "{{ question }}".into(),
            answer_rule: AnswerRule::LastLine,
            answer_tag: "answer".into(),
            answer_pattern: String::new(),
            scorer: ScorerKind::Exact,
            answer_field: "answers".into(),
            type_field: "task_type".into(),
            numeric_tolerance: 0.0,
            judge_template: String::new(),
            benchmark: BenchmarkConfig::default(),
        }
    }
}
