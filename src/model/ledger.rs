//! The book of a run's spending: a line before every attempt at a call and one after it, so that also a killed host has
//! counted what it sent. Must not judge what may be spent.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::{Role, Usage};

/// Name of the file in a run's folder of calls.
pub const LEDGER_FILE: &str = "ledger.jsonl";

/// Whom an attempt serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Purpose {
    pub role: Role,
    pub stage: String,
}

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// What was spent before the book began.
    Brought(Usage),
    Begun {
        id: u64,
        #[serde(flatten)]
        purpose: Purpose,
        most: Usage,
    },
    Ended {
        id: u64,
        used: Usage,
        answered: bool,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("{}: {why}", file.display())]
    Io { file: PathBuf, why: String },
    #[error(
        "{}:{line}: no line of a ledger ({why}); restore the file, or move it away to have spending counted by the \
         journal alone",
        file.display()
    )]
    Malformed { file: PathBuf, line: usize, why: String },
}

/// An open book.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    next: u64,
}

/// What an opened book tells.
#[derive(Debug, Default, PartialEq)]
pub struct Balance {
    pub spent: Usage,
    /// Of that, by attempts without a reply. Those whose end nobody saw count at the most they can have used.
    pub unanswered: BTreeMap<Purpose, Usage>,
}

impl Ledger {
    /// Opens the book, or begins one. `known` is what the journal tells of: nothing below it can be right. Attempts whose
    /// end nobody saw are closed at their most.
    ///
    /// # Errors
    /// The disk's, or a line that is none.
    pub fn open(path: &Path, known: Usage) -> Result<(Self, Balance), LedgerError> {
        let failed =
            |error: std::io::Error| LedgerError::Io { file: path.to_owned(), why: error.to_string() };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        // A torn line tells of an attempt that was not yet sent, or of an end that counts as unseen.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::Start(whole as u64)).map_err(failed)?;
        let mut book = Book::default();
        for (line, number) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').zip(1..) {
            let malformed = |error: serde_json::Error| LedgerError::Malformed {
                file: path.to_owned(),
                line: number,
                why: error.to_string(),
            };
            book.take(serde_json::from_slice(line).map_err(malformed)?);
        }
        let mut ledger = Self { path: path.to_owned(), file, next: book.next };
        let mut balance = Balance { spent: book.spent, unanswered: book.unanswered };
        for (id, (purpose, most)) in book.open {
            ledger.end(id, most, false)?;
            balance.spent += most;
            *balance.unanswered.entry(purpose).or_default() += most;
        }
        let missing = above(known, balance.spent);
        if missing != Usage::default() {
            ledger.write(&Line::Brought(missing))?;
            balance.spent += missing;
        }
        Ok((ledger, balance))
    }

    /// Before an attempt is sent; gives it its number.
    ///
    /// # Errors
    /// The disk's: nothing may be sent then.
    pub fn begin(&mut self, purpose: &Purpose, most: Usage) -> Result<u64, LedgerError> {
        let id = self.next;
        self.next += 1;
        self.write(&Line::Begun { id, purpose: purpose.clone(), most })?;
        Ok(id)
    }

    /// # Errors
    /// The disk's: the attempt then counts at its most.
    pub fn end(&mut self, id: u64, used: Usage, answered: bool) -> Result<(), LedgerError> {
        self.write(&Line::Ended { id, used, answered })
    }

    fn write(&mut self, line: &Line) -> Result<(), LedgerError> {
        let failed = |why: String| LedgerError::Io { file: self.path.clone(), why };
        let mut json = serde_json::to_vec(line).map_err(|error| failed(error.to_string()))?;
        json.push(b'\n');
        let before = self.file.metadata().map_err(|error| failed(error.to_string()))?.len();
        self.file.write_all(&json).map_err(|error| {
            // Half a line on a full disk would make the whole book unreadable.
            let _ = self.file.set_len(before);
            failed(error.to_string())
        })
    }
}

