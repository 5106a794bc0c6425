//! The key registry: every configuration key with its type, limits, meaning and when a change
//! of it takes effect in a run that has begun. Defaults are those of [`Config::default`]; a test asserts that both have the same keys.

use super::Config;
use super::backends::{self, Backend, BackendLabel};
use super::benchmarks::{BENCHMARK_ROWS, Benchmark};
use super::role;

/// What must lie at a path when it is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    File,
    Folder,
    /// A Markdown file, or a folder with `SKILL.md`.
    Skill,
    /// A file or folder, or a `demo:…` name that is no path.
    DataOrDemo,
    /// Nothing yet: it is written.
    Output,
}

/// Type and limits of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Flag,
    /// Whole number within `min..=max`.
    Count {
        min: u64,
        max: u64,
    },
    /// Finite number within `min..=max`; `above_min` leaves `min` itself out.
    Number {
        min: f64,
        max: f64,
        above_min: bool,
    },
    Text,
    /// Relative paths are taken from the folder of the file that names them (from the command line: from the
    /// current folder).
    Path(Expect),
    TextList,
    /// Paths of folders, as in [`Kind::Path`].
    Folders,
    /// Any TOML but dates: it is sent as JSON.
    Table,
    Choice(&'static [&'static str]),
}

impl Kind {
    /// Short name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flag => "true or false",
            Kind::Count { .. } => "whole number",
            Kind::Number { .. } => "number",
            Kind::Text => "text",
            Kind::Path(Expect::File) => "file",
            Kind::Path(Expect::Skill) => "file or skill folder",
            Kind::Path(Expect::Folder) => "folder",
            Kind::Path(Expect::DataOrDemo) => "file or demo:NAME",
            Kind::Path(Expect::Output) => "folder to be written",
            Kind::TextList => "list of texts",
            Kind::Folders => "list of folders",
            Kind::Table => "table",
            Kind::Choice(_) => "one of",
        }
    }

    /// The allowed range or values, for messages and the reference; empty when anything goes.
    pub fn limits(self) -> String {
        match self {
            Kind::Flag | Kind::Text | Kind::Path(_) | Kind::TextList | Kind::Folders | Kind::Table => {
                String::new()
            }
            Kind::Count { min: 0, max: LARGEST } => "0 or more".into(),
            Kind::Count { min, max: LARGEST } => format!("at least {min}"),
            Kind::Count { min, max } => format!("{min} to {max}"),
            Kind::Number { min, max: f64::INFINITY, above_min: true } => format!("above {min}"),
            Kind::Number { min, max: f64::INFINITY, above_min: false } => format!("at least {min}"),
            Kind::Number { min, max, above_min: true } => format!("above {min}, at most {max}"),
            Kind::Number { min, max, above_min: false } => format!("{min} to {max}"),
            Kind::Choice(allowed) => list(allowed),
        }
    }
}

/// Words for people; the empty one is shown as it is written.
pub fn list(words: &[&str]) -> String {
    words.iter().map(|word| if word.is_empty() { "\"\"" } else { word }).collect::<Vec<_>>().join(", ")
}

/// Whom a setting serves. For anybody else it has no effect, which is warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedBy {
    Everyone,
    /// A role with one of these backends.
    Backends(&'static [Backend]),
    Benchmarks(&'static [Benchmark]),
    /// Nothing in this version.
    NotYet,
}

impl UsedBy {
    /// The backends or benchmarks, for people; empty: none in particular.
    pub fn names(self) -> String {
        let names: Vec<&str> = match self {
            Self::Everyone | Self::NotYet => Vec::new(),
            Self::Backends(backends) => backends.iter().map(|backend| backend.word()).collect(),
            Self::Benchmarks(benchmarks) => benchmarks.iter().map(|benchmark| benchmark.word()).collect(),
        };
        names.join(" or ")
    }
}

/// When another value of a setting takes effect in a run that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effective {
    /// At once: no result depends on it.
    Live,
    /// Between two steps: results depend on it, but stay comparable with those before.
    NextStep,
    /// When a host starts: a resume may bring another value, since no result depends on it.
    Restart,
    /// In a new run only: recorded results depend on it.
    NewRun,
}

impl Effective {
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NextStep => "next step",
            Self::Restart => "restart",
            Self::NewRun => "new run",
        }
    }
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub path: &'static str,
    pub kind: Kind,
    pub doc: &'static str,
    pub effective: Effective,
    pub used_by: UsedBy,
}

impl Key {
    pub const fn used_by(mut self, used_by: UsedBy) -> Self {
        self.used_by = used_by;
        self
    }

    pub const fn changes_on_resume(mut self) -> Self {
        self.effective = Effective::Restart;
        self
    }

