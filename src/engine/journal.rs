//! The journal of a live run: appends events, tells everyone, and replays what an earlier process recorded.
//! It owns the sequence numbers and the fold; it never decides anything.
//!
//! Events are numbered under one lock and written by one thread, which syncs once per batch (group commit) and
//! publishes a record only after it is on disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::{broadcast, watch};

use crate::domain::EffectKey;
use crate::event::{AckResult, Event, Record, RunState};
use crate::store::{JournalFile, RunDir, StoreError, write_snapshot};

/// Records a lagging subscriber may fall behind before it has to ask again.
const CHANNEL: usize = 4096;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JournalError {
    #[error("cannot write the journal: {0}")]
    Write(String),
    #[error(
        "journal line {seq} does not fit this run: recorded {recorded}, now {now}; the configuration, the data or \
         planish changed since (start a new run, or restore what changed)"
    )]
    Diverged { seq: u64, recorded: String, now: String },
    #[error(
        "the recorded result of {path} was made under other conditions (skill, item, model, sampling or templates \
         changed); start a new run, or restore what changed"
    )]
    StaleEffect { path: String },
}

pub struct Journal {
    inner: Mutex<Inner>,
    publish: broadcast::Sender<Arc<Record>>,
    durable: watch::Receiver<Progress>,
    /// Told on every outside event, so that waiting stages look at the state again.
    changed: watch::Sender<u64>,
}

/// How far the writer got, or why it stopped.
type Progress = Result<Written, JournalError>;

/// What is on disk.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// The last event.
    seq: u64,
    /// Length of the journal file.
    bytes: u64,
}

struct Inner {
    state: RunState,
    /// Engine events of earlier processes that the control flow has yet to pass.
    replay: VecDeque<Record>,
    /// Finished effects among them, by path.
    effects: HashMap<String, (EffectKey, Event)>,
    /// Records already on disk and published, for late subscribers.
    published: Vec<Arc<Record>>,
    queue: mpsc::Sender<Record>,
}

impl Journal {
    /// Takes over an opened journal file and the records it held.
    pub fn start(file: JournalFile, recorded: Vec<Record>) -> Arc<Self> {
        let state = RunState::fold(&recorded);
        let mut effects = HashMap::new();
        let mut replay = VecDeque::new();
        for record in recorded.iter().filter(|record| !record.event.is_outside()) {
            if let Some(key) = record.event.effect() {
                effects.insert(key.path.clone(), (key.clone(), record.event.clone()));
            }
            replay.push_back(record.clone());
        }
        let (queue, incoming) = mpsc::channel();
        let (publish, _) = broadcast::channel(CHANNEL);
        let written = Written { seq: state.seq, bytes: file.len() };
        let (progress, durable) = watch::channel(Ok(written));
        let published = recorded.into_iter().map(Arc::new).collect();
        let inner = Mutex::new(Inner { state, replay, effects, published, queue });
        let journal = Arc::new(Self { inner, publish, durable, changed: watch::channel(0).0 });
        let writer = Arc::downgrade(&journal);
        std::thread::spawn(move || {
            write_loop(file, &incoming, &progress, |batch| {
                if let Some(journal) = writer.upgrade() {
                    journal.publish(batch);
                }
            });
        });
        journal
    }

    /// Records an engine event, or checks it against the recording while a resume passes over it.
    pub fn emit(&self, event: Event) -> Result<(), JournalError> {
        let mut inner = self.lock();
        if let Some(recorded) = inner.replay.pop_front() {
            if recorded.event == event {
                return Ok(());
            }
            let (seq, recorded) = (recorded.seq, recorded.event.kind());
            return Err(JournalError::Diverged { seq, recorded, now: event.kind() });
        }
        self.append(&mut inner, event)?;
        Ok(())
    }

    /// The next engine event of the recording, if `wanted` knows it. For stages whose result is recalled, not
    /// recomputed; it is consumed.
    pub fn recall<T>(&self, wanted: impl FnOnce(&Event) -> Option<T>) -> Option<T> {
        let mut inner = self.lock();
        let found = wanted(&inner.replay.front()?.event)?;
        inner.replay.pop_front();
        Some(found)
    }

    /// What comes next of the recording, if `wanted` knows it; nothing is consumed. For what the control flow did not
    /// decide by itself, and does again when it is emitted.
    pub fn peek<T>(&self, wanted: impl FnOnce(&Event) -> Option<T>) -> Option<T> {
        wanted(&self.lock().replay.front()?.event)
    }

