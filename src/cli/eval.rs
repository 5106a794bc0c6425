//! `planish eval`: score a skill on a split, without training.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Failure, assembly, output};
use crate::config::Config;

#[derive(clap::Args)]
pub struct Args {
    /// Configuration that names data, scorer and target model
    config: PathBuf,
    /// Skill document to score
    #[arg(long, value_name = "FILE")]
    skill: PathBuf,
    #[arg(long, value_enum)]
    split: EvalSplit,
    /// Set one configuration key over the file's value; may be given many times
    #[arg(short = 'o', long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// One JSON line per item and one with the score
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvalSplit {
    Train,
    Val,
    Test,
    All,
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let loaded = Config::load(&args.config, &args.overrides)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let skill = std::fs::read_to_string(&args.skill)
        .map_err(|error| Failure::usage(format!("cannot read skill {}: {error}", args.skill.display())))?;
    assembly::evaluate(loaded, skill, args.split, args.json).await
}
