//! `planish schema`: the key registry, as a commented config file or as JSON.

use super::{Failure, exit, output};
use crate::config::{reference_json, reference_toml};

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object per key instead of a commented config file
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    if args.json {
        if let Some(rows) = reference_json().as_array() {
            rows.iter().try_for_each(output::json)?;
        }
    } else {
        reference_toml().lines().try_for_each(output::line)?;
    }
    Ok(exit::DONE)
}
