//! SkillOpt-shaped files of a run, projected from its state: SkillOpt's names and fields, paths relative to the run.
//! Idempotent; equal states give equal bytes. Decides nothing and is read by nothing here: the journal stays the
//! truth, so a file that is missing or old is simply projected again.

mod epoch;
mod flat_config;
mod rollouts;
mod run;
mod standing;
mod step;
mod summary;

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;

use super::file::write_if_changed;
use super::{RunDir, StoreError};
use crate::config::Config;
use crate::domain::Split;
use crate::event::{ItemResult, RunState};

/// Writes what a step changed, as far as the step has got: `steps/step_NNNN/…`, the skill after it, the best skill,
/// history and runtime state. An unknown step changes nothing.
///
/// # Errors
/// The disk's.
pub fn write_step(run: &RunDir, state: &RunState, step: u32) -> Result<(), StoreError> {
    let output = Output::of(run);
    match state.steps.iter().find(|candidate| candidate.at.step == step) {
        Some(step) => {
            step::write(&output, state, step)?;
            run::write_skill_after(&output, state, step)?;
            run::write_progress(&output, state)
        }
        None => Ok(()),
    }
}

/// Writes what the stages after the steps of an epoch changed: their folders, the last step's skill once more, the
/// best skill and the runtime state.
///
/// # Errors
/// The disk's.
pub fn write_epoch(run: &RunDir, state: &RunState, epoch: u32) -> Result<(), StoreError> {
    let output = Output::of(run);
    epoch::write(&output, state, epoch)?;
    if let Some(last) = state.steps.iter().rfind(|step| step.at.epoch == epoch) {
        run::write_skill_after(&output, state, last)?;
    }
    run::write_progress(&output, state)
}

/// Writes what belongs to no step or epoch: config, the seed, baseline, final selection and tests, and once the run has
/// ended its summary. For the start and the end of a run; needs its `config.toml`.
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
/// As [`write_run`].
pub fn project(run: &RunDir, state: &RunState) -> Result<(), StoreError> {
    let output = Output { thorough: true, ..Output::of(run) };
    for step in &state.steps {
        step::write(&output, state, step)?;
        run::write_skill_after(&output, state, step)?;
    }
    let epochs: BTreeSet<u32> = state.steps.iter().map(|step| step.at.epoch).collect();
    for epoch in epochs {
        epoch::write(&output, state, epoch)?;
    }
    run::write(&output, &Config::read_resolved(&run.config_toml())?, state)
}

/// Writes a rollout folder outside of any run: `results.jsonl` with the split in every row, and `predictions/`.
///
/// # Errors
/// The disk's.
pub fn write_rollouts<'a>(
    folder: &Path,
    results: impl IntoIterator<Item = (Split, &'a ItemResult)>,
) -> Result<(), StoreError> {
    rollouts::write_with_split(&Output { root: folder, thorough: true }, results)
}

/// Where projections go.
struct Output<'a> {
    root: &'a Path,
    /// Look into rollout folders that seem to be written: a crash may have lost some of their small files.
    thorough: bool,
}

impl<'a> Output<'a> {
    fn of(run: &'a RunDir) -> Self {
        Self { root: run.path(), thorough: false }
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

    /// JSON lines, or no file when there are none.
    fn json_lines(&self, name: &str, rows: &[serde_json::Value]) -> Result<(), StoreError> {
        match rows {
            [] => Ok(()),
            rows => self.text(name, &rows.iter().map(|row| format!("{row}\n")).collect::<String>()),
        }
    }

    /// Nothing is to be done for the folder whose last file is `name`.
    fn holds(&self, name: &str, text: &str) -> bool {
        !self.thorough && fs::read(self.root.join(name)).is_ok_and(|present| present == text.as_bytes())
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
