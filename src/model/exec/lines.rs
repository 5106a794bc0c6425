//! Lines of a program's output, each and all of them bounded. Must not keep what is over the bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Invalid UTF-8 is replaced.
    Text(String),
    TooLong,
}

/// Reads lines. Safe to drop between two polls: what was read stays.
pub struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
    longest: usize,
    total: Arc<AtomicUsize>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(from: R, longest: usize, total: Arc<AtomicUsize>) -> Self {
        let from = BufReader::with_capacity(64 << 10, from);
        Self { from, line: Vec::new(), too_long: false, longest, total }
    }

    /// Bytes read so far, of all that share the count.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// The next line; `None` at the end. A line under way is told of once per buffer, so that one without an end
    /// cannot hide: [`Line::TooLong`] may come several times for it.
    ///
    /// # Errors
    /// The output cannot be read.
    pub async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let buffer = self.from.fill_buf().await?;
            if buffer.is_empty() {
                return Ok((!self.line.is_empty() || self.too_long).then(|| self.take()));
            }
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let used = part.len() + usize::from(end.is_some());
            if self.too_long || self.line.len() + part.len() > self.longest {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            self.from.consume(used);
            self.total.fetch_add(used, Ordering::Relaxed);
            match end {
                Some(_) => return Ok(Some(self.take())),
                None if self.too_long => return Ok(Some(Line::TooLong)),
                None => {}
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) {
            return Line::TooLong;
        }
        Line::Text(String::from_utf8_lossy(&line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8], longest: usize) -> (Vec<Line>, usize) {
        let total = Arc::new(AtomicUsize::new(0));
        let mut lines = Lines::new(text, longest, total);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        (all, lines.total())
    }

    fn text(line: &str) -> Line {
        Line::Text(line.into())
    }

    #[tokio::test]
    async fn lines_end_at_newlines_and_at_the_end() {
        assert_eq!(read(b"a\n\nb\r\nc", 9).await, (vec![text("a"), text(""), text("b\r"), text("c")], 7));
        assert_eq!(read(b"a\xffb\n", 9).await.0, [text("a\u{fffd}b")]);
        assert_eq!(read("{\"a\":\"\u{2028}\"}\n".as_bytes(), 99).await.0, [text("{\"a\":\"\u{2028}\"}")]);
    }

    #[tokio::test]
    async fn a_long_line_is_passed_over_and_counted() {
        let long = [vec![b'x'; 300_000], b"\nshort\n".to_vec()].concat();
        let (lines, total) = read(&long, 100_000).await;
        assert_eq!((lines.first(), lines.last()), (Some(&Line::TooLong), Some(&text("short"))));
        assert_eq!(total, 300_007);
        assert_eq!(read(b"xxxx", 3).await.0, [Line::TooLong, Line::TooLong]);
    }
}
