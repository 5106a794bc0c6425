//! A server that speaks one of the dialects over HTTP as an [`Endpoint`]: one attempt and its timeouts. Must not read
//! configuration, environment variables or files, and must not retry.

use std::sync::{Arc, Once};
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use secrecy::ExposeSecret;

use super::LiveSink;
use super::attempt::{Endpoint, Fault};
use super::completion::{Piece, request_body};
use super::dialect::Dialect;
use super::dials::Dials;
use super::login::Login;
use super::redact::Redactor;
use super::retry::{judge_answer, status_in_error};
use super::sse::SseReader;
use crate::config::Effort;
use crate::domain::{ChatReply, ChatRequest, FinishReason, Usage};
use crate::event::Live;

/// Largest body, event or reply text that is read.
pub const MAX_REPLY_BYTES: usize = 8 << 20;
/// Largest error body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
const REQUEST_ID_HEADERS: [&str; 4] = ["x-request-id", "request-id", "x-ms-request-id", "apim-request-id"];

/// One server, one model.
#[derive(Clone)]
pub struct HttpSettings {
    pub dialect: Dialect,
    /// Up to and including `/v1`.
    pub base_url: String,
    pub model: String,
    pub login: Login,
    pub stream: bool,
    /// How long the model is to think.
    pub effort: Effort,
    /// The same where a whole skill is rewritten; not set: as everywhere.
    pub rewrite_effort: Effort,
    pub connect_timeout: Duration,
}

/// Why a client cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HttpSetupError {
    #[error("base_url \"{url}\" is not an http or https address ({why})")]
    BadUrl { url: String, why: String },
    #[error(
        "refusing to send the key from {origin} over plain http to {host}; use https, a loopback address, or no key"
    )]
    KeyOverPlainHttp { origin: String, host: String },
    #[error(
        "the key from {origin} holds characters that no HTTP header may hold; check for line ends or spaces"
    )]
    BadKey { origin: String },
    #[error("cannot build the HTTP client: {why}")]
    Client { why: String },
}

/// A model behind an HTTP server.
pub struct HttpEndpoint {
    client: Client,
    settings: HttpSettings,
    /// Base URL without a trailing slash.
    base: String,
    host: String,
    label: String,
    redactor: Arc<Redactor>,
    dials: Arc<Dials>,
}

