//! The mock server over a real socket, asked by a plain HTTP client.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::json;

use super::super::answer::{Answer, Detailed};
use super::super::fault::{Comments, Drip, Fault, WaitForm};
use super::super::script::{RateHeaders, RequiredKey, Rule};
use super::*;

/// A way of asking: a dialect at one of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    dialect: Dialect,
    path: &'static str,
    stream: bool,
}

const fn way(dialect: Dialect, path: &'static str, stream: bool) -> Way {
    Way { dialect, path, stream }
}

const WAYS: [Way; 16] = [
    way(Dialect::Chat, "/v1/chat/completions", false),
    way(Dialect::Chat, "/v1/chat/completions", true),
    way(Dialect::Chat, "/api/v1/chat/completions", true),
    way(Dialect::Chat, "/openai/deployments/d/chat/completions?api-version=2024-12-01-preview", false),
    way(Dialect::Chat, "/v1beta/openai/chat/completions", true),
    way(Dialect::Text, "/v1/completions", false),
    way(Dialect::Text, "/v1/completions", true),
    way(Dialect::Responses, "/v1/responses", false),
    way(Dialect::Responses, "/v1/responses", true),
    way(Dialect::Responses, "/openai/responses?api-version=2025-04-01-preview", true),
    way(Dialect::Messages, "/v1/messages", false),
    way(Dialect::Messages, "/v1/messages", true),
    way(Dialect::Messages, "/anthropic/v1/messages", true),
    way(Dialect::Gemini, "/v1beta/models/m:generateContent", false),
    way(Dialect::Gemini, "/v1beta/models/m:streamGenerateContent", false),
    way(Dialect::Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", true),
];

impl Way {
    fn body(self) -> Value {
        let messages = json!([{"role": "user", "content": "6*7?"}]);
        match self.dialect {
            Dialect::Chat => json!({"model": "m", "messages": messages, "stream": self.stream, "seed": 1}),
            Dialect::Text => json!({"model": "m", "prompt": "6*7?", "stream": self.stream, "seed": 1}),
            Dialect::Responses => json!({"model": "m", "input": "6*7?", "stream": self.stream, "seed": 1}),
            Dialect::Messages => {
                json!({"model": "m", "max_tokens": 9, "messages": messages, "stream": self.stream, "seed": 1})
            }
            Dialect::Gemini => json!({
                "contents": [{"role": "user", "parts": [{"text": "6*7?"}]}], "generationConfig": {"seed": 1},
            }),
        }
    }

    /// What ends a complete stream.
    fn end(self) -> &'static str {
        match self.dialect {
            Dialect::Chat | Dialect::Text => "data: [DONE]",
            Dialect::Responses => "event: response.completed",
            Dialect::Messages => "event: message_stop",
            Dialect::Gemini => "finishReason",
        }
    }
}

async fn serve_script(script: Script) -> MockServer {
    MockServer::start(0, script).await.unwrap()
}

