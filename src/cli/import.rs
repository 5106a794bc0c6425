//! `planish import`: foreign files become planish's own. Dispatches on what the path is.

use std::path::PathBuf;

use super::{Failure, import_config};

#[derive(clap::Args)]
pub struct Args {
    /// YAML configuration of SkillOpt or ReflACT
    source: PathBuf,
    /// Write the configuration to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Set a key of the YAML over the file's value; may be given many times
    #[arg(long = "cfg-options", value_name = "KEY=VALUE", num_args = 1..)]
    options: Vec<String>,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    if args.source.is_dir() {
        return Err(Failure::usage(format!(
            "{} is a folder; this version imports YAML configurations only",
            args.source.display()
        )));
    }
    import_config::run(&args.source, &args.options, args.out.as_deref())
}
