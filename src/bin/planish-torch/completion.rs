//! The text of one growing completion: bytes in, safe deltas out, cut at stop texts. Knows nothing of tokens.

/// Bytes generated so far and how much of them was handed out.
pub struct Completion {
    bytes: Vec<u8>,
    sent: usize,
    stops: Vec<Vec<u8>>,
}

impl Completion {
    /// Empty stop texts are ignored.
    pub fn new(stops: &[String]) -> Self {
        let stops =
            stops.iter().filter(|stop| !stop.is_empty()).map(|stop| stop.clone().into_bytes()).collect();
        Self { bytes: Vec::new(), sent: 0, stops }
    }

    /// Appends; true when a stop text has appeared. The text then ends before the earliest one.
    pub fn push(&mut self, more: &[u8]) -> bool {
        let longest = self.stops.iter().map(Vec::len).max().unwrap_or(0);
        let from = self.bytes.len().saturating_sub(longest.saturating_sub(1));
        self.bytes.extend_from_slice(more);
        let found = self.stops.iter().filter_map(|stop| find(&self.bytes[from..], stop)).min();
        if let Some(at) = found {
            self.bytes.truncate(from + at);
        }
        found.is_some()
    }

    /// Text that no later byte can change: whole characters, and no beginning of a stop text at the end.
    pub fn delta(&mut self) -> Option<String> {
        let held = self.stops.iter().map(|stop| overlap(&self.bytes, stop)).max().unwrap_or(0);
        let mut end = self.bytes.len() - held;
        if let Err(error) = std::str::from_utf8(&self.bytes[self.sent.min(end)..end])
            && error.error_len().is_none()
        {
            end = self.sent + error.valid_up_to();
        }
        self.take(end)
    }

    /// What is left when the completion has ended.
    pub fn rest(&mut self) -> Option<String> {
        self.take(self.bytes.len())
    }

    /// The whole text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn take(&mut self, end: usize) -> Option<String> {
        if end <= self.sent {
            return None;
        }
        let text = String::from_utf8_lossy(&self.bytes[self.sent..end]).into_owned();
        self.sent = end;
        Some(text)
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// Length of the longest beginning of `stop` at the end of `bytes`.
fn overlap(bytes: &[u8], stop: &[u8]) -> usize {
    (1..stop.len()).rev().find(|len| bytes.ends_with(&stop[..*len])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_text_across_pushes_ends_the_text_before_it() {
        let mut completion = Completion::new(&["END".into(), "\n".into()]);
        assert!(!completion.push(b"ab E"));
        assert_eq!(completion.delta().as_deref(), Some("ab "));
        assert!(!completion.push(b"N"));
        assert_eq!(completion.delta(), None);
        assert!(completion.push(b"D and more"));
        assert_eq!(completion.rest(), None);
        assert_eq!(completion.text(), "ab ");
    }

    #[test]
    fn a_beginning_that_turns_out_otherwise_is_handed_out() {
        let mut completion = Completion::new(&["END".into()]);
        assert!(!completion.push(b"E"));
        assert_eq!(completion.delta(), None);
        assert!(!completion.push(b"NE"));
        assert_eq!(completion.delta().as_deref(), Some("EN"));
        assert!(!completion.push(b"X"));
        assert_eq!(completion.delta().as_deref(), Some("EX"));
    }

    #[test]
    fn the_earliest_stop_wins() {
        let mut completion = Completion::new(&["later".into(), "so".into()]);
        assert!(completion.push(b"x so later"));
        assert_eq!(completion.text(), "x ");
    }

    #[test]
    fn characters_are_never_split_and_broken_ones_are_replaced_at_the_end() {
        let bytes = "é日".as_bytes();
        let mut completion = Completion::new(&[]);
        completion.push(&bytes[..1]);
        assert_eq!(completion.delta(), None);
        completion.push(&bytes[1..4]);
        assert_eq!(completion.delta().as_deref(), Some("é"));
        assert_eq!(completion.rest().as_deref(), Some("\u{fffd}"));
        let mut broken = Completion::new(&[]);
        broken.push(b"a\xffb");
        assert_eq!(broken.delta().as_deref(), Some("a\u{fffd}b"));
    }
}
