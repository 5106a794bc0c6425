//! What a path asks for: the dialect, whose manners it has, and what the path says beside them. Must not read bodies.

use super::dialect::{Dialect, Vendor};

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Generate(Route),
    CountTokens(Route),
    Models(Route),
    /// The address itself, which clients look at to see whether there is a server.
    Home,
    Unknown,
}

/// How to speak with whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) dialect: Dialect,
    pub(super) vendor: Vendor,
    /// The path names the model, or the deployment.
    pub(super) model: Option<String>,
    /// The path asks for a stream.
    pub(super) stream: bool,
}

/// Base paths, the more particular first.
const BASES: [(&str, Vendor); 7] = [
    ("/api/v1/", Vendor::OpenRouter),
    ("/openai/v1/", Vendor::Azure),
    ("/openai/", Vendor::Azure),
    ("/v1beta/openai/", Vendor::Google),
    ("/anthropic/v1/", Vendor::Plain),
    ("/v1/", Vendor::Plain),
    ("/", Vendor::Plain),
];

impl Endpoint {
    /// `path` is without its query.
    pub(super) fn of(method: &str, path: &str) -> Self {
        if let Some(rest) = path.strip_prefix("/openai/deployments/") {
            let Some((deployment, rest)) = rest.split_once('/') else { return Self::Unknown };
            return named(method, rest, Vendor::Azure, Some(deployment.to_owned()));
        }
        let models = path.strip_prefix("/v1beta/models").or_else(|| path.strip_prefix("/v1/models/"));
        if let Some(endpoint) = models.and_then(|rest| of_gemini(method, rest.trim_start_matches('/'))) {
            return endpoint;
        }
        if method != "POST" && path.trim_end_matches('/').is_empty() {
            return Self::Home;
        }
        let found = BASES.iter().find_map(|(base, vendor)| Some((path.strip_prefix(base)?, *vendor)));
        found.map_or(Self::Unknown, |(rest, vendor)| named(method, rest, vendor, None))
    }
}

fn named(method: &str, rest: &str, vendor: Vendor, model: Option<String>) -> Endpoint {
    let route = |dialect| Route { dialect, vendor, model: model.clone(), stream: false };
    match (method, rest) {
        ("POST", "chat/completions") => Endpoint::Generate(route(Dialect::Chat)),
        ("POST", "completions") => Endpoint::Generate(route(Dialect::Text)),
        ("POST", "responses") => Endpoint::Generate(route(Dialect::Responses)),
        ("POST", "messages") => Endpoint::Generate(route(Dialect::Messages)),
        ("POST", "messages/count_tokens") => Endpoint::CountTokens(route(Dialect::Messages)),
        ("GET", "models") => Endpoint::Models(route(Dialect::Chat)),
        _ => Endpoint::Unknown,
    }
}

/// `rest` follows `models/`.
fn of_gemini(method: &str, rest: &str) -> Option<Endpoint> {
    let route = |model: Option<&str>, stream| Route {
        dialect: Dialect::Gemini,
        vendor: Vendor::Google,
        model: model.map(str::to_owned),
        stream,
    };
    if method == "GET" && rest.is_empty() {
        return Some(Endpoint::Models(route(None, false)));
    }
    let (model, verb) = rest.split_once(':').filter(|_| method == "POST")?;
    match verb {
        "generateContent" => Some(Endpoint::Generate(route(Some(model), false))),
        "streamGenerateContent" => Some(Endpoint::Generate(route(Some(model), true))),
        "countTokens" => Some(Endpoint::CountTokens(route(Some(model), false))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_all_vendors_are_known() {
        let generate = |dialect, vendor, model: Option<&str>, stream| {
            Endpoint::Generate(Route { dialect, vendor, model: model.map(str::to_owned), stream })
        };
        for (path, want) in [
            ("/v1/chat/completions", generate(Dialect::Chat, Vendor::Plain, None, false)),
            ("/chat/completions", generate(Dialect::Chat, Vendor::Plain, None, false)),
            ("/v1/completions", generate(Dialect::Text, Vendor::Plain, None, false)),
            ("/v1/responses", generate(Dialect::Responses, Vendor::Plain, None, false)),
            ("/v1/messages", generate(Dialect::Messages, Vendor::Plain, None, false)),
            ("/anthropic/v1/messages", generate(Dialect::Messages, Vendor::Plain, None, false)),
            ("/api/v1/chat/completions", generate(Dialect::Chat, Vendor::OpenRouter, None, false)),
            ("/openai/v1/chat/completions", generate(Dialect::Chat, Vendor::Azure, None, false)),
            ("/openai/v1/responses", generate(Dialect::Responses, Vendor::Azure, None, false)),
            ("/openai/responses", generate(Dialect::Responses, Vendor::Azure, None, false)),
            (
                "/openai/deployments/d-1/chat/completions",
                generate(Dialect::Chat, Vendor::Azure, Some("d-1"), false),
            ),
            ("/v1beta/openai/chat/completions", generate(Dialect::Chat, Vendor::Google, None, false)),
            (
                "/v1beta/models/g-3:generateContent",
                generate(Dialect::Gemini, Vendor::Google, Some("g-3"), false),
            ),
            (
                "/v1beta/models/g-3:streamGenerateContent",
                generate(Dialect::Gemini, Vendor::Google, Some("g-3"), true),
            ),
        ] {
            assert_eq!(Endpoint::of("POST", path), want, "{path}");
        }
        for path in ["/v1/models", "/models", "/api/v1/models", "/openai/v1/models", "/v1beta/models"] {
            assert!(matches!(Endpoint::of("GET", path), Endpoint::Models(_)), "{path}");
        }
        for path in ["/v1/messages/count_tokens", "/v1beta/models/g:countTokens"] {
            assert!(matches!(Endpoint::of("POST", path), Endpoint::CountTokens(_)), "{path}");
        }
        assert_eq!(Endpoint::of("HEAD", "/"), Endpoint::Home);
        for path in ["/v1/other", "/v2/chat/completions", "/v1beta/models/g:other", "/openai/deployments/d"] {
            assert_eq!(Endpoint::of("POST", path), Endpoint::Unknown, "{path}");
        }
    }
}
