//! One attempt at a call: what makes it, and what came of one that gave no reply. Must not retry, wait or pay.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::LiveSink;
use super::rates::RateHint;
use crate::domain::{ChatReply, ChatRequest, Delivery, Prompt, Usage};

/// Tokens that a chat template may put around one message.
const PER_MESSAGE: usize = 16;
/// Tokens of the words around an output schema in a prompt.
const PER_SCHEMA: usize = 128;
/// Tokens of one image at most.
const PER_IMAGE: usize = 4096;

/// Something that answers requests one attempt at a time: a server, or a program that is started anew.
pub trait Endpoint: Send + Sync {
    /// Names everything outside the request that determines a reply; part of call fingerprints. Never a secret.
    fn label(&self) -> &str;

    /// Host or program, for messages.
    fn host(&self) -> &str;

    /// What to check when its login fails, to follow "check ".
    fn login(&self) -> String;

    fn delivery(&self) -> Delivery {
        Delivery::Prompt
    }

    /// The most that one attempt can use, without its price.
    fn bound(&self, request: &ChatRequest) -> Usage {
        request_bound(request)
    }

    /// Whose limits its calls share: the host and, where there is one, the login. Compared, never shown.
    fn account(&self) -> String {
        self.host().to_owned()
    }

    /// The server's newest word on how much it takes, told once.
    fn rates(&self) -> Option<RateHint> {
        None
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, Fault>>;
}

/// The most that a request can use. No tokenizer makes more tokens of a text than it has bytes.
pub fn request_bound(request: &ChatRequest) -> Usage {
    let (messages, images) = match &request.prompt {
        Prompt::Chat(messages) => (messages.len(), messages.iter().map(|m| m.content.images()).sum()),
        Prompt::Text(_) => (1, 0),
    };
    let tools: usize = request.asks.tools.iter().map(crate::domain::Tool::text_bytes).sum();
    let output = request.asks.output.as_ref();
    let schema = output.map_or(0, |output| output.schema.to_string().len() + output.name.len() + PER_SCHEMA);
    let prompt = request.prompt.text_bytes() + tools + schema + messages * PER_MESSAGE + images * PER_IMAGE;
    Usage {
        calls: 1,
        prompt_tokens: prompt as u64,
        completion_tokens: request.sampling.max_tokens.into(),
        ..Usage::default()
    }
}

/// Why one attempt gave no reply. The message is untrusted and not yet redacted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    /// What the attempt used even so; `None`: nobody knows, so it counts at its most. Boxed, for it is seldom looked at.
    pub used: Option<Box<Usage>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Worth another attempt, after `wait` if the server named one.
    Temporary { wait: Option<Duration> },
    /// The same, and the server has more calls than it can take.
    Overloaded { wait: Option<Duration> },
    /// The server refused a parameter, which the next attempt leaves out.
    Learned,
    /// The key is missing, wrong or not allowed: every other call would fail as well.
    Authentication,
    /// It cannot be called at all as things are: an account without credit, a program that is missing, too old or
    /// wrongly set up.
    Unusable,
    /// The same request would be refused again. 200: an answer that is no reply.
    Refused { status: u16 },
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), used: None }
    }

    pub fn temporary(message: impl Into<String>) -> Self {
        Self::new(FaultKind::Temporary { wait: None }, message)
    }

    /// The server did not get as far as generating anything.
    pub fn unbilled(mut self) -> Self {
        self.used = Some(Box::new(Usage { calls: 1, ..Usage::default() }));
        self
    }

    pub fn refused(status: u16, message: impl Into<String>) -> Self {
        Self::new(FaultKind::Refused { status }, message)
    }
}
