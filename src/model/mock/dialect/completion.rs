//! Text completions: the raw continuation of a prompt. Must not decide what to answer.

use serde_json::{Map, Value, json};

use super::super::conversation::{Said, Speaker};
use super::super::turn::Turn;
use super::chat::{done, finish, usage_json};
use super::{CREATED, Event, Frame, Place, Wants, pieces};

pub(super) fn read(body: &Value) -> Vec<Said> {
    body["prompt"].as_str().map(|prompt| Said::new(Speaker::User, prompt)).into_iter().collect()
}

pub(super) fn wants(body: &Value) -> Wants {
    Wants {
        stream_usage: body["stream_options"]["include_usage"] == true,
        logprobs: body["logprobs"].is_number(),
        ..Wants::default()
    }
}

pub(super) fn whole(frame: &Frame, turn: &Turn) -> Value {
    let mut body = chunk(frame, &turn.text, Some(finish(&turn.finish)), turn.logprob);
    if let Some(usage) = &frame.usage {
        body.insert("usage".into(), usage_json(usage));
    }
    Value::Object(body)
}

pub(super) fn events(frame: &Frame, turn: &Turn) -> Vec<Event> {
    let piece = |text: &str, finish| chunk(frame, text, finish, turn.logprob);
    let mut events: Vec<Event> = pieces(&turn.text, frame.chunk)
        .iter()
        .map(|text| Event::data(&Value::Object(piece(text, None)), Place::Said))
        .collect();
    events.push(Event::data(&Value::Object(piece("", Some(finish(&turn.finish)))), Place::Around));
    if let (Some(usage), true) = (&frame.usage, frame.wants.stream_usage) {
        let mut body = piece("", None);
        body.insert("choices".into(), json!([]));
        body.insert("usage".into(), usage_json(usage));
        events.push(Event::data(&Value::Object(body), Place::Around));
    }
    events.push(done());
    events
}

fn chunk(frame: &Frame, text: &str, finish: Option<&str>, logprob: f64) -> Map<String, Value> {
    let logprobs = frame.wants.logprobs.then(|| {
        let tokens = pieces(text, frame.chunk);
        let offsets = tokens.iter().scan(0, |offset, token| {
            let start = *offset;
            *offset += token.chars().count();
            Some(start)
        });
        let offsets: Vec<usize> = offsets.collect();
        let all = vec![logprob; tokens.len()];
        json!({"text_offset": offsets, "token_logprobs": all, "top_logprobs": null, "tokens": tokens})
    });
    let mut body = Map::new();
    body.insert("id".into(), format!("cmpl-{}", frame.id).into());
    body.insert("object".into(), "text_completion".into());
    body.insert("created".into(), CREATED.into());
    body.insert("model".into(), frame.model.as_str().into());
    let choice = json!({"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish});
    body.insert("choices".into(), json!([choice]));
    body
}
