//! How an answer or a fault reaches the peer: bodies from the dialect, bytes and pauses by the connection.
//! Must not decide what is answered.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::dialect::{self, Dialect, Event, Frame, Place, Transport, Vendor};
use super::fault::{Fault, Pace, WaitForm};
use super::turn::{Cause, Refusal, Turn};
use super::wire::{After, Connection, EVENTS, HTML, Head, JSON};

/// One answer under way.
pub(super) struct Delivery<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) frame: Frame,
    /// Pause before every event of a stream.
    pub(super) delay: Duration,
    /// Header lines of every answer.
    pub(super) headers: Vec<(String, String)>,
}

impl Delivery<'_> {
    pub(super) async fn reply(&mut self, turn: &Turn, pace: Pace) -> std::io::Result<After> {
        let bodies = match self.frame.transport {
            Transport::Events => {
                dialect::events(&self.frame, turn).iter().map(|event| event.text().into_bytes()).collect()
            }
            Transport::Whole => vec![dialect::whole(&self.frame, turn).to_string().into_bytes()],
            Transport::List => vec![list_text(&dialect::events(&self.frame, turn)).into_bytes()],
        };
        self.send(&bodies, pace).await?;
        Ok(After::Keep)
    }

    pub(super) async fn fault(&mut self, fault: &Fault) -> std::io::Result<After> {
        match fault {
            Fault::Status { status, code, message, headers } => {
                let message = message.as_deref().unwrap_or("scripted fault");
                let code = code.as_deref().map(Value::from);
                let lines = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let refusal =
                    Refusal { status: *status, cause: Cause::Status { code }, message: message.into() };
                self.refuse(&refusal, lines).await
            }
            Fault::RateLimit { wait_ms, form } => {
                let wait = Duration::from_millis(*wait_ms);
                let message = "too many requests";
                let refusal =
                    Refusal { status: 429, cause: Cause::RateLimit { wait }, message: message.into() };
                self.refuse(&refusal, form.header(wait).into_iter().collect()).await
            }
            Fault::SpendLimit => {
                let status = if self.frame.vendor == Vendor::OpenRouter { 402 } else { 429 };
                self.refuse_as(status, Cause::SpendLimit, "the credit of this key is used up").await
            }
            Fault::ContentFilter if self.frame.dialect == Dialect::Gemini => {
                let body =
                    json!({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": self.frame.model});
                self.raw(&format!("data: {body}\n\n"), &body.to_string()).await
            }
            Fault::ContentFilter => {
                self.refuse_as(400, Cause::ContentFilter, "the prompt is refused by the content filter").await
            }
            Fault::ContextLength => {
                let message = "prompt is too long: 999999 tokens > 8192 maximum context length";
                self.refuse_as(400, Cause::ContextLength, message).await
            }
            Fault::Hang => Ok(After::Hold),
            Fault::Stall | Fault::Drop => {
                let begun = self.begun();
                if self.frame.transport == Transport::Events {
                    let head = self.head();
                    self.connection.begin_chunks(&head).await?;
                    self.connection.send_chunk(text_of(&begun).as_bytes()).await?;
                } else {
                    let head = self.head();
                    self.connection.begin_whole(&head, b"{\"cho").await?;
                }
                Ok(if *fault == Fault::Stall { After::Hold } else { After::Close })
            }
            Fault::Empty => self.reply(&Turn::of_text(""), Pace::default()).await,
            Fault::Malformed => {
                let stream = format!("{}data: {{\"choices\": [oops\n\n", text_of(&self.begun()));
                self.raw(&stream, "{\"choices\": [oops").await
            }
            Fault::ErrorInBody { code } => self.fail(Vec::new(), code).await,
            Fault::ErrorInStream { code } => self.fail(self.begun(), code).await,
            Fault::InvalidUtf8 => {
                let turn = Turn::of_text("a~b");
                let mut body = match self.frame.transport {
                    Transport::Events => text_of(&dialect::events(&self.frame, &turn)),
                    Transport::Whole => dialect::whole(&self.frame, &turn).to_string(),
                    Transport::List => list_text(&dialect::events(&self.frame, &turn)),
                }
                .into_bytes();
                for byte in &mut body {
                    if *byte == b'~' {
                        *byte = 0xff;
                    }
                }
                self.send(&[body], Pace::default()).await?;
                Ok(After::Keep)
            }
            Fault::NoDone => {
                let turn = Turn::of_text("no done");
                let mut events = dialect::events(&self.frame, &turn);
                events.retain(|event| event.place != Place::Last);
                self.raw(&text_of(&events), &dialect::whole(&self.frame, &turn).to_string()).await
            }
            Fault::Cut => {
                let begun = text_of(&self.begun());
                self.raw(&begun, "{\"cho").await
            }
            Fault::Huge { bytes } => {
                // In small pieces the frames would be many times what they frame.
                self.frame.chunk = self.frame.chunk.max(4096);
                self.reply(&Turn::of_text("x".repeat(*bytes)), Pace::default()).await
            }
            Fault::Html { status } => {
                let head = Head { status: *status, kind: HTML, ..self.head() };
                let page = "<!doctype html><html><head><title>Gateway</title></head><body>Please sign in</body></html>";
                self.connection.send_whole(&head, page.as_bytes()).await?;
                Ok(After::Keep)
            }
            Fault::Drip(drip) => {
                let pace = Pace { drip: Some(*drip), comments: None };
                self.reply(&Turn::of_text("slow but whole"), pace).await
            }
            Fault::Comments(comments) => {
                let pace = Pace { drip: None, comments: Some(*comments) };
                self.reply(&Turn::of_text("late but whole"), pace).await
            }
        }
    }

    /// Tells an error with its status.
    pub(super) async fn refuse(
        &mut self,
        refusal: &Refusal,
        headers: Vec<(String, String)>,
    ) -> std::io::Result<After> {
        let mut head = Head { status: refusal.status, kind: JSON, ..self.head() };
        head.headers.extend(headers);
        let body = self.refusal_body(refusal);
        self.connection.send_whole(&head, body.to_string().as_bytes()).await?;
        Ok(After::Keep)
    }

    async fn refuse_as(&mut self, status: u16, cause: Cause, message: &str) -> std::io::Result<After> {
        self.refuse(&Refusal { status, cause, message: message.into() }, Vec::new()).await
    }

    fn refusal_body(&self, refusal: &Refusal) -> Value {
        dialect::refusal(self.frame.dialect, self.frame.vendor, &self.frame.id, refusal)
    }

    /// Tells an error inside a 200, in a stream after the events that went before.
    async fn fail(&mut self, before: Vec<Event>, code: &Value) -> std::io::Result<After> {
        let refusal = error_in_200(code);
        let last = dialect::refusal_event(&self.frame, &refusal, before.len());
        let stream = text_of(&before) + &last.text();
        let whole = dialect::failure(&self.frame, &refusal);
        self.raw(&stream, &whole.to_string()).await
    }

    /// Events of a reply up to its first piece of text.
    fn begun(&self) -> Vec<Event> {
        let frame = Frame { chunk: usize::MAX, ..self.frame.clone() };
        let mut events = dialect::events(&frame, &Turn::of_text("half of a "));
        let said = events.iter().position(|event| event.place == Place::Said).unwrap_or(0);
        events.truncate(said + 1);
        events
    }

    fn head(&self) -> Head {
        let kind = if self.frame.transport == Transport::Events { EVENTS } else { JSON };
        Head { status: 200, kind, headers: self.headers.clone() }
    }

    /// A 200 with this body.
    async fn raw(&mut self, stream: &str, whole: &str) -> std::io::Result<After> {
        let body = if self.frame.transport == Transport::Events { stream } else { whole };
        self.send(&[body.as_bytes().to_vec()], Pace::default()).await?;
        Ok(After::Keep)
    }

    async fn send(&mut self, bodies: &[Vec<u8>], pace: Pace) -> std::io::Result<()> {
        let head = self.head();
        let stream = self.frame.transport == Transport::Events;
        if !stream && pace == Pace::default() {
            return self.connection.send_whole(&head, &bodies.concat()).await;
        }
        self.connection.begin_chunks(&head).await?;
        if let Some(comments) = pace.comments {
            let sign: &[u8] = if stream { b": keep-alive\n\n" } else { b"\n" };
            let every = comments.every_ms.max(1);
            let signs = usize::try_from(comments.for_ms / every).unwrap_or(usize::MAX).max(1);
            let signs = std::iter::repeat_n(sign, signs);
            self.connection.send_slowly(signs, Duration::from_millis(every)).await?;
        }
        match pace.drip {
            Some(drip) => {
                let whole = bodies.concat();
                let pieces = whole.chunks(drip.bytes.max(1));
                self.connection.send_slowly(pieces, Duration::from_millis(drip.every_ms)).await?;
            }
            None if self.delay.is_zero() => self.connection.send_chunk(&bodies.concat()).await?,
            None => self.connection.send_slowly(bodies.iter().map(Vec::as_slice), self.delay).await?,
        }
        self.connection.end_chunks().await
    }
}

fn error_in_200(code: &Value) -> Refusal {
    let cause = Cause::Status { code: Some(code.clone()) };
    // What the error says of itself, not the status of the answer.
    let status = code.as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    Refusal { status, cause, message: "scripted error inside a 200".into() }
}

fn text_of(events: &[Event]) -> String {
    events.iter().map(Event::text).collect()
}

/// The chunks of a stream as one growing JSON list.
fn list_text(events: &[Event]) -> String {
    let chunks: Vec<&str> = events.iter().map(|event| event.data.as_str()).collect();
    format!("[{}]", chunks.join(",\r\n"))
}

impl Event {
    fn text(&self) -> String {
        match self.name {
            Some(name) => format!("event: {name}\ndata: {}\n\n", self.data),
            None => format!("data: {}\n\n", self.data),
        }
    }
}

impl WaitForm {
    fn header(self, wait: Duration) -> Option<(String, String)> {
        let whole_seconds = wait.as_millis().div_ceil(1000);
        let (name, value) = match self {
            Self::Seconds => ("retry-after", whole_seconds.to_string()),
            Self::Fraction => ("retry-after", wait.as_secs_f64().to_string()),
            Self::Date => {
                let seconds = u64::try_from(whole_seconds).unwrap_or(u64::MAX);
                // A date has no fractions: one more second, so that the wait is never shorter than told.
                let date = SystemTime::now().checked_add(Duration::from_secs(seconds.saturating_add(1)))?;
                ("retry-after", httpdate::fmt_http_date(date))
            }
            Self::Milliseconds => ("retry-after-ms", wait.as_millis().to_string()),
            Self::None => return None,
        };
        Some((name.to_owned(), value))
    }
}
