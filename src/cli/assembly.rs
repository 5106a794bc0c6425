//! Where commands meet the modules that do the work: configuration files of runs, the engine, the screens.
//! Everything here is one call each; no command calls those modules by another way.

use std::path::Path;
use std::sync::Arc;

use super::settled::Began;
use super::{Failure, output, prompts, run_setup, settled};
use crate::client::{Connection, author_here};
use crate::config::{Config, Loaded, changed_keys};
use crate::engine::{self, Continuation, RunService, now_ms};
use crate::event::Record;
use crate::store::foreign::ForeignRun;
use crate::store::{RunDir, atomic_write, fold_run};
use crate::tui::{self, Exit, Identity, Options, Services, Settings, Wishes};

/// Writes the resolved configuration into a run folder; its host reads it from there.
pub fn write_config(run: &RunDir, config: &Config) -> Result<(), Failure> {
    let text = config.resolved_toml().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(atomic_write(&run.config_toml(), text.as_bytes())?)
}

/// Keeps the prompts that a new run's configuration names in its folder.
pub fn keep_prompts(run: &RunDir, config: &Config) -> Result<(), Failure> {
    prompts::keep(run, config).map_err(usage)
}

/// Refuses a configuration that results of an existing run do not fit.
pub fn check_unchanged(run: &RunDir, config: &Config) -> Result<(), Failure> {
    match Began::of(&fold_run(run)?).map_err(usage)? {
        Some(began) => began.changes(config).map(|_| ()).map_err(usage),
        None => Ok(()),
    }
}

/// Gives a run without a host another configuration, which [`check_unchanged`] has passed.
pub fn change_config(run: &RunDir, config: &Config) -> Result<(), Failure> {
    run_setup::keep_wishes(run, config).map_err(usage)?;
    write_config(run, config)
}

/// Brings the configuration of a run without a host up to the retunes in its journal.
pub fn settle(run: &RunDir) -> Result<(), Failure> {
    let Some(began) = Began::of(&fold_run(run)?).map_err(usage)? else { return Ok(()) };
    let config = Config::read_resolved(&run.config_toml())?;
    let settled = began.settled(&config).map_err(usage)?;
    let behind = changed_keys(&config, &settled);
    if behind.is_empty() {
        return Ok(());
    }
    output::note(&run_setup::was_behind(&behind));
    write_config(run, &settled)
}

/// Keeps where the settings of a new run came from.
pub fn keep_origins(run: &RunDir, loaded: &Loaded) -> Result<(), Failure> {
    settled::write_origins(run, loaded).map_err(usage)
}

/// Refuses a configuration that differs at all from the one a host works with.
pub fn check_equal(run: &RunDir, config: &Config) -> Result<(), Failure> {
    let changed: Vec<String> = changed_keys(&Config::read_resolved(&run.config_toml())?, config)
        .iter()
        .map(ToString::to_string)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let (name, keys) = (run.name(), changed.join("\n  "));
    Err(Failure::usage(format!(
        "{name} is running with another configuration:\n  {keys}\nattach to it as it is with `planish attach {name}`, \
         or start another run with another --name"
    )))
}

/// What a run under `config` takes over from a foreign one.
pub fn continuation(
    foreign: &ForeignRun,
    config: &Config,
    keep_scores: bool,
) -> Result<Continuation, Failure> {
    run_setup::continuation(foreign, config, keep_scores).map_err(usage)
}

/// The journal that a foreign run would have left.
pub fn imported_journal(foreign: &ForeignRun, name: &str) -> Vec<Record> {
    engine::imported_journal(foreign, name)
}

/// Starts the engine of a prepared run, resuming if its journal has begun.
pub async fn start_engine(run: &RunDir) -> Result<Arc<dyn RunService>, Failure> {
    let engine = run_setup::start_run(run).await.map_err(usage)?;
    Ok(engine)
}

fn usage(error: anyhow::Error) -> Failure {
    Failure::usage(format!("{error:#}"))
}

/// Who uses this client.
pub fn identity(read_only: bool) -> Identity {
    let client_id = format!("tui-{}-{}", std::process::id(), now_ms());
    Identity { name: author_here(), read_only, client_id }
}

/// Runs the workbench on a connection, or without one on the list of runs, until the user leaves it. `run_dir`: folder of
/// the connection's run, if it is on this machine.
pub async fn workbench(
    connection: Option<Connection>,
    run_dir: Option<&Path>,
    services: Arc<dyn Services>,
    read_only: bool,
    wishes: Wishes,
) -> Result<(), Failure> {
    // Said before the terminal is taken.
    Settings::load(&wishes).map_err(|error| Failure::usage(error.to_string()))?;
    let identity = identity(read_only);
    let options = Options { identity, wishes, services, run_dir: run_dir.map(Path::to_owned) };
    match tui::run(connection, options).await {
        Ok(Exit::Left { run, ended: false }) => {
            output::note(&format!("left {run}; it goes on: planish attach {run}"));
            Ok(())
        }
        Ok(Exit::Left { ended: true, .. }) => Ok(()),
        Ok(Exit::Hangup) => Err(Failure::Quiet),
        Err(error) => Err(Failure::run(format!("{error:#}"))),
    }
}