    /// Engine events of earlier processes have yet to be passed.
    pub fn replaying(&self) -> bool {
        !self.lock().replay.is_empty()
    }

    /// The recorded result of an effect. A recording under another fingerprint is an error, never reused.
    pub fn effect(&self, key: &EffectKey) -> Result<Option<Event>, JournalError> {
        match self.lock().effects.remove(&key.path) {
            Some((recorded, event)) if recorded == *key => Ok(Some(event)),
            Some(_) => Err(JournalError::StaleEffect { path: key.path.clone() }),
            None => Ok(None),
        }
    }

    /// Journals what people or the machine did. `build` sees the present state and may refuse.
    pub fn outside(
        &self,
        build: impl FnOnce(&RunState) -> Result<Event, AckResult>,
    ) -> Result<(u64, Option<AckResult>), JournalError> {
        let mut inner = self.lock();
        match build(&inner.state) {
            Ok(event) => self.append(&mut inner, event).map(|seq| (seq, None)),
            Err(refusal) => Ok((inner.state.seq, Some(refusal))),
        }
    }

    /// Waits until everything emitted so far is on disk.
    pub async fn settled(&self) -> Result<(), JournalError> {
        let seq = self.lock().state.seq;
        self.settled_up_to(seq).await
    }

    pub async fn settled_up_to(&self, seq: u64) -> Result<(), JournalError> {
        let mut durable = self.durable.clone();
        let progress =
            durable.wait_for(|progress| progress.as_ref().map_or(true, |done| done.seq >= seq)).await;
        match progress {
            Ok(progress) => progress.clone().map(|_| ()),
            Err(_) => Err(JournalError::Write("the writer thread ended".into())),
        }
    }

    /// Writes the snapshot that opens the run without folding its whole journal. Skipped when events are on their way
    /// to the disk: it is a cache, and the next step writes it again.
    ///
    /// # Errors
    /// The disk's.
    pub fn write_snapshot(&self, run: &RunDir) -> Result<(), StoreError> {
        let inner = self.lock();
        match *self.durable.borrow() {
            Ok(Written { seq, bytes }) if seq == inner.state.seq => write_snapshot(run, &inner.state, bytes),
            _ => Ok(()),
        }
    }

    /// Reads the folded state.
    pub fn with_state<T>(&self, read: impl FnOnce(&RunState) -> T) -> T {
        read(&self.lock().state)
    }

    /// Changes whenever an outside event was journaled.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Published records after `after`, and all later ones, without gap or overlap.
    pub fn records(&self, after: u64) -> (Vec<Arc<Record>>, broadcast::Receiver<Arc<Record>>) {
        let inner = self.lock();
        let from = usize::try_from(after).unwrap_or(usize::MAX).min(inner.published.len());
        (inner.published[from..].to_vec(), self.publish.subscribe())
    }

    fn append(&self, inner: &mut Inner, event: Event) -> Result<u64, JournalError> {
        if let Err(error) = &*self.durable.borrow() {
            return Err(error.clone());
        }
        let outside = event.is_outside();
        let record = Record { seq: inner.state.seq + 1, at: now_ms(), event };
        inner.state.apply(&record);
        let seq = record.seq;
        inner.queue.send(record).map_err(|_| JournalError::Write("the writer thread ended".into()))?;
        if outside {
            self.changed.send_replace(seq);
        }
        Ok(seq)
    }

    fn publish(&self, batch: Vec<Record>) {
        let mut inner = self.lock();
        for record in batch.into_iter().map(Arc::new) {
            inner.published.push(record.clone());
            // Nobody listening is fine.
            let _ = self.publish.send(record);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes batches until the journal is dropped or a write fails.
fn write_loop(
    mut file: JournalFile,
    incoming: &mpsc::Receiver<Record>,
    progress: &watch::Sender<Progress>,
    publish: impl Fn(Vec<Record>),
) {
    while let Ok(first) = incoming.recv() {
        let mut batch = vec![first];
        batch.extend(incoming.try_iter());
        let sync = batch.iter().any(|record| record.event.is_milestone());
        let written = file.append(&batch).and_then(|()| if sync { file.sync() } else { Ok(()) });
        if let Err(error) = written {
            let _ = progress.send_replace(Err(JournalError::Write(error.to_string())));
            return;
        }
        let last = batch.last().map_or(0, |record| record.seq);
        publish(batch);
        let _ = progress.send_replace(Ok(Written { seq: last, bytes: file.len() }));
    }
}

/// Unix time in milliseconds.
pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}
