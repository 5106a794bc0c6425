//! Which run a client means: a folder here, or a run on another machine.

use std::path::PathBuf;

use super::ClientError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Folder(PathBuf),
    /// `run` is a name or path as the other machine knows it.
    Ssh {
        host: String,
        run: String,
    },
}

impl Target {
    /// Reads `ssh://[user@]host/RUN`; `None` when the text is not such an address. A RUN that begins with a second
    /// slash is an absolute path.
    pub fn parse_ssh(text: &str) -> Option<Result<Self, ClientError>> {
        let rest = text.strip_prefix("ssh://")?;
        Some(match rest.split_once('/') {
            // A host that begins with a dash would be read as an option by ssh.
            Some((host, run)) if !host.is_empty() && !host.starts_with('-') && !run.is_empty() => {
                Ok(Self::Ssh { host: host.to_owned(), run: run.to_owned() })
            }
            _ => Err(ClientError::Target(format!("`{text}` is not of the form ssh://host/RUN"))),
        })
    }

    /// For messages.
    pub fn describe(&self) -> String {
        match self {
            Target::Folder(folder) => folder.display().to_string(),
            Target::Ssh { host, run } => format!("ssh://{host}/{run}"),
        }
    }
}

/// The command that bridges to `run` on `host`. ssh hands the words to the remote shell, so RUN is quoted for it.
pub(super) fn ssh_arguments(host: &str, run: &str, ask: bool) -> Vec<String> {
    let mut arguments = vec!["-T".to_owned()];
    if !ask {
        arguments.extend(["-o".to_owned(), "BatchMode=yes".to_owned()]);
    }
    let quoted = run.replace('\'', r"'\''");
    arguments.extend(["--".to_owned(), host.to_owned(), format!("planish bridge -- '{quoted}'")]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_options_refused() {
        assert!(Target::parse_ssh("runs/a").is_none());
        let expected = Target::Ssh { host: "me@gpu1".into(), run: "demo".into() };
        assert_eq!(Target::parse_ssh("ssh://me@gpu1/demo").unwrap().unwrap(), expected);
        let absolute = Target::parse_ssh("ssh://gpu1//data/runs/a").unwrap().unwrap();
        assert_eq!(absolute, Target::Ssh { host: "gpu1".into(), run: "/data/runs/a".into() });
        for bad in ["ssh://", "ssh://gpu1", "ssh://gpu1/", "ssh:///demo", "ssh://-oProxyCommand=x/demo"] {
            assert!(Target::parse_ssh(bad).unwrap().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_run_cannot_inject_remote_commands() {
        let arguments = ssh_arguments("gpu1", "a'; reboot; '", false);
        assert_eq!(arguments[..5], ["-T", "-o", "BatchMode=yes", "--", "gpu1"]);
        assert_eq!(arguments[5], r"planish bridge -- 'a'\''; reboot; '\'''");
    }
}