    /// A resumed run may have another value: no finished result depends on it.
    pub fn safe_on_resume(&self) -> bool {
        match self.effective {
            Effective::Live | Effective::Restart => true,
            Effective::NextStep | Effective::NewRun => false,
        }
    }
}

pub const fn key(path: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { path, kind, doc, effective: Effective::NewRun, used_by: UsedBy::Everyone }
}

/// A key that a resumed run may change.
const fn safe(path: &'static str, kind: Kind, doc: &'static str) -> Key {
    key(path, kind, doc).changes_on_resume()
}

/// A key that changes at once in a run under way.
const fn live(path: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { effective: Effective::Live, ..key(path, kind, doc) }
}

/// A key that changes between two steps of a run under way.
const fn next_step(path: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { effective: Effective::NextStep, ..key(path, kind, doc) }
}

/// TOML integers are signed.
const LARGEST: u64 = i64::MAX as u64;

pub const fn at_least(min: u64) -> Kind {
    Kind::Count { min, max: LARGEST }
}

/// Limit of a `u32` setting.
pub const fn small(min: u64) -> Kind {
    Kind::Count { min, max: u32::MAX as u64 }
}

pub const fn number(min: f64, max: f64, above_min: bool) -> Kind {
    Kind::Number { min, max, above_min }
}

const SECONDS: Kind = number(0.0, 86_400.0, true);

