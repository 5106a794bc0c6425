//! One event per line: `{"seq":7,"at":1764435600123,"phase_started":{…}}`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::Event;

/// Version written as `v` in `run_started`. Raised only when an older reader would misread the journal.
pub const FORMAT_VERSION: u32 = 1;

/// One journal line. `seq` counts from 1 without gaps; `at` is Unix time in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

/// # Errors
/// No JSON, no record, or an event of a known kind whose content does not fit: only kinds this version does not
/// know become [`Event::Unknown`], else a resume would quietly lose what the event says.
pub fn decode_line(line: &[u8]) -> Result<Record, serde_json::Error> {
    serde_json::from_slice(line)
}

/// By hand, because a derived `flatten` reads every line twice: once into a generic value, then into the event.
impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RecordVisitor)
    }
}

struct RecordVisitor;

impl<'de> Visitor<'de> for RecordVisitor {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a journal record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let (mut seq, mut at, mut event) = (None, None, None);
        let mut unknown = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "seq" => seq = Some(map.next_value()?),
                "at" => at = Some(map.next_value()?),
                kind if KINDS.contains(&kind) => {
                    let tagged = Tagged { kind: Some(kind), map: &mut map };
                    event = Some(Event::deserialize(MapAccessDeserializer::new(tagged))?);
                }
                _ => {
                    unknown.insert(key, map.next_value()?);
                }
            }
        }
        Ok(Record {
            seq: seq.ok_or_else(|| A::Error::missing_field("seq"))?,
            at: at.ok_or_else(|| A::Error::missing_field("at"))?,
            event: event.unwrap_or(Event::Unknown(unknown)),
        })
    }
}

/// The rest of a record as an externally tagged enum: the tag that was read already, then its content.
struct Tagged<'a, A> {
    kind: Option<&'a str>,
    map: &'a mut A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Tagged<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.kind.take().map(|kind| seed.deserialize(kind.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Tags of all kinds of [`Event`] this version knows.
const KINDS: [&str; 40] = [
    "run_started",
    "phase_started",
    "rollout_finished",
    "analysis_finished",
    "optimizer_answered",
    "merge_finished",
    "edits_selected",
    "review_opened",
    "review_closed",
    "skill_updated",
    "appendix_updated",
    "evaluation_started",
    "evaluation_item_finished",
    "evaluation_finished",
    "gate_decided",
    "step_finished",
    "epoch_stage_finished",
    "override_applied",
    "override_lapsed",
    "retune_applied",
    "final_selection_finished",
    "test_finished",
    "run_finished",
    "host_started",
    "edit_decided",
    "review_submitted",
    "paused",
    "resumed",
    "cancel_requested",
    "config_changed",
    "review_commented",
    "override_requested",
    "retune_requested",
    "rollout_cancelled",
    "rollout_requeued",
    "attempts_spent",
    "machine_sampled",
    "metric",
    "alert",
    "log",
];

/// What a scan of a journal file found.
#[derive(Debug, PartialEq)]
pub struct Tail {
    pub records: Vec<Record>,
    /// Bytes of whole, valid lines. What follows is a torn last line to be cut off.
    pub valid_len: usize,
}

/// Reads all lines. A last line without newline, or that is no JSON, is torn; any other bad line is damage and an
/// error that names the line (from 1).
pub fn scan(bytes: &[u8]) -> Result<Tail, String> {
    scan_after(bytes, 0)
}

/// [`scan`] of what follows the first `lines` lines of a journal. Long ones are read on all cores.
pub fn scan_after(bytes: &[u8], lines: u64) -> Result<Tail, String> {
    let mut tail = Tail { records: Vec::new(), valid_len: 0 };
    for part in read_parts(bytes) {
        let before = lines + tail.records.len() as u64;
        for (record, number) in part.records.iter().zip(before + 1..) {
            if record.seq != number {
                return Err(format!("line {number} has seq {} (expected {number})", record.seq));
            }
        }
        tail.valid_len += part.len;
        match part.broken {
            None => {}
            // Half a line is no JSON. Whole JSON that is no record was not torn, and must not be cut off.
            Some((error, end)) if tail.valid_len + end == bytes.len() && !error.is_data() => {
                tail.records.extend(part.records);
                break;
            }
            Some((error, _)) => {
                let number = before + part.records.len() as u64 + 1;
                return Err(format!("line {number} is damaged: {error}"));
            }
        }
        if tail.records.is_empty() {
            tail.records = part.records;
        } else {
            tail.records.extend(part.records);
        }
    }
    Ok(tail)
}

