//! `run.lock`: one process works on a run at a time. The lock is the kernel's (it ends with the process, however
//! it ends); the file's text only says who holds it.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{RunDir, StoreError};

/// A look at a lock takes it for an instant; that must not fail somebody who takes it for good.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

/// Who holds a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub host: String,
    pub pid: u32,
    /// Unix milliseconds.
    pub started_at: u64,
}

impl Holder {
    pub fn this_process() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at = u64::try_from(now.as_millis()).unwrap_or_default();
        Self { host: host_name(), pid: std::process::id(), started_at }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return out.write_str("another process");
        }
        let started = i64::try_from(self.started_at).unwrap_or_default();
        let since = jiff::Timestamp::from_millisecond(started).unwrap_or_default();
        write!(out, "process {} on {} since {}", self.pid, self.host, since.strftime("%Y-%m-%d %H:%M:%S UTC"))
    }
}

/// Name of this machine as people know it.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "this machine".to_owned() } else { name.trim().to_owned() }
}

/// Proof that this process alone writes the run. Released on drop.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunLock {
    /// # Errors
    /// [`StoreError::Locked`] with the holder, or the disk's.
    pub fn acquire(run: &RunDir) -> Result<Self, StoreError> {
        let path = run.lock();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => std::thread::sleep(BETWEEN_ATTEMPTS),
                Err(TryLockError::WouldBlock) => {
                    let holder = read_holder(&mut file);
                    return Err(StoreError::Locked { path: run.path().to_owned(), holder });
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
            }
        }
        let text = serde_json::to_vec(&Holder::this_process())
            .map_err(|source| StoreError::Encode { path: path.clone(), source })?;
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(&text))
            .map_err(StoreError::io("write", &path))?;
        Ok(Self { _file: file })
    }

    /// Who holds the run now; `None`: nobody.
    pub fn holder(run: &RunDir) -> Option<Holder> {
        let mut file = File::open(run.lock()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(read_holder(&mut file)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or(Holder {
        host: String::new(),
        pid: 0,
        started_at: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_holder_is_refused_and_told_who() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        assert_eq!(RunLock::holder(&run), None);
        let lock = RunLock::acquire(&run).unwrap();
        let error = RunLock::acquire(&run).unwrap_err();
        let StoreError::Locked { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.host, host_name());
        assert_eq!(RunLock::holder(&run).as_ref(), Some(holder));
        let told = error.to_string();
        assert!(told.contains(&format!("process {} on {}", std::process::id(), host_name())), "{told}");
        assert!(told.contains("planish attach"), "{told}");
        drop(lock);
        assert_eq!(RunLock::holder(&run), None);
        RunLock::acquire(&run).unwrap();
    }

    #[test]
    fn a_longer_text_of_an_earlier_holder_leaves_no_rest() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        std::fs::write(run.lock(), "x".repeat(4000)).unwrap();
        let _lock = RunLock::acquire(&run).unwrap();
        assert_eq!(read_holder(&mut File::open(run.lock()).unwrap()).pid, std::process::id());
    }
}
