//! `planish import`: foreign files become planish's own. Dispatches on what the path is.

use std::path::PathBuf;

use super::locate::Root;
use super::{Failure, import_config, import_run};

#[derive(clap::Args)]
pub struct Args {
    /// YAML configuration, or output folder, of SkillOpt or ReflACT
    source: PathBuf,
    /// Of a configuration: write it to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Of a configuration: set a key over the file's value; may be given many times
    #[arg(long = "cfg-options", value_name = "KEY=VALUE", num_args = 1..)]
    options: Vec<String>,
    #[command(flatten)]
    root: Root,
    /// Of an output folder: name of the run it becomes
    #[arg(long)]
    name: Option<String>,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let (of_configuration, of_folder) = (args.out.is_some() || !args.options.is_empty(), args.name.is_some());
    match args.source.is_dir() {
        true if of_configuration => Err(Failure::usage(format!(
            "{} is a folder; --out and --cfg-options are for configurations",
            args.source.display()
        ))),
        true => import_run::run(&args.source, &args.root.path, args.name.as_deref()),
        false if of_folder => Err(Failure::usage(format!(
            "{} is no folder; --name is for output folders",
            args.source.display()
        ))),
        false => import_config::run(&args.source, &args.options, args.out.as_deref()),
    }
}
