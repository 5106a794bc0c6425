//! Boards of other runs, read from their journals. The last few are kept, so that asking again reads only what was
//! added since. Blocks; never writes.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::board::Board;
use crate::event::decode_line;
use crate::store::{RunDir, StoreError};

/// Boards kept: who asks for more again and again reads whole journals each time.
pub const SHELF: usize = 8;

struct Shelved {
    path: PathBuf,
    /// Tells a journal from another one that took its place.
    inode: u64,
    /// Bytes of whole lines that the board has heard.
    covers: u64,
    lines: u64,
    board: Arc<Board>,
}

/// Last used last.
static SHELVED: Mutex<Vec<Shelved>> = Mutex::new(Vec::new());

/// The board of a run as its journal tells it now. A torn last line is passed over.
///
/// # Errors
/// A damaged line, or the disk's.
pub fn of_run(run: &RunDir) -> Result<Arc<Board>, StoreError> {
    let path = run.events();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Arc::default()),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    let found = file.metadata().map_err(StoreError::io("read", &path))?;
    let mut shelved = take(&path, found.ino(), found.len());
    read_on(file, &mut shelved)?;
    let board = shelved.board.clone();
    let mut shelf = SHELVED.lock().unwrap_or_else(PoisonError::into_inner);
    shelf.push(shelved);
    let spare = shelf.len().saturating_sub(SHELF);
    shelf.drain(..spare);
    Ok(board)
}

fn take(path: &PathBuf, inode: u64, len: u64) -> Shelved {
    let mut shelf = SHELVED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = shelf.iter().position(|one| one.path == *path);
    let known = place.map(|place| shelf.remove(place));
    known.filter(|known| known.inode == inode && known.covers <= len).unwrap_or_else(|| Shelved {
        path: path.clone(),
        inode,
        covers: 0,
        lines: 0,
        board: Arc::default(),
    })
}

fn read_on(mut file: File, shelved: &mut Shelved) -> Result<(), StoreError> {
    let path = shelved.path.clone();
    file.seek(SeekFrom::Start(shelved.covers)).map_err(StoreError::io("read", &path))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut damage = None;
    loop {
        line.clear();
        let n = reader.read_until(b'\n', &mut line).map_err(StoreError::io("read", &path))?;
        if line.last() != Some(&b'\n') {
            break;
        }
        if let Some(problem) = damage {
            return Err(StoreError::Damaged { path, problem });
        }
        match decode_line(&line) {
            Ok(record) => Arc::make_mut(&mut shelved.board).hear(&record),
            // Only an error if something follows: else it is the end of a line that is being written.
            Err(error) => {
                damage = Some(format!("line {} is damaged: {error}", shelved.lines + 1));
                continue;
            }
        }
        shelved.covers += n as u64;
        shelved.lines += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::event::{Event, Record, encode_line};
    use crate::telemetry::Smoothing;

    fn metric(seq: u64, value: f64) -> Vec<u8> {
        let event = Event::Metric { step: Some(seq), values: [("loss".to_owned(), value)].into() };
        encode_line(&Record { seq, at: seq * 1000, event }).unwrap()
    }

    fn run() -> (tempfile::TempDir, RunDir) {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "one").unwrap();
        (root, run)
    }

    fn last(run: &RunDir) -> Option<f64> {
        of_run(run).unwrap().series("loss").and_then(|series| series.last(Smoothing::Off))
    }

    #[test]
    fn only_what_was_added_is_read_again() {
        let (_root, run) = run();
        assert_eq!(last(&run), None);
        let mut text = [metric(1, 4.0), metric(2, 3.0)].concat();
        fs::write(run.events(), &text).unwrap();
        assert_eq!(last(&run), Some(3.0));
        // The same bytes in the place of the first line cannot be told; that line is not read again.
        let other =
            [&b"x".repeat(metric(1, 4.0).len() - 1)[..], b"\n", &metric(2, 3.0), &metric(3, 2.0)].concat();
        fs::write(run.events(), other).unwrap();
        assert_eq!(last(&run), Some(2.0));
        let board = of_run(&run).unwrap();
        assert_eq!(board.series("loss").unwrap().len(), 3);
        // A shorter journal is another one.
        text.truncate(metric(1, 4.0).len());
        fs::write(run.events(), &text).unwrap();
        assert_eq!(last(&run), Some(4.0));
    }

    #[test]
    fn a_torn_end_is_passed_over_and_damage_named() {
        let (_root, run) = run();
        fs::write(run.events(), [&metric(1, 4.0)[..], b"{\"seq\":2,\"a"].concat()).unwrap();
        assert_eq!(last(&run), Some(4.0));
        fs::write(run.events(), [&metric(1, 4.0)[..], &metric(2, 5.0)].concat()).unwrap();
        assert_eq!(last(&run), Some(5.0));
        fs::write(
            run.events(),
            [&metric(1, 4.0)[..], &metric(2, 5.0), b"{broken\n", &metric(4, 1.0)].concat(),
        )
        .unwrap();
        let told = of_run(&run).unwrap_err().to_string();
        assert!(told.contains("line 3 is damaged"), "{told}");
    }
}
