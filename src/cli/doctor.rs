//! `planish doctor`: does this machine have what planish needs, and a configuration what its roles need (`roles`)? Every finding that is not good has a remedy.

mod roles;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::locate::Root;
use super::{Failure, exit, output};
use crate::config::ModelConfig;
use crate::model::local::LocalSettings;
use crate::model::worker_protocol::{Reply, ReplyLine, Request, RequestLine, WORKER_PROTOCOL};

/// A worker loads 440 MB of shared libraries before it can answer.
const HELLO_TIME: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    root: Root,
    /// Configuration whose roles are looked at: keys, servers, programs
    config: Option<PathBuf>,
    /// Set a key of it
    #[arg(short = 'o', long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Make no call to any model
    #[arg(long)]
    no_ping: bool,
    /// One JSON line per check
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    /// Something works less well or not at all, but runs can be made.
    Warn,
    Fail,
}

#[derive(Debug, PartialEq, Serialize)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, detail: detail.into(), remedy: None }
    }

    fn bad(
        name: &'static str,
        verdict: Verdict,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { name, verdict, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

/// Exit code 1 when a check failed; warnings do not count.
pub async fn run(args: Args) -> Result<u8, Failure> {
    // Each looked for without the other, so that both are told.
    let found = |config: ModelConfig| LocalSettings::resolve(&config).map_err(|error| error.to_string());
    let named = || "named".to_owned();
    let program = found(ModelConfig { model_file: named(), ..ModelConfig::default() })
        .and_then(|settings| settings.command.into_iter().next().ok_or_else(|| "no worker command".into()));
    let model = found(ModelConfig { worker_command: vec![named()], ..ModelConfig::default() });
    let mut checks = vec![
        runs_root(&args.root.path),
        runtime_directory(),
        worker(program.map(PathBuf::from)).await,
        model_file(model.map(|settings| settings.model_file.into())),
        libtorch(),
        colours(variable("TERM"), variable("COLORTERM"), variable("NO_COLOR")),
        utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(variable)),
        tmux(variable("TMUX")).await,
    ];
    if let Some(file) = &args.config {
        checks.extend(roles::checks(file, &args.overrides, !args.no_ping).await);
    }
    for check in &checks {
        if args.json {
            output::json(check)?;
        } else {
            output::line(&line(check))?;
        }
    }
    let failed = checks.iter().any(|check| check.verdict == Verdict::Fail);
    Ok(if failed { exit::RUN_FAILED } else { exit::DONE })
}

fn line(check: &Check) -> String {
    let mark = match check.verdict {
        Verdict::Ok => "ok  ",
        Verdict::Warn => "warn",
        Verdict::Fail => "FAIL",
    };
    let remedy = check.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("{mark}  {:<18} {}{remedy}", check.name, check.detail)
}

/// Where planish keeps what it downloads.
pub fn home() -> PathBuf {
    match std::env::var_os("PLANISH_HOME").filter(|home| !home.is_empty()) {
        Some(home) => home.into(),
        None => std::env::home_dir().unwrap_or_default().join(".cache/planish"),
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn runs_root(root: &Path) -> Check {
    const NAME: &str = "runs root";
    // Not made here: its nearest existing parent must take it.
    let Some(existing) = std::path::absolute(root)
        .ok()
        .and_then(|path| path.ancestors().find(|folder| folder.exists()).map(Path::to_owned))
    else {
        return Check::bad(NAME, Verdict::Fail, root.display().to_string(), "name another --root");
    };
    match tempfile::tempfile_in(&existing) {
        Ok(_) => Check::ok(NAME, format!("{} can be written", root.display())),
        Err(error) => {
            let detail = format!("cannot write {}: {error}", existing.display());
            Check::bad(NAME, Verdict::Fail, detail, "make it writable or name another --root")
        }
    }
}

fn runtime_directory() -> Check {
    const NAME: &str = "runtime directory";
    match crate::host::runtime_dir() {
        Ok(dir) => Check::ok(NAME, format!("{} is private", dir.display())),
        Err(error) => Check::bad(NAME, Verdict::Fail, error.to_string(), "hosts cannot open their sockets"),
    }
}

async fn worker(program: Result<PathBuf, String>) -> Check {
    const NAME: &str = "worker";
    let program = match program {
        Ok(program) => program,
        Err(missing) => {
            return Check::bad(NAME, Verdict::Warn, missing, "only `backend = \"local\"` needs it");
        }
    };
    match timeout(HELLO_TIME, greet(&program)).await {
        Ok(Ok(version)) => Check::ok(NAME, format!("{} answers, version {version}", program.display())),
        Ok(Err(why)) => {
            let detail = format!("{}: {why}", program.display());
            Check::bad(
                NAME,
                Verdict::Fail,
                detail,
                "build it again: `cargo build --release --features torch`",
            )
        }
        Err(_) => {
            let detail = format!("{} did not answer in {} s", program.display(), HELLO_TIME.as_secs());
            Check::bad(NAME, Verdict::Fail, detail, "run it by hand and look at its stderr")
        }
    }
}

/// Version of a worker that says hello.
async fn greet(program: &Path) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(text)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("its stdio is not piped".into());
    };
    let hello = RequestLine { id: 1, body: Request::Hello { proto: WORKER_PROTOCOL } };
    let mut line = serde_json::to_vec(&hello).map_err(|error| error.to_string())?;
    line.push(b'\n');
    stdin.write_all(&line).await.map_err(text)?;
    let mut reply = String::new();
    BufReader::new(stdout).read_line(&mut reply).await.map_err(text)?;
    if reply.is_empty() {
        let status = child.wait().await.map_err(text)?;
        return Err(format!("it ended without a word ({status}); is its libtorch still where it was built?"));
    }
    match serde_json::from_str::<ReplyLine>(&reply).map(|line| line.body) {
        Ok(Reply::Hello { proto, version, .. }) if proto == WORKER_PROTOCOL => Ok(version),
        Ok(Reply::Hello { proto, .. }) => {
            Err(format!("it speaks worker protocol {proto}, this planish {WORKER_PROTOCOL}"))
        }
        Ok(_) | Err(_) => Err("it did not say hello".into()),
    }
}

fn model_file(model: Result<PathBuf, String>) -> Check {
    const NAME: &str = "model file";
    let remedy = "only `backend = \"local\"` needs it: `make setup`";
    match model {
        Err(missing) => Check::bad(NAME, Verdict::Warn, missing, remedy),
        Ok(path) => match std::fs::metadata(&path) {
            Ok(meta) if meta.len() > 0 => {
                Check::ok(NAME, format!("{} ({} MB)", path.display(), meta.len() / 1_000_000))
            }
            Ok(_) => Check::bad(NAME, Verdict::Fail, format!("{} is empty", path.display()), remedy),
            Err(error) => {
                Check::bad(NAME, Verdict::Fail, format!("cannot read {}: {error}", path.display()), remedy)
            }
        },
    }
}

fn libtorch() -> Check {
    const NAME: &str = "libtorch";
    if variable("LIBTORCH_USE_PYTORCH") == "1" {
        return Check::ok(NAME, "that of the Python package torch (LIBTORCH_USE_PYTORCH=1)");
    }
    let named = variable("LIBTORCH");
    let folders = if named.is_empty() {
        std::fs::read_dir(home().join("libtorch"))
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default()
    } else {
        vec![PathBuf::from(&named)]
    };
    match folders.iter().find(|folder| folder.join("lib").is_dir()) {
        Some(folder) => Check::ok(NAME, folder.display().to_string()),
        None if named.is_empty() => Check::bad(
            NAME,
            Verdict::Warn,
            format!("none under {}", home().join("libtorch").display()),
            "only building `planish-torch` needs it: `make setup`",
        ),
        None => Check::bad(
            NAME,
            Verdict::Fail,
            format!("LIBTORCH={named} has no lib folder"),
            "correct LIBTORCH or unset it and run `make setup`",
        ),
    }
}

fn colours(term: String, colour_term: String, no_color: String) -> Check {
    const NAME: &str = "terminal colours";
    if term.is_empty() || term == "dumb" {
        let detail = format!("TERM is `{term}`");
        return Check::bad(
            NAME,
            Verdict::Warn,
            detail,
            "planish prints plain lines; set TERM for the workbench",
        );
    }
    let depth = if !no_color.is_empty() {
        "none (NO_COLOR)"
    } else if matches!(colour_term.as_str(), "truecolor" | "24bit") {
        "24 bit"
    } else if term.contains("256color") {
        "256"
    } else {
        "16"
    };
    Check::ok(NAME, format!("{depth}, TERM={term}"))
}

/// `locale`: LC_ALL, LC_CTYPE and LANG; the first that is set decides.
fn utf8(locale: [String; 3]) -> Check {
    const NAME: &str = "UTF-8";
    let decisive = locale.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let plain = decisive.to_lowercase().replace('-', "");
    if plain.contains("utf8") {
        Check::ok(NAME, decisive)
    } else {
        let detail = format!("the locale is `{decisive}`");
        Check::bad(NAME, Verdict::Warn, detail, "set LANG=C.UTF-8, or charts and marks may show as litter")
    }
}

async fn tmux(session: String) -> Check {
    const NAME: &str = "tmux";
    match Command::new("tmux").arg("-V").stdin(Stdio::null()).output().await {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let inside = if session.is_empty() { "" } else { ", in use" };
            Check::ok(NAME, format!("{version}{inside}"))
        }
        _ => Check::ok(NAME, "not installed (not needed: runs live on without a terminal)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_judged_by_its_variables() {
        let colours = |term: &str, colour: &str, none: &str| colours(term.into(), colour.into(), none.into());
        assert_eq!(colours("dumb", "", "").verdict, Verdict::Warn);
        assert!(colours("xterm-256color", "truecolor", "").detail.starts_with("24 bit"));
        assert!(colours("xterm-256color", "", "").detail.starts_with("256"));
        assert!(colours("xterm", "", "").detail.starts_with("16"));
        assert!(colours("xterm", "truecolor", "1").detail.starts_with("none"));
        let utf8 = |values: [&str; 3]| utf8(values.map(str::to_owned)).verdict;
        assert_eq!(utf8(["", "", "C.UTF-8"]), Verdict::Ok);
        assert_eq!(utf8(["C", "", "en_GB.utf8"]), Verdict::Warn);
        assert_eq!(utf8(["", "", ""]), Verdict::Warn);
    }

    #[test]
    fn a_root_that_is_not_there_yet_is_judged_by_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(runs_root(&dir.path().join("a/b")).verdict, Verdict::Ok);
        assert!(!dir.path().join("a").exists());
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let check = runs_root(&file.join("runs"));
        assert_eq!((check.verdict, check.remedy.is_some()), (Verdict::Fail, true));
    }

    #[tokio::test]
    async fn a_worker_that_is_none_fails_and_a_missing_one_warns() {
        assert_eq!(worker(Err("not there".into())).await.verdict, Verdict::Warn);
        let check = worker(Ok("/bin/cat".into())).await;
        assert_eq!((check.verdict, check.detail.contains("did not say hello")), (Verdict::Fail, true));
        let check = worker(Ok("/bin/true".into())).await;
        assert_eq!(check.verdict, Verdict::Fail);
    }
}
