//! Addresses of servers and what may be sent to them: a key only where nobody reads along, a token only to its own
//! cloud. Must not do any IO.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::dialect::{Api, AuthStyle, Dialect, Paths};
use super::http::HttpSetupError;

/// Where Entra tokens may go.
const AZURE_SUFFIXES: [&str; 3] =
    [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];

/// What matters of a base URL.
pub(super) struct Address {
    pub(super) host: String,
    pub(super) encrypted: bool,
    pub(super) loopback: bool,
    /// Without a slash at the end.
    pub(super) shown: String,
}

impl Address {
    pub(super) fn parse(base_url: &str) -> Result<Self, HttpSetupError> {
        let bad = |why: String| HttpSetupError::BadUrl { url: without_userinfo(base_url), why };
        let url = Url::parse(base_url).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("scheme {}", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it holds a user or password; put the key into api_key_env".into()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("it must end after the path".into()));
        }
        let host = url.host_str().ok_or_else(|| bad("no host".into()))?.to_owned();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let loopback = bare == "localhost"
            || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let shown = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { host, encrypted: url.scheme() == "https", loopback, shown })
    }

    /// Whether a token for Azure may go there.
    pub(super) fn is_azure(&self) -> bool {
        self.encrypted && AZURE_SUFFIXES.iter().any(|suffix| self.host.ends_with(suffix))
    }
}

/// The text before an `@` may be a password.
fn without_userinfo(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, rest)) => format!("…@{rest}"),
        None => url.to_owned(),
    }
}

/// Which of an API's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Reply(Api),
    /// A text continued, without a chat template.
    Continue,
}

/// The address of an operation.
pub(super) fn operation_url(
    dialect: &Dialect,
    base: &str,
    model: &str,
    api_version: &str,
    operation: Operation,
) -> String {
    let base = base.trim_end_matches('/');
    let path = match operation {
        Operation::Reply(Api::Chat) => "chat/completions",
        Operation::Reply(Api::Responses) => "responses",
        Operation::Reply(Api::Messages) => "messages",
        Operation::Continue => "completions",
    };
    match dialect.paths {
        Paths::Plain => format!("{base}/{path}"),
        Paths::AzureV1 => {
            let resource = base.trim_end_matches("/openai/v1").trim_end_matches("/openai");
            format!("{resource}/openai/v1/{path}")
        }
        Paths::AzureDated => {
            let resource = base.trim_end_matches("/openai");
            let version = escaped(api_version);
            match operation {
                Operation::Reply(Api::Responses | Api::Messages) => {
                    format!("{resource}/openai/{path}?api-version={version}")
                }
                Operation::Reply(Api::Chat) | Operation::Continue => {
                    let deployment = escaped(model);
                    format!("{resource}/openai/deployments/{deployment}/{path}?api-version={version}")
                }
            }
        }
    }
}

/// One segment of a path, or one value of a query.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// The header that carries a secret.
pub(super) fn authorization(
    style: AuthStyle,
    secret: &str,
    origin: &str,
) -> Result<(HeaderName, HeaderValue), HttpSetupError> {
    let (name, text) = match style {
        AuthStyle::Bearer => (AUTHORIZATION, format!("Bearer {secret}")),
        AuthStyle::ApiKey => (HeaderName::from_static("api-key"), secret.to_owned()),
        AuthStyle::XApiKey => (HeaderName::from_static("x-api-key"), secret.to_owned()),
    };
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| HttpSetupError::BadKey { origin: origin.to_owned() })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// A further header; `None` for what is none, and for those that carry secrets or belong to the transport.
pub(super) fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    const NOT_THESE: [&str; 9] = [
        "authorization",
        "api-key",
        "x-api-key",
        "cookie",
        "proxy-authorization",
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
    ];
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let value = HeaderValue::from_str(value).ok()?;
    (!NOT_THESE.contains(&name.as_str())).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_azure_over_https_only() {
        for (url, want) in [
            ("https://res.openai.azure.com", true),
            ("https://res.cognitiveservices.azure.com/openai/v1", true),
            ("https://res.services.ai.azure.com", true),
            ("http://res.openai.azure.com", false),
            ("https://openai.azure.com.example.com", false),
            ("https://evilopenai.azure.com.invalid", false),
            ("https://xopenai.azure.com", false),
            ("https://api.openai.com/v1", false),
            ("http://127.0.0.1:1/v1", false),
        ] {
            assert_eq!(Address::parse(url).unwrap().is_azure(), want, "{url}");
        }
    }

    #[test]
    fn secrets_travel_as_the_dialect_says_and_are_marked() {
        for (style, name, text) in [
            (AuthStyle::Bearer, "authorization", "Bearer s3cret"),
            (AuthStyle::ApiKey, "api-key", "s3cret"),
            (AuthStyle::XApiKey, "x-api-key", "s3cret"),
        ] {
            let (header, value) = authorization(style, "s3cret", "here").unwrap();
            assert_eq!((header.as_str(), value.to_str().unwrap()), (name, text));
            assert!(value.is_sensitive());
        }
        let error = authorization(AuthStyle::ApiKey, "a\nb", "file key.txt").unwrap_err();
        assert!(error.to_string().contains("file key.txt"), "{error}");
        assert!(header("Authorization", "Bearer x").is_none());
        assert!(header("X-Title", "a\r\nb").is_none());
        assert!(header("anthropic-beta", "x").is_some());
    }
}
