//! `planish resume`: continue a run from its journal, with the configuration it was started with; or a foreign run
//! from its output folder.

use std::path::PathBuf;

use super::locate::Root;
use super::resume_from::ForeignArgs;
use super::run::{StartArgs, prepare_again, refuse_import, start};
use super::{Failure, assembly, resume_from};
use crate::client::{Presence, presence};
use crate::config::Config;

#[derive(clap::Args)]
pub struct Args {
    /// Folder or name of the run; with --from the configuration (TOML) of the new run, else the folder's own is used
    #[arg(required_unless_present = "from")]
    run: Option<PathBuf>,
    #[command(flatten)]
    from: ForeignArgs,
    /// Change one configuration key; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    root: Root,
    #[command(flatten)]
    start: StartArgs,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    if let Some(folder) = &args.from.from {
        let config = args.run.as_deref();
        return resume_from::run(folder, config, args.overrides, &args.root, &args.from, args.start).await;
    }
    let run = args.root.find(&args.run.unwrap_or_default().to_string_lossy())?;
    refuse_import(&run)?;
    if matches!(presence(run.path()), Ok(Presence::Dead)) {
        assembly::settle(&run)?;
    }
    let loaded = Config::load(&run.config_toml(), &args.overrides)?;
    start(&prepare_again(run, &loaded)?, args.start).await
}
