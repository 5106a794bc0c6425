//! Clients with tiny waits, requests, and a live sink that keeps what it hears.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use planish::config::Effort;
use planish::domain::{ChatRequest, Message, Prompt, Role, Sampling, Speaker};
use planish::event::Live;
use planish::model::mock::{Answer, MockServer, Script};
use planish::model::{ApiKey, HttpSettings, LiveSink, OpenAiChat, Redactor, RetryPolicy};

pub const KEY: &str = "planish-test-key-0001";

pub fn settings(server: &MockServer) -> HttpSettings {
    HttpSettings {
        base_url: server.base_url(),
        model: "mock-model".into(),
        key: Some(ApiKey { secret: KEY.into(), origin: "environment variable TEST_KEY".into() }),
        stream: true,
        effort: Effort::NotSent,
        rewrite_effort: Effort::NotSent,
        connect_timeout: Duration::from_secs(5),
        read_timeout: Duration::from_secs(20),
        total_timeout: Duration::from_secs(20),
        retry: RetryPolicy { max_retries: 3, base: Duration::from_millis(1), ..RetryPolicy::default() },
    }
}

pub fn model(settings: HttpSettings) -> OpenAiChat {
    OpenAiChat::new(settings, Arc::new(Redactor::new([KEY.to_owned()]))).unwrap()
}

pub async fn serve(script: Script) -> MockServer {
    MockServer::start(0, script).await.unwrap()
}

pub async fn sequence(answers: impl IntoIterator<Item = Answer>) -> MockServer {
    serve(Script::sequence(answers)).await
}

pub fn sampling() -> Sampling {
    Sampling { max_tokens: 64, temperature: None, top_p: None, top_k: None, seed: None, stop: Vec::new() }
}

pub fn chat(content: &str) -> ChatRequest {
    let messages = vec![Message::new(Speaker::System, "be brief"), Message::new(Speaker::User, content)];
    request(Prompt::Chat(messages))
}

pub fn request(prompt: Prompt) -> ChatRequest {
    ChatRequest {
        path: "e01/s001/rollout/item-1#0".into(),
        role: Role::Target,
        stage: "rollout".into(),
        prompt,
        sampling: sampling(),
        brief: None,
    }
}

/// A sink and what it heard.
pub fn listen() -> (LiveSink, Arc<Mutex<Vec<Live>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    (Arc::new(move |live| sink.lock().unwrap().push(live)), heard)
}

pub fn deaf() -> LiveSink {
    Arc::new(|_| {})
}
