//! From a configuration to a running engine: the one place where config, data, models, store and engine meet.
//! Everything that can be wrong with a run before it starts is found here (exit code 2).

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::config::{Config, changed_keys};
use crate::domain::{Skill, fingerprint};
use crate::engine::{Engine, EngineParts, Journal, live_channel, minimum_calls, run_plan};
use crate::env::Task;
use crate::event::{Event, LogLevel, Record, RunState};
use crate::model::local::{LocalModel, LocalSettings};
use crate::model::{Budget, LocalBackend, ModelStack, StackParts};
use crate::store::{JournalFile, RunDir, RunLock, atomic_write, default_run_name, host_name};

/// A run whose engine is about to work. Dropping it releases the lock.
pub struct OpenedRun {
    pub run_dir: RunDir,
    pub warnings: Vec<String>,
    parts: EngineParts,
    _lock: RunLock,
}

impl OpenedRun {
    /// Starts the engine. The lock stays with `self`, which must outlive the engine.
    pub fn start(self) -> (Arc<Engine>, RunLock) {
        (crate::engine::start(self.parts), self._lock)
    }
}

/// A new run under `root`, not started yet.
///
/// # Errors
/// Bad configuration or data, a taken name, a missing worker, a minimum above the budget.
pub async fn new_run(
    config: &Path,
    overrides: &[String],
    root: &Path,
    name: Option<&str>,
) -> Result<OpenedRun> {
    let loaded = Config::load(config, overrides)?;
    let ingredients = Ingredients::of(loaded.config)?;
    let configured = Some(ingredients.config.run.name.as_str()).filter(|name| !name.is_empty());
    let name = match name.or(configured) {
        Some(name) => name.to_owned(),
        None => default_run_name(config, crate::engine::now_ms()),
    };
    let run_dir = RunDir::create(root, &name)?;
    let lock = RunLock::acquire(&run_dir)?;
    atomic_write(&run_dir.config_toml(), ingredients.config.resolved_toml()?.as_bytes())?;
    let opened = ingredients.open(run_dir.clone(), lock, loaded.warnings).await;
    if opened.is_err() {
        // Nothing ran, so nothing is kept: the name stays free.
        std::fs::remove_dir_all(run_dir.path()).ok();
    }
    opened
}

/// An existing run, to be continued from its journal.
///
/// # Errors
/// As [`new_run`]; also a run that is held by another process, and a configuration that changed in a way that
/// recorded results depend on.
pub async fn resumed_run(path: &Path) -> Result<OpenedRun> {
    let run_dir = RunDir::open(path)?;
    let lock = RunLock::acquire(&run_dir)?;
    let config = Config::read_resolved(&run_dir.config_toml())?;
    Ingredients::of(config)?.open(run_dir, lock, Vec::new()).await
}

/// What a configuration names, loaded.
pub struct Ingredients {
    pub config: Config,
    pub task: Task,
    pub skill: Skill,
}

impl Ingredients {
    /// Loads data, templates and the seed skill.
    ///
    /// # Errors
    /// Each with the file and row, or the key.
    pub fn of(config: Config) -> Result<Self> {
        let task = Task::open(&config, None)?;
        let skill = match config.env.skill_init.as_str() {
            "" => Skill::new(""),
            path => Skill::new(read_skill(Path::new(path))?),
        };
        Ok(Self { config, task, skill })
    }

