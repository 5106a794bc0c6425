//! A run without a host: its journal read from disk, and the same as a [`RunService`] that takes no commands.
//! Never writes.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{broadcast, watch};

use super::ClientError;
use crate::domain::Author;
use crate::engine::RunService;
use crate::event::{AckResult, Command, Event, Live, Record, RunState};
use crate::store::{RunDir, read_records};

/// Whether a journal's last word is that the run has ended (a later host start reopens it).
pub(super) fn has_ended<'a>(records: impl DoubleEndedIterator<Item = &'a Record>) -> bool {
    records.rev().find_map(|record| ended_by(&record.event)).unwrap_or(false)
}

/// What an event says about the run being over, if anything.
pub(super) fn ended_by(event: &Event) -> Option<bool> {
    match event {
        Event::RunFinished { .. } => Some(true),
        Event::HostStarted { .. } | Event::RunStarted { .. } => Some(false),
        _ => None,
    }
}

/// Folder name of a run, whatever state the folder is in.
pub(super) fn folder_name(run_dir: &Path) -> String {
    let folder = run_dir.canonicalize().unwrap_or_else(|_| run_dir.to_owned());
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(super) fn no_host(run: &str) -> String {
    format!("no host serves this run; `planish resume {run}` continues it")
}

/// For a run whose folder is no longer where it was.
pub fn gone(run_dir: &Path) -> String {
    format!("the run folder {} is gone; if it was moved, attach to it where it is now", run_dir.display())
}

/// A journal at rest, served like a run.
pub struct JournalRun {
    name: String,
    records: Vec<Arc<Record>>,
    later: broadcast::Sender<Arc<Record>>,
    live: broadcast::Sender<Arc<Live>>,
    ended: watch::Sender<bool>,
}

impl JournalRun {
    pub fn open(run_dir: &Path) -> Result<Self, ClientError> {
        let run = RunDir::open(run_dir)?;
        let records: Vec<_> = read_records(&run)?.into_iter().map(Arc::new).collect();
        let ended = has_ended(records.iter().map(Arc::as_ref));
        Ok(Self {
            name: run.name(),
            records,
            later: broadcast::Sender::new(1),
            live: broadcast::Sender::new(1),
            ended: watch::Sender::new(ended),
        })
    }
}

impl RunService for JournalRun {
    fn glance(&self) -> RunState {
        RunState::fold(self.records.iter().map(Arc::as_ref)).glance()
    }

    fn run_name(&self) -> String {
        self.name.clone()
    }

    fn records(&self, after: u64) -> (Vec<Arc<Record>>, broadcast::Receiver<Arc<Record>>) {
        let start = self.records.partition_point(|record| record.seq <= after);
        (self.records[start..].to_vec(), self.later.subscribe())
    }

    fn live(&self) -> broadcast::Receiver<Arc<Live>> {
        self.live.subscribe()
    }

    fn steer(&self, _: Command, _: Author, _: Option<u64>) -> BoxFuture<'_, (AckResult, u64)> {
        let reason = if *self.ended.borrow() { "the run has ended".into() } else { no_host(&self.name) };
        std::future::ready((AckResult::Denied { reason }, 0)).boxed()
    }

    fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }
}
