//! `events.jsonl` on disk: opening with repair of a torn tail, appending whole lines, syncing. What events mean is
//! `event`'s business.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::file::sync_folder;
use super::{RunDir, RunLock, StoreError};
use crate::event::{Event, FORMAT_VERSION, Record, Tail, decode_line, encode_line, scan_after};

/// The journal of a run that this process holds.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines.
    len: u64,
    next_seq: u64,
    broken: bool,
}

/// A journal as it was found.
#[derive(Debug)]
pub struct OpenedJournal {
    pub journal: JournalFile,
    pub records: Vec<Record>,
    /// Bytes of a torn last line that were cut off.
    pub torn_bytes: u64,
}

impl JournalFile {
    /// Opens (or begins) the journal and cuts a torn last line off.
    ///
    /// # Errors
    /// A damaged line, a newer format, or the disk's.
    pub fn open(run: &RunDir, _held: &RunLock) -> Result<OpenedJournal, StoreError> {
        let path = run.events();
        let is_new = !path.exists();
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        if is_new {
            sync_folder(run.path())?;
        }
        let bytes = fs::read(&path).map_err(StoreError::io("read", &path))?;
        let Tail { records, valid_len } = tail_of(&path, &bytes, 0)?;
        let torn_bytes = (bytes.len() - valid_len) as u64;
        if torn_bytes > 0 {
            file.set_len(valid_len as u64)
                .and_then(|()| file.sync_all())
                .map_err(StoreError::io("repair", &path))?;
        }
        let next_seq = records.len() as u64 + 1;
        let journal = Self { file, path, len: valid_len as u64, next_seq, broken: false };
        Ok(OpenedJournal { journal, records, torn_bytes })
    }

    /// Appends the records with one write. They are durable after [`JournalFile::sync`].
    ///
    /// # Errors
    /// A gap in `seq`, a record that would not read back, or the disk's. Then none of them is in the journal; if
    /// not even that can be had, the journal takes nothing more and a resume repairs it.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        if self.broken {
            return Err(StoreError::Broken { path: self.path.clone() });
        }
        let mut bytes = Vec::new();
        for (expected, record) in (self.next_seq..).zip(records) {
            let found = record.seq;
            if found != expected {
                return Err(StoreError::OutOfOrder { expected, found });
            }
            let line = encode_line(record)
                .map_err(|error| StoreError::Unreadable { seq: found, problem: error.to_string() })?;
            // JSON writes NaN and infinity as null: such a line would make the whole journal unreadable.
            if !decode_line(&line).is_ok_and(|again| again == *record) {
                let problem = "a number is not finite".to_owned();
                return Err(StoreError::Unreadable { seq: found, problem });
            }
            bytes.extend_from_slice(&line);
        }
        if let Err(error) = self.file.write_all(&bytes) {
            self.broken = self.file.set_len(self.len).is_err();
            return Err(StoreError::io("append to", &self.path)(error));
        }
        self.len += bytes.len() as u64;
        self.next_seq += records.len() as u64;
        Ok(())
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// The disk's. What was appended may or may not survive a power cut, so the journal takes nothing more.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|error| {
            self.broken = true;
            StoreError::io("sync", &self.path)(error)
        })
    }

    /// Bytes of whole lines.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }
}

/// All whole records of a run, without touching it. Empty when the run has no journal yet.
///
/// # Errors
/// A damaged line, a newer format, or the disk's.
pub fn read_records(run: &RunDir) -> Result<Vec<Record>, StoreError> {
    Ok(read_tail(run, 0, 0)?.records)
}

/// The whole records behind the first `covers` bytes, which hold `lines` lines.
///
/// # Errors
/// As [`read_records`].
pub(super) fn read_tail(run: &RunDir, covers: u64, lines: u64) -> Result<Tail, StoreError> {
    let path = run.events();
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|mut file| {
        file.seek(SeekFrom::Start(covers))?;
        file.read_to_end(&mut bytes)
    });
    match read {
        Ok(_) => tail_of(&path, &bytes, lines),
        Err(error) if error.kind() == ErrorKind::NotFound => tail_of(&path, &[], lines),
        Err(error) => Err(StoreError::io("read", &path)(error)),
    }
}

