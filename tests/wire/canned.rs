//! A server that answers with the very bytes it is given, in order, and keeps what it was sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub struct Canned {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<Sent>>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Clone, Debug)]
pub struct Sent {
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl Canned {
    /// One answer per request: its content type and its bytes. The last one answers everything that follows.
    pub async fn start(answers: Vec<(&'static str, Vec<u8>)>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            for at in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (kind, body) = &answers[at.min(answers.len() - 1)];
                let sent = exchange(stream, kind, body).await;
                kept.lock().unwrap().push(sent);
            }
        });
        Self { address, seen, task }
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn seen(&self) -> Vec<Sent> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn exchange(stream: TcpStream, kind: &str, answer: &[u8]) -> Sent {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let target = line.split_whitespace().nth(1).unwrap().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\nx-request-id: req-1\r\n\r\n"
    );
    let stream = stream.get_mut();
    stream.write_all(head.as_bytes()).await.unwrap();
    // Pieces that respect no line and no character.
    for piece in answer.chunks(11) {
        stream.write_all(piece).await.unwrap();
    }
    stream.shutdown().await.unwrap();
    Sent { target, headers, body: serde_json::from_slice(&body).unwrap() }
}