async fn serve_answer(answer: impl Into<Answer>) -> MockServer {
    serve_script(Script::sequence([answer.into()])).await
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn client() -> reqwest::Client {
    // An error means that another test installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

async fn ask(server: &MockServer, way: Way, headers: &[(&str, &str)]) -> reqwest::Result<reqwest::Response> {
    let mut request = client().post(format!("{}{}", server.origin(), way.path)).body(way.body().to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await
}

/// Status, headers and bytes of a whole answer.
async fn answer_to(server: &MockServer, way: Way) -> (u16, HeaderMap, Vec<u8>) {
    let response = ask(server, way, &[]).await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

async fn text_of(server: &MockServer, way: Way) -> String {
    String::from_utf8(answer_to(server, way).await.2).unwrap()
}

/// The error object of a body, wherever the dialect has it.
fn error_in(body: &[u8]) -> Value {
    let body: Value = serde_json::from_slice(body).unwrap();
    let found = if body.is_array() { &body[0]["error"] } else { &body["error"] };
    assert!(found.is_object(), "{body}");
    found.clone()
}

#[tokio::test]
async fn every_way_is_answered_in_its_own_form() {
    for way in WAYS {
        let server = serve_answer("forty-two, I think").await;
        let (status, headers, body) = answer_to(&server, way).await;
        let text = String::from_utf8(body).unwrap();
        let kind = headers["content-type"].to_str().unwrap();
        assert_eq!((status, kind.starts_with("text/event-stream")), (200, way.stream), "{way:?}");
        if way.stream {
            assert!(text.contains(way.end()), "{way:?}: {text}");
        } else {
            let body: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(body.is_array(), way.path.ends_with("streamGenerateContent"), "{way:?}");
        }
        let seen = server.requests().remove(0);
        let (path, query) = way.path.split_once('?').unwrap_or((way.path, ""));
        assert_eq!((seen.path.as_str(), seen.query.as_str(), seen.body), (path, query, way.body()));
    }
}

#[tokio::test]
async fn errors_have_their_status_and_headers() {
    for way in WAYS {
        let headers = [("retry-after".to_owned(), "7".to_owned())].into();
        let code = Some("busy".to_owned());
        let server = serve_answer(Fault::Status { status: 503, code, message: None, headers }).await;
        let (status, headers, body) = answer_to(&server, way).await;
        assert_eq!((status, headers["retry-after"].to_str().unwrap()), (503, "7"), "{way:?}");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(error_in(&body)["message"], "scripted fault", "{way:?}");
    }
}

#[tokio::test]
async fn rate_limits_tell_when_to_come_back_in_every_form() {
    let chat = WAYS[0];
    for (form, want) in [
        (WaitForm::Seconds, Some(("retry-after", "2"))),
        (WaitForm::Fraction, Some(("retry-after", "1.5"))),
        (WaitForm::Milliseconds, Some(("retry-after-ms", "1500"))),
        (WaitForm::None, None),
    ] {
        let server = serve_answer(Fault::RateLimit { wait_ms: 1500, form }).await;
        let (status, headers, body) = answer_to(&server, chat).await;
        let told = ["retry-after", "retry-after-ms"]
            .into_iter()
            .find_map(|name| Some((name, headers.get(name)?.to_str().unwrap())));
        assert_eq!((status, told), (429, want));
        assert_eq!(error_in(&body)["code"], "rate_limit_exceeded");
    }
    let server = serve_answer(Fault::RateLimit { wait_ms: 60_000, form: WaitForm::Date }).await;
    let (_, headers, _) = answer_to(&server, chat).await;
    let date = httpdate::parse_http_date(headers["retry-after"].to_str().unwrap()).unwrap();
    let wait = date.duration_since(std::time::SystemTime::now()).unwrap().as_secs();
    assert!((50..=61).contains(&wait), "{wait}");
    let (_, _, body) = answer_to(&server, WAYS[13]).await;
    assert_eq!(error_in(&body)["details"][0]["retryDelay"], "60s");
}

#[tokio::test]
async fn hopeless_refusals_name_their_cause() {
    for (fault, code) in [
        (Fault::SpendLimit, "insufficient_quota"),
        (Fault::ContentFilter, "content_filter"),
        (Fault::ContextLength, "context_length_exceeded"),
    ] {
        for way in WAYS {
            let server = serve_answer(fault.clone()).await;
            let (status, _, body) = answer_to(&server, way).await;
            let open_router = way.path.starts_with("/api/v1");
            if fault == Fault::ContentFilter && way.dialect == Dialect::Gemini {
                // Told inside a 200.
                let text = String::from_utf8(body).unwrap();
                assert!(status == 200 && text.contains(r#""blockReason":"SAFETY""#), "{text}");
                continue;
            }
            let want = match fault {
                Fault::SpendLimit if open_router => 402,
                Fault::SpendLimit => 429,
                _ => 400,
            };
            let error = error_in(&body);
            assert_eq!(status, want, "{way:?} {fault:?}");
            match (way.dialect, way.path) {
                (Dialect::Messages | Dialect::Gemini, _) | (_, "/v1beta/openai/chat/completions") => {
                    assert!(error["message"].is_string());
                }
                _ if open_router => assert_eq!(error["metadata"]["raw"], code),
                _ => assert_eq!(error["code"], code, "{way:?}"),
            }
        }
    }
}

#[tokio::test]
async fn silence_is_silence() {
    for way in WAYS {
        let server = serve_answer(Fault::Hang).await;
        let patience = Duration::from_millis(30);
        assert!(tokio::time::timeout(patience, ask(&server, way, &[])).await.is_err(), "{way:?}");
        let server = serve_answer(Fault::Stall).await;
        let mut response = ask(&server, way, &[]).await.unwrap();
        let first = response.chunk().await.unwrap().unwrap();
        assert_eq!(first.windows(10).any(|part| part == b"half of a "), way.stream, "{way:?}");
        assert!(tokio::time::timeout(patience, response.chunk()).await.is_err(), "{way:?}");
    }
}

#[tokio::test]
async fn broken_answers_are_broken_where_they_should_be() {
    for way in WAYS {
        let server = serve_answer(Fault::Drop).await;
        assert!(ask(&server, way, &[]).await.unwrap().bytes().await.is_err(), "{way:?}");

        let cut = text_of(&serve_answer(Fault::Cut).await, way).await;
        let malformed = text_of(&serve_answer(Fault::Malformed).await, way).await;
        assert!(malformed.contains("oops"), "{way:?}");
        let endless = text_of(&serve_answer(Fault::NoDone).await, way).await;
        assert!(endless.contains("no") && endless.contains("done"), "{way:?}: {endless}");
        if way.stream {
            assert!(cut.contains("half of a ") && !cut.contains(way.end()), "{way:?}: {cut}");
            assert!(!endless.contains(way.end()), "{way:?}: {endless}");
            let last = malformed.trim_end().rsplit("data: ").next().unwrap();
            assert!(serde_json::from_str::<Value>(last).is_err(), "{way:?}");
        } else {
            assert!(serde_json::from_str::<Value>(&cut).is_err(), "{way:?}");
            assert!(serde_json::from_str::<Value>(&malformed).is_err(), "{way:?}");
            assert!(serde_json::from_str::<Value>(&endless).is_ok(), "{way:?}");
        }

        let (_, _, garbled) = answer_to(&serve_answer(Fault::InvalidUtf8).await, way).await;
        assert!(String::from_utf8(garbled.clone()).is_err(), "{way:?}");
        assert!(String::from_utf8_lossy(&garbled).contains("a\u{fffd}b"), "{way:?}");
    }
}

#[tokio::test]
async fn errors_inside_a_200_are_told_as_the_dialect_does() {
    for way in WAYS {
        for (fault, begun) in [
            (Fault::ErrorInBody { code: 502.into() }, false),
            (Fault::ErrorInStream { code: 502.into() }, true),
        ] {
            let server = serve_answer(fault).await;
            let (status, _, body) = answer_to(&server, way).await;
            let text = String::from_utf8(body.clone()).unwrap();
            assert_eq!(status, 200);
            if way.stream {
                assert_eq!(text.contains("half of a "), begun, "{way:?}: {text}");
                let last: Value =
                    serde_json::from_str(text.trim_end().rsplit("data: ").next().unwrap()).unwrap();
                let error = if way.dialect == Dialect::Responses {
                    &last["response"]["error"]
                } else {
                    &last["error"]
                };
                assert_eq!(error["message"], "scripted error inside a 200", "{way:?}: {last}");
            } else {
                assert_eq!(error_in(&body)["message"], "scripted error inside a 200", "{way:?}");
            }
        }
    }
}

#[tokio::test]
async fn wrong_sizes_and_kinds() {
    for way in WAYS {
        let server = serve_script(Script {
            chunk: 10_000,
            ..Script::sequence([Fault::Huge { bytes: 100_000 }.into()])
        });
        assert!(text_of(&server.await, way).await.len() > 100_000, "{way:?}");
        let (status, headers, body) = answer_to(&serve_answer(Fault::Html { status: 200 }).await, way).await;
        assert_eq!((status, &headers["content-type"]), (200, &"text/html; charset=utf-8".parse().unwrap()));
        assert!(body.starts_with(b"<!doctype html>"));
        let empty = text_of(&serve_answer(Fault::Empty).await, way).await;
        assert_eq!(empty, text_of(&serve_answer("").await, way).await, "{way:?}");
        assert!(!way.stream || empty.contains(way.end()), "{way:?}: {empty}");
    }
}

#[tokio::test]
async fn slow_answers_are_whole() {
    for way in WAYS {
        let undisturbed = text_of(&serve_answer("slow text").await, way).await;
        let drip = Some(Drip { bytes: 40, every_ms: 1 });
        let dripped = Detailed { text: "slow text".into(), drip, ..Detailed::default() };
        let server = serve_answer(Answer::Detailed(dripped)).await;
        assert_eq!(text_of(&server, way).await, undisturbed, "{way:?}");

        let comments = Some(Comments { for_ms: 6, every_ms: 2 });
        let delayed = Detailed { text: "slow text".into(), comments, ..Detailed::default() };
        let server = serve_answer(Answer::Detailed(delayed)).await;
        let text = text_of(&server, way).await;
        let sign = if way.stream { ": keep-alive\n\n" } else { "\n" };
        assert_eq!(text.strip_prefix(&sign.repeat(3)), Some(undisturbed.as_str()), "{way:?}");
    }
}

#[tokio::test]
async fn keys_are_asked_for_where_the_dialect_has_them() {
    for way in WAYS {
        let require_key = RequiredKey { value: "key-1".into(), header: None, status: 401 };
        let server =
            serve_script(Script { require_key: Some(require_key), ..Script::sequence(["in".into()]) }).await;
        let status =
            async |headers: &[(&str, &str)]| ask(&server, way, headers).await.unwrap().status().as_u16();
        let own = match (way.dialect, way.path.starts_with("/openai")) {
            (Dialect::Messages, _) => ("x-api-key", "key-1"),
            (Dialect::Gemini, _) => ("x-goog-api-key", "key-1"),
            (_, true) => ("api-key", "key-1"),
            _ => ("authorization", "Bearer key-1"),
        };
        assert_eq!(status(&[own]).await, 200, "{way:?}");
        assert_eq!(status(&[]).await, 401, "{way:?}");
        assert_eq!(status(&[(own.0, "key-2")]).await, 401, "{way:?}");
        assert_eq!(status(&[("x-other", "key-1")]).await, 401, "{way:?}");
        let (_, _, body) = answer_to(&server, way).await;
        assert!(error_in(&body)["message"].as_str().unwrap().starts_with("no key"), "{way:?}");
    }
    let require_key = RequiredKey { value: "k".into(), header: Some("X-Own".into()), status: 403 };
    let server =
        serve_script(Script { require_key: Some(require_key), ..Script::sequence(["in".into()]) }).await;
    assert_eq!(ask(&server, WAYS[0], &[("x-own", "k")]).await.unwrap().status(), 200);
    assert_eq!(ask(&server, WAYS[0], &[("authorization", "Bearer k")]).await.unwrap().status(), 403);
}

#[tokio::test]
async fn unknown_parameters_are_refused_by_name() {
    let refuse_params = vec!["top_k".to_owned(), "seed".to_owned(), "generationConfig.seed".to_owned()];
    for way in WAYS {
        let script = Script { refuse_params: refuse_params.clone(), ..Script::sequence(["in".into()]) };
        let server = serve_script(script).await;
        let (status, _, body) = answer_to(&server, way).await;
        let error = error_in(&body);
        assert_eq!(status, 400, "{way:?}");
        assert!(error["message"].as_str().unwrap().contains("seed"), "{way:?}");
        match way.dialect {
            Dialect::Gemini => {
                assert_eq!(error["details"][0]["fieldViolations"][0]["field"], "generationConfig.seed");
            }
            Dialect::Chat if way.path == "/v1/chat/completions" => assert_eq!(error["param"], "seed"),
            _ => {}
        }
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn reasoning_is_asked_back_for() {
    let script = Script { require_reasoning: true, ..Script::sequence(["in".into()]) };
    let server = serve_script(script).await;
    for (fields, want) in [("", 400), (r#", "reasoning_content": "hm""#, 200)] {
        let call = r#"{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}"#;
        let body = format!(r#"{{"messages": [{{"role": "assistant", "tool_calls": [{call}]{fields}}}]}}"#);
        let response =
            client().post(format!("{}/chat/completions", server.base_url())).body(body).send().await;
        assert_eq!(response.unwrap().status(), want);
    }
}

#[tokio::test]
async fn rate_headers_have_the_names_of_the_dialect() {
    let rate = RateHeaders {
        limit_requests: Some(100),
        remaining_requests: Some(3),
        remaining_tokens: Some(-1),
        reset_ms: Some(1500),
        ..RateHeaders::default()
    };
    let script = Script { rate_headers: Some(rate), ..Script::sequence(["in".into()]) };
    let server = serve_script(script).await;
    let (_, headers, _) = answer_to(&server, WAYS[0]).await;
    for (name, want) in [
        ("x-ratelimit-limit-requests", "100"),
        ("x-ratelimit-remaining-requests", "3"),
        ("x-ratelimit-remaining-tokens", "-1"),
        ("x-ratelimit-reset-tokens", "1.5s"),
    ] {
        assert_eq!(headers[name], want);
    }
    assert!(!headers.contains_key("x-ratelimit-limit-tokens"));
    let (_, headers, _) = answer_to(&server, WAYS[10]).await;
    assert_eq!(headers["anthropic-ratelimit-requests-remaining"], "3");
    let reset = headers["anthropic-ratelimit-tokens-reset"].to_str().unwrap();
    assert!(reset.parse::<jiff::Timestamp>().is_ok(), "{reset}");
    assert!(headers.contains_key("request-id"));
}

#[tokio::test]
async fn requests_at_a_time_are_counted() {
    let named = |name: &str, answer: Answer| {
        let (name, matches) = (name.to_owned(), Some(format!("^{name}$")));
        Rule { name, matches, answers: vec![answer], ..Rule::default() }
    };
    let rules = vec![named("wait", Fault::Hang.into()), named("go", "went".into())];
    let server = serve_script(Script { rules, ..Script::default() }).await;
    let send = |text: &str| {
        let body = json!({"messages": [{"role": "user", "content": text}]});
        client().post(format!("{}/chat/completions", server.base_url())).body(body.to_string()).send()
    };
    for _ in 0..3 {
        send("go").await.unwrap().bytes().await.unwrap();
    }
    assert_eq!((server.max_in_flight(), server.count()), (1, 3));
    let waiting: Vec<_> = (0..4).map(|_| tokio::spawn(send("wait"))).collect();
    let mut count = lock(&server.shared).count.subscribe();
    count.wait_for(|count| *count == 7).await.unwrap();
    assert_eq!(server.max_in_flight(), 4);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn what_clients_look_at_beside_replies() {
    let server =
        serve_script(Script { models: vec!["a".into(), "b".into()], ..Script::sequence(["x".into()]) }).await;
    let get = async |path: &str, header: (&str, &str)| -> Value {
        let request = client().get(format!("{}{path}", server.origin())).header(header.0, header.1);
        request.send().await.unwrap().json().await.unwrap()
    };
    let none = ("accept", "*/*");
    let open_ai = get("/v1/models", none).await;
    assert_eq!((&open_ai["data"][0]["id"], &open_ai["data"][1]["object"]), (&json!("a"), &json!("model")));
    let anthropic = get("/v1/models", ("anthropic-version", "2023-06-01")).await;
    assert_eq!((&anthropic["data"][1]["type"], &anthropic["last_id"]), (&json!("model"), &json!("b")));
    assert_eq!(get("/v1beta/models?pageSize=9", none).await["models"][0]["name"], "models/a");
    assert_eq!(get("/v1/models", ("x-goog-api-key", "k")).await["models"][1]["name"], "models/b");
    let unknown = client().get(format!("{}/v1/other", server.origin())).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    let post = async |path: &str| -> Value {
        let request = client().post(format!("{}{path}", server.origin())).body("{\"messages\": []}");
        request.send().await.unwrap().json().await.unwrap()
    };
    assert_eq!(post("/v1/messages/count_tokens").await, json!({"input_tokens": 4}));
    assert_eq!(post("/v1beta/models/m:countTokens").await, json!({"totalTokens": 4}));
    assert!(client().head(server.origin()).send().await.unwrap().status().is_success());
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn bodies_in_chunks_are_read_and_bad_ones_refused() {
    let server = serve_answer("in").await;
    let post =
        |body: reqwest::Body| client().post(format!("{}/chat/completions", server.base_url())).body(body);
    let pieces = ["{\"messages\": [{\"role\": \"user\",", " \"content\": \"6*7?\"}]}"];
    let stream = futures_util::stream::iter(pieces.map(Ok::<_, std::io::Error>));
    let body: Value = post(reqwest::Body::wrap_stream(stream)).send().await.unwrap().json().await.unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "in");
    assert_eq!(server.requests()[0].body["messages"][0]["content"], "6*7?");
    let refused = post("{".into()).send().await.unwrap();
    assert_eq!(refused.status(), 400);
    assert!(
        error_in(&refused.bytes().await.unwrap())["message"].as_str().unwrap().contains("body is not JSON")
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn the_log_has_a_line_per_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.jsonl");
    let log = RequestLog::create(&file).unwrap();
    let server = MockServer::start_logged(0, Script::sequence(["in".into()]), Some(log)).await.unwrap();
    ask(&server, WAYS[13], &[("x-goog-api-key", "key-of-mine")]).await.unwrap();
    client().get(format!("{}/models", server.base_url())).send().await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["body"], &lines[0]["status"]), (&WAYS[13].body(), &json!(200)));
    assert_eq!(lines[1]["path"], "/v1/models");
    assert!(!text.contains("key-of-mine"));
}
