//! Tokens of a machine's managed identity, from the metadata service of its cloud.

use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::{Client, Url};
use serde_json::Value;

use super::{Fetch, Token, resource_of, seconds_since_1970, whole_number};
use crate::model::tls;

/// The same on every machine of the cloud; reachable from that machine only.
const ENDPOINT: &str = "http://169.254.169.254";
/// For tests only: the address on this machine of something in the place of the metadata service.
pub const TEST_ENDPOINT: &str = "PLANISH_TEST_IMDS_ENDPOINT";
const PATH: &str = "/metadata/identity/oauth2/token";
const API_VERSION: &str = "2018-02-01";
/// Elsewhere the address leads nowhere, and packets to it get no answer.
const CONNECT_TIME: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(20);
const TRIES: u32 = 5;
const MAX_BYTES: usize = 64 << 10;

pub struct ManagedIdentity {
    client: Client,
    url: Url,
    origin: String,
}

impl ManagedIdentity {
    /// `client_id`: "" for the machine's own identity. `test_endpoint`: the value of [`TEST_ENDPOINT`].
    ///
    /// # Errors
    /// A test endpoint that is not on this machine, or no HTTP client.
    pub fn new(scope: &str, client_id: &str, test_endpoint: Option<&str>) -> Result<Self, String> {
        let endpoint = test_endpoint.unwrap_or(ENDPOINT);
        let mut url = Url::parse(endpoint)
            .and_then(|url| url.join(PATH))
            .map_err(|error| format!("{TEST_ENDPOINT} is no address: {error}"))?;
        let host = url.host_str().unwrap_or_default();
        if test_endpoint.is_some() && !["127.0.0.1", "[::1]", "localhost"].contains(&host) {
            return Err(format!("{TEST_ENDPOINT} is for tests: it must be an address of this machine"));
        }
        let mut query = url.query_pairs_mut();
        query.append_pair("api-version", API_VERSION).append_pair("resource", resource_of(scope));
        if !client_id.is_empty() {
            query.append_pair("client_id", client_id);
        }
        drop(query);
        tls::install_provider();
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME)
            .timeout(TIME)
            // Plain http: no certificates are needed.
            .tls_certs_only([])
            .build()
            .map_err(|error| format!("cannot build the HTTP client: {error}"))?;
        let whose = if client_id.is_empty() { "this machine".to_owned() } else { client_id.to_owned() };
        Ok(Self { client, url, origin: format!("the managed identity of {whose}") })
    }

    async fn ask(&self) -> Result<Token, String> {
        let mut wait = Duration::from_millis(500);
        for attempt in 1.. {
            match self.once().await {
                Err(Fault::Passing(_)) if attempt < TRIES => tokio::time::sleep(wait).await,
                Err(Fault::Passing(why) | Fault::Lasting(why)) => return Err(why),
                Ok(token) => return Ok(token),
            }
            wait *= 2;
        }
        Err("no token".into())
    }

    async fn once(&self) -> Result<Token, Fault> {
        let sent = self.client.get(self.url.clone()).header("Metadata", "true").send().await;
        let mut response = sent.map_err(|error| match error.is_connect() {
            // Not a machine of the cloud: asking again changes nothing.
            true => Fault::Lasting(
                "no metadata service answers; is this a machine with a managed identity?".into(),
            ),
            false => Fault::Passing("the metadata service gave no whole answer".into()),
        })?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_BYTES => body.extend_from_slice(&chunk),
                Ok(Some(_)) => {
                    return Err(Fault::Lasting("the metadata service's answer is too large".into()));
                }
                Ok(None) => break,
                Err(_) => return Err(Fault::Passing("the metadata service's answer broke off".into())),
            }
        }
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match status {
            200 => read(&answer).ok_or_else(|| Fault::Lasting("the metadata service sent no token".into())),
            404 | 410 | 429 | 500.. => Err(Fault::Passing(format!("the metadata service answers {status}"))),
            _ => {
                let said =
                    answer.get("error_description").and_then(Value::as_str).unwrap_or("no reason given");
                let said = crate::text::truncate(&crate::text::sanitize_line(said), 200);
                Err(Fault::Lasting(format!("the metadata service refuses ({status}): {said}")))
            }
        }
    }
}

enum Fault {
    /// Worth another try.
    Passing(String),
    Lasting(String),
}

fn read(answer: &Value) -> Option<Token> {
    let secret = answer.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let until = answer.get("expires_on").and_then(whole_number);
    let lives = || answer.get("expires_in").and_then(whole_number).map(|left| seconds_since_1970() + left);
    Some(Token { secret: secret.to_owned().into(), expires_on: until.or_else(lives)? })
}

impl Fetch for ManagedIdentity {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn fetch(&self) -> BoxFuture<'_, Result<Token, String>> {
        Box::pin(self.ask())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Gives these answers in turn; hands back the requests.
    async fn imds(answers: Vec<(u16, &'static str)>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let mut requests = Vec::new();
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.unwrap());
                }
                requests.push(String::from_utf8(request).unwrap());
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            requests
        });
        (address, serving)
    }

    async fn ask(answers: Vec<(u16, &'static str)>) -> (Result<(String, u64), String>, Vec<String>) {
        let (address, serving) = imds(answers).await;
        let identity = ManagedIdentity::new("https://r.example/.default", "an id", Some(&address)).unwrap();
        let token =
            identity.ask().await.map(|token| (token.secret.expose_secret().to_owned(), token.expires_on));
        (token, serving.await.unwrap())
    }

    #[tokio::test]
    async fn the_metadata_service_is_asked_as_it_wants_to_be() {
        let good = r#"{"access_token": "tok", "expires_on": "4000000000", "expires_in": "10"}"#;
        let (token, requests) = ask(vec![(200, good)]).await;
        assert_eq!(token, Ok(("tok".to_owned(), 4_000_000_000)));
        let request = requests[0].to_lowercase();
        let wanted = "get /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3a%2f%2fr.example&client_id=an+id http/1.1";
        assert!(request.starts_with(wanted) && request.contains("metadata: true"), "{request}");
    }

    #[tokio::test(start_paused = true)]
    async fn passing_troubles_are_waited_out_and_others_are_told() {
        let good = r#"{"access_token": "tok", "expires_on": 4000000000}"#;
        let (token, requests) = ask(vec![(429, ""), (503, "{}"), (410, ""), (200, good)]).await;
        assert_eq!((token.is_ok(), requests.len()), (true, 4));
        let (token, _) = ask(vec![(500, ""); 5]).await;
        assert_eq!(token, Err("the metadata service answers 500".to_owned()));
        let (token, requests) = ask(vec![(400, r#"{"error_description": "Identity not found"}"#)]).await;
        assert_eq!(token, Err("the metadata service refuses (400): Identity not found".to_owned()));
        assert_eq!(requests.len(), 1);
        let (token, _) = ask(vec![(200, "{}")]).await;
        assert_eq!(token, Err("the metadata service sent no token".to_owned()));
    }

    #[test]
    fn only_tests_on_this_machine_stand_in_for_it() {
        let told = ManagedIdentity::new("s", "", Some("http://evil.example")).err().unwrap();
        assert!(told.contains(TEST_ENDPOINT) && told.contains("this machine"), "{told}");
    }
}
