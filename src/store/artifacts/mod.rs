//! SkillOpt-shaped files of a run, projected from its state: names and fields as `reference/skillopt_spec.md` 10.1,
//! paths relative to the run. Idempotent; equal states give equal bytes. Decides nothing and is read by nothing
//! here: the journal stays the truth, so a file that is missing or old is simply projected again.

mod flat_config;
mod rollouts;
mod run;
mod step;

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use super::file::write_if_changed;
use super::{RunDir, StoreError};
use crate::config::Config;
use crate::domain::Split;
use crate::event::{ItemResult, RunState};

/// Writes the files of one step (`steps/step_NNNN/…`) as far as the step has got. An unknown step has none.
///
/// # Errors
/// The disk's.
pub fn write_step(run: &RunDir, state: &RunState, step: u32) -> Result<(), StoreError> {
    match state.steps.iter().find(|candidate| candidate.at.step == step) {
        Some(step) => step::write(&Output::of(run), state, step),
        None => Ok(()),
    }
}

/// Writes the files of the run as a whole: skills, config, history, runtime state, baseline and test evaluations,
/// and once the run has ended its summary. Needs the run's `config.toml`.
///
/// # Errors
/// An unreadable `config.toml`, or the disk's.
pub fn write_run(run: &RunDir, state: &RunState) -> Result<(), StoreError> {
    run::write(&Output::of(run), &Config::read_resolved(&run.config_toml())?, state)
}

/// Writes everything: to be called when a run is opened again, since a crash may have come between an event and
/// its projection.
///
/// # Errors
/// As [`write_step`] and [`write_run`].
pub fn project(run: &RunDir, state: &RunState) -> Result<(), StoreError> {
    for step in &state.steps {
        step::write(&Output::of(run), state, step)?;
    }
    write_run(run, state)
}

/// Writes a rollout folder outside of any run: `results.jsonl` with the split in every row, and `predictions/`.
///
/// # Errors
/// The disk's.
pub fn write_rollouts<'a>(
    folder: &Path,
    results: impl IntoIterator<Item = (Split, &'a ItemResult)>,
) -> Result<(), StoreError> {
    rollouts::write_with_split(&Output { root: folder }, results)
}

/// Where projections go.
struct Output<'a> {
    root: &'a Path,
}

impl<'a> Output<'a> {
    fn of(run: &'a RunDir) -> Self {
        Self { root: run.path() }
    }

    /// Pretty JSON (indent 2, non-ASCII kept) at a path relative to the root.
    fn json(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let path = self.root.join(name);
        let mut bytes = serde_json::to_vec_pretty(value)
            .map_err(|source| StoreError::Encode { path: path.clone(), source })?;
        bytes.push(b'\n');
        write_if_changed(&path, &bytes, true)
    }

    fn text(&self, name: &str, text: &str) -> Result<(), StoreError> {
        write_if_changed(&self.root.join(name), text.as_bytes(), true)
    }

    /// Takes away what an earlier state had and this one has not (the summary of a cancelled run that goes on).
    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io("remove", &path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// One of many small files: not fsynced, because [`project`] makes a lost one again.
    fn transcript(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        write_if_changed(&self.root.join(name), bytes, false)
    }
}
