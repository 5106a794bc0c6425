//! Tokens from `az`, which keeps the login of whoever ran `az login`.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::process::Command;

use super::{Fetch, RENEW_BEFORE_S, Token, resource_of, seconds_since_1970, whole_number};
use crate::model::child_env;
use crate::text::{sanitize_line, truncate};

const TIME: Duration = Duration::from_secs(60);

pub struct AzureCli {
    program: OsString,
    resource: String,
}

impl AzureCli {
    pub fn new(scope: &str) -> Self {
        Self { program: "az".into(), resource: resource_of(scope).to_owned() }
    }

    async fn ask(&self) -> Result<Token, String> {
        let run = Command::new(&self.program)
            .args(["account", "get-access-token", "--resource", self.resource.as_str(), "-o", "json"])
            .env_clear()
            .envs(child_env::allowed(child_env::AZURE_CLI))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(TIME, run)
            .await
            .map_err(|_| format!("az said nothing within {} s; try `az login`", TIME.as_secs()))?
            .map_err(|error| format!("cannot run az ({error}); install the Azure CLI and `az login`"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no word");
            return Err(format!("az failed: {}; try `az login`", truncate(&sanitize_line(said.trim()), 200)));
        }
        // Never shown: it holds the token.
        let answer: Value =
            serde_json::from_slice(&output.stdout).map_err(|_| "az printed no JSON".to_owned())?;
        let secret = answer.get("accessToken").and_then(Value::as_str).filter(|token| !token.is_empty());
        let secret = secret.ok_or("az printed no accessToken")?.to_owned().into();
        // Older versions print a local time without its zone, which is no use: asked again soon.
        let soon = || seconds_since_1970() + 2 * RENEW_BEFORE_S;
        let expires_on = answer.get("expires_on").and_then(whole_number).unwrap_or_else(soon);
        Ok(Token { secret, expires_on })
    }
}

impl Fetch for AzureCli {
    fn origin(&self) -> &str {
        "az (Azure CLI)"
    }

    fn fetch(&self) -> BoxFuture<'_, Result<Token, String>> {
        Box::pin(self.ask())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use secrecy::ExposeSecret;

    use super::*;

    /// What a program in the place of `az` leads to.
    async fn ask(script: &str) -> (Result<(String, u64), String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("az");
        let seen = folder.path().join("seen");
        let script = format!("#!/bin/sh\n{{ echo \"$*\"; env; }} > {}\n{script}\n", seen.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let az = AzureCli { program: program.into(), ..AzureCli::new("https://r.example/.default") };
        let token = az.ask().await.map(|token| (token.secret.expose_secret().to_owned(), token.expires_on));
        (token, std::fs::read_to_string(seen).unwrap_or_default())
    }

    #[tokio::test]
    async fn az_is_asked_for_the_resource_and_its_answer_is_read() {
        let (token, seen) = ask(r#"echo '{"accessToken": "eyJ-token", "expires_on": 4000000000}'"#).await;
        assert_eq!(token, Ok(("eyJ-token".to_owned(), 4_000_000_000)));
        assert!(
            seen.starts_with("account get-access-token --resource https://r.example -o json\n"),
            "{seen}"
        );
        assert!(!seen.contains("API_KEY"), "{seen}");
        let (token, _) = ask(r#"echo '{"accessToken": "t", "expiresOn": "2030-01-01 10:00:00"}'"#).await;
        let left = token.unwrap().1 - seconds_since_1970();
        assert!((RENEW_BEFORE_S..=2 * RENEW_BEFORE_S).contains(&left), "{left}");
        for (script, expected) in [
            ("echo 'Please run az login' >&2; exit 1", "az failed: Please run az login; try `az login`"),
            ("echo secret", "az printed no JSON"),
            ("echo '{}'", "az printed no accessToken"),
        ] {
            assert_eq!(ask(script).await.0, Err(expected.to_owned()));
        }
        let nowhere = AzureCli { program: "/no/such/az".into(), ..AzureCli::new("s") };
        assert!(nowhere.ask().await.unwrap_err().starts_with("cannot run az"));
    }
}
