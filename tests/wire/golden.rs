//! What goes over the wire and what is read from it when nothing goes wrong.

use planish::config::Effort;
use planish::domain::{FinishReason, Prompt, Sampling, Usage};
use planish::event::Live;
use planish::model::mock::{Answer, Detailed, Script};
use planish::model::{ChatModel, Login};
use serde_json::json;

use crate::support::{KEY, Settings, chat, deaf, listen, model, request, sequence, serve, settings};

#[tokio::test]
async fn chat_request_streamed() {
    let server = sequence(["fine".into()]).await;
    model(settings(&server)).chat(&chat("6*7?"), &deaf()).await.unwrap();
    let seen = server.requests().remove(0);
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.headers["accept"], "text/event-stream");
    let golden = json!({
        "model": "mock-model",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "6*7?"}],
        "max_tokens": 64,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(seen.body, golden);
}

#[tokio::test]
async fn efforts_are_sent_when_they_are_set_and_belong_to_the_label() {
    let server = sequence(["fine".into(), "fine".into(), "fine".into(), "fine".into()]).await;
    let mut settings = settings(&server);
    assert!(!model(settings.clone()).label().contains("effort"));
    settings.http.effort = Effort::Medium;
    let mut rewrite = chat("x");
    rewrite.stage = "rewrite".into();
    let asked = |settings: &Settings| (model(settings.clone()), rewrite.clone());
    let (client, request) = asked(&settings);
    client.chat(&chat("x"), &deaf()).await.unwrap();
    client.chat(&request, &deaf()).await.unwrap();
    settings.http.rewrite_effort = Effort::High;
    let (client, request) = asked(&settings);
    client.chat(&chat("x"), &deaf()).await.unwrap();
    client.chat(&request, &deaf()).await.unwrap();
    let efforts: Vec<_> =
        server.requests().iter().map(|seen| seen.body["reasoning_effort"].clone()).collect();
    assert_eq!(efforts, ["medium", "medium", "medium", "high"]);
    assert!(client.label().ends_with("mock-model, effort medium, rewrite effort high"), "{}", client.label());
}

#[tokio::test]
async fn text_request_with_every_sampling_parameter() {
    let server = sequence(["Paris".into()]).await;
    let mut request = request(Prompt::Text("Copy the city.\nText: to Paris\n".into()));
    request.sampling = Sampling {
        max_tokens: 12,
        temperature: Some(0.0),
        top_p: Some(0.9),
        top_k: Some(40),
        seed: Some(7),
        stop: vec!["\n".into()],
    };
    let mut settings = settings(&server);
    settings.http.stream = false;
    settings.http.login = Login::None;
    let reply = model(settings).chat(&request, &deaf()).await.unwrap();
    assert_eq!(reply.text, "Paris");
    let seen = server.requests().remove(0);
    assert_eq!(seen.path, "/v1/completions");
    assert!(!seen.headers.contains_key("authorization"));
    let golden = json!({
        "model": "mock-model",
        "prompt": "Copy the city.\nText: to Paris\n",
        "max_tokens": 12,
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 40,
        "seed": 7,
        "stop": ["\n"],
    });
    assert_eq!(seen.body, golden);
}

#[tokio::test]
async fn reply_usage_and_request_id_with_and_without_a_stream() {
    let text = "Grüße 🦀, the whole reply";
    for stream in [true, false] {
        let server = sequence([text.into()]).await;
        let mut settings = settings(&server);
        settings.http.stream = stream;
        let reply = model(settings).chat(&chat("x"), &deaf()).await.unwrap();
        assert_eq!(reply.text, text);
        assert_eq!(reply.finish, FinishReason::Stop);
        assert_eq!(reply.request_id.as_deref(), Some("mock-1"));
        let tokens = text.len().div_ceil(4) as u64;
        assert_eq!(
            reply.usage,
            Usage { calls: 1, prompt_tokens: 3, completion_tokens: tokens, ..Usage::default() }
        );
    }
}

#[tokio::test]
async fn text_prompts_stream_too() {
    let server = sequence(["several chunks of text".into()]).await;
    let reply = model(settings(&server)).chat(&request(Prompt::Text("p".into())), &deaf()).await.unwrap();
    assert_eq!(reply.text, "several chunks of text");
}

#[tokio::test]
async fn text_is_told_as_it_arrives() {
    let script = Script { chunk: 1, chunk_delay_ms: 1, ..Script::sequence(["slow".into()]) };
    let server = serve(script).await;
    let (sink, heard) = listen();
    let reply = model(settings(&server)).chat(&chat("x"), &sink).await.unwrap();
    assert_eq!(reply.text, "slow");
    let heard = heard.lock().unwrap();
    assert_eq!(heard.iter().filter(|live| matches!(live, Live::CallDelta { .. })).count(), 4);
}

#[tokio::test]
async fn a_server_without_usage_still_counts_one_call() {
    let script = Script { no_usage: true, ..Script::sequence(["fine".into()]) };
    let server = serve(script).await;
    let reply = model(settings(&server)).chat(&chat("x"), &deaf()).await.unwrap();
    assert_eq!(reply.usage, Usage { calls: 1, ..Usage::default() });
}

#[tokio::test]
async fn finish_reasons_pass() {
    let cut = Detailed { text: "cut".into(), finish: Some("length".into()), ..Detailed::default() };
    let server = sequence([Answer::Detailed(cut)]).await;
    let reply = model(settings(&server)).chat(&chat("x"), &deaf()).await.unwrap();
    assert_eq!(reply.finish, FinishReason::Length);
}

#[tokio::test]
async fn live_news_come_in_order_and_add_up_to_the_reply() {
    let server = sequence(["a reply of several chunks".into()]).await;
    let (sink, heard) = listen();
    let reply = model(settings(&server)).chat(&chat("x"), &sink).await.unwrap();
    let heard = heard.lock().unwrap();
    let path = "e01/s001/rollout/item-1#0".to_owned();
    let started = Live::CallStarted { path: path.clone(), item: "item-1".into(), attempt: 1 };
    assert_eq!(heard.first(), Some(&started));
    let deltas: Vec<&str> = heard
        .iter()
        .filter_map(|live| match live {
            Live::CallDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas.len(), 4);
    assert_eq!(deltas.concat(), reply.text);
    assert!(matches!(heard.last(), Some(Live::CallFinished { ok: true, tokens: 7, .. })), "{heard:?}");
}
