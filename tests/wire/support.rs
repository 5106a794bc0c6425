//! Clients with tiny waits, requests, and a live sink that keeps what it hears.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use planish::config::BudgetConfig;
use planish::domain::{Asks, ChatRequest, Message, Prompt, Role, Sampling, Speaker, Usage};
use planish::event::Live;
use planish::model::mock::{Answer, MockServer, Script};
use planish::model::{
    ApiKey, Budget, Dialects, Dials, HttpEndpoint, HttpSettings, Limits, LiveSink, Login, Patient, Redactor,
    RetryPolicy,
};

pub const KEY: &str = "planish-test-key-0001";

/// A client's settings and how patient it is.
#[derive(Clone)]
pub struct Settings {
    pub http: HttpSettings,
    pub limits: Limits,
    pub retry: RetryPolicy,
}

pub fn settings(server: &MockServer) -> Settings {
    let key = ApiKey { secret: KEY.into(), origin: "environment variable TEST_KEY".into() };
    let dialect = Dialects::built_in().unwrap().get("openai_compatible").unwrap().clone();
    Settings {
        http: HttpSettings {
            connect_timeout: Duration::from_secs(5),
            ..HttpSettings::new(dialect, server.base_url(), "mock-model", Login::Key(key))
        },
        limits: limits(),
        retry: retry(),
    }
}

pub fn limits() -> Limits {
    Limits {
        max_retries: 3,
        read_timeout: Duration::from_secs(20),
        total_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(600),
        breaker_failures: 0,
    }
}

pub fn retry() -> RetryPolicy {
    RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() }
}

pub fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new([KEY.to_owned()]))
}

pub fn model(settings: Settings) -> Patient {
    let dials = Arc::new(Dials::new(settings.limits));
    let endpoint = HttpEndpoint::new(settings.http, redactor(), dials.clone()).unwrap();
    let budget = Arc::new(Budget::new(BudgetConfig::default(), Usage::default(), 0.0));
    Patient::new(Arc::new(endpoint), settings.retry, dials, budget, redactor())
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
        asks: Asks::default(),
        workspace: None,
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
