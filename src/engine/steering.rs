//! Commands from people: checked against the journal's state, journaled, and turned into the latch that the
//! control flow looks at. First decision wins.

use std::sync::Arc;

use tokio::sync::watch;

use super::journal::{Journal, JournalError};
use crate::domain::{Author, Decision, StepRef};
use crate::event::{AckResult, Command, Event, RunState, RunStatus};

/// What dispatching waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Latch {
    #[default]
    Open,
    Paused,
    Cancelled,
}

/// The run was cancelled while something waited to be dispatched.
#[derive(Debug, PartialEq, Eq)]
pub struct Cancelled;

pub struct Steering {
    journal: Arc<Journal>,
    latch: watch::Sender<Latch>,
}

impl Steering {
    pub fn new(journal: Arc<Journal>) -> Self {
        Self { journal, latch: watch::channel(Latch::Open).0 }
    }

    /// Returns when the run may dispatch; waits while it is paused.
    pub async fn may_dispatch(&self) -> Result<(), Cancelled> {
        let mut latch = self.latch.subscribe();
        match latch.wait_for(|latch| *latch != Latch::Paused).await {
            Ok(latch) if *latch == Latch::Open => Ok(()),
            _ => Err(Cancelled),
        }
    }

    pub fn cancelled(&self) -> bool {
        *self.latch.borrow() == Latch::Cancelled
    }

    /// Resolves once the run is cancelled.
    pub async fn cancellation(&self) {
        let mut latch = self.latch.subscribe();
        // The sender lives as long as `self`, so this only returns on cancellation.
        let _ = latch.wait_for(|latch| *latch == Latch::Cancelled).await;
    }

    /// Journals a command and answers once it is on disk, with the revision it produced.
    pub async fn steer(
        &self,
        command: Command,
        by: Author,
        expect_rev: Option<u64>,
    ) -> Result<(AckResult, u64), JournalError> {
        let latch = match &command {
            Command::Pause => Some(Latch::Paused),
            Command::Resume => Some(Latch::Open),
            Command::Cancel => Some(Latch::Cancelled),
            Command::Decide { .. }
            | Command::Submit { .. }
            | Command::Comment { .. }
            | Command::Override { .. }
            | Command::CancelRollout { .. }
            | Command::RequeueRollout { .. }
            | Command::Retune { .. } => None,
        };
        let (seq, refusal) = self.journal.outside(|state| judge(state, command, by, expect_rev))?;
        if refusal.is_none()
            && let Some(latch) = latch
        {
            self.latch.send_replace(latch);
        }
        self.journal.settled_up_to(seq).await?;
        let rev = self.journal.with_state(|state| state.rev);
        Ok((refusal.unwrap_or(AckResult::Applied), rev))
    }
}

/// The event a command becomes, or why not.
fn judge(
    state: &RunState,
    command: Command,
    by: Author,
    expect_rev: Option<u64>,
) -> Result<Event, AckResult> {
    if let RunStatus::Ended { .. } = state.status {
        return Err(AckResult::Denied { reason: "the run has ended".into() });
    }
    match command {
        Command::Pause => match &state.status {
            RunStatus::Paused { .. } => Err(AckResult::Noop),
            RunStatus::Cancelling { by } => Err(cancelling(by)),
            _ => Ok(Event::Paused { by }),
        },
        Command::Resume => match &state.status {
            RunStatus::Paused { .. } => Ok(Event::Resumed { by }),
            RunStatus::Cancelling { by } => Err(cancelling(by)),
            _ => Err(AckResult::Noop),
        },
        Command::Cancel => match &state.status {
            RunStatus::Cancelling { .. } => Err(AckResult::Noop),
            _ => Ok(Event::CancelRequested { by }),
        },
        Command::Decide { at, edit, decision } => decide(state, at, edit, decision, by, expect_rev),
        Command::Submit { at } => submit(state, at, by),
        Command::Comment { .. }
        | Command::Override { .. }
        | Command::CancelRollout { .. }
        | Command::RequeueRollout { .. }
        | Command::Retune { .. } => Err(AckResult::Denied { reason: "not possible yet".into() }),
    }
}

fn cancelling(by: &Author) -> AckResult {
    AckResult::Denied { reason: format!("{} is stopping the run", by.0) }
}

fn decide(
    state: &RunState,
    at: StepRef,
    edit: usize,
    decision: Decision,
    by: Author,
    expect_rev: Option<u64>,
) -> Result<Event, AckResult> {
    let review = waiting_review(state, at)?;
    let Some(slot) = review.edits.get(edit) else {
        let reason = format!("step {} has edits 1 to {}, not {}", at.step, review.edits.len(), edit + 1);
        return Err(AckResult::Denied { reason });
    };
    if slot.decision == decision {
        return Err(AckResult::Noop);
    }
    if let (Some(first), Some(expected)) = (&slot.by, expect_rev)
        && slot.rev > expected
        && *first != by
    {
        let detail = format!("edit {} was decided by {} first", edit + 1, first.0);
        return Err(AckResult::Conflict { by: first.clone(), detail });
    }
    Ok(Event::EditDecided { at, edit, decision, by, rev: state.rev + 1 })
}

fn submit(state: &RunState, at: StepRef, by: Author) -> Result<Event, AckResult> {
    waiting_review(state, at)?;
    Ok(Event::ReviewSubmitted { at, by, rev: state.rev + 1 })
}

/// The open review of step `at`, if it still takes decisions.
fn waiting_review(state: &RunState, at: StepRef) -> Result<&crate::event::ReviewState, AckResult> {
    let Some((open, review)) = state.open_review() else {
        return Err(AckResult::Denied { reason: "no review is open".into() });
    };
    if open != at {
        let reason = format!("the open review is that of step {}, not {}", open.step, at.step);
        return Err(AckResult::Denied { reason });
    }
    match &review.submitted {
        None => Ok(review),
        Some(first) => {
            let detail = format!("the review was submitted by {} first", first.0);
            Err(AckResult::Conflict { by: first.clone(), detail })
        }
    }
}
