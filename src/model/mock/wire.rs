//! HTTP/1.1 of the mock server: reads one request, writes heads and bodies at a given pace. Must not know what is in them.

use std::collections::HashMap;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const MAX_HEADERS: u64 = 64 << 10;
const MAX_BODY: usize = 64 << 20;

/// A request as it came; header names in lower case.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

/// Whether the connection may serve another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Close,
    /// Send nothing more, but leave the peer waiting.
    Hold,
}

/// The beginning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    /// Header lines beside those of the body.
    pub(super) headers: Vec<(String, String)>,
}

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";
pub(super) const HTML: &str = "text/html; charset=utf-8";

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// The next request; `None` at the end of the connection or when it is not HTTP.
    pub(super) async fn read(&mut self) -> std::io::Result<Option<Request>> {
        let mut head = (&mut self.stream).take(MAX_HEADERS);
        let mut line = String::new();
        if head.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            ..Request::default()
        };
        loop {
            line.clear();
            if head.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            match line.trim_end().split_once(':') {
                Some((name, value)) => {
                    request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
                }
                None => break,
            }
        }
        if request.headers.get("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let chunked = request.headers.get("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        if chunked {
            return Ok(self.read_chunks().await?.map(|body| Request { body, ..request }));
        }
        let length = request.headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        if length > MAX_BODY {
            return Ok(None);
        }
        request.body.resize(length, 0);
        self.stream.read_exact(&mut request.body).await?;
        Ok(Some(request))
    }

    async fn read_chunks(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            (&mut self.stream).take(MAX_HEADERS).read_line(&mut line).await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else { return Ok(None) };
            let start = body.len();
            if size > MAX_BODY || start + size > MAX_BODY {
                return Ok(None);
            }
            body.resize(start + size, 0);
            self.stream.read_exact(&mut body[start..]).await?;
            line.clear();
            (&mut self.stream).take(MAX_HEADERS).read_line(&mut line).await?;
            if size == 0 {
                return Ok(Some(body));
            }
        }
    }

    /// Waits until the peer goes away.
    pub(super) async fn hold(&mut self) {
        let mut sink = [0; 1024];
        while let Ok(1..) = self.stream.read(&mut sink).await {}
    }

    /// A whole answer whose length is told.
    pub(super) async fn send_whole(&mut self, head: &Head, body: &[u8]) -> std::io::Result<()> {
        let head = head.text(&format!("content-length: {}", body.len()));
        self.send(&[head.as_bytes(), body].concat()).await
    }

    /// The head of an answer that promises more than comes.
    pub(super) async fn begin_whole(&mut self, head: &Head, body: &[u8]) -> std::io::Result<()> {
        let head = head.text(&format!("content-length: {}", body.len() + 999));
        self.send(&[head.as_bytes(), body].concat()).await
    }

    pub(super) async fn begin_chunks(&mut self, head: &Head) -> std::io::Result<()> {
        let head = head.text("transfer-encoding: chunked");
        self.send(head.as_bytes()).await
    }

    pub(super) async fn send_chunk(&mut self, body: &[u8]) -> std::io::Result<()> {
        if body.is_empty() {
            // An empty chunk would be the end.
            return Ok(());
        }
        let size = format!("{:x}\r\n", body.len());
        self.send(&[size.as_bytes(), body, b"\r\n"].concat()).await
    }

    pub(super) async fn end_chunks(&mut self) -> std::io::Result<()> {
        self.send(b"0\r\n\r\n").await
    }

    /// Pieces of a body, each after a pause.
    pub(super) async fn send_slowly<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        pause: Duration,
    ) -> std::io::Result<()> {
        for piece in pieces {
            tokio::time::sleep(pause).await;
            self.send_chunk(piece).await?;
        }
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).await?;
        stream.flush().await
    }
}

impl Head {
    fn text(&self, framing: &str) -> String {
        let lines: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("HTTP/1.1 {} Mock\r\ncontent-type: {}\r\n{framing}\r\n{lines}\r\n", self.status, self.kind)
    }
}
