//! The runs under a root folder. Looks again cheaply: a run whose files have not changed is not read a second time, and
//! of a journal that grows only what is new. Never writes.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::{Presence, presence};
use crate::event::RunState;
use crate::store::{Condition, Hold, Holder, RunDir, RunGlance, RunLock, RunSummary, StoreError, host_name};

/// What was found out about the runs of one root so far.
#[derive(Default)]
pub struct Catalog {
    known: HashMap<PathBuf, Known>,
}

/// One look at a root.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The last changed first. Unchanged rows are the same allocations as the last time.
    pub runs: Vec<Arc<RunSummary>>,
    /// Some are still unread: the time was up.
    pub more: bool,
}

struct Known {
    stamp: Stamp,
    summary: Arc<RunSummary>,
    /// Of a run at work, so that only its news are read.
    glance: Option<RunGlance>,
}

/// What changes when a run's journal does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    len: u64,
    /// Unix nanoseconds.
    modified: u128,
}

impl Stamp {
    fn of(run: &RunDir) -> Self {
        let of = |file: Metadata| Self {
            len: file.len(),
            modified: file
                .modified()
                .ok()
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                .map_or(0, |since| since.as_nanos()),
        };
        // A run that has not begun has only its configuration.
        fs::metadata(run.events()).or_else(|_| fs::metadata(run.config_toml())).map(of).unwrap_or_default()
    }

    fn modified_ms(self) -> u64 {
        u64::try_from(self.modified / 1_000_000).unwrap_or(u64::MAX)
    }
}

impl Catalog {
    /// All runs under `root`; a missing root has none. A run that cannot be read is listed with its problem. Once
    /// `limit` is over, runs that were never read are listed by name only, and the next look reads on.
    ///
    /// # Errors
    /// `root` cannot be read.
    pub fn look(&mut self, root: &Path, now: u64, limit: Option<Duration>) -> Result<Listing, StoreError> {
        let mut runs = folders(root)?;
        // Only reading is limited: finding the folders costs what it costs.
        let began = Instant::now();
        runs.sort_by(|(left, a), (right, b)| {
            b.modified.cmp(&a.modified).then_with(|| left.path().cmp(right.path()))
        });
        let mut more = false;
        let mut rows = Vec::with_capacity(runs.len());
        let mut known = HashMap::with_capacity(runs.len());
        for (run, stamp) in runs {
            let before = self.known.remove(run.path());
            let in_time = limit.is_none_or(|limit| began.elapsed() < limit);
            let now_known = renewed(&run, stamp, before, in_time, now);
            more |= now_known.summary.status == Condition::Unread;
            rows.push(Arc::clone(&now_known.summary));
            known.insert(run.path().to_owned(), now_known);
        }
        self.known = known;
        rows.sort_by(|left, right| {
            right.updated_at.cmp(&left.updated_at).then_with(|| left.name.cmp(&right.name))
        });
        Ok(Listing { runs: rows, more })
    }
}

/// All runs under `root`, the last changed first.
///
/// # Errors
/// As [`Catalog::look`].
pub fn list_runs(root: &Path, now: u64) -> Result<Vec<RunSummary>, StoreError> {
    let listing = Catalog::default().look(root, now, None)?;
    Ok(listing.runs.into_iter().map(Arc::unwrap_or_clone).collect())
}

fn folders(root: &Path) -> Result<Vec<(RunDir, Stamp)>, StoreError> {
    let failed = |source| StoreError::Io { action: "list", path: root.to_owned(), source };
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        if let Ok(run) = RunDir::open(&entry.map_err(failed)?.path()) {
            let stamp = Stamp::of(&run);
            runs.push((run, stamp));
        }
    }
    Ok(runs)
}

