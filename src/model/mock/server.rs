//! The mock server's sockets and its record of what it was asked. Must not know how answers look on the wire.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::access;
use super::answer::FixedUsage;
use super::conversation::Conversation;
use super::delivery::Delivery;
use super::dialect::{self, Dialect, Frame, Transport};
use super::listing;
use super::log::RequestLog;
use super::playbook::{Act, Playbook};
use super::route::{Endpoint, Route};
use super::script::{Script, ScriptError};
use super::turn::Refusal;
use super::wire::{After, Connection, Head, JSON, Request};

/// Requests that are kept for assertions; older ones are only counted.
const KEPT_REQUESTS: usize = 10_000;

/// One request for a reply as the server saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenRequest {
    /// Without the query.
    pub path: String,
    pub query: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Value,
    /// Name of the rule that answered; "" where none did or it has no name.
    pub rule: String,
}

#[derive(Debug)]
struct Shared {
    playbook: Playbook,
    seen: VecDeque<SeenRequest>,
    count: watch::Sender<u64>,
    log: Option<RequestLog>,
    in_flight: usize,
    max_in_flight: usize,
}

/// A running mock server; dropping it stops it and closes its connections.
#[derive(Debug)]
pub struct MockServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

/// Why a mock server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("cannot listen on port {port}: {source}")]
    Listen { port: u16, source: std::io::Error },
}

impl MockServer {
    /// Listens on loopback; port 0 takes a free one.
    ///
    /// # Errors
    /// A bad script or a taken port.
    pub async fn start(port: u16, script: Script) -> Result<Self, MockError> {
        Self::start_logged(port, script, None).await
    }