/// A stretch of whole lines, read up to the first that is no record.
struct Part {
    records: Vec<Record>,
    /// Bytes of `records`.
    len: usize,
    /// What is wrong with the line after them, and its length.
    broken: Option<(serde_json::Error, usize)>,
}

/// Bytes below which one thread is faster than several.
const ONE_THREAD: usize = 1 << 20;

fn read_parts(bytes: &[u8]) -> Vec<Part> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if threads == 1 || bytes.len() < ONE_THREAD {
        return vec![read_part(bytes)];
    }
    let mut parts = Vec::with_capacity(threads);
    let mut rest = bytes;
    for left in (2..=threads).rev() {
        let cut = memchr::memchr(b'\n', &rest[rest.len() / left..]);
        let Some(cut) = cut.map(|newline| rest.len() / left + newline + 1) else { break };
        let (part, after) = rest.split_at(cut);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    std::thread::scope(|scope| {
        let reading: Vec<_> = parts.iter().map(|part| (scope.spawn(|| read_part(part)), *part)).collect();
        // A reader that panicked (it cannot) is made up for here.
        reading.into_iter().map(|(part, bytes)| part.join().unwrap_or_else(|_| read_part(bytes))).collect()
    })
}

fn read_part(bytes: &[u8]) -> Part {
    let mut part = Part { records: Vec::new(), len: 0, broken: None };
    for end in memchr::memchr_iter(b'\n', bytes) {
        match decode_line(&bytes[part.len..end]) {
            Ok(record) => part.records.push(record),
            Err(error) => {
                part.broken = Some((error, end + 1 - part.len));
                break;
            }
        }
        part.len = end + 1;
    }
    part
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
    fn a_known_kind_with_other_content_is_no_unknown_kind() {
        let error = decode_line(br#"{"seq":1,"at":1,"paused":{"who":"a"}}"#).unwrap_err();
        assert!(error.is_data());
        assert!(error.to_string().starts_with("missing field `by`"), "{error}");
        // The list is that of the enum: variants stand at four spaces, up to the untagged one.
        let source = include_str!("kind.rs");
        let body = source.split_once("pub enum Event {").unwrap().1.split_once("#[serde(skip)]").unwrap().0;
        let variants = body.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(" {"));
        let tags: Vec<String> = variants
            .map(|name| {
                let snake = name.chars().flat_map(|c| {
                    let gap = c.is_uppercase().then_some('_');
                    gap.into_iter().chain(c.to_lowercase())
                });
                snake.skip(1).collect()
            })
            .collect();
        assert_eq!(tags, KINDS);
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
        let torn = [&whole[..], b"\0\0{\n"].concat();
        assert_eq!(scan(&torn).unwrap().valid_len, whole.len());
        let foreign = [&whole[..], b"{\"seq\":3,\"at\":1,\"paused\":{}}\n"].concat();
        assert!(scan(&foreign).unwrap_err().contains("line 3 is damaged"));
    }

    #[test]
    fn a_long_journal_is_read_in_parts_as_if_it_were_one() {
        let message = "words ".repeat(400);
        let record = |seq: u64| Record {
            seq,
            at: seq,
            event: Event::Log { level: LogLevel::Info, message: format!("{seq} {message}") },
        };
        let records: Vec<Record> = (1..=2_000).map(record).collect();
        let mut bytes: Vec<u8> = records.iter().flat_map(|record| encode_line(record).unwrap()).collect();
        assert!(bytes.len() > 4 * ONE_THREAD);
        let whole = bytes.len();
        bytes.extend_from_slice(b"{\"seq\":2001,\"at\"\n");
        assert_eq!(scan(&bytes).unwrap(), Tail { records: records.clone(), valid_len: whole });
        bytes.truncate(whole);
        let starts: Vec<usize> =
            std::iter::once(0).chain(memchr::memchr_iter(b'\n', &bytes).map(|end| end + 1)).collect();
        for number in [1, 600, 1_001, 1_700] {
            let mut damaged = bytes.clone();
            damaged[starts[number - 1]] = b'!';
            let error = scan(&damaged).unwrap_err();
            assert!(error.starts_with(&format!("line {number} is damaged")), "{error}");
        }
        let mut gap = bytes.clone();
        gap.drain(..starts[1]);
        assert_eq!(scan(&gap).unwrap_err(), "line 1 has seq 2 (expected 1)");
    }
}
