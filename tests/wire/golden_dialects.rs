//! One golden request and reply per dialect, whole and streamed: the second turn of a conversation with everything in
//! it (system text, image, tools, parallel calls and their results, thinking that goes back, sampling, effort).
//!
//! `PLANISH_BLESS=1 cargo test --test wire golden_dialects` writes requests and readings anew; look at what changed.

use std::path::PathBuf;

use planish::config::Effort;
use planish::domain::{
    Asks, ChatReply, ChatRequest, Content, Image, Message, Part, Prompt, Speaker, Tool, ToolResult,
};
use planish::model::{
    ApiKey, ChatModel, Dialect, Dialects, Feature, HttpSettings, Login, Paths, ThinkingMode, ThinkingStyle,
};
use serde_json::{Value, json};

use crate::canned::{Canned, Sent};
use crate::support::{KEY, Settings, deaf, limits, model, request, retry};

/// A red pixel.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

pub fn table() -> Dialects {
    Dialects::built_in().unwrap()
}

/// The base address of a dialect on a server of the tests.
pub fn base(dialect: &Dialect, origin: &str) -> String {
    let path = match (dialect.paths, dialect.name.as_str()) {
        (Paths::AzureDated | Paths::AzureV1, _) | (_, "deepseek") => "",
        (_, "openrouter") => "/api/v1",
        (_, "gemini") => "/v1beta/openai",
        (_, _) => "/v1",
    };
    format!("{origin}{path}")
}

/// With an effort and thinking switched on, where the dialect has words for them.
pub fn settings(dialect: &Dialect, origin: &str, stream: bool) -> Settings {
    let key = ApiKey { secret: KEY.into(), origin: "environment variable TEST_KEY".into() };
    let mut http = HttpSettings::new(dialect.clone(), base(dialect, origin), "m", Login::Key(key));
    http.stream = stream;
    if dialect.efforts.iter().any(|effort| effort == "low") {
        http.effort = Effort::Low;
    }
    if dialect.thinking != ThinkingStyle::None {
        http.thinking = ThinkingMode::Enabled;
    }
    if !dialect.thinking_budget_field.is_empty() {
        http.thinking_budget = Some(64);
    }
    Settings { http, limits: limits(), retry: retry() }
}

pub fn tool() -> Tool {
    let parameters = json!({
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
    });
    Tool { name: "bash".into(), description: "Runs a command.".into(), parameters }
}

/// The first turn.
pub fn first(dialect: &Dialect) -> ChatRequest {
    let mut asked = vec![Part::Text("What is it? Use the tool.".into())];
    if dialect.has(Feature::Images) {
        asked.push(Part::Image(Image { media_type: "image/png".into(), data: PNG.into() }));
    }
    let messages = vec![
        Message::new(Speaker::System, "Be brief."),
        Message { role: Speaker::User, content: Content::new(asked) },
    ];
    let mut request = request(Prompt::Chat(messages));
    request.asks = Asks { tools: vec![tool()], logprobs: true, ..Asks::default() };
    request.sampling.max_tokens = 256;
    request.sampling.temperature = Some(0.25);
    request.sampling.top_p = Some(0.5);
    request.sampling.top_k = Some(40);
    request.sampling.seed = Some(7);
    if dialect.has(Feature::Stop) {
        request.sampling.stop = vec!["END".into()];
    }
    request
}

/// The next turn: the reply, the results of its tools, and a word of the user.
pub fn second(mut request: ChatRequest, reply: &ChatReply) -> ChatRequest {
    let results = reply.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    let results = results.enumerate().map(|(at, call)| {
        Part::ToolResult(ToolResult { call, text: format!("{}\n", 42 + at), is_error: at == 1 })
    });
    let results = Message { role: Speaker::Tool, content: Content::new(results.collect()) };
    let Prompt::Chat(messages) = &mut request.prompt else { panic!("no chat") };
    messages.extend([reply.message(), results, Message::new(Speaker::User, "Well?")]);
    request
}

fn golden(dialect: &Dialect, kind: &str) -> PathBuf {
    let file = format!("tests/wire/golden/{}.{kind}", dialect.name);
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Compares with a golden file, or writes it.
fn compare(dialect: &Dialect, kind: &str, value: &Value) {
    let file = golden(dialect, kind);
    if std::env::var_os("PLANISH_BLESS").is_some() {
        std::fs::write(&file, format!("{value:#}\n")).unwrap();
    }
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(*value, serde_json::from_str::<Value>(&text).unwrap(), "{}", file.display());
}

/// What of a request is golden.
fn shown(sent: &Sent) -> Value {
    let kept = ["authorization", "api-key", "x-api-key", "anthropic-version", "x-title", "accept"];
    let headers = sent.headers.iter().filter(|(name, _)| kept.contains(&name.as_str()));
    let headers: serde_json::Map<String, Value> =
        headers.map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    json!({"target": sent.target, "headers": headers, "body": sent.body})
}

/// Runs two turns and gives back the reading of the first and the request of the second.
async fn converse(dialect: &Dialect, stream: bool) -> (Value, Value) {
    let (kind, file) = match stream {
        true => ("text/event-stream; charset=utf-8", golden(dialect, "stream.txt")),
        false => ("application/json", golden(dialect, "reply.json")),
    };
    let server = Canned::start(vec![(kind, std::fs::read(file).unwrap())]).await;
    let model = model(settings(dialect, &server.origin(), stream));
    let request = first(dialect);
    let mut reply = model.chat(&request, &deaf()).await.unwrap();
    model.chat(&second(request, &reply), &deaf()).await.unwrap();
    reply.ms = 0;
    (serde_json::to_value(&reply).unwrap(), shown(&server.seen()[1]))
}

#[tokio::test]
async fn requests_and_replies_of_every_dialect_are_golden() {
    for dialect in table().rows() {
        let (reading, request) = converse(dialect, true).await;
        compare(dialect, "reading.json", &reading);
        compare(dialect, "request.json", &request);
        let (whole, mut unstreamed) = converse(dialect, false).await;
        assert_eq!(whole, reading, "{}", dialect.name);
        assert_eq!(unstreamed["headers"]["accept"], "application/json");
        unstreamed["headers"]["accept"] = request["headers"]["accept"].clone();
        let mut expected = request.clone();
        let body = expected["body"].as_object_mut().unwrap();
        assert_eq!(body.remove("stream"), Some(true.into()));
        body.remove("stream_options");
        assert_eq!(unstreamed, expected, "{}", dialect.name);
    }
}
