//! The run loop: deterministic control flow around memoised effects.
//!
//! Tasks may run early and in any order; their results are collected, journaled and used in one canonical order,
//! so the same seed, configuration and replies give the same events whatever the concurrency. A resumed engine
//! runs the same control flow and takes finished effects from the journal.

mod batch;
mod calls;
mod commands;
mod continuation;
mod epoch;
mod evaluation;
mod finish;
mod in_flight;
mod imported;
mod journal;
mod meta_reflect;
mod outage;
mod overruling;
mod plan;
mod reflection;
mod review;
mod run;
mod score_only;
mod service;
mod settings;
mod slots;
mod steering;
mod step;
mod takeover;
mod throughput;
mod update;
mod verdict;
mod watch;

pub use continuation::{Continuation, ContinuationError, Shape, Successor, continuation};
pub use imported::imported_journal;
pub use journal::{Journal, JournalError, now_ms};
pub use plan::{minimum_calls, run_plan};
pub use run::{Engine, EngineParts, live_channel, start};
pub use score_only::{ScoredItem, Scoring, score_skills};
pub use service::RunService;
pub use steering::Steering;

use crate::event::EndStatus;
use crate::model::ModelError;

/// Why the control flow stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Model(ModelError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{0}")]
    Failed(String),
}

impl From<ModelError> for Stop {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Cancelled => Stop::Cancelled,
            other => Stop::Model(other),
        }
    }
}

impl Stop {
    /// How `run_finished` names this end.
    pub fn status(&self) -> EndStatus {
        match self {
            Stop::Cancelled => EndStatus::Cancelled,
            Stop::Model(ModelError::Budget { .. }) => EndStatus::BudgetExhausted,
            Stop::Model(_) | Stop::Journal(_) | Stop::Failed(_) => EndStatus::Failed,
        }
    }
}
