//! What the server demands of a request before any rule looks at it: a key, and no fields that it does not know.
//! Must not know sockets.

use serde_json::Value;

use super::dialect::{self, Dialect, Vendor};
use super::route::Route;
use super::script::{RequiredKey, Script};
use super::turn::{Cause, Refusal};
use super::wire::Request;

/// Why the request is not answered; `None`: it may pass.
pub(super) fn refusal(script: &Script, route: &Route, request: &Request, body: &Value) -> Option<Refusal> {
    let key = script.require_key.as_ref().and_then(|key| key_refusal(key, route, request));
    let param = || script.refuse_params.iter().find_map(|name| param_refusal(name, body));
    key.or_else(param).or_else(|| {
        let lost = script.require_reasoning && dialect::lost_reasoning(route.dialect, route.vendor, body);
        lost.then(|| Refusal::new(400, "the reasoning before a tool call must be passed back"))
    })
}

pub(super) fn key_refusal(key: &RequiredKey, route: &Route, request: &Request) -> Option<Refusal> {
    let shown = |name: &str| request.headers.get(name).map(String::as_str);
    let names: &[&str] = match (&key.header, route.dialect, route.vendor) {
        (Some(name), ..) => &[name],
        (None, Dialect::Messages, _) => &["x-api-key", "authorization"],
        (None, Dialect::Gemini, _) => &["x-goog-api-key"],
        (None, _, Vendor::Azure) => &["api-key", "authorization"],
        (None, Dialect::Chat | Dialect::Text | Dialect::Responses, _) => &["authorization"],
    };
    let in_query = (route.dialect == Dialect::Gemini)
        .then(|| request.query.split('&').find_map(|pair| pair.strip_prefix("key=")))
        .flatten();
    let found = names.iter().find_map(|name| shown(&name.to_ascii_lowercase())).or(in_query);
    let Some(found) = found else {
        let message = format!("no key: send it in the header {}", names.join(" or "));
        return Some(Refusal { status: key.status, cause: Cause::Key, message });
    };
    if found == key.value || found.strip_prefix("Bearer ") == Some(&key.value) {
        return None;
    }
    Some(Refusal { status: key.status, cause: Cause::Key, message: "this key is not valid".into() })
}

fn param_refusal(name: &str, body: &Value) -> Option<Refusal> {
    name.split('.').try_fold(body, |inside, part| inside.get(part))?;
    let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
    Some(Refusal { status: 400, cause: Cause::UnknownParameter { name: name.to_owned() }, message })
}
