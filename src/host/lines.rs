//! Newline-delimited reading with a size limit, for both ends of the socket.
//! It knows nothing of JSON: a line is bytes without its newline.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("a line is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads lines of at most `limit` bytes.
pub struct BoundedLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    handed_out: bool,
    limit: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), handed_out: false, limit }
    }

    /// The next line, or `None` at the end; a last line without newline was torn and is not returned.
    /// Cancel safe: what was read so far is kept for the next call.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        if std::mem::take(&mut self.handed_out) {
            self.line.clear();
        }
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(available.len());
            if self.line.len() + taken > self.limit {
                return Err(LineError::TooLong { limit: self.limit });
            }
            self.line.extend_from_slice(&available[..taken]);
            self.reader.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                self.handed_out = true;
                return Ok(Some(&self.line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], limit: usize) -> Result<Vec<String>, LineError> {
        let mut lines = BoundedLines::new(input, limit);
        let mut out = Vec::new();
        while let Some(line) = lines.next().await? {
            out.push(String::from_utf8_lossy(line).into_owned());
        }
        Ok(out)
    }

    #[tokio::test]
    async fn lines_are_split_and_a_torn_one_is_left_out() {
        assert_eq!(all(b"a\n\nbc\ntorn", 4).await.unwrap(), ["a", "", "bc"]);
        assert!(all(b"", 4).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_limit_holds_with_and_without_a_newline() {
        assert_eq!(all(b"abcd\n", 4).await.unwrap(), ["abcd"]);
        assert!(matches!(all(b"abcde\n", 4).await, Err(LineError::TooLong { limit: 4 })));
        assert!(matches!(all(&[b'x'; 100_000], 4).await, Err(LineError::TooLong { .. })));
    }
}
