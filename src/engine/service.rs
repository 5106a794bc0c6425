//! What a host needs of a running engine; the engine implements it, tests may too.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{broadcast, watch};

use crate::domain::Author;
use crate::event::{AckResult, Command, Live, Record, RunState};

pub trait RunService: Send + Sync {
    fn run_name(&self) -> String;

    /// The run at a glance ([`RunState::glance`]).
    fn glance(&self) -> RunState;

    /// All journaled records with `seq > after`, and the stream of later ones, without gap or overlap.
    fn records(&self, after: u64) -> (Vec<Arc<Record>>, broadcast::Receiver<Arc<Record>>);

    fn live(&self) -> broadcast::Receiver<Arc<Live>>;

    /// Journals the command's event and answers with the state's revision.
    fn steer(&self, command: Command, by: Author, expect_rev: Option<u64>)
    -> BoxFuture<'_, (AckResult, u64)>;

    /// True once `run_finished` is journaled.
    fn ended(&self) -> watch::Receiver<bool>;
}
