//! What a server is shown: a key, or a token that is fetched and renewed. Secrets are never printed.

use futures_util::future::BoxFuture;
use secrecy::SecretString;

/// A key and where it came from; only the origin is ever shown.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub secret: SecretString,
    /// For example `environment variable OPENAI_API_KEY`.
    pub origin: String,
}

/// Bearer tokens with an end (Entra).
pub trait TokenSource: Send + Sync {
    /// Where tokens come from, for messages.
    fn origin(&self) -> &str;

    /// A token that is good for some minutes; cached inside.
    fn token(&self) -> BoxFuture<'_, Result<SecretString, String>>;
}

/// How a role logs in.
#[derive(Clone)]
pub enum Login {
    None,
    Key(ApiKey),
    Token(std::sync::Arc<dyn TokenSource>),
}
