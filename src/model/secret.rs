//! Reads the key of a role from where the configuration says it is: a variable, a file or a command. A key is never shown,
//! and what cannot be kept out of logs is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::child_env;
use super::login::ApiKey;
use super::redact::Redactor;
use crate::config::RoleConfig;
use crate::text::{sanitize_line, truncate};

/// Shorter ones would mangle ordinary text if they were taken out of it by value.
pub const SHORTEST_KEY: usize = 8;
/// Nothing that is a key is longer.
const LONGEST_KEY: u64 = 64 << 10;
const COMMAND_TIME: Duration = Duration::from_secs(10);

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    Variable(String),
    File(PathBuf),
    Command(Vec<String>),
}

/// Why there is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "{role}.api_key_env names the environment variable {variable}, which is not set; set it, or name a file in {role}.api_key_file"
    )]
    NotSet { role: String, variable: String },
    #[error("{role}.{field} ({from}): {why}")]
    Unusable { role: String, field: &'static str, from: String, why: String },
    #[error("{role} names a key in several ways ({fields}); keep one")]
    Several { role: String, fields: String },
}

impl KeySource {
    /// Where the role's key is; `None`: it has none. `role` is the name of its table, for messages.
    ///
    /// # Errors
    /// More than one place.
    pub fn of(role: &str, config: &RoleConfig, base_dir: &Path) -> Result<Option<Self>, KeyError> {
        let sources = [
            (
                "api_key_env",
                (!config.api_key_env.is_empty()).then(|| Self::Variable(config.api_key_env.clone())),
            ),
            (
                "api_key_file",
                (!config.api_key_file.is_empty()).then(|| Self::File(base_dir.join(&config.api_key_file))),
            ),
            (
                "api_key_command",
                (!config.api_key_command.is_empty()).then(|| Self::Command(config.api_key_command.clone())),
            ),
        ];
        let named: Vec<&str> =
            sources.iter().filter(|(_, source)| source.is_some()).map(|(field, _)| *field).collect();
        if named.len() > 1 {
            return Err(KeyError::Several { role: role.to_owned(), fields: named.join(", ") });
        }
        Ok(sources.into_iter().find_map(|(_, source)| source))
    }

    fn field(&self) -> &'static str {
        match self {
            Self::Variable(_) => "api_key_env",
            Self::File(_) => "api_key_file",
            Self::Command(_) => "api_key_command",
        }
    }

    /// For people: never the key.
    pub fn origin(&self) -> String {
        match self {
            Self::Variable(variable) => format!("environment variable {variable}"),
            Self::File(file) => format!("file {}", file.display()),
            // Its arguments may say more than they should.
            Self::Command(words) => format!("command {}", words.first().map_or("", String::as_str)),
        }
    }

    /// # Errors
    /// No key there, or one that is refused; with what to do.
    pub async fn read(
        &self,
        role: &str,
        env: &(dyn Fn(&str) -> Option<String> + Sync),
        keep_from_commands: &[String],
    ) -> Result<ApiKey, KeyError> {
        let text = match self {
            Self::Variable(variable) => match env(variable) {
                Some(text) if !text.trim().is_empty() => Ok(SecretString::from(text)),
                Some(_) | None => {
                    return Err(KeyError::NotSet { role: role.to_owned(), variable: variable.clone() });
                }
            },
            Self::File(file) => read_file(file),
            Self::Command(words) => run(words, keep_from_commands).await,
        };
        let checked = text.and_then(|text| checked(&text));
        let secret = checked.map_err(|why| KeyError::Unusable {
            role: role.to_owned(),
            field: self.field(),
            from: self.origin(),
            why,
        })?;
        Ok(ApiKey { secret, origin: self.origin() })
    }
}

/// The key without blanks around it.
fn checked(text: &SecretString) -> Result<SecretString, String> {
    let key = text.expose_secret().trim();
    if key.is_empty() {
        Err("there is nothing in it; put the key there".into())
    } else if key.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Err("it holds more than one word or line; it must hold the key alone".into())
    } else if key.chars().count() < SHORTEST_KEY {
        Err(format!(
            "the key has fewer than {SHORTEST_KEY} characters, so it could not be told from ordinary text and kept \
             out of logs; use a longer one, or none if the server wants none"
        ))
    } else {
        Ok(SecretString::from(key.to_owned()))
    }
}

/// Links are followed; what they lead to is judged.
fn read_file(file: &Path) -> Result<SecretString, String> {
    let unreadable = |error: std::io::Error| format!("cannot read it: {error}");
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    // Of the opened file, so that nobody can swap it in between.
    let meta = opened.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err("it is no file".into());
    }
    let mode = meta.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "others may read it (mode {:03o}); run `chmod 600 {}`",
            mode & 0o777,
            file.display()
        ));
    }
    if meta.len() > LONGEST_KEY {
        return Err(format!("it is larger than {} KiB, which no key is", LONGEST_KEY >> 10));
    }
    let text = std::io::read_to_string(opened).map_err(unreadable)?;
    Ok(text.into())
}

async fn run(words: &[String], keep_from_it: &[String]) -> Result<SecretString, String> {
    let [program, arguments @ ..] = words else { return Err("it names no program".into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        // The user's own command needs the user's environment, but not the keys that others were given.
        .envs(child_env::without(keep_from_it))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start it: {error}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let finish = async {
        let (said, complaint) = tokio::join!(head(stdout), head(stderr));
        (child.wait().await, said, complaint)
    };
    let Ok((status, said, complaint)) = tokio::time::timeout(COMMAND_TIME, finish).await else {
        return Err(format!("no end within {} s; it must not ask for anything", COMMAND_TIME.as_secs()));
    };
    let status = status.map_err(|error| format!("cannot wait for it: {error}"))?;
    if status.success() {
        return Ok(said.into());
    }
    let key = said.trim();
    let hides = key.is_empty() || !complaint.contains(key);
    let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last = Redactor::new([key.to_owned()]).redact(last.trim());
    Err(match hides && !last.is_empty() {
        true => format!("it ended with {status}: {}", truncate(&sanitize_line(&last), 200)),
        false => format!("it ended with {status}"),
    })
}

/// The beginning of what a pipe gives, as text.
async fn head(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What cannot be read is missing, which the caller sees.
        let _ = pipe.take(LONGEST_KEY).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