fn tail_of(path: &Path, bytes: &[u8], lines: u64) -> Result<Tail, StoreError> {
    let tail =
        scan_after(bytes, lines).map_err(|problem| StoreError::Damaged { path: path.to_owned(), problem })?;
    for record in &tail.records {
        if let Event::RunStarted { v, .. } = record.event
            && v > FORMAT_VERSION
        {
            return Err(StoreError::TooNew { path: path.to_owned(), format: v });
        }
    }
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{GateScore, Skill};
    use crate::event::{LogLevel, RunState};

    fn log(seq: u64) -> Record {
        Record { seq, at: seq, event: Event::Log { level: LogLevel::Info, message: format!("m{seq}") } }
    }

    fn run() -> (tempfile::TempDir, RunDir, RunLock) {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        let lock = RunLock::acquire(&run).unwrap();
        (root, run, lock)
    }

    #[test]
    fn what_is_appended_is_read_back() {
        let (_root, run, lock) = run();
        assert_eq!(read_records(&run).unwrap(), []);
        let mut opened = JournalFile::open(&run, &lock).unwrap();
        assert!(opened.records.is_empty() && opened.journal.is_empty());
        opened.journal.append(&[log(1), log(2)]).unwrap();
        opened.journal.append(&[]).unwrap();
        opened.journal.append(&[log(3)]).unwrap();
        opened.journal.sync().unwrap();
        assert_eq!(opened.journal.len(), fs::metadata(run.events()).unwrap().len());
        let again = JournalFile::open(&run, &lock).unwrap();
        assert_eq!(again.records, [log(1), log(2), log(3)]);
        assert_eq!((again.torn_bytes, again.journal.next_seq()), (0, 4));
        assert_eq!(read_records(&run).unwrap(), again.records);
    }

    #[test]
    fn a_torn_tail_is_cut_at_every_length_and_the_journal_goes_on() {
        let (_root, run, lock) = run();
        let whole: Vec<u8> = (1..=3).flat_map(|seq| encode_line(&log(seq)).unwrap()).collect();
        for cut in 0..=whole.len() {
            fs::write(run.events(), &whole[..cut]).unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
            let mut opened = JournalFile::open(&run, &lock).unwrap();
            assert_eq!(opened.records.len() as u64, lines);
            opened.journal.append(&[log(lines + 1)]).unwrap();
            let state = RunState::fold(&read_records(&run).unwrap());
            assert_eq!(state.seq, lines + 1, "cut at {cut}");
        }
        // A power cut may leave zeros where the last line should be.
        fs::write(run.events(), [&whole[..], &[0; 512]].concat()).unwrap();
        let opened = JournalFile::open(&run, &lock).unwrap();
        assert_eq!((opened.records.len(), opened.torn_bytes), (3, 512));
        assert_eq!(fs::read(run.events()).unwrap(), whole);
    }

    #[test]
    fn damage_before_the_end_is_refused_with_file_and_line_and_nothing_is_changed() {
        let (_root, run, lock) = run();
        let text =
            [&encode_line(&log(1)).unwrap()[..], b"{broken\n", &encode_line(&log(3)).unwrap()].concat();
        fs::write(run.events(), &text).unwrap();
        let told = JournalFile::open(&run, &lock).unwrap_err().to_string();
        assert!(told.contains("events.jsonl: line 2 is damaged"), "{told}");
        assert_eq!(fs::read(run.events()).unwrap(), text);
    }

    #[test]
    fn gaps_and_numbers_that_json_cannot_hold_are_refused() {
        let (_root, run, lock) = run();
        let mut journal = JournalFile::open(&run, &lock).unwrap().journal;
        journal.append(&[log(1)]).unwrap();
        let told = journal.append(&[log(2), log(4)]).unwrap_err().to_string();
        assert!(told.contains("expected 3"), "{told}");
        let score = GateScore { hard: f64::NAN, soft: 0.0, gate: 0.0, n: 1, done: 1 };
        let event = Event::EvaluationFinished { eval: "e".into(), score, curtailed: false, missing: 0 };
        let told = journal.append(&[Record { seq: 2, at: 0, event }]).unwrap_err().to_string();
        assert!(told.contains("would not read back"), "{told}");
        journal.append(&[log(2)]).unwrap();
        assert_eq!(read_records(&run).unwrap(), [log(1), log(2)]);
    }

    #[test]
    fn a_full_disk_is_clear_and_stops_the_journal() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let mut journal = JournalFile { file, path, len: 0, next_seq: 1, broken: false };
        let error = journal.append(&[log(1)]).unwrap_err();
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("free some space"), "{error}");
        // A device cannot be cut back, so what lies behind the last whole line is not known.
        assert!(matches!(journal.append(&[log(1)]), Err(StoreError::Broken { .. })));
    }

    #[test]
    fn a_journal_of_a_newer_format_is_refused() {
        let (_root, run, lock) = run();
        let text = format!(
            "{{\"seq\":1,\"at\":1,\"run_started\":{{\"v\":99,\"run\":\"r\",\"seed\":1,\"config\":null,\"config_hash\":\"\",\
             \"skill\":{},\"plan\":{{\"epochs\":1,\"steps_per_epoch\":1,\"total_steps\":1,\"batch_size\":1,\
             \"train\":1,\"val\":1,\"test\":1,\"target\":\"\",\"optimizer\":\"\",\"env\":\"\",\"review\":\"auto\"}}}}}}\n",
            serde_json::to_string(&Skill::new("")).unwrap()
        );
        fs::write(run.events(), text).unwrap();
        let told = JournalFile::open(&run, &lock).unwrap_err().to_string();
        assert!(told.contains("format 99"), "{told}");
    }
}
