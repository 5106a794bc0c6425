//! From a configuration to a running engine: the one place where config, data, models, store and engine meet.
//! Everything that can be wrong with a run before it starts is found here (exit code 2).

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::seed::{Seed, read_skill};
use super::settled::{Began, as_retuned, read_origins};
use super::{output, prompts};
use crate::config::{ChangedKey, Config, changed_keys};
use crate::domain::{Origin, Role, Skill, Usage, fingerprint};
use crate::engine::{
    Continuation, Engine, EngineParts, Journal, Shape, Successor, live_channel, minimum_calls, now_ms,
    run_plan,
};
use crate::env::Task;
use crate::event::{AckResult, Event, LogLevel, Record, RunPlan, RunState, RunStatus};
use crate::model::local::{LocalModel, LocalSettings};
use crate::model::{
    Budget, LEDGER_FILE, LocalBackend, ModelStack, Prices, Purpose, StackParts, UnansweredSink, above,
};
use crate::store::foreign::ForeignRun;
use crate::store::{JournalFile, RunDir, RunLock, fold_run, host_name, project};

/// Takes the lock of a run folder, opens its journal and starts the engine: from the beginning, or from where the
/// journal ends. The engine holds the lock.
///
/// # Errors
/// Bad configuration or data, a held run, a missing worker, a minimum above the budget, a configuration that changed
/// in a way that recorded results depend on.
pub async fn start_run(run_dir: &RunDir) -> Result<Arc<Engine>> {
    let lock = RunLock::acquire(run_dir)?;
    let config = Config::load(&run_dir.config_toml(), &[])?.config;
    let task = Task::open(&config, Some(run_dir.path()))?;
    let opened = JournalFile::open(run_dir, &lock)?;
    let origin = origin(run_dir, &opened.records)?;
    let state = RunState::fold(&opened.records);
    let info = state.info.as_ref();
    let seed = match &origin {
        Some(Origin::Continued(continued)) => {
            Seed::continuing(continued.initial.clone(), run_dir, &config, info)?
        }
        Some(Origin::Imported(imported)) => {
            bail!(
                "{} was imported and cannot go on in place; `planish resume --from {}` continues it as a new run",
                run_dir.name(),
                imported.folder
            )
        }
        None => Seed::of(run_dir, &config, info)?,
    };
    let began = Began::of(&state)?;
    let (config, changed, behind) = match &began {
        Some(began) => {
            let settled = began.settled(&config)?;
            (began.replayed(&settled)?, began.changes(&settled)?, changed_keys(&config, &settled))
        }
        None => (config, Vec::new(), Vec::new()),
    };
    // A crash may have come between an event and its files.
    project(run_dir, &state)?;
    let seconds = active_seconds(&opened.records);
    let ledger = run_dir.calls().join(LEDGER_FILE);
    let (budget, balance) = Budget::open(config.budget.clone(), state.total_usage(), seconds, &ledger)?;
    let budget = Arc::new(budget.at_prices(prices(&config)?));
    let journal = Journal::start(opened.journal, opened.records);
    budget.tell_unanswered(unanswered(&journal));
    for (Purpose { role, stage }, usage) in balance.unanswered {
        // What a killed host had no time to journal.
        let usage = above(usage, state.unanswered.get(&stage).copied().unwrap_or_default());
        if usage != Usage::default() {
            record(&journal, Event::AttemptsSpent { role, stage, usage })?;
        }
    }
    let roles = config.roles();
    let stack = models(&config, &roles, &run_dir.calls(), budget.clone(), Some(&journal)).await?;
    let optimizer = stack.optimizer.context("a run needs an optimizer")?;
    let plan = {
        let judge = stack.judge.as_ref().map_or("", |judge| judge.label());
        run_plan(&config, &task.data, [stack.target.label(), optimizer.label(), judge])
    };
    let (minimum, limit) = (minimum_calls(&what_is_left(&plan, origin.as_ref())), config.budget.max_calls);
    if limit > 0 && minimum > limit {
        bail!(
            "this run needs at least {minimum} model calls, but budget.max_calls allows {limit}; raise it or shrink \
             the run (train.num_epochs, evaluation.sel_env_num, evaluation.test_env_num)"
        );
    }
    let resumed = state.info.is_some();
    record(&journal, Event::HostStarted { host: host_name(), pid: std::process::id(), resumed })?;
    if let Some(message) = pause_ended(&state) {
        record(&journal, Event::Log { level: LogLevel::Warn, message })?;
    }
    for message in seed.warnings {
        record(&journal, Event::Log { level: LogLevel::Warn, message })?;
    }
    if opened.torn_bytes > 0 {
        let message = format!("cut a torn last line of {} bytes off the journal", opened.torn_bytes);
        record(&journal, Event::Log { level: LogLevel::Warn, message })?;
    }
    if !behind.is_empty() {
        let message = was_behind(&behind);
        record(&journal, Event::Log { level: LogLevel::Info, message })?;
    }
    if !changed.is_empty() {
        record(&journal, config_changed(&changed))?;
    }
    let config_json = serde_json::to_value(&config)?;
    let prompts = prompts::load(run_dir, &config)?;
    Ok(crate::engine::start(EngineParts {
        name: run_dir.name(),
        config_hash: fingerprint([config_json.to_string().as_str()]),
        config_json,
        config_origins: read_origins(run_dir)?,
        config,
        skill: seed.skill,
        origin,
        folder: seed.folder,
        data: task.data,
        env: task.environment,
        prompts,
        dials: stack.dials,
        breakers: stack.breakers,
        budget,
        target: stack.target,
        optimizer,
        judge: stack.judge,
        journal,
        run_dir: run_dir.clone(),
        live: live_channel(),
        lock: Arc::new(lock),
    }))
}