    async fn open(self, run_dir: RunDir, lock: RunLock, warnings: Vec<String>) -> Result<OpenedRun> {
        let opened = JournalFile::open(&run_dir, &lock)?;
        let state = RunState::fold(&opened.records);
        let changed = self.check_unchanged(&opened.records)?;
        let budget = Arc::new(Budget::new(
            self.config.budget.clone(),
            state.total_usage(),
            active_seconds(&opened.records),
        ));
        let journal = Journal::start(opened.journal, opened.records);
        let stack = models(&self.config, &run_dir.calls(), budget, Some(&journal)).await?;
        let plan = run_plan(&self.config, &self.task.data, stack.target.label(), stack.optimizer.label());
        let (minimum, limit) = (minimum_calls(&plan), self.config.budget.max_calls);
        if limit > 0 && minimum > limit {
            bail!(
                "this run needs at least {minimum} model calls, but budget.max_calls allows {limit}; raise it or \
                 shrink the run (train.num_epochs, evaluation.sel_env_num, evaluation.test_env_num)"
            );
        }
        let resumed = state.info.is_some();
        record(&journal, Event::HostStarted { host: host_name(), pid: std::process::id(), resumed })?;
        if opened.torn_bytes > 0 {
            let message = format!("cut a torn last line of {} bytes off the journal", opened.torn_bytes);
            record(&journal, Event::Log { level: LogLevel::Warn, message })?;
        }
        if !changed.is_empty() {
            record(&journal, Event::ConfigChanged { keys: changed })?;
        }
        let config_json = serde_json::to_value(&self.config)?;
        let parts = EngineParts {
            name: run_dir.name(),
            config_hash: fingerprint([config_json.to_string().as_str()]),
            config_json,
            skill: self.skill,
            data: self.task.data,
            env: self.task.environment,
            target: stack.target,
            optimizer: stack.optimizer,
            journal,
            run_dir: run_dir.clone(),
            live: live_channel(),
            config: self.config,
        };
        Ok(OpenedRun { run_dir, warnings, parts, _lock: lock })
    }

    /// Compares with the configuration the run began with. Returns the keys that changed and may.
    fn check_unchanged(&self, records: &[Record]) -> Result<Vec<String>> {
        let Some(Event::RunStarted { config, .. }) = records
            .iter()
            .map(|record| &record.event)
            .find(|event| matches!(event, Event::RunStarted { .. }))
        else {
            return Ok(Vec::new());
        };
        let began: Config = serde_json::from_value(config.clone()).context(
            "the journal's first configuration does not read back; was it written by a newer planish?",
        )?;
        let changed = changed_keys(&began, &self.config);
        let unsafe_keys: Vec<_> = changed.iter().filter(|key| !key.safe).map(ToString::to_string).collect();
        if !unsafe_keys.is_empty() {
            bail!(
                "the configuration changed since this run began, and its results depend on it:\n  {}\nrestore these \
                 keys in config.toml of the run, or start a new run",
                unsafe_keys.join("\n  ")
            );
        }
        Ok(changed.iter().map(ToString::to_string).collect())
    }
}

/// The models of a run, the worker started if a role needs it.
///
/// # Errors
/// A missing key, worker or model file, each with its remedy.
pub async fn models(
    config: &Config,
    calls_dir: &Path,
    budget: Arc<Budget>,
    journal: Option<&Arc<Journal>>,
) -> Result<ModelStack> {
    let local = if ModelStack::needs_local(&config.model) {
        let journal = journal.cloned();
        let log = Arc::new(move |level, message: String| match &journal {
            Some(journal) => {
                // A journal that takes no more events has its own message.
                let _ = record(journal, Event::Log { level, message });
            }
            None => eprintln!("{message}"),
        });
        let model = LocalModel::start(LocalSettings::resolve(&config.model)?, log).await?;
        Some(LocalBackend { chat: model.clone(), likelihood: model })
    } else {
        None
    };
    Ok(ModelStack::build(&StackParts {
        config: &config.model,
        base_dir: Path::new("."),
        calls_dir,
        budget,
        local,
        env: &|name| std::env::var(name).ok(),
    })?)
}

/// Reads a skill document; CRLF becomes LF.
///
/// # Errors
/// A file that is missing or not UTF-8.
pub fn read_skill(path: &Path) -> Result<String> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the skill {}", path.display()))?;
    Ok(text.replace("\r\n", "\n"))
}

fn record(journal: &Journal, event: Event) -> Result<()> {
    journal.outside(|_| Ok(event))?;
    Ok(())
}

/// Seconds earlier hosts worked on the run: gaps between a host's last event and the next start do not count.
fn active_seconds(records: &[Record]) -> f64 {
    let mut milliseconds = 0;
    for pair in records.windows(2) {
        if !matches!(pair[1].event, Event::HostStarted { .. }) {
            milliseconds += pair[1].at.saturating_sub(pair[0].at);
        }
    }
    milliseconds as f64 / 1000.0
}
