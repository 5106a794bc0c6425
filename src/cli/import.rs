//! `planish import`: foreign files become planish's own. Dispatches on what the path is.

use std::path::PathBuf;

use super::locate::Root;
use super::{Failure, import_run};

#[derive(clap::Args)]
pub struct Args {
    /// Output folder of a SkillOpt or ReflACT run
    source: PathBuf,
    #[command(flatten)]
    root: Root,
    /// Folder name of the imported run under the root
    #[arg(long)]
    name: Option<String>,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    import_run::run(&args.source, &args.root.path, args.name.as_deref())
}
