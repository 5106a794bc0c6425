//! A server that speaks one of the dialects over HTTP as an [`Endpoint`]: one attempt and its timeouts. Must not read
//! configuration, environment variables or files, and must not retry.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response};
use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use super::address::{Address, authorization, header, operation_url};
use super::attempt::{Endpoint, Fault, FaultKind, request_bound};
use super::dialect::{AuthStyle, Dialect, Paths};
use super::dials::Dials;
use super::error_body::ErrorBody;
use super::label::label;
use super::lessons::{Lesson, Lessons, Refusal, Taught};
use super::login::{ApiKey, Login};
use super::rates::RateHint;
use super::reception::{answer, describe, error_body};
use super::redact::Redactor;
use super::retry::judge_error;
use super::rungs::rung;
use super::verdict::reply;
use super::wire::{Call, Outgoing, Reader, ThinkingError, ThinkingMode, check_thinking, outgoing};
use super::{LiveSink, tls};
use crate::config::Effort;
use crate::domain::{ChatReply, ChatRequest, Rung, Usage, fingerprint};
use crate::event::Live;

const REQUEST_ID_HEADERS: [&str; 4] = ["x-request-id", "request-id", "x-ms-request-id", "apim-request-id"];

/// One server, one model.
#[derive(Clone)]
pub struct HttpSettings {
    pub dialect: Dialect,
    /// Up to and including `/v1`; for Azure the address of the resource.
    pub base_url: String,
    /// For Azure the name of the deployment.
    pub model: String,
    pub login: Login,
    pub stream: bool,
    /// How long the model is to think.
    pub effort: Effort,
    /// The same where a whole skill is rewritten; not set: as everywhere.
    pub rewrite_effort: Effort,
    pub thinking: ThinkingMode,
    /// Most tokens of thinking.
    pub thinking_budget: Option<u32>,
    /// Further fields of every body; they win over everything else.
    pub extra_body: Map<String, Value>,
    pub extra_headers: Vec<(String, String)>,
    /// Azure's `api-version`; empty: the dialect's.
    pub api_version: String,
    pub connect_timeout: Duration,
    /// What servers refused so far; to be shared by all roles.
    pub lessons: Lessons,
}

impl HttpSettings {
    /// With nothing said about thinking, no additions, streaming.
    pub fn new(
        dialect: Dialect,
        base_url: impl Into<String>,
        model: impl Into<String>,
        login: Login,
    ) -> Self {
        Self {
            dialect,
            base_url: base_url.into(),
            model: model.into(),
            login,
            stream: true,
            effort: Effort::NotSent,
            rewrite_effort: Effort::NotSent,
            thinking: ThinkingMode::ServerDefault,
            thinking_budget: None,
            extra_body: Map::new(),
            extra_headers: Vec::new(),
            api_version: String::new(),
            connect_timeout: Duration::from_secs(10),
            lessons: Lessons::default(),
        }
    }

    pub(super) fn api_version(&self) -> &str {
        if self.api_version.is_empty() { &self.dialect.api_version } else { &self.api_version }
    }

    /// The effort of calls of one stage.
    fn effort_in(&self, stage: &str) -> Effort {
        match (stage, self.rewrite_effort) {
            ("rewrite", effort) if effort != Effort::NotSent => effort,
            _ => self.effort,
        }
    }
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
        "refusing to send a token of {origin} to {host}: such tokens go to https addresses of Azure only; use a key"
    )]
    TokenOutsideAzure { origin: String, host: String },
    #[error(
        "the key from {origin} holds characters that no HTTP header may hold; check for line ends or spaces"
    )]
    BadKey { origin: String },
    #[error("\"{name}\" is no header that may be set by hand; keys belong into api_key_env or api_key_file")]
    BadHeader { name: String },
    #[error("dialect {dialect} needs an api_version, for example 2024-12-01-preview")]
    NoApiVersion { dialect: String },
    #[error(transparent)]
    Thinking(#[from] ThinkingError),
    #[error("cannot build the HTTP client: {why}")]
    Client { why: String },
}

/// A model behind an HTTP server.
pub struct HttpEndpoint {
    client: Client,
    settings: HttpSettings,
    host: String,
    label: String,
    redactor: Arc<Redactor>,
    dials: Arc<Dials>,
    /// The server's last word on its limits, until it is taken.
    rates: Mutex<Option<RateHint>>,
}

