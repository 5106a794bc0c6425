//! One event per line: `{"seq":7,"at":1764435600123,"phase_started":{…}}`.

use serde::{Deserialize, Serialize};

use super::Event;

/// Version written as `v` in `run_started`. Raised only when an older reader would misread the journal.
pub const FORMAT_VERSION: u32 = 1;

/// One journal line. `seq` counts from 1 without gaps; `at` is Unix time in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub seq: u64,
    pub at: u64,
    #[serde(flatten)]
    pub event: Event,
}

pub fn encode_line(record: &Record) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}

pub fn decode_line(line: &[u8]) -> Result<Record, serde_json::Error> {
    serde_json::from_slice(line)
}

/// What a scan of a journal file found.
#[derive(Debug, PartialEq)]
pub struct Tail {
    pub records: Vec<Record>,
    /// Bytes of whole, valid lines. What follows is a torn last line to be cut off.
    pub valid_len: usize,
}

/// Reads all lines. A last line without newline, or that does not parse, is torn; a bad line before the last is
/// damage and an error that names the line (from 1).
pub fn scan(bytes: &[u8]) -> Result<Tail, String> {
    scan_after(bytes, 0)
}

/// [`scan`] of what follows the first `lines` lines of a journal.
pub fn scan_after(bytes: &[u8], lines: u64) -> Result<Tail, String> {
    let mut records = Vec::new();
    let mut valid_len = 0;
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        let number = lines + records.len() as u64 + 1;
        match decode_line(line) {
            Ok(record) if record.seq == number => records.push(record),
            Ok(record) => return Err(format!("line {number} has seq {} (expected {number})", record.seq)),
            Err(_) if after.is_empty() => break,
            Err(error) => return Err(format!("line {number} is damaged: {error}")),
        }
        valid_len += end + 1;
        rest = after;
    }
    Ok(Tail { records, valid_len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::LogLevel;

    fn log(seq: u64) -> Record {
        Record { seq, at: 5, event: Event::Log { level: LogLevel::Info, message: "hello".into() } }
    }

    #[test]
    fn lines_round_trip_and_are_externally_tagged() {
        let line = encode_line(&log(1)).unwrap();
        assert_eq!(
            String::from_utf8(line.clone()).unwrap(),
            "{\"seq\":1,\"at\":5,\"log\":{\"level\":\"info\",\"message\":\"hello\"}}\n"
        );
        assert_eq!(decode_line(&line).unwrap(), log(1));
    }

    #[test]
    fn scores_survive_bit_for_bit() {
        for score in [107.0 / 430.0, 1.0 / 3.0, 7.249698080904982e-168, f64::MIN_POSITIVE] {
            let text = serde_json::to_string(&score).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), f64::to_bits(score), "{text}");
        }
    }

    #[test]
    fn an_unknown_kind_is_kept_whole() {
        let line = br#"{"seq":3,"at":9,"moon_landed":{"crew":3}}"#;
        let record = decode_line(line).unwrap();
        let Event::Unknown(map) = &record.event else { panic!("not unknown: {record:?}") };
        assert_eq!(map["moon_landed"]["crew"], 3);
        assert_eq!(encode_line(&record).unwrap(), [&line[..], b"\n"].concat());
    }

    #[test]
    fn a_torn_last_line_is_cut_and_earlier_damage_is_an_error() {
        let whole = [encode_line(&log(1)).unwrap(), encode_line(&log(2)).unwrap()].concat();
        for cut in 0..whole.len() {
            let tail = scan(&whole[..cut]).unwrap();
            assert_eq!(tail.records.len(), whole[..cut].iter().filter(|byte| **byte == b'\n').count());
        }
        let damaged = [&b"{\"seq\":1,\"at\n"[..], &encode_line(&log(2)).unwrap()].concat();
        assert!(scan(&damaged).unwrap_err().contains("line 1"));
        let gap = [encode_line(&log(1)).unwrap(), encode_line(&log(3)).unwrap()].concat();
        assert!(scan(&gap).unwrap_err().contains("seq 3"));
    }
}
