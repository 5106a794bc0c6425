//! Everything that can go wrong between a call and its reply.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use planish::event::Live;
use planish::model::mock::{Answer, Chaos, Detailed, Fault, MockServer, Rule, Script, hostile};
use planish::model::{ChatModel, Dials, HttpEndpoint, HttpSetupError, ModelError};

use crate::support::{KEY, chat, deaf, listen, model, redactor, sequence, serve, settings};

fn status(status: u16, headers: &[(&str, &str)]) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Answer::Fault(Fault::Status { status, code: None, message: None, headers })
}

fn coded(status: u16, code: &str, message: &str) -> Answer {
    let (code, message) = (Some(code.to_owned()), Some(message.to_owned()));
    Answer::Fault(Fault::Status { status, code, message, headers: HashMap::new() })
}

/// The reply after the faults, and how many requests it took, with and without a stream.
async fn survives(faults: impl Fn() -> Vec<Answer>) {
    for stream in [true, false] {
        let faults = faults();
        let expected = faults.len() as u64 + 1;
        let server = sequence(faults.into_iter().chain(["survived".into()])).await;
        let mut settings = settings(&server);
        settings.http.stream = stream;
        let reply = model(settings).chat(&chat("x"), &deaf()).await.unwrap();
        assert_eq!(reply.text, "survived");
        assert_eq!(server.count(), expected, "stream: {stream}");
    }
}

async fn error_of(answer: Answer) -> (ModelError, u64) {
    let server = sequence([answer]).await;
    let error = model(settings(&server)).chat(&chat("x"), &deaf()).await.unwrap_err();
    (error, server.count())
}

#[tokio::test]
async fn retryable_statuses_are_tried_again() {
    survives(|| vec![status(500, &[]), status(429, &[("retry-after-ms", "1")]), status(529, &[])]).await;
}

#[tokio::test]
async fn broken_answers_are_tried_again() {
    survives(|| vec![Answer::Fault(Fault::Drop), Answer::Fault(Fault::Cut), Answer::Fault(Fault::Malformed)])
        .await;
    survives(|| vec![Answer::Fault(Fault::Empty), "  \n ".into()]).await;
    survives(|| vec![Answer::Fault(Fault::ErrorInBody { code: 502.into() })]).await;
}

#[tokio::test]
async fn silence_ends_at_the_read_and_the_total_timeout() {
    for stream in [true, false] {
        let server =
            sequence([Answer::Fault(Fault::Stall), Answer::Fault(Fault::Hang), "survived".into()]).await;
        let mut settings = settings(&server);
        settings.http.stream = stream;
        settings.limits.read_timeout = Duration::from_millis(100);
        settings.limits.total_timeout = Duration::from_millis(500);
        // A slow machine may time out once more, never less.
        settings.limits.max_retries = 20;
        let (sink, heard) = listen();
        assert_eq!(model(settings).chat(&chat("x"), &sink).await.unwrap().text, "survived");
        let errors: Vec<String> = heard
            .lock()
            .unwrap()
            .iter()
            .filter_map(|live| match live {
                Live::CallRetrying { error, .. } => Some(error.clone()),
                _ => None,
            })
            .collect();
        assert!(errors.len() >= 2, "{errors:?}");
        assert!(errors.iter().any(|error| error == "silence of 0.1 s inside the reply"), "{errors:?}");
        assert!(errors.iter().any(|error| error == "no complete reply within 0.5 s"), "{errors:?}");
    }
}