/// Where the run began if not at a seed: as its journal says, else as it was prepared.
fn origin(run_dir: &RunDir, records: &[Record]) -> Result<Option<Origin>> {
    let begun = records.iter().find_map(|record| match &record.event {
        Event::RunStarted { origin, .. } => Some(origin.clone()),
        _ => None,
    });
    if let Some(origin) = begun {
        return Ok(origin);
    }
    let path = run_dir.origin_json();
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .with_context(|| format!("{} does not read back; prepare the run again", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The part of a plan that no foreign run has done.
fn what_is_left(plan: &RunPlan, origin: Option<&Origin>) -> RunPlan {
    let Some(Origin::Continued(continued)) = origin else { return plan.clone() };
    RunPlan {
        epochs: plan.epochs.saturating_sub(continued.last.epoch),
        total_steps: plan.total_steps.saturating_sub(continued.last.step),
        val: if continued.current.measured.is_empty() { plan.val } else { 0 },
        ..plan.clone()
    }
}

/// What a run under `config` takes over from a foreign one.
///
/// # Errors
/// Bad data, or a foreign run that this one cannot continue.
pub fn continuation(foreign: &ForeignRun, config: &Config, keep_scores: bool) -> Result<Continuation> {
    let task = Task::open(config, None)?;
    let plan = run_plan(config, &task.data, [""; 3]);
    let named = Path::new(&config.env.skill_init);
    let seed = (named != Path::new("")).then(|| read_skill(named).ok()).flatten().map(Skill::new);
    Ok(crate::engine::continuation(
        foreign,
        &Successor {
            shape: Shape { epochs: plan.epochs, steps_per_epoch: plan.steps_per_epoch },
            seed: config.train.seed,
            train: plan.train,
            batch_size: plan.batch_size,
            accumulation: config.train.accumulation,
            target: &config.model.target.model,
            seed_skill: seed.as_ref(),
            keep_scores,
        },
    )?)
}

/// The models of a run, the worker started if a role needs it.
///
/// # Errors
/// A missing key, worker or model file, each with its remedy.
pub async fn models(
    config: &Config,
    roles: &[Role],
    calls_dir: &Path,
    budget: Arc<Budget>,
    journal: Option<&Arc<Journal>>,
) -> Result<ModelStack> {
    let notice = {
        let journal = journal.cloned();
        Arc::new(move |message: String| match &journal {
            Some(journal) => {
                let _ = record(journal, Event::Log { level: LogLevel::Info, message });
            }
            None => output::note(&message),
        })
    };
    let local = if ModelStack::needs_local(&config.model, roles) {
        let journal = journal.cloned();
        let log = Arc::new(move |level, message: String| match &journal {
            Some(journal) => {
                // A journal that takes no more events has its own message.
                let _ = record(journal, Event::Log { level, message });
            }
            None => output::note(&message),
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
        roles,
        notice,
    })
    .await?)
}

/// The prices that a configuration's budget goes by.
///
/// # Errors
/// A file of prices that cannot be used.
pub fn prices(config: &Config) -> Result<Prices> {
    let file = Some(config.budget.prices.as_str()).filter(|file| !file.is_empty());
    Ok(Prices::load(file.map(Path::new))?)
}

/// Journals attempts without a reply as long as the run goes on.
fn unanswered(journal: &Arc<Journal>) -> UnansweredSink {
    let journal = Arc::downgrade(journal);
    Box::new(move |purpose, usage| {
        let Some(journal) = journal.upgrade() else { return };
        let spent = |state: &RunState| match state.status {
            RunStatus::Ended { .. } => Err(AckResult::Noop),
            RunStatus::NotStarted
            | RunStatus::Running
            | RunStatus::Paused { .. }
            | RunStatus::Cancelling { .. } => {
                let Purpose { role, stage } = purpose.clone();
                Ok(Event::AttemptsSpent { role, stage, usage })
            }
        };
        // Where the journal cannot be written the control flow ends the run; the book has it all the same.
        let _ = journal.outside(spent);
    })
}

/// A run that is resumed goes on, also where it was paused when its host went.
fn pause_ended(before: &RunState) -> Option<String> {
    match &before.status {
        RunStatus::Paused { by } => Some(format!("resumed: the pause by {} ended", by.0)),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Cancelling { .. }
        | RunStatus::Ended { .. } => None,
    }
}

/// Journals what `config` changes of a run that nobody works on, where its values could be taken for old ones.
///
/// # Errors
/// A held run, a damaged journal, the disk's.
pub fn keep_wishes(run_dir: &RunDir, config: &Config) -> Result<()> {
    let Some(began) = Began::of(&fold_run(run_dir)?)? else { return Ok(()) };
    if began.settled(config)? == *config {
        return Ok(());
    }
    let event = config_changed(&began.changes(config)?);
    let lock = RunLock::acquire(run_dir)?;
    let mut journal = JournalFile::open(run_dir, &lock)?.journal;
    journal.append(&[Record { seq: journal.next_seq(), at: now_ms(), event }])?;
    Ok(journal.sync()?)
}

fn config_changed(changed: &[ChangedKey]) -> Event {
    let keys = changed.iter().map(ToString::to_string).collect();
    Event::ConfigChanged { keys, changes: as_retuned(changed) }
}

/// Of a `config.toml` that its host had no time to write.
pub fn was_behind(keys: &[ChangedKey]) -> String {
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    format!(
        "config.toml had values of earlier in this run, the journal's stand: {}; change them with `planish resume RUN -o \
         KEY=VALUE`",
        keys.join(", ")
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Author;

    #[test]
    fn a_pause_that_a_resume_ends_is_said() {
        let mut state = RunState::default();
        assert_eq!(pause_ended(&state), None);
        state.status = RunStatus::Paused { by: Author("ann".into()) };
        assert_eq!(pause_ended(&state).as_deref(), Some("resumed: the pause by ann ended"));
    }
}