    /// The same, with a line in the log for every request.
    ///
    /// # Errors
    /// A bad script or a taken port.
    pub async fn start_logged(port: u16, script: Script, log: Option<RequestLog>) -> Result<Self, MockError> {
        let playbook = Playbook::new(script)?;
        let listen = |source| MockError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let shared = Arc::new(Mutex::new(Shared {
            playbook,
            seen: VecDeque::new(),
            count: watch::Sender::new(0),
            log,
            in_flight: 0,
            max_in_flight: 0,
        }));
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Base URL up to and including `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The address alone, for dialects whose base has another path.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests for a reply so far.
    pub fn count(&self) -> u64 {
        *lock(&self.shared).count.borrow()
    }

    /// The most requests that were being answered at a time.
    pub fn max_in_flight(&self) -> usize {
        lock(&self.shared).max_in_flight
    }

    /// Waits for a request that is `wanted`, be it answered or not.
    pub async fn wait_for(&self, wanted: impl Fn(&SeenRequest) -> bool) {
        let mut count = lock(&self.shared).count.subscribe();
        while !lock(&self.shared).seen.iter().any(&wanted) && count.changed().await.is_ok() {}
    }

    /// Stops at once; the port is free afterwards.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// The latest requests, oldest first.
    pub fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.shared).seen.iter().cloned().collect()
    }

    /// Serves until the process ends or the listener fails.
    pub async fn finished(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Mutex<Shared>>) {
    // The set owns the connections: they end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Mutex<Shared>>) {
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    // A peer that goes away in the middle is no event for a mock.
    while let Ok(Some(request)) = connection.read().await {
        match answer(&mut connection, &shared, request).await {
            Ok(After::Keep) => {}
            Ok(After::Close | After::Hold) | Err(_) => return,
        }
    }
}

async fn answer(
    connection: &mut Connection,
    shared: &Mutex<Shared>,
    request: Request,
) -> std::io::Result<After> {
    let endpoint = Endpoint::of(&request.method, &request.path);
    let (status, body) = match endpoint {
        Endpoint::Generate(route) => return generate(connection, shared, request, route).await,
        Endpoint::CountTokens(route) => (200, listing::token_count(&route, &request.body)),
        Endpoint::Models(route) => {
            let shared = lock(shared);
            let script = shared.playbook.script();
            let key = script.require_key.as_ref();
            match key.and_then(|key| access::key_refusal(key, &route, &request)) {
                Some(no) => (no.status, dialect::refusal(route.dialect, route.vendor, "mock", &no)),
                None => (200, listing::models(&route, &request.headers, &script.models)),
            }
        }
        Endpoint::Home => (200, Value::Null),
        Endpoint::Unknown => {
            let message = format!("no such endpoint: {} {}", request.method, request.path);
            let refusal = Refusal::new(404, message);
            (404, dialect::refusal(Dialect::Chat, dialect::Vendor::Plain, "mock", &refusal))
        }
    };
    if let Some(log) = &mut lock(shared).log {
        log.write(&request, status, "");
    }
    let head = Head { status, kind: JSON, headers: Vec::new() };
    let body = if request.method == "HEAD" { String::new() } else { body.to_string() };
    connection.send_whole(&head, body.as_bytes()).await?;
    Ok(After::Keep)
}

/// Counts a request as under way until it goes out of scope.
struct InFlight<'a>(&'a Mutex<Shared>);

impl<'a> InFlight<'a> {
    fn begin(shared: &'a Mutex<Shared>) -> Self {
        let mut locked = lock(shared);
        locked.in_flight += 1;
        locked.max_in_flight = locked.max_in_flight.max(locked.in_flight);
        Self(shared)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        lock(self.0).in_flight -= 1;
    }
}

/// What is to be done with one request for a reply.
struct Decision {
    outcome: Result<Act, Refusal>,
    frame: Frame,
    headers: Vec<(String, String)>,
    latency: Duration,
    delay: Duration,
}

async fn generate(
    connection: &mut Connection,
    shared: &Mutex<Shared>,
    request: Request,
    route: Route,
) -> std::io::Result<After> {
    let _in_flight = InFlight::begin(shared);
    let body = serde_json::from_slice(&request.body)
        .map_err(|error| Refusal::new(400, format!("body is not JSON: {error}")));
    let decision = decide(shared, request, body, &route);
    if !decision.latency.is_zero() {
        tokio::time::sleep(decision.latency).await;
    }
    let Decision { outcome, frame, headers, delay, .. } = decision;
    let mut delivery = Delivery { connection, frame, delay, headers };
    let after = match outcome {
        Ok(Act::Reply { turn, pace }) => delivery.reply(&turn, pace).await?,
        Ok(Act::Fault(fault)) => delivery.fault(&fault).await?,
        Err(refusal) => delivery.refuse(&refusal, Vec::new()).await?,
    };
    if after == After::Hold {
        // Here, because whoever waits for an answer counts as under way.
        connection.hold().await;
    }
    Ok(after)
}

fn decide(shared: &Mutex<Shared>, request: Request, body: Result<Value, Refusal>, route: &Route) -> Decision {
    let dialect = route.dialect;
    let mut shared = lock(shared);
    let (body, malformed) = match body {
        Ok(body) => (body, None),
        Err(refusal) => (Value::Null, Some(refusal)),
    };
    let model = route.model.as_deref().or(body["model"].as_str()).unwrap_or_default();
    let said = Conversation::of(dialect, model, &dialect::read(dialect, &body));
    let refusal = malformed.or_else(|| access::refusal(shared.playbook.script(), route, &request, &body));
    let (outcome, rule) = match refusal {
        Some(refusal) => (Err(refusal), String::new()),
        None => {
            let act = shared.playbook.act(&said, &body.to_string());
            (Ok(act), shared.playbook.answered().to_owned())
        }
    };
    let id = format!("mock-{}", *shared.count.borrow() + 1);
    let script = shared.playbook.script();
    let mut headers = listing::rate_headers(dialect, script.rate_headers.as_ref());
    headers.push((dialect.request_id_header(route.vendor).to_owned(), id.clone()));
    let frame = Frame {
        dialect,
        vendor: route.vendor,
        transport: transport(route, &request.query, &body),
        model: model.to_owned(),
        id,
        usage: usage(script, &said, &outcome),
        chunk: if script.chunk == 0 { 8 } else { script.chunk },
        wants: dialect::wants(dialect, &body),
    };
    let (latency, delay) = (script.latency_ms, script.chunk_delay_ms);
    if let Some(log) = &mut shared.log {
        log.write(&request, status(&outcome), &rule);
    }
    // A body that is no JSON never was a question.
    if !body.is_null() {
        if shared.seen.len() == KEPT_REQUESTS {
            shared.seen.pop_front();
        }
        let Request { path, query, headers, .. } = request;
        shared.seen.push_back(SeenRequest { path, query, headers, body, rule });
        shared.count.send_modify(|count| *count += 1);
    }
    let (latency, delay) = (Duration::from_millis(latency), Duration::from_millis(delay));
    Decision { outcome, frame, headers, latency, delay }
}

fn transport(route: &Route, query: &str, body: &Value) -> Transport {
    match route.dialect {
        Dialect::Gemini if !route.stream => Transport::Whole,
        Dialect::Gemini if query.split('&').any(|pair| pair == "alt=sse") => Transport::Events,
        Dialect::Gemini => Transport::List,
        Dialect::Chat | Dialect::Text | Dialect::Responses | Dialect::Messages => {
            if body["stream"] == true {
                Transport::Events
            } else {
                Transport::Whole
            }
        }
    }
}

fn usage(script: &Script, said: &Conversation, outcome: &Result<Act, Refusal>) -> Option<FixedUsage> {
    if script.no_usage {
        return None;
    }
    let turn = match outcome {
        Ok(Act::Reply { turn, .. }) => Some(turn),
        Ok(Act::Fault(_)) | Err(_) => None,
    };
    turn.and_then(|turn| turn.usage).or(script.usage).or_else(|| {
        let reply_length = turn.map_or(0, super::turn::Turn::len);
        Some(FixedUsage {
            prompt_tokens: (said.system.len() + said.last.len()).div_ceil(4) as u64,
            completion_tokens: reply_length.div_ceil(4) as u64,
            ..FixedUsage::default()
        })
    })
}

fn status(outcome: &Result<Act, Refusal>) -> u16 {
    match outcome {
        Ok(Act::Reply { .. }) => 200,
        Ok(Act::Fault(fault)) => fault.status(),
        Err(refusal) => refusal.status,
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
