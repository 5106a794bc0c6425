//! Reader of server-sent events: bytes in, data texts out. Tolerates CRLF, lone CR, comments, multi-line data, split
//! UTF-8 and a BOM. Must not know what the data means.

/// Incremental reader. Feed it the chunks of a body in order.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    after_cr: bool,
    started: bool,
}

/// One event is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the reply is larger than {limit} bytes")]
pub struct EventTooLarge {
    pub limit: usize,
}

impl SseReader {
    /// Adds bytes and returns the data of every event they complete (invalid UTF-8 replaced).
    pub fn push(&mut self, bytes: &[u8], limit: usize) -> Result<Vec<String>, EventTooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            self.finish_line(&mut events);
            self.check(limit)?;
        }
        self.line.extend_from_slice(rest);
        self.check(limit)?;
        Ok(events)
    }

    /// The body ended: an unfinished last event still counts (servers that forget the blank line).
    pub fn finish(&mut self) -> Option<String> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.finish_line(&mut events);
        }
        self.finish_line(&mut events);
        events.pop()
    }

    fn check(&self, limit: usize) -> Result<(), EventTooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held > limit { Err(EventTooLarge { limit }) } else { Ok(()) }
    }

    fn finish_line(&mut self, events: &mut Vec<String>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                events.push(String::from_utf8_lossy(&data).into_owned());
            }
            return;
        }
        let Some(value) = line.strip_prefix(b"data") else { return };
        let value = match value.first() {
            Some(b':') => value[1..].strip_prefix(b" ").unwrap_or(&value[1..]),
            Some(_) => return,
            None => value,
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;

    /// Every way of cutting the body into two chunks gives the same events.
    fn read(body: &[u8]) -> Vec<String> {
        let whole = read_parts(&[body]);
        for cut in 0..body.len() {
            assert_eq!(read_parts(&[&body[..cut], &body[cut..]]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(read_parts(&bytes), whole);
        whole
    }

    fn read_parts(parts: &[&[u8]]) -> Vec<String> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for part in parts {
            events.extend(reader.push(part, LIMIT).unwrap());
        }
        events.extend(reader.finish());
        events
    }

    #[test]
    fn reads_events_with_every_line_end() {
        assert_eq!(read(b"data: a\n\ndata: b\r\n\r\ndata:c\r\rdata: d"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn joins_data_lines_and_skips_comments_and_other_fields() {
        assert_eq!(
            read(b": ping\nevent: x\ndata: a\nid: 1\ndata: b\ndatabase: no\ndata\n\n\n\n: end\n\n"),
            ["a\nb\n"]
        );
    }

    #[test]
    fn keeps_split_characters_and_replaces_invalid_ones() {
        assert_eq!(read("\u{feff}data: \u{1F980}é\n\n".as_bytes()), ["\u{1F980}é"]);
        assert_eq!(read(b"data: a\xff\xfeb\n\n"), ["a\u{fffd}\u{fffd}b"]);
    }

    #[test]
    fn an_event_over_the_limit_is_an_error() {
        let mut reader = SseReader::default();
        assert_eq!(reader.push(&[b'x'; 11], 10), Err(EventTooLarge { limit: 10 }));
        let mut reader = SseReader::default();
        assert!(reader.push(b"data: 12345\n", 10).is_ok());
        assert_eq!(reader.push(b"data: 67890\n", 10), Err(EventTooLarge { limit: 10 }));
    }
}