impl HttpEndpoint {
    /// Takes its time limits from `dials`, which others may turn.
    ///
    /// # Errors
    /// The address is unusable, a secret would travel where it must not, or the dialect has no words for a setting.
    pub fn new(
        settings: HttpSettings,
        redactor: Arc<Redactor>,
        dials: Arc<Dials>,
    ) -> Result<Self, HttpSetupError> {
        let address = Address::parse(&settings.base_url)?;
        let dialect = &settings.dialect;
        for effort in [settings.effort_in(""), settings.effort_in("rewrite")] {
            check_thinking(dialect, effort, settings.thinking, settings.thinking_budget)?;
        }
        if dialect.paths == Paths::AzureDated && settings.api_version().is_empty() {
            return Err(HttpSetupError::NoApiVersion { dialect: dialect.name.clone() });
        }
        let headers = default_headers(&settings, &address)?;
        let client = build_client(&address, headers, settings.connect_timeout)?;
        let label = label(&settings, &address.shown);
        let rates = Mutex::new(None);
        Ok(Self { client, settings, host: address.host, label, redactor, dials, rates })
    }

    async fn send(&self, request: &ChatRequest, live: &LiveSink) -> Result<ChatReply, Fault> {
        let started = Instant::now();
        let settings = &self.settings;
        let lesson = settings.lessons.of(&self.host, &settings.model);
        let rung = rung(&settings.dialect, &request.asks, lesson.highest_rung);
        let body = self.outgoing(request, rung, &lesson)?;
        let response = self.post(&body).await?;
        let silence = self.dials.get().read_timeout;
        let headers = response.headers().clone();
        if let Some(hint) = RateHint::read(&headers, SystemTime::now()) {
            *self.rates.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint);
        }
        let status = response.status().as_u16();
        if status != 200 {
            let body = (body.body, error_body(response, silence).await);
            return Err(self.refusal(status, &headers, &body.0, rung, &body.1));
        }
        let mut hear = |text| live(Live::CallDelta { path: request.path.clone(), text });
        let answer = answer(response, Reader::new(&settings.dialect), silence, &mut hear).await?;
        let request_id = REQUEST_ID_HEADERS.iter().find_map(|name| headers.get(*name)?.to_str().ok());
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let reply = reply(answer, rung, request.asks.output.as_ref(), ms)?;
        Ok(ChatReply { request_id: request_id.map(|id| self.redactor.redact(id)), ..reply })
    }

    /// The request as this server takes it.
    fn outgoing(
        &self,
        request: &ChatRequest,
        rung: Option<Rung>,
        lesson: &Lesson,
    ) -> Result<Outgoing, Fault> {
        let settings = &self.settings;
        let call = Call {
            request,
            dialect: &settings.dialect,
            model: &settings.model,
            stream: settings.stream,
            effort: settings.effort_in(&request.stage),
            thinking: settings.thinking,
            thinking_budget: settings.thinking_budget,
            rung,
        };
        let mut outgoing = outgoing(&call).map_err(|why| not_sent(why.to_string()))?;
        for name in &outgoing.left_out {
            let (dialect, model) = (&settings.dialect.name, &settings.model);
            let text = format!("dialect {dialect} has no {name}; it is not sent to {model} at {}", self.host);
            settings.lessons.tell(&self.host, model, text);
        }
        lesson.apply(&mut outgoing.body);
        merge(&mut outgoing.body, &settings.dialect.extra_body);
        merge(&mut outgoing.body, &settings.extra_body);
        Ok(outgoing)
    }

    async fn post(&self, outgoing: &Outgoing) -> Result<Response, Fault> {
        let settings = &self.settings;
        let version = settings.api_version();
        let url = operation_url(
            &settings.dialect,
            &settings.base_url,
            &settings.model,
            version,
            outgoing.operation,
        );
        let accept = if settings.stream { "text/event-stream" } else { "application/json" };
        let body = serde_json::to_string(&outgoing.body)
            .map_err(|error| not_sent(format!("the request cannot be written: {error}")))?;
        let mut call = self.client.post(url).header(ACCEPT, accept).body(body);
        if let Login::Token(source) = &settings.login {
            let denied = |why: String| Fault::new(FaultKind::Authentication, why).unbilled();
            let token = source.token().await.map_err(denied)?;
            let (name, value) = authorization(AuthStyle::Bearer, token.expose_secret(), source.origin())
                .map_err(|error| denied(error.to_string()))?;
            call = call.header(name, value);
        }
        call.send().await.map_err(|error| {
            let fault = Fault::temporary(describe(&error));
            if error.is_connect() { fault.unbilled() } else { fault }
        })
    }

    /// Judges an answer with an error status, and learns from it.
    fn refusal(
        &self,
        status: u16,
        headers: &HeaderMap,
        sent: &Map<String, Value>,
        rung: Option<Rung>,
        body: &[u8],
    ) -> Fault {
        let settings = &self.settings;
        let error = ErrorBody::read(body);
        let fault = judge_error(status, headers, error.clone(), SystemTime::now());
        let teaches = matches!(status, 400 | 422) && matches!(fault.kind, FaultKind::Refused { .. });
        if !teaches || error.codes.iter().any(|code| code == "context_length_exceeded") {
            return fault;
        }
        let by_hand: Vec<&str> = settings
            .extra_body
            .keys()
            .chain(settings.dialect.extra_body.keys())
            .map(String::as_str)
            .collect();
        let refusal = Refusal {
            host: &self.host,
            model: &settings.model,
            body: sent,
            rung,
            token_field: settings.dialect.token_field,
            by_hand: &by_hand,
            thinking_asked: settings.thinking != ThinkingMode::ServerDefault,
        };
        match settings.lessons.learn(&refusal, &error) {
            Taught::Nothing => fault,
            Taught::Learned(text) => Fault::new(FaultKind::Learned, text).unbilled(),
            Taught::Needed(text) => Fault::refused(status, text).unbilled(),
        }
    }
}

