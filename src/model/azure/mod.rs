//! Entra tokens for Azure OpenAI: from the Azure command line program or from the identity of the machine. Cached, and
//! renewed before they end. Must not decide where a token is sent.

mod cli;
mod identity;

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use secrecy::SecretString;
use tokio::sync::Mutex;

use super::login::TokenSource;

pub use cli::AzureCli;
pub use identity::{ManagedIdentity, TEST_ENDPOINT};

/// A token with less time left is renewed.
const RENEW_BEFORE_S: u64 = 300;

/// A token and its end, in seconds since 1970.
#[derive(Clone, Debug)]
pub struct Token {
    secret: SecretString,
    expires_on: u64,
}

impl Token {
    fn is_good_at(&self, now: u64) -> bool {
        self.expires_on.saturating_sub(now) >= RENEW_BEFORE_S
    }
}

/// Where new tokens come from.
pub trait Fetch: Send + Sync {
    fn origin(&self) -> &str;

    fn fetch(&self) -> BoxFuture<'_, Result<Token, String>>;
}

/// Tokens of one source, asked for no more often than needed.
pub struct Cached<F> {
    source: F,
    token: Mutex<Option<Token>>,
    now: fn() -> u64,
}

impl<F: Fetch> Cached<F> {
    pub fn new(source: F) -> Self {
        Self { source, token: Mutex::new(None), now: seconds_since_1970 }
    }
}

impl<F: Fetch> TokenSource for Cached<F> {
    fn origin(&self) -> &str {
        self.source.origin()
    }

    fn token(&self) -> BoxFuture<'_, Result<SecretString, String>> {
        Box::pin(async move {
            // Held while fetching: whoever comes meanwhile waits for the same token.
            let mut held = self.token.lock().await;
            let now = (self.now)();
            if let Some(token) = held.as_ref().filter(|token| token.is_good_at(now)) {
                return Ok(token.secret.clone());
            }
            match self.source.fetch().await {
                Ok(token) => Ok(held.insert(token).secret.clone()),
                // The old one may be good for some seconds yet.
                Err(why) => match held.as_ref().filter(|token| token.expires_on > now) {
                    Some(token) => Ok(token.secret.clone()),
                    None => Err(why),
                },
            }
        })
    }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// `https://cognitiveservices.azure.com` of `https://cognitiveservices.azure.com/.default`.
fn resource_of(scope: &str) -> &str {
    scope.strip_suffix("/.default").unwrap_or(scope)
}

/// A number, also as text.
fn whole_number(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use secrecy::ExposeSecret;

    use super::*;

    static NOW: AtomicU64 = AtomicU64::new(1_000);

    /// The n-th token is `token-n` and lives 1000 s from when it was asked for; the third fails.
    struct Numbered(AtomicU64);

    impl Fetch for Numbered {
        fn origin(&self) -> &str {
            "numbers"
        }

        fn fetch(&self) -> BoxFuture<'_, Result<Token, String>> {
            let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            let expires_on = NOW.load(Ordering::Relaxed) + 1_000;
            let token = Token { secret: format!("token-{number}").into(), expires_on };
            Box::pin(async move { if number == 3 { Err("no third".to_owned()) } else { Ok(token) } })
        }
    }

    #[tokio::test]
    async fn a_token_is_fetched_once_and_renewed_before_it_ends() {
        let cached =
            Cached { now: || NOW.load(Ordering::Relaxed), ..Cached::new(Numbered(AtomicU64::new(0))) };
        let token = async || cached.token().await.map(|token| token.expose_secret().to_owned());
        let (first, again) = tokio::join!(token(), token());
        assert_eq!((first.unwrap(), again.unwrap()), ("token-1".into(), "token-1".into()));
        for (now, expected) in [
            (1_700, Ok("token-1")),
            (1_701, Ok("token-2")),
            // Renewing fails, but the token has some seconds left.
            (2_500, Ok("token-2")),
            (2_600, Ok("token-4")),
        ] {
            NOW.store(now, Ordering::Relaxed);
            assert_eq!(
                token().await,
                expected.map(str::to_owned).map_err(|why: &str| why.to_owned()),
                "{now}"
            );
        }
    }
}
