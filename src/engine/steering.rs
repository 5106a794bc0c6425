//! Commands from people: checked against the journal's state, journaled, and turned into the latch that the
//! control flow looks at. First decision wins.

use std::sync::Arc;

use tokio::sync::watch;

use super::commands::judge;
use super::journal::{Journal, JournalError};
use crate::domain::Author;
use crate::event::{AckResult, Command};

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