impl HttpEndpoint {
    /// Takes its time limits from `dials`, which others may turn.
    ///
    /// # Errors
    /// The address is unusable, or the key would travel in the clear.
    pub fn new(
        settings: HttpSettings,
        redactor: Arc<Redactor>,
        dials: Arc<Dials>,
    ) -> Result<Self, HttpSetupError> {
        let address = Address::parse(&settings.base_url)?;
        let mut headers = HeaderMap::new();
        if let Login::Key(key) = &settings.login {
            if !address.encrypted && !address.loopback {
                let origin = key.origin.clone();
                return Err(HttpSetupError::KeyOverPlainHttp { origin, host: address.host });
            }
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.secret.expose_secret()))
                .map_err(|_| HttpSetupError::BadKey { origin: key.origin.clone() })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = build_client(&address, headers, settings.connect_timeout)?;
        let mut label = format!("openai_chat {} {}", address.shown, settings.model);
        for (name, effort) in [("effort", settings.effort), ("rewrite effort", settings.rewrite_effort)] {
            if effort != Effort::NotSent {
                label.push_str(&format!(", {name} {}", effort.word()));
            }
        }
        let base = settings.base_url.trim_end_matches('/').to_owned();
        Ok(Self { client, settings, base, host: address.host, label, redactor, dials })
    }

    async fn send(&self, request: &ChatRequest, live: &LiveSink) -> Result<ChatReply, Fault> {
        let started = Instant::now();
        let settings = &self.settings;
        let effort = match (request.stage.as_str(), settings.rewrite_effort) {
            ("rewrite", effort) if effort != Effort::NotSent => effort,
            _ => settings.effort,
        };
        let token_field = settings.dialect.token_field.name();
        let (endpoint, body) = request_body(request, &settings.model, token_field, settings.stream, effort);
        let url = format!("{}/{endpoint}", self.base);
        let accept = if settings.stream { "text/event-stream" } else { "application/json" };
        let response = self.client.post(url).header(ACCEPT, accept).body(body.to_string()).send().await;
        let response = response.map_err(|error| Fault::temporary(describe(&error)))?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        if status != 200 {
            let body = self.read_body(response, MAX_ERROR_BYTES, true).await.unwrap_or_default();
            return Err(judge_answer(status, &headers, &body, SystemTime::now()));
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let piece = if kind.starts_with("text/event-stream") {
            self.read_stream(response, &headers, &request.path, live).await?
        } else {
            let body = self.read_body(response, MAX_REPLY_BYTES, false).await?;
            let piece = read_piece(&String::from_utf8_lossy(&body), &headers)?;
            if !piece.text.is_empty() {
                live(Live::CallDelta { path: request.path.clone(), text: piece.text.clone() });
            }
            piece
        };
        let finish = piece.finish.unwrap_or(FinishReason::Other);
        if piece.text.trim().is_empty() {
            return Err(empty_reply(finish));
        }
        let request_id = REQUEST_ID_HEADERS.iter().find_map(|name| headers.get(*name)?.to_str().ok());
        let usage = piece.usage.unwrap_or(Usage { calls: 1, ..Usage::default() });
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(ChatReply {
            request_id: request_id.map(|id| self.redactor.redact(id)),
            ..ChatReply::of_text(piece.text, finish, usage, ms)
        })
    }

    /// Reads a whole body. `cut`: what is over the limit is dropped, else it is an error.
    async fn read_body(&self, response: Response, limit: usize, cut: bool) -> Result<Vec<u8>, Fault> {
        let mut stream = response.bytes_stream();
        let mut body = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut stream).await? {
            body.extend_from_slice(&chunk);
            if body.len() > limit {
                if cut {
                    body.truncate(limit);
                    return Ok(body);
                }
                return Err(too_large());
            }
        }
        Ok(body)
    }

    /// Reads an event stream to its end; text goes to `live` as it comes.
    async fn read_stream(
        &self,
        response: Response,
        headers: &HeaderMap,
        path: &str,
        live: &LiveSink,
    ) -> Result<Piece, Fault> {
        let mut stream = response.bytes_stream();
        let mut reader = SseReader::default();
        let mut whole = Piece::default();
        loop {
            let chunk = self.next_chunk(&mut stream).await?;
            let events = match &chunk {
                Some(bytes) => reader.push(bytes, MAX_REPLY_BYTES).map_err(|_| too_large())?,
                None => reader.finish().into_iter().collect(),
            };
            for event in &events {
                if event.trim() == "[DONE]" {
                    whole.finish = whole.finish.or(Some(FinishReason::Other));
                    return Ok(whole);
                }
                let piece = read_piece(event, headers)?;
                if !piece.text.is_empty() {
                    whole.text.push_str(&piece.text);
                    if whole.text.len() > MAX_REPLY_BYTES {
                        return Err(too_large());
                    }
                    live(Live::CallDelta { path: path.to_owned(), text: piece.text });
                }
                whole.finish = piece.finish.or(whole.finish);
                whole.usage = piece.usage.or(whole.usage);
            }
            if chunk.is_none() {
                // Without `[DONE]` or a finish reason nobody can tell a short reply from a cut one.
                return match whole.finish {
                    Some(_) => Ok(whole),
                    None => Err(Fault::temporary("the stream ended in the middle of the reply")),
                };
            }
        }
    }

    async fn next_chunk<S, B>(&self, stream: &mut S) -> Result<Option<B>, Fault>
    where
        S: futures_util::Stream<Item = reqwest::Result<B>> + Unpin,
    {
        let silence = self.dials.get().read_timeout;
        match tokio::time::timeout(silence, stream.next()).await {
            Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
            Ok(Some(Err(error))) => Err(Fault::temporary(describe(&error))),
            Ok(None) => Ok(None),
            Err(_) => {
                Err(Fault::temporary(format!("silence of {} s inside the reply", silence.as_secs_f64())))
            }
        }
    }
}