static SECTIONS: &[&[Key]] = &[
    &[safe(
        "run.name",
        Kind::Text,
        "Folder name under the runs root; empty: made from the config's file name and the time.",
    )],
    role::TARGET_ROWS,
    backends::TARGET_AZURE_ROWS,
    backends::TARGET_QWEN_ROWS,
    backends::TARGET_MINIMAX_ROWS,
    role::OPTIMIZER_ROWS,
    backends::OPTIMIZER_AZURE_ROWS,
    backends::OPTIMIZER_QWEN_ROWS,
    backends::OPTIMIZER_MINIMAX_ROWS,
    role::JUDGE_ROWS,
    backends::JUDGE_AZURE_ROWS,
    backends::JUDGE_QWEN_ROWS,
    backends::JUDGE_MINIMAX_ROWS,
    &[
        key(
            "model.backend",
            Kind::Choice(BackendLabel::WORDS),
            "One word for target and optimizer, as SkillOpt has it: fills those that name no backend.",
        ),
        key(
            "model.dialects",
            Kind::Path(Expect::File),
            "TOML file of further dialects, in the form of `planish schema dialects`; those of equal name are replaced.",
        ),
        safe(
            "model.worker_command",
            Kind::TextList,
            "Worker command; empty: planish-torch beside the planish binary, else on PATH.",
        ),
        key(
            "model.model_file",
            Kind::Path(Expect::File),
            "GGUF file for the local backend; empty: the demo model under $PLANISH_HOME.",
        ),
        safe("model.worker_threads", at_least(0), "Threads of the worker; 0: all cores."),
        safe("model.worker_batch", at_least(1), "Most sequences the worker decodes at once."),
        next_step(
            "model.rewrite_max_completion_tokens",
            small(1),
            "Most tokens of a reply that holds a whole new skill.",
        ),
        key(
            "model.replay_from",
            Kind::Path(Expect::Folder),
            "Answer every call from this calls folder of an earlier run and make none; empty: off.",
        ),
        live("model.max_retries", small(0), "Retries of one call after a retryable fault."),
        safe("model.connect_timeout_s", SECONDS, "Longest time to connect, seconds."),
        live("model.read_timeout_s", SECONDS, "Longest silence inside a reply, seconds."),
        live("model.total_timeout_s", SECONDS, "Longest time of one attempt, seconds."),
        live(
            "model.call_timeout_s",
            SECONDS,
            "Longest time of one call with all its attempts and the waits between them, seconds.",
        ),
        live(
            "model.breaker_failures",
            small(0),
            "Calls in a row to one host without a reply that pause the run; 0: never.",
        ),
    ],
    backends::REASONING_ROWS,
    backends::AZURE_ROWS,
    backends::QWEN_ROWS,
    backends::MINIMAX_ROWS,
    backends::CODEX_ROWS,
    backends::CLAUDE_CODE_ROWS,
    backends::CURSOR_ROWS,
    backends::COPILOT_ROWS,
    backends::AGENT_ROWS,
    &[
        key("train.num_epochs", small(1), "Passes over the training split."),
        key(
            "train.train_size",
            at_least(0),
            "Number of training items, checked; 0: as many as the split has.",
        ),
        key("train.batch_size", at_least(1), "Training items per rollout batch."),
        key("train.accumulation", at_least(1), "Batches per optimisation step."),
        key("train.seed", at_least(0), "Seed of every random choice of the run."),
    ],
    &[
        next_step("gradient.minibatch_size", at_least(1), "Trajectories per analyst call."),
        next_step("gradient.merge_batch_size", at_least(2), "Patches per merge call."),
        live("gradient.analyst_workers", at_least(1), "Optimizer calls in flight."),
        next_step("gradient.failure_only", Kind::Flag, "Learn from failures only."),
        key(
            "gradient.max_trajectory_chars",
            at_least(0),
            "Longest conversation that an analyst is shown, in characters; what is cut goes from the middle; 0: uncut.",
        ),
        next_step(
            "gradient.use_deep_reflect",
            Kind::Flag,
            "Look a second time at representative items of each batch, with a diagnostic instruction.",
        ),
        next_step("gradient.deep_reflect_failures", at_least(0), "Failed items probed per batch."),
        next_step("gradient.deep_reflect_successes", at_least(0), "Solved items probed per batch."),
    ],
    &[
        next_step("optimizer.learning_rate", at_least(1), "Edit budget: most edits of one step."),
        next_step("optimizer.min_learning_rate", at_least(0), "Edit budget at the end of the schedule."),
        next_step(
            "optimizer.lr_scheduler",
            Kind::Choice(&["constant", "linear", "cosine", "autonomous"]),
            "How the edit budget goes from learning_rate to min_learning_rate; autonomous: no limit.",
        ),
        next_step(
            "optimizer.lr_control_mode",
            Kind::Choice(&["fixed", "autonomous", "none"]),
            "Who sets a step's edit budget: the schedule, the optimizer, or (with whole rewrites) nobody.",
        ),
        key(
            "optimizer.skill_update_mode",
            Kind::Choice(&["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]),
            "How the skill is changed: edits, one rewrite from suggestions, or whole candidates.",
        ),
        next_step(
            "optimizer.insert_after_fallback",
            Kind::Choice(&["report", "append"]),
            "An insert_after whose target does not occur: report it as not applied, or append its content.",
        ),
        next_step("optimizer.meta_learning_rate", at_least(0), "Most proposals of one meta-reflection."),
        key(
            "optimizer.use_slow_update",
            Kind::Flag,
            "After each epoch, write guidance from a comparison with the epoch before.",
        ),
        next_step(
            "optimizer.slow_update_samples",
            at_least(1),
            "Training items compared between two epochs.",
        ),
        next_step(
            "optimizer.slow_update_gate_with_selection",
            Kind::Flag,
            "Keep the guidance only when the gate accepts it; else it is kept unmeasured.",
        ),
        next_step(
            "optimizer.longitudinal_pair_policy",
            Kind::Choice(&["mixed", "changed", "unchanged"]),
            "Which comparison pairs the slow update and the meta skill look at.",
        ),
        key(
            "optimizer.use_meta_skill",
            Kind::Flag,
            "Keep a memory for the optimizer from each epoch for the next.",
        ),
        next_step(
            "optimizer.use_meta_reflect",
            Kind::Flag,
            "After each epoch, one gated revision from the history of edits and scores.",
        ),
        key(
            "optimizer.use_skill_aware_reflection",
            Kind::Flag,
            "Tell lapses (a rule was not followed) from gaps, and note them in an appendix of the skill.",
        ),
        next_step(
            "optimizer.skill_aware_appendix_source",
            Kind::Choice(&["both", "failure_only"]),
            "Which analysts may leave notes.",
        ),
        next_step(
            "optimizer.skill_aware_consolidate_threshold",
            at_least(0),
            "Consolidate the notes when there are more than this; 0: never.",
        ),
        key(
            "optimizer.prompts_dir",
            Kind::Path(Expect::Folder),
            "Folder with prompts that replace built-in ones of the same name; NAME/ in it holds those of one environment.",
        ),
    ],
    &[
        next_step("evaluation.use_gate", Kind::Flag, "Keep a candidate only when it scores better."),
        key(
            "evaluation.gate_metric",
            Kind::Choice(&["hard", "soft", "mixed"]),
            "The score that the gate compares.",
        ),
        key("evaluation.gate_mixed_weight", number(0.0, 1.0, false), "Weight of soft in the mixed metric."),
        key(
            "evaluation.use_semantic_density",
            Kind::Flag,
            "Add semantic_density_weight times the share of leading words in the skill to the gate score.",
        ),
        key("evaluation.semantic_density_weight", number(0.0, 100.0, false), "Weight of that bonus."),
        key(
            "evaluation.leading_words",
            Kind::TextList,
            "Words that count as leading; empty: the built-in list.",
        ),
        key("evaluation.sel_env_num", at_least(0), "First N items of the selection split; 0: all."),
        key("evaluation.test_env_num", at_least(0), "First N items of the test split; 0: all."),
        key("evaluation.eval_test", Kind::Flag, "Test the first and the best skill at the end."),
    ],
    &[
        live(
            "review.mode",
            Kind::Choice(&["auto", "manual"]),
            "Accept proposed edits unseen, or wait for a reviewer.",
        ),
        live("review.timeout_s", at_least(0), "Seconds until on_timeout decides; 0: wait for ever."),
        live(
            "review.on_timeout",
            Kind::Choice(&["accept", "reject", "wait"]),
            "What becomes of undecided edits when the time is up.",
        ),
    ],
    &[
        live("budget.max_calls", at_least(0), "Most model calls of the run; 0: no limit."),
        live(
            "budget.max_tokens",
            at_least(0),
            "Most tokens (prompt and completion) of the run; 0: no limit.",
        ),
        live("budget.max_usd", number(0.0, 1e9, false), "Most US dollars of the run; 0: no limit."),
        live("budget.max_seconds", at_least(0), "Most seconds of the run; 0: no limit."),
        safe(
            "budget.prices",
            Kind::Path(Expect::File),
            "TOML file with prices per model that come before the built-in ones; empty: none.",
        ),
    ],
    &[live(
        "engine.stall_alert_s",
        at_least(0),
        "Seconds without any event of a working run until an alert says so; 0: never.",
    )],
    &[
        key("env.kind", Kind::Choice(&["qa"]), "Environment."),
        key(
            "env.skill_init",
            Kind::Path(Expect::Skill),
            "Markdown file of the seed skill, or a skill folder whose SKILL.md body is it; empty: start from the empty skill.",
        ),
        key(
            "env.split_mode",
            Kind::Choice(&["ratio", "split_dir"]),
            "Cut one data file by ratio, or read a folder that holds the splits.",
        ),
        key(
            "env.data_path",
            Kind::Path(Expect::DataOrDemo),
            "Data file for ratio; demo:city, demo:domain or demo:upper generates the demo task.",
        ),
        key("env.split_dir", Kind::Path(Expect::Folder), "Folder with train/, val/ and test/ for split_dir."),
        key("env.split_ratio", Kind::Text, "train:val:test, positive whole numbers."),
        key("env.split_seed", at_least(0), "Seed of the split; 0: train.seed."),
        key("env.limit", at_least(0), "First N items of every split; 0: all."),
        live("env.workers", at_least(1), "Rollouts in flight."),
        key(
            "env.prompt_style",
            Kind::Choice(&["chat", "document"]),
            "Chat messages, or one text that the model continues.",
        ),
        key("env.system_template", Kind::Text, "Template over the item's fields and `skill`."),
        key(
            "env.user_template",
            Kind::Text,
            "Template over the item's fields and `skill`; `{{ context | passages(6000) }}` keeps whole [DOC] passages.",
        ),
        key(
            "env.answer_rule",
            Kind::Choice(&["tag", "tag_or_last_line", "regex", "last_line", "whole"]),
            "How the answer is found in a reply.",
        ),
        key("env.answer_tag", Kind::Text, "Tag name for the rules tag and tag_or_last_line."),
        key(
            "env.answer_pattern",
            Kind::Text,
            "Regular expression for the rule regex; its first group is the answer.",
        ),
        key(
            "env.scorer",
            Kind::Choice(&[
                "exact",
                "normalized_exact",
                "f1",
                "contains",
                "regex",
                "numeric",
                "choice",
                "judge",
            ]),
            "How an answer is scored; judge: by the model of [model.judge].",
        ),
        key("env.answer_field", Kind::Text, "Item field with the reference answer."),
        key("env.type_field", Kind::Text, "Item field with the task type."),
        key(
            "env.numeric_tolerance",
            number(0.0, f64::INFINITY, false),
            "Absolute tolerance of the scorer numeric.",
        ),
        key(
            "env.judge_template",
            Kind::Text,
            "What the scorer judge asks: a template over the item's fields, `question`, `reference` and `answer`; empty: the built-in one.",
        ),
    ],
    BENCHMARK_ROWS,
];

/// Every key, in the order of the reference.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().copied().flatten()
}

/// The row of a full key.
pub fn find(path: &str) -> Option<&'static Key> {
    keys().find(|key| key.path == path)
}

/// `path` is the name of a section (`train`, `model.target`).
pub fn is_section(path: &str) -> bool {
    keys().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Value of every key as (key, JSON), in registry order; a value that is not set is `null`.
pub fn flatten(config: &Config) -> Vec<(&'static Key, serde_json::Value)> {
    let tree = serde_json::to_value(config).unwrap_or_default();
    keys()
        .map(|key| {
            let pointer = format!("/{}", key.path.replace('.', "/"));
            (key, tree.pointer(&pointer).cloned().unwrap_or_default())
        })
        .collect()
}
