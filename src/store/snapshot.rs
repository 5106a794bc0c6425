//! `snapshot.json`: a glance at the fold of a prefix of the journal, so that a long run opens fast. A cache: it is
//! verified against the journal and ignored when anything does not fit; deleting it costs time only.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file::atomic_write;
use super::journal::read_tail;
use super::{RunDir, StoreError, read_records};
use crate::event::RunState;

/// Raised when the fold or its state changes its meaning without a new package version.
const FOLD_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/4");

/// How much of each end of the prefix is compared. The first line names the run and its seed, the last lines hold
/// `seq` and times, so another journal of the same length does not pass.
const COMPARED: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct Snapshot<S> {
    fold: String,
    /// Bytes of the journal's prefix that `state` is the fold of.
    covers: u64,
    /// Hash of the prefix's length and both its ends.
    prefix: String,
    state: S,
}

/// Writes a glance at `state`, the fold of the first `covers` bytes of the journal.
///
/// # Errors
/// The disk's.
pub fn write_snapshot(run: &RunDir, state: &RunState, covers: u64) -> Result<(), StoreError> {
    let path = run.snapshot();
    let prefix = prefix_hash(&run.events(), covers).map_err(StoreError::io("read", &run.events()))?;
    let snapshot = Snapshot { fold: FOLD_VERSION.to_owned(), covers, prefix, state: state.glance() };
    let bytes =
        serde_json::to_vec(&snapshot).map_err(|source| StoreError::Encode { path: path.clone(), source })?;
    atomic_write(&path, &bytes)
}

/// The snapshot's state and the number of journal bytes it covers; `None` when there is no snapshot that fits the
/// journal.
fn load_snapshot(run: &RunDir) -> Option<(RunState, u64)> {
    let bytes = fs::read(run.snapshot()).ok()?;
    let snapshot: Snapshot<RunState> = serde_json::from_slice(&bytes).ok()?;
    let fits =
        snapshot.fold == FOLD_VERSION && prefix_hash(&run.events(), snapshot.covers).ok()? == snapshot.prefix;
    fits.then_some((snapshot.state, snapshot.covers))
}

/// The state of a run as its whole journal tells it.
///
/// # Errors
/// A damaged journal, or the disk's.
pub fn fold_run(run: &RunDir) -> Result<RunState, StoreError> {
    Ok(RunState::fold(&read_records(run)?))
}

/// A run at a glance ([`RunState::glance`]): by its snapshot, or by its whole journal.
///
/// # Errors
/// A damaged journal, or the disk's.
pub fn glance_run(run: &RunDir) -> Result<RunState, StoreError> {
    let mut glance = RunGlance::start(run);
    glance.catch_up(run)?;
    Ok(glance.state)
}

/// The snapshot and the journal's tail; `None` when there is no snapshot that fits the journal.
///
/// # Errors
/// A damaged journal, or the disk's.
pub fn glance_snapshot(run: &RunDir) -> Result<Option<RunState>, StoreError> {
    let Some((state, covers)) = load_snapshot(run) else { return Ok(None) };
    let mut glance = RunGlance { state, covers };
    glance.catch_up(run)?;
    Ok(Some(glance.state))
}

/// A glance at a run that goes on: each look reads only what is new.
#[derive(Clone, Debug, Default)]
pub struct RunGlance {
    pub state: RunState,
    /// Bytes of the journal that `state` was made of.
    covers: u64,
}

impl RunGlance {
    /// Begins at the snapshot if there is one that fits.
    pub fn start(run: &RunDir) -> Self {
        load_snapshot(run).map_or_else(Self::default, |(state, covers)| Self { state, covers })
    }

    /// Bytes of the journal that were read.
    pub fn covers(&self) -> u64 {
        self.covers
    }

    /// Folds what the journal has got since.
    ///
    /// # Errors
    /// A damaged journal, or the disk's.
    pub fn catch_up(&mut self, run: &RunDir) -> Result<(), StoreError> {
        let tail = read_tail(run, self.covers, self.state.seq)?;
        for record in &tail.records {
            self.state.apply(record);
        }
        self.covers += tail.valid_len as u64;
        if !tail.records.is_empty() {
            self.state.shed();
        }
        Ok(())
    }
}