impl Endpoint for HttpEndpoint {
    fn label(&self) -> &str {
        &self.label
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn login(&self) -> String {
        match &self.settings.login {
            Login::Key(key) => format!("the key from {}", key.origin),
            Login::Token(source) => format!("the login by {}", source.origin()),
            Login::None => "that api_key_env or api_key_file is set (no key was sent)".to_owned(),
        }
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, Fault>> {
        Box::pin(self.send(request, live))
    }
}

/// What matters of a base URL.
struct Address {
    host: String,
    encrypted: bool,
    loopback: bool,
    /// Without user, password, query and fragment.
    shown: String,
}

impl Address {
    fn parse(base_url: &str) -> Result<Self, HttpSetupError> {
        let bad = |why: String| HttpSetupError::BadUrl { url: without_userinfo(base_url), why };
        let url = Url::parse(base_url).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("scheme {}", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it holds a user or password; put the key into api_key_env".into()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it must end after the path".into()));
        }
        let host = url.host_str().ok_or_else(|| bad("no host".into()))?.to_owned();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let loopback = bare == "localhost"
            || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let shown = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { host, encrypted: url.scheme() == "https", loopback, shown })
    }
}

/// The text before an `@` may be a password.
fn without_userinfo(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => url.to_owned(),
    }
}

fn build_client(
    address: &Address,
    headers: HeaderMap,
    connect_timeout: Duration,
) -> Result<Client, HttpSetupError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that another provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let mut builder = Client::builder()
        .default_headers(headers)
        .connect_timeout(connect_timeout)
        // A redirect would carry the key and the prompt to an address that nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("planish/", env!("CARGO_PKG_VERSION")));
    if address.loopback {
        builder = builder.no_proxy();
    }
    if !address.encrypted {
        // Reading the system's certificates takes longer than everything else at start, for nothing here.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| HttpSetupError::Client { why: describe(&error) })
}

/// An error with its causes, without the URL that reqwest appends.
fn describe(error: &reqwest::Error) -> String {
    let mut text = if error.is_connect() {
        "cannot connect".to_owned()
    } else if error.is_timeout() {
        "timeout".to_owned()
    } else if error.is_body() || error.is_decode() {
        "the connection broke inside the reply".to_owned()
    } else {
        "the request failed".to_owned()
    };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        cause = error.source();
        if cause.is_none() {
            text.push_str(": ");
            text.push_str(&error.to_string());
        }
    }
    text
}

fn read_piece(data: &str, headers: &HeaderMap) -> Result<Piece, Fault> {
    let piece =
        Piece::read(data).map_err(|error| Fault::temporary(format!("the reply is malformed: {error}")))?;
    match &piece.error {
        Some(error) if !error.is_null() => {
            let status = status_in_error(error);
            Err(judge_answer(status, headers, data.as_bytes(), SystemTime::now()))
        }
        _ => Ok(piece),
    }
}

fn too_large() -> Fault {
    Fault::refused(200, format!("the reply is larger than {} MiB", MAX_REPLY_BYTES >> 20))
}

/// An empty answer is a fault of the model, never a reply: scored, it would hide what went wrong.
fn empty_reply(finish: FinishReason) -> Fault {
    match finish {
        FinishReason::ContentFilter => Fault::refused(200, "the content filter withheld the reply"),
        FinishReason::Length => {
            Fault::temporary("empty reply: max_tokens was used up before any text; raise it")
        }
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => Fault::temporary("empty reply"),
    }
}