#[tokio::test]
async fn retries_are_counted_and_told() {
    let server = sequence([status(503, &[])]).await;
    let (sink, heard) = listen();
    let error = model(settings(&server)).chat(&chat("x"), &sink).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::NoReply { attempts: 4, message, .. } if message.contains("503")),
        "{error:?}"
    );
    assert_eq!(server.count(), 4);
    let heard = heard.lock().unwrap();
    let attempts: Vec<u32> = heard
        .iter()
        .filter_map(|live| match live {
            Live::CallStarted { attempt, .. } => Some(*attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert_eq!(heard.iter().filter(|live| matches!(live, Live::CallRetrying { .. })).count(), 3);
    assert!(matches!(heard.last(), Some(Live::CallFinished { ok: false, .. })));
}

#[tokio::test]
async fn retry_after_is_obeyed_to_its_cap() {
    for (headers, want) in [
        (vec![("retry-after-ms", "7")], 7),
        (vec![("retry-after", "0.009")], 9),
        // 1000 seconds are cut to the cap.
        (vec![("retry-after", "1000")], 20),
    ] {
        let server = sequence([status(429, &headers), "fine".into()]).await;
        let (sink, heard) = listen();
        let mut settings = settings(&server);
        settings.retry.cap = Duration::from_millis(20);
        model(settings).chat(&chat("x"), &sink).await.unwrap();
        let heard = heard.lock().unwrap();
        let waits: Vec<u64> = heard
            .iter()
            .filter_map(|live| match live {
                Live::CallRetrying { wait_ms, .. } => Some(*wait_ms),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [want]);
    }
}

#[tokio::test]
async fn authentication_fails_at_once_and_names_the_variable() {
    for code in [401, 403] {
        let message = format!("bad key {KEY} in sk-abcdefghijklmnop1234");
        let (error, count) = error_of(coded(code, "invalid_api_key", &message)).await;
        assert_eq!(count, 1);
        let text = error.to_string();
        assert!(text.starts_with("authentication failed at 127.0.0.1"), "{text}");
        assert!(text.contains("environment variable TEST_KEY"), "{text}");
        assert!(text.contains("bad key [redacted] in [redacted]"), "{text}");
        assert!(error.ends_run());
    }
}

#[tokio::test]
async fn hopeless_calls_are_not_repeated() {
    for answer in [
        status(400, &[]),
        status(422, &[]),
        status(500, &[("x-should-retry", "false")]),
        coded(400, "context_length_exceeded", "long"),
    ] {
        let (error, count) = error_of(answer).await;
        assert!(matches!(error, ModelError::Refused { .. }), "{error:?}");
        assert_eq!(count, 1);
        assert!(!error.ends_run());
    }
    for answer in [status(402, &[]), coded(429, "insufficient_quota", "spent")] {
        let (error, count) = error_of(answer).await;
        assert_eq!(count, 1);
        assert!(error.ends_run() && error.to_string().contains("no credit left: top it up"), "{error}");
    }
    let server = sequence([status(400, &[("x-should-retry", "true")]), "fine".into()]).await;
    assert!(model(settings(&server)).chat(&chat("x"), &deaf()).await.is_ok());
}

#[tokio::test]
async fn a_withheld_reply_is_refused_and_a_used_up_limit_is_explained() {
    let withheld = Detailed { finish: Some("content_filter".into()), ..Detailed::default() };
    let (error, count) = error_of(Answer::Detailed(withheld)).await;
    assert!(error.to_string().contains("content filter"), "{error}");
    assert_eq!(count, 1);
    let cut = Detailed { finish: Some("length".into()), ..Detailed::default() };
    let (error, _) = error_of(Answer::Detailed(cut)).await;
    assert!(error.to_string().contains("max_tokens"), "{error}");
}

#[tokio::test]
async fn error_texts_and_live_news_are_redacted() {
    let server = sequence([coded(500, "oops", &format!("failed with {KEY}"))]).await;
    let (sink, heard) = listen();
    let error = model(settings(&server)).chat(&chat("x"), &sink).await.unwrap_err();
    assert!(error.to_string().contains("failed with [redacted]"), "{error}");
    assert!(!format!("{error:?} {heard:?}").contains(KEY));
}

#[tokio::test]
async fn hostile_texts_arrive_exactly_as_sent() {
    let long = "long line ".repeat(100_000);
    for text in [hostile::ANSI, hostile::OSC52, hostile::BIDI, long.as_str()] {
        let server = serve(Script { chunk: 1000, ..Script::sequence([text.into()]) }).await;
        let reply = model(settings(&server)).chat(&chat("x"), &deaf()).await.unwrap();
        assert!(reply.text == text);
    }
}

#[tokio::test]
async fn invalid_utf8_is_replaced() {
    for stream in [true, false] {
        let server = sequence([Answer::Fault(Fault::InvalidUtf8)]).await;
        let mut settings = settings(&server);
        settings.http.stream = stream;
        assert_eq!(model(settings).chat(&chat("x"), &deaf()).await.unwrap().text, "a\u{fffd}b");
    }
}

#[tokio::test]
async fn a_stream_without_done_but_with_a_finish_reason_is_complete() {
    let server = sequence([Answer::Fault(Fault::NoDone)]).await;
    assert_eq!(model(settings(&server)).chat(&chat("x"), &deaf()).await.unwrap().text, "no done");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn replies_over_the_limit_are_errors() {
    for (stream, chunk) in [(true, 1 << 20), (true, 9 << 20), (false, 1)] {
        let huge = Answer::Fault(Fault::Huge { bytes: 9 << 20 });
        let server = serve(Script { chunk, ..Script::sequence([huge]) }).await;
        let mut settings = settings(&server);
        settings.http.stream = stream;
        let error = model(settings).chat(&chat("x"), &deaf()).await.unwrap_err();
        assert!(error.to_string().contains("larger than 8 MiB"), "{error}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn a_dead_server_is_named() {
    let server = sequence(["x".into()]).await;
    let mut settings = settings(&server);
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    settings.http.base_url = format!("http://{free}/v1");
    let error = model(settings).chat(&chat("x"), &deaf()).await.unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = sequence(["stolen".into()]).await;
    let location = format!("{}/chat/completions", elsewhere.base_url());
    let (error, _) = error_of(status(307, &[("location", &location)])).await;
    assert!(matches!(error, ModelError::Refused { status: 307, .. }), "{error:?}");
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn a_third_of_random_faults_changes_nothing_but_time() {
    let faults = vec![
        Fault::Status { status: 500, code: None, message: None, headers: HashMap::new() },
        Fault::Hang,
        Fault::Drop,
    ];
    let answers = ["a", "b", "c", "d"].map(Answer::from).into();
    let rules = vec![Rule { answers, ..Rule::default() }];
    let calm = Script { rules, ..Script::default() };
    let wild = Script { chaos: Some(Chaos { seed: 1, rate: 0.3, faults }), ..calm.clone() };
    let (calm, wild) = (serve(calm).await, serve(wild).await);
    let replies = async |server: &MockServer, total_timeout: Duration| {
        let mut settings = settings(server);
        settings.limits.total_timeout = total_timeout;
        settings.limits.max_retries = 12;
        let model = model(settings);
        let calls = (0..40).map(|n| {
            let model = &model;
            async move { model.chat(&chat(&format!("task {n}")), &deaf()).await.unwrap().text }
        });
        futures_util::future::join_all(calls).await
    };
    let undisturbed = replies(&calm, Duration::from_secs(20)).await;
    assert_eq!(undisturbed, replies(&wild, Duration::from_millis(500)).await);
    assert_eq!(calm.count(), 40);
    assert!(wild.count() > 45, "{}", wild.count());
}

#[tokio::test]
async fn keys_do_not_travel_in_the_clear() {
    let server = sequence(["x".into()]).await;
    let build = |base_url: &str| {
        let mut settings = settings(&server);
        settings.http.base_url = base_url.into();
        HttpEndpoint::new(settings.http, redactor(), Arc::new(Dials::new(settings.limits)))
    };
    for url in ["http://192.0.2.1/v1", "http://example.invalid/v1", "http://localhost.example.invalid/v1"] {
        let Err(error) = build(url) else { panic!("{url} accepted") };
        assert!(matches!(error, HttpSetupError::KeyOverPlainHttp { .. }), "{error:?}");
        assert!(error.to_string().contains("environment variable TEST_KEY"), "{error}");
    }
    for url in ["http://localhost:1/v1", "http://127.0.0.2/v1", "http://[::1]:8000/v1"] {
        assert!(build(url).is_ok(), "{url}");
    }
    // Without root certificates on the machine the client cannot be built, which is another matter.
    assert!(matches!(build("https://example.invalid/v1"), Ok(_) | Err(HttpSetupError::Client { .. })));
    for url in ["", "example", "ftp://host/v1", "http://me:secretpassword@host/v1", "http://host/v1?key=x"] {
        let Err(error) = build(url) else { panic!("{url} accepted") };
        assert!(matches!(error, HttpSetupError::BadUrl { .. }), "{error:?}");
        assert!(!error.to_string().contains("secretpassword"), "{error}");
    }
}