/// A call that was never made; 0 stands for its status.
fn not_sent(why: String) -> Fault {
    Fault::refused(0, why).unbilled()
}

/// Puts fields over others; objects are merged.
fn merge(body: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (body.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(_) | None, _) => {
                body.insert(name.clone(), value.clone());
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

    fn account(&self) -> String {
        match &self.settings.login {
            Login::Key(key) => fingerprint([self.settings.base_url.as_str(), key.secret.expose_secret()]),
            Login::Token(source) => fingerprint([self.settings.base_url.as_str(), source.origin()]),
            Login::None => self.settings.base_url.clone(),
        }
    }

    fn rates(&self) -> Option<RateHint> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was added by hand may be part of the prompt (tools, a template's words).
    fn bound(&self, request: &ChatRequest) -> Usage {
        let added = [&self.settings.dialect.extra_body, &self.settings.extra_body];
        let added: usize =
            added.into_iter().flatten().map(|(name, value)| name.len() + value.to_string().len()).sum();
        let bound = request_bound(request);
        Usage { prompt_tokens: bound.prompt_tokens + added as u64, ..bound }
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, Fault>> {
        Box::pin(self.send(request, live))
    }
}

/// What every request carries. Tokens are not among it: they are renewed.
fn default_headers(settings: &HttpSettings, address: &Address) -> Result<HeaderMap, HttpSetupError> {
    let mut headers = HeaderMap::new();
    let host = || address.host.clone();
    match &settings.login {
        Login::None => {}
        Login::Token(source) if !address.is_azure() => {
            return Err(HttpSetupError::TokenOutsideAzure {
                origin: source.origin().to_owned(),
                host: host(),
            });
        }
        Login::Token(_) => {}
        Login::Key(ApiKey { origin, .. }) if !address.encrypted && !address.loopback => {
            return Err(HttpSetupError::KeyOverPlainHttp { origin: origin.clone(), host: host() });
        }
        Login::Key(ApiKey { secret, origin }) => {
            let (name, value) = authorization(settings.dialect.auth, secret.expose_secret(), origin)?;
            headers.insert(name, value);
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let of_dialect = settings.dialect.headers.iter();
    let of_dialect = of_dialect.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
    let by_hand = settings.extra_headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in of_dialect.chain(by_hand) {
        let bad = || HttpSetupError::BadHeader { name: name.to_owned() };
        let (name, value) = header(name, value).ok_or_else(bad)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn build_client(
    address: &Address,
    headers: HeaderMap,
    connect_timeout: Duration,
) -> Result<Client, HttpSetupError> {
    tls::install_provider();
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
