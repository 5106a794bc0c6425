//! What kind of failure a program's words tell of. Pure; the words are untrusted and only decide whose fault it was.

use serde::Serialize;

/// Whose fault it was that a job has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No login, or a key that is refused.
    Auth,
    /// Too many calls, or too many tokens, for now.
    RateLimit,
    /// The model's server is in trouble or out of reach.
    Outage,
    /// The model's server refused the request.
    Model,
    /// The agent's own sandbox did not start.
    Sandbox,
    Unknown,
}

const AUTH: &[&str] = &[
    "not logged in",
    "please run /login",
    "login required",
    "log in to",
    "authentication",
    "unauthorized",
    "unauthenticated",
    "invalid api key",
    "invalid_api_key",
    "invalid x-api-key",
    "api key not valid",
    "incorrect api key",
    "api key not found",
    "no api key",
    "missing api key",
    "set an auth method",
    "oauth token",
    "forbidden",
];
const RATE_LIMIT: &[&str] = &[
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "resource_exhausted",
    "quota",
    "usage limit",
    "overloaded",
];
const OUTAGE: &[&str] = &[
    "stream disconnected",
    "error sending request",
    "econnrefused",
    "econnreset",
    "enotfound",
    "etimedout",
    "fetch failed",
    "connection error",
    "connection refused",
    "network error",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "unable to connect",
    "cannot connect",
];
const SANDBOX: &[&str] = &["bwrap", "bubblewrap", "sandbox", "landlock", "seccomp", "new namespace"];
const MODEL: &[&str] =
    &["invalid_request", "invalid_argument", "model not found", "model_not_found", "bad request"];

impl FailureClass {
    /// A status the program names decides; else a status in its words, else the words.
    pub fn of(message: &str, status: Option<u16>) -> Self {
        let words = message.to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
        match status.or_else(|| status_in(&words)) {
            Some(401 | 403) => Self::Auth,
            Some(429 | 529) => Self::RateLimit,
            // Vendors answer a wrong key with 400 as well.
            Some(400..500) if says(AUTH) => Self::Auth,
            Some(400..500) => Self::Model,
            Some(500..600) => Self::Outage,
            _ if says(AUTH) => Self::Auth,
            _ if says(RATE_LIMIT) => Self::RateLimit,
            _ if says(OUTAGE) => Self::Outage,
            _ if says(SANDBOX) => Self::Sandbox,
            _ if says(MODEL) => Self::Model,
            _ => Self::Unknown,
        }
    }
}

/// A number right after a word that announces a status, or at the very start.
fn status_in(words: &str) -> Option<u16> {
    let mut announced = true;
    for word in words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if announced && let Ok(status @ 400..600) = word.parse::<u16>() {
            return Some(status);
        }
        announced = matches!(word, "status" | "code" | "http" | "error" | "statuscode");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_decides_and_words_are_second() {
        use FailureClass::*;
        for (message, status, want) in [
            ("whatever", Some(401), Auth),
            ("no", Some(429), RateLimit),
            ("Your authentication token expired", Some(400), Auth),
            ("unexpected status 401 Unauthorized: invalid api key", None, Auth),
            ("API Error: 400 the request was malformed", None, Model),
            ("400: {\"message\":\"API key not valid. Please pass one\"}", None, Auth),
            ("[API Error: {\"error\":{\"code\":503,\"message\":\"x\"}}]", None, Outage),
            ("Invalid API key · Please run /login", None, Auth),
            ("You exceeded your current quota", None, RateLimit),
            ("stream disconnected before completion: error sending request", None, Outage),
            ("bwrap: No permissions to create new namespace", None, Sandbox),
            ("it ended with exit code 1: line 401 of the file", None, Unknown),
            ("it ended with exit code 1 without a result", None, Unknown),
        ] {
            assert_eq!(FailureClass::of(message, status), want, "{message}");
        }
    }
}
