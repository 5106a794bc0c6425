//! The mock server's sockets and its record of what it was asked. Must not know how answers look on the wire.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::script::{Act, Conversation, FixedUsage, Playbook, Script, ScriptError};
use super::wire::{After, Connection, Request, Shape};

/// Requests that are kept for assertions; older ones are only counted.
const KEPT_REQUESTS: usize = 10_000;

/// One request as the server saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenRequest {
    pub path: String,
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
        let playbook = Playbook::new(script)?;
        let listen = |source| MockError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let shared =
            Arc::new(Mutex::new(Shared { playbook, seen: VecDeque::new(), count: watch::Sender::new(0) }));
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

    /// Requests so far.
    pub fn count(&self) -> u64 {
        *lock(&self.shared).count.borrow()
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
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let mut connection = Connection::new(stream);
            // A peer that goes away in the middle is no event for a mock.
            while let Ok(After::Keep) = serve_one(&mut connection, &shared).await {}
        });
    }
}

async fn serve_one(connection: &mut Connection, shared: &Mutex<Shared>) -> std::io::Result<After> {
    let Some(request) = connection.read().await? else { return Ok(After::Close) };
    let endpoint = request.path.trim_start_matches("/v1/");
    let chat = match (request.method.as_str(), endpoint) {
        ("POST", "chat/completions") => true,
        ("POST", "completions") => false,
        ("GET", "models") => {
            connection.send_json(200, "", &json!({"object": "list", "data": [{"id": "mock"}]})).await?;
            return Ok(After::Keep);
        }
        _ => {
            connection.send_json(404, "", &json!({"error": {"message": "no such endpoint"}})).await?;
            return Ok(After::Keep);
        }
    };
    let body: Value = match serde_json::from_slice(&request.body) {
        Ok(body) => body,
        Err(error) => {
            let message = format!("body is not JSON: {error}");
            connection.send_json(400, "", &json!({"error": {"message": message}})).await?;
            return Ok(After::Keep);
        }
    };
    let (act, latency, shape) = decide(shared, request, body, chat);
    if latency > 0 {
        tokio::time::sleep(Duration::from_millis(latency)).await;
    }
    let after = match act {
        Act::Reply { text, finish } => {
            connection.reply(&shape, &text, &finish).await?;
            After::Keep
        }
        Act::Fault(fault) => connection.fault(&shape, &fault).await?,
    };
    if after == After::Hold {
        connection.hold().await;
    }
    Ok(after)
}

fn decide(shared: &Mutex<Shared>, request: Request, body: Value, chat: bool) -> (Act, u64, Shape) {
    let said = conversation(&body);
    let text = body.to_string();
    let mut shared = lock(shared);
    let act = shared.playbook.act(&said, &text);
    let script = shared.playbook.script();
    let reply_length = match &act {
        Act::Reply { text, .. } => text.len(),
        Act::Fault(_) => 0,
    };
    let shape = Shape {
        chat,
        stream: body["stream"] == true,
        usage: (!script.no_usage).then(|| match script.usage {
            Some(FixedUsage { prompt_tokens, completion_tokens }) => (prompt_tokens, completion_tokens),
            None => {
                ((said.system.len() + said.last.len()).div_ceil(4) as u64, reply_length.div_ceil(4) as u64)
            }
        }),
        chunk: if script.chunk == 0 { 8 } else { script.chunk },
        delay: Duration::from_millis(script.chunk_delay_ms),
        request_id: format!("mock-{}", *shared.count.borrow() + 1),
    };
    let latency = script.latency_ms;
    if shared.seen.len() == KEPT_REQUESTS {
        shared.seen.pop_front();
    }
    let rule = shared.playbook.answered().to_owned();
    shared.seen.push_back(SeenRequest { path: request.path, headers: request.headers, body, rule });
    shared.count.send_modify(|count| *count += 1);
    (act, latency, shape)
}

fn conversation(body: &Value) -> Conversation {
    if let Some(prompt) = body["prompt"].as_str() {
        let prompt = prompt.to_owned();
        return Conversation { asked: prompt.clone(), last: prompt, ..Conversation::default() };
    }
    let empty = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&empty);
    let first = |role: &str| messages.iter().find(|message| message["role"] == role);
    let content = |message: Option<&Value>| {
        message.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
    };
    Conversation {
        system: content(first("system")),
        asked: content(first("user")),
        last: content(messages.last()),
        replied: first("assistant").is_some(),
    }
}
