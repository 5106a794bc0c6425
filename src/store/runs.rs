//! What a listing says of one run, and in what condition it is. Made from a fold; reads nothing itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::{Holder, RunDir};
use crate::domain::{Decision, Phase, ReviewMode, Usage};
use crate::event::{EndStatus, ReviewState, RunState, RunStatus};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Prepared, not begun.
    New,
    Running,
    /// Running, but silent for long.
    Stalled,
    /// It waits for a person.
    Review,
    Paused,
    Stopping,
    /// Not ended, and no process works on it: its host was killed.
    Interrupted,
    /// Another machine says that it works on it.
    Elsewhere,
    Completed,
    Cancelled,
    Failed,
    OutOfBudget,
    Imported,
    /// It cannot be read.
    Damaged,
    /// It has yet to be read.
    Unread,
}

impl Condition {
    pub const ALL: [Condition; 15] = [
        Condition::New,
        Condition::Running,
        Condition::Stalled,
        Condition::Review,
        Condition::Paused,
        Condition::Stopping,
        Condition::Interrupted,
        Condition::Elsewhere,
        Condition::Completed,
        Condition::Cancelled,
        Condition::Failed,
        Condition::OutOfBudget,
        Condition::Imported,
        Condition::Damaged,
        Condition::Unread,
    ];

    /// The word for it in JSON: a stable contract.
    pub fn word(self) -> &'static str {
        match self {
            Condition::New => "new",
            Condition::Running => "running",
            Condition::Stalled => "stalled",
            Condition::Review => "review",
            Condition::Paused => "paused",
            Condition::Stopping => "stopping",
            Condition::Interrupted => "interrupted",
            Condition::Elsewhere => "elsewhere",
            Condition::Completed => "completed",
            Condition::Cancelled => "cancelled",
            Condition::Failed => "failed",
            Condition::OutOfBudget => "out of budget",
            Condition::Imported => "imported",
            Condition::Damaged => "damaged",
            Condition::Unread => "unread",
        }
    }

    /// The word for it that people read, on the screen and in listings; one of those a filter knows.
    pub fn said(self) -> &'static str {
        match self {
            Condition::Interrupted => "crashed",
            Condition::Cancelled => "stopped",
            Condition::OutOfBudget => "budget",
            condition => condition.word(),
        }
    }

    /// The word for it beside others of the same meaning, as people write them in a filter.
    pub fn also(self) -> &'static [&'static str] {
        match self {
            Condition::Interrupted => &["crashed"],
            Condition::Completed => &["done"],
            Condition::Cancelled => &["stopped"],
            Condition::OutOfBudget => &["budget"],
            _ => &[],
        }
    }

    /// `planish resume` continues it.
    pub fn resumable(self) -> bool {
        matches!(
            self,
            Condition::New
                | Condition::Interrupted
                | Condition::Cancelled
                | Condition::Failed
                | Condition::OutOfBudget
        )
    }

    /// A process works on it, here or elsewhere.
    pub fn at_work(self) -> bool {
        matches!(
            self,
            Condition::Running
                | Condition::Stalled
                | Condition::Review
                | Condition::Paused
                | Condition::Stopping
                | Condition::Elsewhere
        )
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Who works on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    Nobody,
    Here(Holder),
    /// The machine that says so.
    Elsewhere(String),
}

/// One run in a listing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    pub name: String,
    pub path: PathBuf,
    pub status: Condition,
    /// Edits of the open review that nobody has decided.
    pub undecided: Option<usize>,
    pub holder: Option<Holder>,
    /// The machine of the last host.
    pub host: String,
    pub env: String,
    pub target: String,
    pub optimizer: String,
    pub seed: Option<u64>,
    pub steps_done: u32,
    pub total_steps: u32,
    /// The step under way or the last one, and its phase.
    pub step: u32,
    pub phase: Option<Phase>,
    pub baseline_score: Option<f64>,
    pub best_score: Option<f64>,
    /// What the test measured the best skill to be better by.
    pub test_delta: Option<f64>,
    /// By stage.
    pub usage: BTreeMap<String, Usage>,
    /// Unix milliseconds; 0 when nothing is known.
    pub started_at: u64,
    pub updated_at: u64,
    /// When something last happened that was not merely told about the run.
    pub progress_at: u64,
    /// Why the run failed or cannot be read.
    pub problem: Option<String>,
}