fn prefix_hash(journal: &Path, covers: u64) -> std::io::Result<String> {
    let mut file = File::open(journal)?;
    let ends = covers.min(COMPARED);
    let mut bytes = vec![0; usize::try_from(ends * 2).unwrap_or_default()];
    let (first, last) = bytes.split_at_mut(usize::try_from(ends).unwrap_or_default());
    file.read_exact(first)?;
    file.seek(SeekFrom::Start(covers - ends))?;
    file.read_exact(last)?;
    let mut hasher = Sha256::new();
    hasher.update(covers.to_le_bytes());
    hasher.update(&bytes);
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, LogLevel, Record};
    use crate::store::{JournalFile, RunLock};

    fn log(seq: u64, text: &str) -> Record {
        Record { seq, at: seq, event: Event::Log { level: LogLevel::Info, message: text.into() } }
    }

    /// A run with a snapshot after two of three records.
    fn run() -> (tempfile::TempDir, RunDir) {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        let lock = RunLock::acquire(&run).unwrap();
        let mut journal = JournalFile::open(&run, &lock).unwrap().journal;
        journal.append(&[log(1, "one"), log(2, "two")]).unwrap();
        write_snapshot(&run, &RunState::fold(&read_records(&run).unwrap()), journal.len()).unwrap();
        journal.append(&[log(3, "three")]).unwrap();
        (root, run)
    }

    #[test]
    fn snapshot_and_tail_are_the_whole_fold() {
        let (_root, run) = run();
        let (state, covers) = load_snapshot(&run).unwrap();
        assert_eq!(state.seq, 2);
        assert!(covers > 0);
        let whole = RunState::fold(&read_records(&run).unwrap());
        assert_eq!(whole.seq, 3);
        assert_eq!(glance_run(&run).unwrap(), whole.glance());
        assert_eq!(fold_run(&run).unwrap(), whole);
        // A torn tail is passed over, as in the whole fold.
        let mut bytes = fs::read(run.events()).unwrap();
        bytes.extend_from_slice(b"{\"seq\":4");
        fs::write(run.events(), bytes).unwrap();
        assert_eq!(glance_run(&run).unwrap(), whole.glance());
    }

    #[test]
    fn the_snapshot_is_used_at_all() {
        let (_root, run) = run();
        let text = fs::read_to_string(run.snapshot()).unwrap();
        fs::write(run.snapshot(), text.replace("\"two\"", "\"from the snapshot\"")).unwrap();
        assert_eq!(glance_run(&run).unwrap().logs[1].message, "from the snapshot");
    }

    #[test]
    fn a_snapshot_that_does_not_fit_is_ignored() {
        let (_root, run) = run();
        let snapshot = fs::read_to_string(run.snapshot()).unwrap();
        let journal = fs::read_to_string(run.events()).unwrap();
        let stale = |snapshot: &str, journal: &str, why: &str| {
            fs::write(run.snapshot(), snapshot).unwrap();
            fs::write(run.events(), journal).unwrap();
            assert_eq!(load_snapshot(&run), None, "{why}");
            assert_eq!(glance_run(&run).unwrap(), fold_run(&run).unwrap().glance(), "{why}");
        };
        stale(&snapshot, &journal.replace("two", "TWO"), "another journal");
        stale(&snapshot, &journal[..journal.find('\n').unwrap() + 1], "a shorter journal");
        stale(&snapshot, "", "an empty journal");
        stale(&snapshot.replace(FOLD_VERSION, "0.0.0/9"), &journal, "another fold");
        stale(&snapshot[..snapshot.len() / 2], &journal, "a torn snapshot");
        fs::remove_file(run.snapshot()).unwrap();
        assert_eq!(load_snapshot(&run), None);
        assert_eq!(fold_run(&run).unwrap().seq, 3);
    }
}
