//! The runs under a root folder, as `planish ls` shows them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Holder, RunDir, RunLock, StoreError, glance_run};
use crate::domain::{Decision, ReviewMode};
use crate::event::{EndStatus, ReviewState, RunState, RunStatus};

/// One run in a listing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    pub name: String,
    pub path: PathBuf,
    /// `new`, `running`, `review` (it waits for a person), `paused`, `stopping`, `interrupted` (no process works on
    /// it), `completed`, `cancelled`, `failed`, `out of budget`, `imported` or `damaged`.
    pub status: &'static str,
    /// Edits of the open review that nobody has decided.
    pub undecided: Option<usize>,
    pub holder: Option<Holder>,
    pub steps_done: u32,
    pub total_steps: u32,
    pub baseline_score: Option<f64>,
    pub best_score: Option<f64>,
    /// Unix milliseconds; 0 when nothing is known.
    pub started_at: u64,
    pub updated_at: u64,
    /// Why the run cannot be read.
    pub problem: Option<String>,
}

impl RunSummary {
    fn read(run: &RunDir) -> Self {
        let holder = RunLock::holder(run);
        let (state, problem) = match glance_run(run) {
            Ok(state) => (state, None),
            Err(error) => (RunState::default(), Some(error.to_string())),
        };
        let status = if problem.is_some() { "damaged" } else { status(&state, holder.is_some()) };
        Self {
            name: run.name(),
            path: run.path().to_owned(),
            status,
            undecided: undecided(&state),
            holder,
            steps_done: state.steps.iter().filter(|step| step.record.is_some()).count() as u32,
            total_steps: state.info.as_ref().map_or(0, |info| info.plan.total_steps),
            baseline_score: state.baseline_score,
            best_score: state.best_score,
            started_at: state.info.as_ref().map_or(0, |info| info.started_at),
            updated_at: state.updated_at,
            problem,
        }
    }
}

fn status(state: &RunState, live: bool) -> &'static str {
    match &state.status {
        RunStatus::Ended { status: EndStatus::Completed, .. } => "completed",
        RunStatus::Ended { status: EndStatus::Cancelled, .. } => "cancelled",
        RunStatus::Ended { status: EndStatus::Failed, .. } => "failed",
        RunStatus::Ended { status: EndStatus::BudgetExhausted, .. } => "out of budget",
        RunStatus::Ended { status: EndStatus::Imported, .. } => "imported",
        RunStatus::NotStarted => "new",
        RunStatus::Running | RunStatus::Paused { .. } | RunStatus::Cancelling { .. } if !live => {
            "interrupted"
        }
        RunStatus::Running if undecided(state).is_some() => "review",
        RunStatus::Running => "running",
        RunStatus::Paused { .. } => "paused",
        RunStatus::Cancelling { .. } => "stopping",
    }
}

/// Edits that a person has yet to decide; `None`: no review is open, so nobody is waited for.
pub fn undecided(state: &RunState) -> Option<usize> {
    let waits = |review: &ReviewState| review.mode == ReviewMode::Manual && review.submitted.is_none();
    let (_, review) = state.open_review().filter(|(_, review)| waits(review))?;
    Some(review.edits.iter().filter(|edit| edit.decision == Decision::Undecided).count())
}

/// All runs under `root`, the last changed first. A run that cannot be read is listed with its problem; a missing
/// root has no runs.
///
/// # Errors
/// `root` cannot be read.
pub fn list_runs(root: &Path) -> Result<Vec<RunSummary>, StoreError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", root)(error)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("list", root))?;
        if let Ok(run) = RunDir::open(&entry.path()) {
            runs.push(RunSummary::read(&run));
        }
    }
    runs.sort_by(|left, right| {
        right.updated_at.cmp(&left.updated_at).then_with(|| left.name.cmp(&right.name))
    });
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Record};
    use crate::store::JournalFile;

    #[test]
    fn runs_are_listed_with_their_condition() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(list_runs(&root.path().join("none")).unwrap(), []);
        fs::create_dir(root.path().join("no-run")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let finished = Event::RunFinished {
            status: EndStatus::Completed,
            reason: String::new(),
            best_hash: String::new(),
            best_step: 0,
            best_score: Some(0.5),
            baseline_score: Some(0.5),
        };
        for (name, at, events) in [
            ("fresh", 0, vec![]),
            ("done", 7, vec![finished]),
            ("stopped", 9, vec![Event::Resumed { by: crate::domain::Author("a".into()) }]),
        ] {
            let run = RunDir::create(root.path(), name).unwrap();
            fs::write(run.config_toml(), "").unwrap();
            let lock = RunLock::acquire(&run).unwrap();
            let mut journal = JournalFile::open(&run, &lock).unwrap().journal;
            let records: Vec<_> =
                events.into_iter().zip(1..).map(|(event, seq)| Record { seq, at, event }).collect();
            journal.append(&records).unwrap();
        }
        let bad = RunDir::create(root.path(), "bad").unwrap();
        fs::write(bad.events(), "x\ny\n").unwrap();
        let told = |runs: &[RunSummary]| -> Vec<String> {
            runs.iter().map(|run| format!("{} {}", run.name, run.status)).collect()
        };
        let runs = list_runs(root.path()).unwrap();
        assert_eq!(told(&runs), ["stopped interrupted", "done completed", "bad damaged", "fresh new"]);
        assert!(runs[2].problem.as_ref().unwrap().contains("line 1"), "{runs:?}");
        let _lock = RunLock::acquire(&RunDir::open(&root.path().join("stopped")).unwrap()).unwrap();
        let runs = list_runs(root.path()).unwrap();
        assert_eq!(told(&runs)[0], "stopped running");
        assert_eq!(runs[0].holder.as_ref().unwrap().pid, std::process::id());
    }
}
