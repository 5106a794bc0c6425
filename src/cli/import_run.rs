//! `planish import FOLDER`: the output folder of a foreign run as a run folder of planish's own. The source is only read.

use std::path::Path;

use super::{Failure, assembly, exit, output};
use crate::event::{Record, RunState};
use crate::plain::score;
use crate::store::foreign::{ForeignError, ForeignRun};
use crate::store::{JournalFile, RunDir, RunLock, StoreError, atomic_write, plain_run_name};

/// Oddities told on the terminal; the run's log has all.
const TOLD: usize = 20;

pub fn run(folder: &Path, root: &Path, name: Option<&str>) -> Result<u8, Failure> {
    let foreign = ForeignRun::open(folder)?;
    let name = name.map_or_else(|| plain_run_name(&foreign.folder), str::to_owned);
    let records = assembly::imported_journal(&foreign, &name);
    let run = RunDir::create(root, &name)?;
    let state = RunState::fold(&records);
    if let Err(error) = write(&run, &records, &state) {
        // An import that got nowhere leaves nothing behind.
        let _ = std::fs::remove_dir_all(run.path());
        return Err(error.into());
    }
    tell(&foreign.oddities);
    let steps = state.steps.iter().filter(|step| step.record.is_some()).count();
    let best = match state.best_score {
        Some(best) => format!("best {} ({})", score(best), state.best_origin()),
        None => "no score".into(),
    };
    output::line(&format!(
        "imported {name}: {steps} steps done, {best}; look at it with `planish attach {name}`"
    ))?;
    Ok(exit::DONE)
}

fn write(run: &RunDir, records: &[Record], state: &RunState) -> Result<(), StoreError> {
    let lock = RunLock::acquire(run)?;
    let mut journal = JournalFile::open(run, &lock)?.journal;
    journal.append(records)?;
    journal.sync()?;
    match state.skill_text(&state.best_hash) {
        Some(best) => atomic_write(&run.best_skill(), best.as_bytes()),
        None => Ok(()),
    }
}

/// Says what was odd, the first of it in full.
pub fn tell(oddities: &[impl std::fmt::Display]) {
    for oddity in oddities.iter().take(TOLD) {
        output::note(&format!("warning: {oddity}"));
    }
    if oddities.len() > TOLD {
        output::note(&format!("warning: {} more; the log of the run has them all", oddities.len() - TOLD));
    }
}

impl From<ForeignError> for Failure {
    fn from(error: ForeignError) -> Self {
        Self::usage(error.to_string())
    }
}
