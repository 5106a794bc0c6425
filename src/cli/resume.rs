//! `planish resume`: continue a run from its journal, with the configuration it was started with.

use super::Failure;
use super::locate::Root;
use super::run::{StartArgs, prepare_again, refuse_import, start};
use crate::config::Config;

#[derive(clap::Args)]
pub struct Args {
    /// Folder or name of the run
    run: String,
    /// Change one configuration key; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    root: Root,
    #[command(flatten)]
    start: StartArgs,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let run = args.root.find(&args.run)?;
    refuse_import(&run)?;
    let loaded = Config::load(&run.config_toml(), &args.overrides)?;
    start(&prepare_again(run, &loaded)?, args.start).await
}
