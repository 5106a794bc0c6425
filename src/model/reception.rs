//! Reads one HTTP answer within limits of size and silence, whole or as a stream of events. Must not send anything.

use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::attempt::Fault;
use super::error_body::status_in_error;
use super::retry::judge_answer;
use super::sse::SseReader;
use super::wire::{Answer, Heard, Reader, ServerError};

/// Largest body, event or reply text that is read.
pub const MAX_REPLY_BYTES: usize = 8 << 20;
/// Largest error body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Reads an answer that came with status 200; `hear` gets the reply's text as it comes.
pub(super) async fn answer(
    response: Response,
    mut reader: Reader,
    silence: Duration,
    hear: &mut (dyn FnMut(String) + Send),
) -> Result<Answer, Fault> {
    let headers = response.headers().clone();
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    if kind.starts_with("text/event-stream") {
        read_stream(response, &headers, &mut reader, silence, hear).await?;
    } else if kind.contains("html") {
        // A proxy's or a login's page; without it the text would end up in an error about JSON.
        return Err(Fault::temporary(format!(
            "the answer is a web page ({kind}) and no reply; check base_url"
        )));
    } else {
        let body = read_body(response, MAX_REPLY_BYTES, false, silence).await?;
        let value = parse(&String::from_utf8_lossy(&body))?;
        let Heard { text, .. } = reader.whole(&value).map_err(|error| judge(&error, &headers))?;
        if !text.is_empty() {
            hear(text);
        }
    }
    Ok(reader.finish())
}

/// The body of an answer with an error status, as far as it is of use.
pub(super) async fn error_body(response: Response, silence: Duration) -> Vec<u8> {
    read_body(response, MAX_ERROR_BYTES, true, silence).await.unwrap_or_default()
}

/// Reads a whole body. `cut`: what is over the limit is dropped, else it is an error.
async fn read_body(response: Response, limit: usize, cut: bool, silence: Duration) -> Result<Vec<u8>, Fault> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = next_chunk(&mut stream, silence).await? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            if cut {
                body.truncate(limit);
                return Ok(body);
            }
            return Err(too_large());
        }
    }
    Ok(body)
}

/// Reads an event stream to its end.
async fn read_stream(
    response: Response,
    headers: &HeaderMap,
    reader: &mut Reader,
    silence: Duration,
    hear: &mut (dyn FnMut(String) + Send),
) -> Result<(), Fault> {
    let mut stream = response.bytes_stream();
    let mut events = SseReader::default();
    let mut bytes = 0_usize;
    loop {
        let chunk = next_chunk(&mut stream, silence).await?;
        let arrived = match &chunk {
            Some(bytes) => events.push(bytes, MAX_REPLY_BYTES).map_err(|_| too_large())?,
            None => events.finish().into_iter().collect(),
        };
        for event in &arrived {
            if event.trim() == "[DONE]" {
                return Ok(());
            }
            // A data line that only keeps the connection open.
            if event.trim().is_empty() {
                continue;
            }
            let value = parse(event)?;
            let Heard { text, over } = reader.event(&value).map_err(|error| judge(&error, headers))?;
            // Names and numbers around each piece are many times its text, so the limit is on what is kept.
            bytes = bytes.saturating_add(kept(&value));
            if bytes > MAX_REPLY_BYTES {
                return Err(too_large());
            }
            if !text.is_empty() {
                hear(text);
            }
            if over {
                return Ok(());
            }
        }
        if chunk.is_none() {
            return match reader.complete() {
                true => Ok(()),
                false => Err(Fault::temporary("the stream ended in the middle of the reply")),
            };
        }
    }
}

/// Bytes of the longest text of an event: what a reader may keep of it.
fn kept(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(kept).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(kept).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

async fn next_chunk<S, B>(stream: &mut S, silence: Duration) -> Result<Option<B>, Fault>
where
    S: futures_util::Stream<Item = reqwest::Result<B>> + Unpin,
{
    match tokio::time::timeout(silence, stream.next()).await {
        Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
        Ok(Some(Err(error))) => Err(Fault::temporary(describe(&error))),
        Ok(None) => Ok(None),
        Err(_) => Err(Fault::temporary(format!("silence of {} s inside the reply", silence.as_secs_f64()))),
    }
}

fn parse(data: &str) -> Result<Value, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::temporary(format!("the reply is malformed: {error}")))
}

/// An error where an answer was promised. It may come after half a reply, which is billed.
fn judge(error: &ServerError, headers: &HeaderMap) -> Fault {
    let ServerError(body) = error;
    let fault = judge_answer(status_in_error(body), headers, body.to_string().as_bytes(), SystemTime::now());
    Fault { used: None, ..fault }
}

fn too_large() -> Fault {
    Fault::refused(200, format!("the reply is larger than {} MiB", MAX_REPLY_BYTES >> 20))
}

/// An error with its causes, without the URL that reqwest appends.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut text = if error.is_connect() {
        "cannot connect".to_owned()
    } else if error.is_timeout() {
        "timeout".to_owned()
    } else if error.is_body() || error.is_decode() {
        "the connection broke inside the reply".to_owned()
    } else {
        "the request failed".to_owned()
    };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        cause = error.source();
        if cause.is_none() {
            text.push_str(": ");
            text.push_str(&error.to_string());
        }
    }
    text
}
