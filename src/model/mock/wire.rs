//! Bytes of the mock server: reads one HTTP/1.1 request, writes plain, streamed and deliberately broken answers.
//! Must not decide what to answer.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::script::Fault;

const MAX_HEADERS: u64 = 64 << 10;
const MAX_BODY: usize = 64 << 20;

/// A request as it came; header names in lower case.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

/// How an answer is framed.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// `chat/completions` rather than `completions`.
    pub(super) chat: bool,
    pub(super) stream: bool,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) chunk: usize,
    /// Pause before every chunk of a stream.
    pub(super) delay: Duration,
    pub(super) request_id: String,
}

/// Whether the connection may serve another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Close,
    /// Send nothing more, but leave the peer waiting.
    Hold,
}

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
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
        let mut request = Request { method, path, ..Request::default() };
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
        let length = request.headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        if length > MAX_BODY {
            return Ok(None);
        }
        request.body.resize(length, 0);
        self.stream.read_exact(&mut request.body).await?;
        Ok(Some(request))
    }

    /// Waits until the peer goes away.
    pub(super) async fn hold(&mut self) {
        let mut sink = [0; 1024];
        while let Ok(1..) = self.stream.read(&mut sink).await {}
    }

    pub(super) async fn reply(&mut self, shape: &Shape, text: &str, finish: &str) -> std::io::Result<()> {
        if shape.stream {
            let mut body = String::new();
            self.send_chunked_head(shape).await?;
            for piece in pieces(text, shape.chunk) {
                event(&mut body, &shape.chunk_json(Some(&piece), None));
                if !shape.delay.is_zero() {
                    tokio::time::sleep(shape.delay).await;
                    self.send_chunk(std::mem::take(&mut body).as_bytes()).await?;
                }
            }
            event(&mut body, &shape.chunk_json(None, Some(finish)));
            if let Some(usage) = shape.usage_json() {
                event(&mut body, &json!({"choices": [], "usage": usage}));
            }
            body.push_str("data: [DONE]\n\n");
            self.send_chunk(body.as_bytes()).await?;
            self.end_chunked().await
        } else {
            self.send_json(200, &shape.headers(), &shape.whole_json(text, finish)).await
        }
    }

    pub(super) async fn fault(&mut self, shape: &Shape, fault: &Fault) -> std::io::Result<After> {
        match fault {
            Fault::Status { status, code, message, headers } => {
                let message = message.as_deref().unwrap_or("scripted fault");
                let body = json!({"error": {"message": message, "type": "mock", "code": code}});
                let lines: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                self.send_json(*status, &lines, &body).await?;
                Ok(After::Keep)
            }
            Fault::Hang => Ok(After::Hold),
            Fault::Stall | Fault::Drop => {
                if shape.stream {
                    let mut body = String::new();
                    event(&mut body, &shape.chunk_json(Some("half of a "), None));
                    self.send_chunked(shape, body.as_bytes()).await?;
                } else {
                    let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"cho";
                    self.send(half.as_bytes()).await?;
                }
                Ok(if *fault == Fault::Stall { After::Hold } else { After::Close })
            }
            Fault::Empty => {
                self.reply(shape, "", "stop").await?;
                Ok(After::Keep)
            }
            Fault::Malformed => self.raw(shape, "data: {\"choices\": [oops\n\n", "{\"choices\": [oops").await,
            Fault::ErrorInBody { code } => {
                let error = json!({"error": {"message": "scripted error inside a 200", "code": code}});
                self.raw(shape, &format!("data: {error}\n\n"), &error.to_string()).await
            }
            Fault::InvalidUtf8 => {
                let whole = if shape.stream {
                    shape.chunk_json(Some("a~b"), Some("stop"))
                } else {
                    shape.whole_json("a~b", "stop")
                };
                let mut body = whole.to_string().into_bytes();
                for byte in &mut body {
                    if *byte == b'~' {
                        *byte = 0xff;
                    }
                }
                if shape.stream {
                    self.send_chunked(shape, &[b"data: ", body.as_slice(), b"\n\ndata: [DONE]\n\n"].concat())
                        .await?;
                    self.end_chunked().await?;
                } else {
                    self.send_body(200, &shape.headers(), "application/json", &body).await?;
                }
                Ok(After::Keep)
            }
            Fault::NoDone => {
                let mut body = String::new();
                event(&mut body, &shape.chunk_json(Some("no done"), Some("stop")));
                self.raw(shape, &body, &shape.whole_json("no done", "stop").to_string()).await
            }
            Fault::Cut => {
                let mut body = String::new();
                event(&mut body, &shape.chunk_json(Some("half of a "), None));
                self.raw(shape, &body, "{\"cho").await
            }
            Fault::Huge { bytes } => {
                self.reply(shape, &"x".repeat(*bytes), "stop").await?;
                Ok(After::Keep)
            }
        }
    }

    async fn raw(&mut self, shape: &Shape, stream: &str, whole: &str) -> std::io::Result<After> {
        if shape.stream {
            self.send_chunked(shape, stream.as_bytes()).await?;
            self.end_chunked().await?;
        } else {
            self.send_body(200, &shape.headers(), "application/json", whole.as_bytes()).await?;
        }
        Ok(After::Keep)
    }

    pub(super) async fn send_json(
        &mut self,
        status: u16,
        headers: &str,
        body: &Value,
    ) -> std::io::Result<()> {
        self.send_body(status, headers, "application/json", body.to_string().as_bytes()).await
    }

    async fn send_body(
        &mut self,
        status: u16,
        headers: &str,
        kind: &str,
        body: &[u8],
    ) -> std::io::Result<()> {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Mock\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        self.send(&[head.as_bytes(), body].concat()).await
    }

    async fn send_chunked(&mut self, shape: &Shape, body: &[u8]) -> std::io::Result<()> {
        self.send_chunked_head(shape).await?;
        self.send_chunk(body).await
    }

    async fn send_chunked_head(&mut self, shape: &Shape) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{}\r\n",
            shape.headers()
        );
        self.send(head.as_bytes()).await
    }

    /// `body` must not be empty: an empty chunk is the end.
    async fn send_chunk(&mut self, body: &[u8]) -> std::io::Result<()> {
        let size = format!("{:x}\r\n", body.len());
        self.send(&[size.as_bytes(), body, b"\r\n"].concat()).await
    }

    async fn end_chunked(&mut self) -> std::io::Result<()> {
        self.send(b"0\r\n\r\n").await
    }

    async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).await?;
        stream.flush().await
    }
}

impl Shape {
    fn headers(&self) -> String {
        format!("x-request-id: {}\r\n", self.request_id)
    }

    fn usage_json(&self) -> Option<Value> {
        let (sent, received) = self.usage?;
        Some(json!({"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}))
    }

    fn chunk_json(&self, text: Option<&str>, finish: Option<&str>) -> Value {
        let choice = if self.chat {
            let delta = text.map_or(json!({}), |text| json!({"content": text}));
            json!({"index": 0, "delta": delta, "finish_reason": finish})
        } else {
            json!({"index": 0, "text": text.unwrap_or_default(), "finish_reason": finish})
        };
        json!({"object": "chat.completion.chunk", "choices": [choice]})
    }

    fn whole_json(&self, text: &str, finish: &str) -> Value {
        let choice = if self.chat {
            json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish})
        } else {
            json!({"index": 0, "text": text, "finish_reason": finish})
        };
        json!({"object": "chat.completion", "choices": [choice], "usage": self.usage_json()})
    }
}

fn event(body: &mut String, data: &Value) {
    body.push_str("data: ");
    body.push_str(&data.to_string());
    body.push_str("\n\n");
}

/// The text in pieces of `size` characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}
