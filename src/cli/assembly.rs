//! Where commands meet the modules that do the work: configuration files of runs, the engine, the screens.
//! Everything here is one call each; no command calls those modules by another way.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Failure, run_setup};
use crate::client::Connection;
use crate::config::{Config, ModelConfig};
use crate::engine::RunService;
use crate::event::HostLine;
use crate::store::{RunDir, atomic_write, read_records};

/// Writes the resolved configuration into a run folder; its host reads it from there.
pub fn write_config(run: &RunDir, config: &Config) -> Result<(), Failure> {
    let text = config.resolved_toml().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(atomic_write(&run.config_toml(), text.as_bytes())?)
}

/// Refuses a configuration that results of an existing run do not fit.
pub fn check_unchanged(run: &RunDir, config: &Config) -> Result<(), Failure> {
    run_setup::changed_keys_since_start(&read_records(run)?, config).map(|_| ()).map_err(usage)
}

/// Starts the engine of a prepared run, resuming if its journal has begun.
pub async fn start_engine(run: &RunDir) -> Result<Arc<dyn RunService>, Failure> {
    let engine = run_setup::start_run(run).await.map_err(usage)?;
    Ok(engine)
}

fn usage(error: anyhow::Error) -> Failure {
    Failure::usage(format!("{error:#}"))
}

/// Runs the workbench on a connection until the user leaves it.
pub async fn workbench(connection: Connection, read_only: bool) -> Result<(), Failure> {
    // INTEGRATION: tui::run(connection.events, connection.commands, …)
    let _ = (connection, read_only);
    Err(Failure::run("the workbench is not part of this build; use --plain"))
}

/// The text lines of one line from a host, for `--plain` and pipes.
pub fn plain_lines(line: &HostLine) -> Vec<String> {
    // INTEGRATION: plain::PlainRenderer
    match line {
        HostLine::Event(record) => vec![describe(record)],
        HostLine::Error { message } => vec![format!("error: {message}")],
        HostLine::Dropped { lines } => vec![format!("({lines} lines were dropped)")],
        HostLine::Welcome { .. } | HostLine::Live(_) | HostLine::Clients(_) | HostLine::Ack { .. } => {
            Vec::new()
        }
    }
}

/// One line about an event, without text that a model wrote.
pub fn describe(record: &crate::event::Record) -> String {
    // INTEGRATION: plain::describe
    let kind = kind_of(record);
    format!("{:>6}  {kind}", record.seq)
}

/// The event's tag in the journal.
pub fn kind_of(record: &crate::event::Record) -> String {
    serde_json::to_value(&record.event)
        .ok()
        .and_then(|value| value.as_object().and_then(|map| map.keys().next().cloned()))
        .unwrap_or_default()
}

/// The worker's command and the model file it would load, or what is missing and how to get it.
pub fn worker() -> (Result<PathBuf, String>, Result<PathBuf, String>) {
    // INTEGRATION: model::local::LocalSettings::resolve
    let config = ModelConfig::default();
    let beside =
        std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("planish-torch")));
    let on_path = std::env::var_os("PATH").into_iter().flat_map(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("planish-torch")).collect::<Vec<_>>()
    });
    let program = config.worker_command.first().map(PathBuf::from);
    let program = program.or_else(|| beside.into_iter().chain(on_path).find(|program| program.is_file()));
    let model = super::doctor::home().join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    (
        program.ok_or_else(|| "planish-torch is neither beside planish nor on PATH".to_owned()),
        if model.is_file() { Ok(model) } else { Err(format!("{} is missing", model.display())) },
    )
}
