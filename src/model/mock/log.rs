//! A file with one JSON line per request, keys masked. Must not know rules.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::wire::Request;

/// Headers whose values are keys.
const SECRET_HEADERS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "x-auth-token",
];

/// Where requests are written down.
#[derive(Debug)]
pub struct RequestLog {
    file: File,
}

impl RequestLog {
    /// Begins the file anew.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        Ok(Self { file: File::create(path)? })
    }

    /// A line that cannot be written is lost: the log must not change what is answered.
    pub(super) fn write(&mut self, request: &Request, status: u16, rule: &str) {
        let _ = writeln!(self.file, "{}", line(request, status, rule));
    }
}

fn line(request: &Request, status: u16, rule: &str) -> Value {
    let mut names: Vec<&String> = request.headers.keys().collect();
    names.sort();
    let headers: Map<String, Value> = names
        .into_iter()
        .map(|name| {
            let secret = SECRET_HEADERS.contains(&name.as_str());
            let value = if secret { "[masked]" } else { &request.headers[name] };
            (name.clone(), value.into())
        })
        .collect();
    let query: Vec<&str> = request
        .query
        .split('&')
        .map(|pair| if pair.starts_with("key=") { "key=[masked]" } else { pair })
        .collect();
    let body = serde_json::from_slice(&request.body)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&request.body).into_owned()));
    json!({
        "method": request.method, "path": request.path, "query": query.join("&"), "headers": headers, "body": body,
        "status": status, "rule": rule,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_requests_without_keys() {
        let secret = "sk-0123456789abcdef";
        let headers = SECRET_HEADERS.iter().map(|name| ((*name).to_owned(), format!("Bearer {secret}")));
        let request = Request {
            method: "POST".into(),
            path: "/v1beta/models/m:generateContent".into(),
            query: format!("alt=sse&key={secret}"),
            headers: headers.chain([("accept".to_owned(), "*/*".to_owned())]).collect(),
            body: br#"{"a":1}"#.to_vec(),
        };
        let line = line(&request, 200, "city");
        assert!(!line.to_string().contains(secret), "{line}");
        assert_eq!(line["headers"]["accept"], "*/*");
        assert_eq!(line["query"], "alt=sse&key=[masked]");
        assert_eq!(
            (&line["body"]["a"], &line["rule"], &line["status"]),
            (&json!(1), &json!("city"), &json!(200))
        );
        let broken = Request { body: b"\xff".to_vec(), ..request };
        assert_eq!(super::line(&broken, 400, "")["body"], "\u{fffd}");
    }
}