impl RunSummary {
    /// `now`: Unix milliseconds.
    pub fn of(run: &RunDir, state: &RunState, hold: &Hold, now: u64) -> Self {
        let info = state.info.as_ref();
        let plan = info.map(|info| &info.plan);
        let text = |of: fn(&crate::event::RunPlan) -> &String| plan.map(of).cloned().unwrap_or_default();
        Self {
            status: condition(state, hold, now),
            undecided: undecided(state),
            holder: match hold {
                Hold::Here(holder) => Some(holder.clone()),
                Hold::Nobody | Hold::Elsewhere(_) => None,
            },
            host: match hold {
                Hold::Elsewhere(host) => host.clone(),
                Hold::Nobody | Hold::Here(_) => state.host.clone().unwrap_or_default().0,
            },
            env: text(|plan| &plan.env),
            target: text(|plan| &plan.target),
            optimizer: text(|plan| &plan.optimizer),
            seed: info.map(|info| info.seed),
            steps_done: state.steps.iter().filter(|step| step.record.is_some()).count() as u32,
            total_steps: plan.map_or(0, |plan| plan.total_steps),
            step: state.at.step,
            phase: state.phase,
            baseline_score: state.baseline_score,
            best_score: state.best_score,
            test_delta: state.test.as_ref().map(|test| test.delta),
            usage: state.usage.clone(),
            started_at: info.map_or(0, |info| info.started_at),
            updated_at: state.updated_at,
            progress_at: state.last_progress(),
            problem: match &state.status {
                RunStatus::Ended { status: EndStatus::Failed, reason } => Some(reason.clone()),
                _ => None,
            },
            ..Self::unread(run, 0)
        }
    }

    /// A run that cannot be read.
    pub fn damaged(run: &RunDir, problem: String, hold: &Hold, now: u64) -> Self {
        let status = Condition::Damaged;
        Self { status, problem: Some(problem), ..Self::of(run, &RunState::default(), hold, now) }
    }

    /// A run of which only the folder is known yet.
    pub fn unread(run: &RunDir, updated_at: u64) -> Self {
        Self {
            name: run.name(),
            path: run.path().to_owned(),
            status: Condition::Unread,
            undecided: None,
            holder: None,
            host: String::new(),
            env: String::new(),
            target: String::new(),
            optimizer: String::new(),
            seed: None,
            steps_done: 0,
            total_steps: 0,
            step: 0,
            phase: None,
            baseline_score: None,
            best_score: None,
            test_delta: None,
            usage: BTreeMap::new(),
            started_at: 0,
            updated_at,
            progress_at: updated_at,
            problem: None,
        }
    }

    /// Where it stands in words: `review 3` edits are undecided, `review (submit)` none.
    pub fn standing(&self) -> String {
        match (self.status, self.undecided) {
            (Condition::Review, Some(0)) => "review (submit)".to_owned(),
            (Condition::Review, Some(edits)) => format!("review {edits}"),
            (status, _) => status.said().to_owned(),
        }
    }

    /// How much better the best skill is than the first, on the selection split.
    pub fn delta(&self) -> Option<f64> {
        Some(self.best_score? - self.baseline_score?)
    }

    /// Sum over all stages.
    pub fn total_usage(&self) -> Usage {
        let mut total = Usage::default();
        for usage in self.usage.values() {
            total += *usage;
        }
        total
    }
}

fn condition(state: &RunState, hold: &Hold, now: u64) -> Condition {
    match (&state.status, hold) {
        (RunStatus::Ended { status: EndStatus::Completed, .. }, _) => Condition::Completed,
        (RunStatus::Ended { status: EndStatus::Cancelled, .. }, _) => Condition::Cancelled,
        (RunStatus::Ended { status: EndStatus::Failed, .. }, _) => Condition::Failed,
        (RunStatus::Ended { status: EndStatus::BudgetExhausted, .. }, _) => Condition::OutOfBudget,
        (RunStatus::Ended { status: EndStatus::Imported, .. }, _) => Condition::Imported,
        (_, Hold::Elsewhere(_)) => Condition::Elsewhere,
        (RunStatus::NotStarted, _) => Condition::New,
        (RunStatus::Running | RunStatus::Paused { .. } | RunStatus::Cancelling { .. }, Hold::Nobody) => {
            Condition::Interrupted
        }
        (RunStatus::Paused { .. }, Hold::Here(_)) => Condition::Paused,
        (RunStatus::Cancelling { .. }, Hold::Here(_)) => Condition::Stopping,
        (RunStatus::Running, Hold::Here(_)) if undecided(state).is_some() => Condition::Review,
        (RunStatus::Running, Hold::Here(_)) => {
            let silent = now.saturating_sub(state.last_progress());
            match state.stall_limit_ms() {
                Some(limit) if silent > limit => Condition::Stalled,
                Some(_) | None => Condition::Running,
            }
        }
    }
}

/// Edits that a person has yet to decide; `None`: no review is open, so nobody is waited for.
pub fn undecided(state: &RunState) -> Option<usize> {
    let waits = |review: &ReviewState| review.mode == ReviewMode::Manual && review.submitted.is_none();
    let (_, review) = state.open_review().filter(|(_, review)| waits(review))?;
    Some(review.edits.iter().filter(|edit| edit.decision == Decision::Undecided).count())
}
