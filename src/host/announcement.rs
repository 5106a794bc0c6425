//! `<run>/host.json`: which process serves a run, and whether that process still lives.
//! Written by the host, read by clients; it must never be taken as proof of a lock (`run.lock` is that).

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::event::PROTOCOL;
use crate::store::{StoreError, atomic_write, host_name};

const FILE_NAME: &str = "host.json";

/// Where a run is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFile {
    /// Name of the machine.
    pub host: String,
    pub pid: u32,
    /// Start of the process in clock ticks since boot; with `pid` it names one process for ever.
    pub start_time: u64,
    pub socket: PathBuf,
    pub protocol: u32,
    pub version: String,
}

#[derive(Debug, thiserror::Error)]
pub enum AnnounceError {
    #[error(transparent)]
    Write(#[from] StoreError),
    #[error("cannot read {path}: {source}; delete it if no host runs")]
    Read { path: String, source: io::Error },
    #[error("{path} is not a host file ({message}); delete it if no host runs")]
    Malformed { path: String, message: String },
    #[error("cannot read the start time of this process from /proc: {0}")]
    StartTime(io::Error),
}

impl fmt::Display for HostFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "process {} on {}", self.pid, self.host)
    }
}

impl HostFile {
    /// Describes this process serving on `socket`.
    pub fn of_this_process(socket: &Path) -> Result<Self, AnnounceError> {
        let pid = std::process::id();
        Ok(Self {
            host: host_name(),
            pid,
            start_time: process_start_time(pid).map_err(AnnounceError::StartTime)?,
            socket: socket.to_owned(),
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    pub fn path(run_dir: &Path) -> PathBuf {
        run_dir.join(FILE_NAME)
    }

    /// Replaces the file whole: a reader sees the old one or the new one.
    pub fn write(&self, run_dir: &Path) -> Result<(), AnnounceError> {
        let path = Self::path(run_dir);
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| AnnounceError::Malformed {
            path: path.display().to_string(),
            message: error.to_string(),
        })?;
        Ok(atomic_write(&path, &bytes)?)
    }

    /// `None` when the run has no host file.
    pub fn read(run_dir: &Path) -> Result<Option<Self>, AnnounceError> {
        let path = Self::path(run_dir);
        let shown = path.display().to_string();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(AnnounceError::Read { path: shown, source }),
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| AnnounceError::Malformed { path: shown, message: error.to_string() })
    }

    /// Deletes the file if it still speaks of this very host.
    pub fn remove(&self, run_dir: &Path) {
        if Self::read(run_dir).ok().flatten().as_ref() == Some(self) {
            let _ = fs::remove_file(Self::path(run_dir));
        }
    }

    /// The announced process runs on this machine (a reused pid has another start time).
    pub fn is_alive_here(&self) -> bool {
        self.host == host_name() && process_start_time(self.pid).is_ok_and(|start| start == self.start_time)
    }
}

/// Field 22 of `/proc/PID/stat` (proc(5)). A zombie counts as gone.
pub fn process_start_time(pid: u32) -> io::Result<u64> {
    parse_start_time(&fs::read_to_string(format!("/proc/{pid}/stat"))?)
}

fn parse_start_time(stat: &str) -> io::Result<u64> {
    // The command name (field 2) may hold spaces and parentheses; the last `)` ends it.
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "malformed stat line");
    let (_, rest) = stat.rsplit_once(") ").ok_or_else(malformed)?;
    let fields: Vec<&str> = rest.split(' ').collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"));
    }
    fields.get(19).and_then(|field| field.parse().ok()).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_hostile_command_name() {
        let after = (3..=30).map(|field| if field == 3 { "S".into() } else { field.to_string() });
        let stat = format!("7 (a) Z (b ) {}", after.collect::<Vec<String>>().join(" "));
        assert_eq!(parse_start_time(&stat).unwrap(), 22);
        assert!(parse_start_time(&stat.replace(") S ", ") Z ")).is_err());
        assert!(parse_start_time("7 (sh) S 1 2").is_err());
    }

    #[test]
    fn a_host_is_alive_only_with_its_own_start_time() {
        let mut file = HostFile::of_this_process(Path::new("/x.sock")).unwrap();
        assert!(file.is_alive_here());
        file.start_time += 1;
        assert!(!file.is_alive_here());
        file.start_time -= 1;
        file.host.push('x');
        assert!(!file.is_alive_here());
    }

    #[test]
    fn the_file_is_written_read_and_removed_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(HostFile::read(dir.path()).unwrap(), None);
        let mine = HostFile::of_this_process(Path::new("/x.sock")).unwrap();
        mine.write(dir.path()).unwrap();
        assert_eq!(HostFile::read(dir.path()).unwrap(), Some(mine.clone()));

        let other = HostFile { pid: 1, ..mine.clone() };
        other.remove(dir.path());
        assert!(HostFile::path(dir.path()).exists());
        mine.remove(dir.path());
        assert!(!HostFile::path(dir.path()).exists());

        fs::write(HostFile::path(dir.path()), "{").unwrap();
        assert!(HostFile::read(dir.path()).unwrap_err().to_string().contains("host.json"));
    }
}