/// What is known after another look. A run that was never read stays unread once the time is up.
fn renewed(run: &RunDir, stamp: Stamp, before: Option<Known>, in_time: bool, now: u64) -> Known {
    let was_read = |known: &Known| known.summary.status != Condition::Unread;
    let before = match before {
        Some(before)
            if was_read(&before)
                && before.stamp == stamp
                && before.glance.is_none()
                && !may_be_taken_up(&before.summary) =>
        {
            return before;
        }
        Some(before) if !was_read(&before) && !in_time => return before,
        None if !in_time => {
            let summary = Arc::new(RunSummary::unread(run, stamp.modified_ms()));
            return Known { stamp, summary, glance: None };
        }
        before => before.filter(was_read),
    };
    let hold = hold(run);
    let (old, grown) = before.map_or((None, None), |before| (Some(before.summary), before.glance));
    let grown = grown.filter(|glance| stamp.len >= glance.covers());
    let mut glance = grown.unwrap_or_else(|| RunGlance::start(run));
    let summary = match glance.catch_up(run) {
        Ok(()) => RunSummary::of(run, &glance.state, &hold, now),
        Err(error) => RunSummary::damaged(run, error.to_string(), &hold, now),
    };
    let glance = may_be_taken_up(&summary).then_some(glance);
    let summary = match old {
        Some(old) if *old == summary => old,
        Some(_) | None => Arc::new(summary),
    };
    Known { stamp, summary, glance }
}

/// Something besides the journal can change how the run stands: a host that comes, goes or falls silent.
fn may_be_taken_up(summary: &RunSummary) -> bool {
    summary.status.at_work() || summary.holder.is_some() || summary.status == Condition::New
}

/// A run as a listing tells of it.
pub fn summarize(run: &RunDir, state: &RunState, now: u64) -> RunSummary {
    RunSummary::of(run, state, &hold(run), now)
}

