//! The journal of a live run: appends events, tells everyone, and replays what an earlier process recorded.
//! It owns the sequence numbers and the fold; it never decides anything.
//!
//! Events are numbered under one lock and written by one thread, which syncs once per batch (group commit) and
//! publishes a record only after it is on disk.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::{broadcast, watch};

use crate::domain::EffectKey;
use crate::event::{AckResult, Event, LogLevel, Record, RunState};
use crate::store::{JournalFile, RunDir, StoreError, write_snapshot};
use crate::text::sanitize;

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
    /// What was said of series with a value that is no number.
    not_finite: HashSet<String>,
}

/// Code of the alert about such a series.
const NOT_FINITE: &str = "not_finite";
/// Series of which that is said, and characters of their names.
const MOST_SERIES: usize = 256;
const LONGEST_NAME: usize = 160;

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
        let said = recorded.iter().filter_map(|record| match &record.event {
            Event::Alert { code, message, .. } if code == NOT_FINITE => Some(message.clone()),
            _ => None,
        });
        let not_finite = said.collect();
        let (queue, incoming) = mpsc::channel();
        let (publish, _) = broadcast::channel(CHANNEL);
        let written = Written { seq: state.seq, bytes: file.len() };
        let (progress, durable) = watch::channel(Ok(written));
        let published = recorded.into_iter().map(Arc::new).collect();
        let inner = Mutex::new(Inner { state, replay, effects, published, queue, not_finite });
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
            Ok(Event::Metric { step, values }) => {
                self.append_metric(&mut inner, step, values).map(|seq| (seq, None))
            }
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

    /// The journal holds finite numbers only. Of the others it tells once for each series.
    fn append_metric(
        &self,
        inner: &mut Inner,
        step: Option<u64>,
        mut values: BTreeMap<String, f64>,
    ) -> Result<u64, JournalError> {
        let lost: Vec<(String, f64)> = values.extract_if(.., |_, value| !value.is_finite()).collect();
        for (name, _) in lost {
            // Any program may have named it.
            let name: String = sanitize(&name).chars().take(LONGEST_NAME).collect();
            let message = format!("{name} has values that are no finite numbers; they are left out");
            if inner.not_finite.len() < MOST_SERIES && inner.not_finite.insert(message.clone()) {
                let code = NOT_FINITE.to_owned();
                self.append(inner, Event::Alert { level: LogLevel::Warn, code, message })?;
            }
        }
        if values.is_empty() {
            return Ok(inner.state.seq);
        }
        self.append(inner, Event::Metric { step, values })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RunLock, read_records};
    use crate::telemetry::{Board, Smoothing};

    #[tokio::test]
    async fn a_value_that_is_no_number_is_told_once_for_each_series() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        let lock = RunLock::acquire(&run).unwrap();
        for host in 0..2 {
            let opened = JournalFile::open(&run, &lock).unwrap();
            let journal = Journal::start(opened.journal, opened.records);
            for (step, loss) in [(1, 0.5), (2, f64::NAN), (3, f64::INFINITY), (4, 0.25)] {
                let step = host * 10 + step;
                let values = [("loss".to_owned(), loss), ("grad".to_owned(), f64::NAN)].into();
                journal.outside(|_| Ok(Event::Metric { step: Some(step), values })).unwrap();
            }
            journal.settled().await.unwrap();
        }
        let mut board = Board::default();
        read_records(&run).unwrap().iter().for_each(|record| board.hear(record));
        let alerts: Vec<_> = board.alerts().map(|alert| (alert.code.as_str(), &alert.message[..4])).collect();
        assert_eq!(alerts, [("not_finite", "grad"), ("not_finite", "loss")]);
        let loss = board.series("loss").unwrap();
        assert_eq!((loss.len(), loss.last(Smoothing::Off)), (4, Some(0.25)));
        assert!(board.series("grad").is_none());
    }
}
