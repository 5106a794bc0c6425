//! `planish mock-serve`: scripted model replies on loopback, until interrupted.

use std::path::PathBuf;

use super::{Failure, exit, output};
use crate::model::mock::{MockServer, Script};

#[derive(clap::Args)]
pub struct Args {
    /// Port on loopback; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Rules that say what to reply (TOML or JSON)
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let script = Script::load(&args.script).map_err(|error| Failure::usage(error.to_string()))?;
    let server =
        MockServer::start(args.port, script).await.map_err(|error| Failure::usage(error.to_string()))?;
    output::json(&serde_json::json!({ "listening": { "base_url": server.base_url() } }))?;
    tokio::select! {
        () = server.finished() => Err(Failure::run("the mock server's listener failed")),
        _ = tokio::signal::ctrl_c() => Ok(exit::INTERRUPTED),
    }
}
