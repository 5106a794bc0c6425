//! `planish mock-serve`: scripted model replies on loopback, until interrupted.

use std::path::PathBuf;

use super::{Failure, exit, output};
use crate::model::mock::{MockServer, RequestLog, Script, reference};

#[derive(clap::Args)]
#[command(after_long_help = reference())]
pub struct Args {
    /// Rules that say what to reply (TOML, or JSON if the name ends so)
    #[arg(value_name = "SCRIPT", required_unless_present = "named")]
    script: Option<PathBuf>,
    /// The same, as an option
    #[arg(long = "script", id = "named", value_name = "SCRIPT", conflicts_with = "script", hide = true)]
    named: Option<PathBuf>,
    /// Port on loopback; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write one JSON line per request to this file, keys masked
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Look whether the script is right, and serve nothing
    #[arg(long, conflicts_with_all = ["port", "log"])]
    check: bool,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let path = args.script.or(args.named).unwrap_or_default();
    let script = Script::load(&path).map_err(|error| Failure::usage(error.to_string()))?;
    if args.check {
        output::line(&format!("{}: {} rules", path.display(), script.rules.len()))?;
        return Ok(exit::DONE);
    }
    let log = args.log.as_deref().map(|file| {
        RequestLog::create(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
    });
    let server = MockServer::start_logged(args.port, script, log.transpose()?)
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    let addresses = serde_json::json!({ "base_url": server.base_url(), "origin": server.origin() });
    output::json(&serde_json::json!({ "listening": addresses }))?;
    tokio::select! {
        () = server.finished() => Err(Failure::run("the mock server's listener failed")),
        _ = tokio::signal::ctrl_c() => Ok(exit::INTERRUPTED),
    }
}
