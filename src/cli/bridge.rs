//! `planish bridge`: the far end of `attach ssh://…`.

use super::locate::Root;
use super::{Failure, exit};
use crate::client;

#[derive(clap::Args)]
pub struct Args {
    /// Folder or name of the run
    run: String,
    #[command(flatten)]
    root: Root,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let run = args.root.find(&args.run)?;
    client::bridge(run.path(), tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(exit::DONE)
}
