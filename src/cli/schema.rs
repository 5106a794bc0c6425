//! `planish schema`: the key registry, as a commented config file or as JSON.

use super::{Failure, exit, output};
use crate::config::{reference_json, reference_toml};
use crate::tui::ui_reference;

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object per key instead of a commented config file
    #[arg(long)]
    json: bool,
    /// The settings of the screen (`ui.toml`) instead of those of runs
    #[arg(long, conflicts_with = "json")]
    ui: bool,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    if args.json {
        if let Some(rows) = reference_json().as_array() {
            rows.iter().try_for_each(output::json)?;
        }
    } else if args.ui {
        ui_reference().lines().try_for_each(output::line)?;
    } else {
        reference_toml().lines().try_for_each(output::line)?;
    }
    Ok(exit::DONE)
}