/// A book while it is read.
#[derive(Default)]
struct Book {
    spent: Usage,
    unanswered: BTreeMap<Purpose, Usage>,
    open: BTreeMap<u64, (Purpose, Usage)>,
    next: u64,
}

impl Book {
    fn take(&mut self, line: Line) {
        match line {
            Line::Brought(usage) => self.spent += usage,
            Line::Begun { id, purpose, most } => {
                self.next = self.next.max(id + 1);
                self.open.insert(id, (purpose, most));
            }
            Line::Ended { id, used, answered } => {
                self.spent += used;
                if let Some((purpose, _)) = self.open.remove(&id).filter(|_| !answered) {
                    *self.unanswered.entry(purpose).or_default() += used;
                }
            }
        }
    }
}

/// What `known` has and `spent` lacks, number by number.
pub fn above(known: Usage, spent: Usage) -> Usage {
    Usage {
        calls: known.calls.saturating_sub(spent.calls),
        prompt_tokens: known.prompt_tokens.saturating_sub(spent.prompt_tokens),
        completion_tokens: known.completion_tokens.saturating_sub(spent.completion_tokens),
        cached_tokens: known.cached_tokens.saturating_sub(spent.cached_tokens),
        reasoning_tokens: known.reasoning_tokens.saturating_sub(spent.reasoning_tokens),
        cache_write_tokens: known.cache_write_tokens.saturating_sub(spent.cache_write_tokens),
        nanodollars: known.nanodollars.saturating_sub(spent.nanodollars),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(calls: u64, completion_tokens: u64) -> Usage {
        Usage { calls, completion_tokens, ..Usage::default() }
    }

    fn rollout() -> Purpose {
        Purpose { role: Role::Target, stage: "rollout".into() }
    }

    #[test]
    fn an_attempt_whose_end_nobody_saw_counts_at_its_most_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calls").join(LEDGER_FILE);
        let (mut ledger, balance) = Ledger::open(&path, Usage::default()).unwrap();
        assert_eq!(balance, Balance::default());
        let first = ledger.begin(&rollout(), usage(1, 100)).unwrap();
        ledger.end(first, usage(1, 7), true).unwrap();
        ledger.begin(&rollout(), usage(1, 100)).unwrap();
        drop(ledger);
        // The host was killed while it wrote.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"{\"begun\":{\"id\":2,\"ro");
        std::fs::write(&path, bytes).unwrap();

        let (_, balance) = Ledger::open(&path, Usage::default()).unwrap();
        assert_eq!(balance.spent, usage(2, 107));
        assert_eq!(balance.unanswered, [(rollout(), usage(1, 100))].into());
        let (mut ledger, balance) = Ledger::open(&path, Usage::default()).unwrap();
        assert_eq!((balance.spent, balance.unanswered), (usage(2, 107), [(rollout(), usage(1, 100))].into()));
        assert_eq!(ledger.begin(&rollout(), usage(1, 1)).unwrap(), 2, "numbers are never used twice");
    }

    #[test]
    fn a_book_that_begins_late_brings_forward_what_the_journal_knows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LEDGER_FILE);
        let (mut ledger, balance) = Ledger::open(&path, usage(40, 900)).unwrap();
        assert_eq!(balance.spent, usage(40, 900));
        let id = ledger.begin(&rollout(), usage(1, 100)).unwrap();
        ledger.end(id, usage(1, 10), true).unwrap();
        let (_, balance) = Ledger::open(&path, usage(41, 905)).unwrap();
        assert_eq!(balance.spent, usage(41, 910), "never below either, never both");
    }

    #[test]
    fn a_damaged_book_names_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LEDGER_FILE);
        std::fs::write(
            &path,
            "{\"brought\":{\"calls\":1,\"prompt_tokens\":0,\"completion_tokens\":0}}\n{\"x\":1}\n",
        )
        .unwrap();
        let told = Ledger::open(&path, Usage::default()).unwrap_err().to_string();
        assert!(
            told.contains("ledger.jsonl:2: no line of a ledger") && told.contains("move it away"),
            "{told}"
        );
    }
}
