//! Commands from people: checked against the journal's state, journaled, and turned into the latch that the
//! control flow looks at. First decision wins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::{Mutex, watch};

use super::commands::{in_time, judge, retune, still_going};
use super::in_flight::{InFlight, Unavailable};
use super::journal::{Journal, JournalError};
use super::settings::Settings;
use crate::domain::Author;
use crate::event::{AckResult, Command, Event, LogLevel, RunState, at_a_boundary};

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
    settings: Arc<Settings>,
    in_flight: Arc<InFlight>,
    /// One retune at a time, so that settings change in the order of the journal.
    retuning: Mutex<()>,
    /// The last boundary between steps is passed. Changes and is looked at under the journal's lock only.
    passed: AtomicBool,
}

impl Steering {
    pub fn new(journal: Arc<Journal>, settings: Arc<Settings>, in_flight: Arc<InFlight>) -> Self {
        let latch = watch::channel(Latch::Open).0;
        let (retuning, passed) = (Mutex::new(()), AtomicBool::new(false));
        Self { journal, latch, settings, in_flight, retuning, passed }
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

    /// Passes the last boundary, if the state says that nothing is due there. What waits for one is refused from then on.
    pub fn pass_last_boundary(&self, nothing_due: impl FnOnce(&RunState) -> bool) -> bool {
        self.journal.with_state(|state| {
            let passed = nothing_due(state);
            self.passed.store(passed, Ordering::SeqCst);
            passed
        })
    }

    fn in_time(&self, event: Event, state: &RunState) -> Result<Event, AckResult> {
        in_time(event, state, self.passed.load(Ordering::SeqCst))
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
        let (seq, refusal) = match command {
            Command::Retune { changes, reason } => self.retune(&changes, &reason, by).await?,
            Command::CancelRollout { path } => self.journal.outside(|state| {
                still_going(state)?;
                let path = self.in_flight.cancel(&path, &by).map_err(unavailable)?;
                Ok(Event::RolloutCancelled { path, by, rev: state.rev + 1 })
            })?,
            Command::RequeueRollout { path } => self.journal.outside(|state| {
                still_going(state)?;
                let path = self.in_flight.requeue(&path).map_err(unavailable)?;
                Ok(Event::RolloutRequeued { path, by, rev: state.rev + 1 })
            })?,
            other => self.journal.outside(|state| {
                judge(state, other, by, expect_rev).and_then(|event| self.in_time(event, state))
            })?,
        };
        if refusal.is_none()
            && let Some(latch) = latch
        {
            self.latch.send_replace(latch);
        }
        self.journal.settled_up_to(seq).await?;
        let rev = self.journal.with_state(|state| state.rev);
        Ok((refusal.unwrap_or(AckResult::Applied), rev))
    }

    /// Journals a change of settings; those that no result depends on take effect at once.
    async fn retune(
        &self,
        wanted: &BTreeMap<String, Value>,
        reason: &str,
        by: Author,
    ) -> Result<(u64, Option<AckResult>), JournalError> {
        let _turn = self.retuning.lock().await;
        let waiting = self.journal.with_state(RunState::waiting_settings);
        // Looks at the disk, so not under the journal's lock.
        let changes = self.settings.retuned(&waiting, wanted);
        let answer = self.journal.outside(|state| {
            retune(state, changes.clone(), reason, by).and_then(|event| self.in_time(event, state))
        })?;
        if let (seq, None) = answer
            && let Ok(changes) = changes
        {
            // The file of the settings must never be ahead of the journal.
            self.journal.settled_up_to(seq).await?;
            let live = changes.into_iter().filter(|change| !at_a_boundary(&change.key));
            if let Err(message) = self.settings.apply(&live.collect::<Vec<_>>()) {
                let code = "retune".into();
                self.journal.outside(|_| Ok(Event::Alert { level: LogLevel::Error, code, message }))?;
            }
        }
        Ok(answer)
    }
}

fn unavailable(why: Unavailable) -> AckResult {
    AckResult::Denied { reason: why.to_string() }
}