/// Who works on a run: the lock tells of this machine, the announcement of others.
fn hold(run: &RunDir) -> Hold {
    let elsewhere = |host: &str| !host.is_empty() && host != host_name();
    match RunLock::holder(run) {
        Some(Holder { host, .. }) if elsewhere(&host) => Hold::Elsewhere(host),
        Some(holder) => Hold::Here(holder),
        None => match presence(run.path()) {
            Ok(Presence::Elsewhere(file)) => Hold::Elsewhere(file.host),
            Ok(Presence::Live(_) | Presence::Dead) | Err(_) => Hold::Nobody,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, MachineSample, Retuned};
    use crate::event::{EndStatus, Event, Record};
    use crate::host::HostFile;
    use crate::store::JournalFile;
    use serde_json::Value;

    fn append(run: &RunDir, at: u64, events: Vec<Event>) {
        let lock = RunLock::acquire(run).unwrap();
        let mut journal = JournalFile::open(run, &lock).unwrap().journal;
        let first = journal.next_seq();
        let records: Vec<_> =
            events.into_iter().zip(first..).map(|(event, seq)| Record { seq, at, event }).collect();
        journal.append(&records).unwrap();
    }

    fn resumed() -> Event {
        Event::Resumed { by: Author("a".into()) }
    }

    fn sampled() -> Event {
        Event::MachineSampled { sample: MachineSample::default(), tokens_per_s: 0.0, in_flight: 1 }
    }

    fn told(runs: &[Arc<RunSummary>]) -> Vec<String> {
        runs.iter().map(|run| format!("{} {}", run.name, run.status.word())).collect()
    }

    #[test]
    fn runs_are_listed_with_their_condition() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(list_runs(&root.path().join("none"), 0).unwrap(), []);
        fs::create_dir(root.path().join("no-run")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let finished = Event::RunFinished {
            status: EndStatus::Completed,
            reason: String::new(),
            best_hash: String::new(),
            best_step: 0,
            best_score: Some(0.5),
            baseline_score: Some(0.5),
        };
        for (name, at, events) in [
            ("fresh", 0, vec![]),
            ("done", 7, vec![finished]),
            ("stopped", 9, vec![resumed()]),
            ("far", 8, vec![resumed()]),
        ] {
            let run = RunDir::create(root.path(), name).unwrap();
            fs::write(run.config_toml(), "").unwrap();
            append(&run, at, events);
        }
        let mut far = HostFile::of_this_process(Path::new("/x.sock")).unwrap();
        far.host = "gpu7".into();
        far.write(&root.path().join("far")).unwrap();
        let bad = RunDir::create(root.path(), "bad").unwrap();
        fs::write(bad.events(), "x\ny\n").unwrap();
        let mut catalog = Catalog::default();
        let runs = catalog.look(root.path(), 10, None).unwrap().runs;
        assert_eq!(
            told(&runs),
            ["stopped interrupted", "far elsewhere", "done completed", "bad damaged", "fresh new"]
        );
        assert_eq!(runs[1].host, "gpu7");
        assert!(runs[3].problem.as_ref().unwrap().contains("line 1"), "{runs:?}");

        let stopped = RunDir::open(&root.path().join("stopped")).unwrap();
        let _lock = RunLock::acquire(&stopped).unwrap();
        // A run that nobody worked on is only looked at again when its journal changes.
        let again = list_runs(root.path(), 10).unwrap();
        assert_eq!(
            (again[0].status, again[0].holder.as_ref().unwrap().pid),
            (Condition::Running, std::process::id())
        );
    }

    #[test]
    fn what_has_not_changed_is_the_same_row_and_news_are_read_on() {
        let root = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            append(&RunDir::create(root.path(), name).unwrap(), 5, vec![resumed()]);
        }
        let mut catalog = Catalog::default();
        let first = catalog.look(root.path(), 6, None).unwrap().runs;
        let second = catalog.look(root.path(), 7, None).unwrap().runs;
        assert!(first.iter().zip(&second).all(|(a, b)| Arc::ptr_eq(a, b)));
        append(&RunDir::open(&root.path().join("one")).unwrap(), 9, vec![resumed()]);
        let third = catalog.look(root.path(), 10, None).unwrap().runs;
        assert_eq!((third[0].name.as_str(), third[0].updated_at), ("one", 9));
        assert!(Arc::ptr_eq(&third[1], &second.iter().find(|run| run.name == "two").unwrap().clone()));
    }

    #[test]
    fn silence_at_work_is_told_and_a_cut_journal_is_read_anew() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        append(&run, 5, vec![resumed(), resumed()]);
        let mut catalog = Catalog::default();
        let lock = RunLock::acquire(&run).unwrap();
        assert_eq!(told(&catalog.look(root.path(), 6, None).unwrap().runs), ["one running"]);
        drop(lock);
        let later = 6 + RunState::default().stall_limit_ms().unwrap();
        // A host tells of its machine all the time: that is no progress.
        append(&run, later - 1, vec![sampled()]);
        let lock = RunLock::acquire(&run).unwrap();
        assert_eq!(told(&catalog.look(root.path(), later, None).unwrap().runs), ["one stalled"]);
        drop(lock);
        let [patient, never] = [later / 1000, 0].map(|seconds| {
            let new = seconds.into();
            let change = Retuned { key: "engine.stall_alert_s".into(), old: Value::Null, new };
            Event::ConfigChanged { keys: vec![], changes: vec![change] }
        });
        for (setting, at, word) in [
            (patient.clone(), later + 1, "running"),
            (patient, 2 * later + 1, "stalled"),
            (never, u64::MAX, "running"),
        ] {
            append(&run, later, vec![setting]);
            let _lock = RunLock::acquire(&run).unwrap();
            assert_eq!(told(&catalog.look(root.path(), at, None).unwrap().runs), [format!("one {word}")]);
        }
        let _lock = RunLock::acquire(&run).unwrap();
        let text = fs::read_to_string(run.events()).unwrap();
        let cut = text.split_inclusive('\n').next().unwrap().replace("resumed", "paused");
        fs::write(run.events(), cut).unwrap();
        assert_eq!(told(&catalog.look(root.path(), 7, None).unwrap().runs), ["one paused"]);
    }

    #[test]
    fn when_the_time_is_up_names_are_listed_and_the_next_look_goes_on() {
        let root = tempfile::tempdir().unwrap();
        for name in ["one", "two"] {
            append(&RunDir::create(root.path(), name).unwrap(), 5, vec![resumed()]);
        }
        let mut catalog = Catalog::default();
        let hurried = catalog.look(root.path(), 6, Some(Duration::ZERO)).unwrap();
        assert!(hurried.more && hurried.runs.iter().all(|run| run.status == Condition::Unread));
        let whole = catalog.look(root.path(), 6, None).unwrap();
        assert!(!whole.more && whole.runs.iter().all(|run| run.status == Condition::Interrupted));
    }
}
