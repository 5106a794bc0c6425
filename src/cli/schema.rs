//! `planish schema`: the key registry, as a commented config file or as JSON; and the dialects of model servers.

use std::path::PathBuf;

use super::{Failure, exit, output};
use crate::config::{reference_json, reference_toml};
use crate::model::{Dialects, dialect_reference};
use crate::tui::ui_reference;

#[derive(clap::Args)]
pub struct Args {
    /// What to print instead of the keys of configurations
    #[arg(value_enum)]
    topic: Option<Topic>,
    /// One JSON object per key (or dialect) instead of a commented file
    #[arg(long)]
    json: bool,
    /// The settings of the screen (`ui.toml`) instead of those of runs
    #[arg(long, conflicts_with_all = ["json", "topic"])]
    ui: bool,
    /// With `dialects`: a file with dialects of your own, as in `model.dialects`
    #[arg(long, value_name = "FILE", requires = "topic")]
    with: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Topic {
    /// How model servers want to be spoken to: the meaning of every key, and the table in effect
    Dialects,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    match args.topic {
        Some(Topic::Dialects) => dialects(args)?,
        None if args.json => {
            if let Some(rows) = reference_json().as_array() {
                rows.iter().try_for_each(output::json)?;
            }
        }
        None if args.ui => ui_reference().lines().try_for_each(output::line)?,
        None => reference_toml().lines().try_for_each(output::line)?,
    }
    Ok(exit::DONE)
}

fn dialects(args: &Args) -> Result<(), Failure> {
    let table = match &args.with {
        Some(file) => Dialects::load(file),
        None => Dialects::built_in(),
    };
    let table = table.map_err(|error| Failure::usage(error.to_string()))?;
    if args.json {
        return table.rows().iter().try_for_each(|row| match serde_json::to_value(row) {
            Ok(row) => output::json(&row),
            Err(error) => Err(Failure::run(error.to_string())),
        });
    }
    let text = dialect_reference(&table).map_err(|error| Failure::run(error.to_string()))?;
    text.lines().try_for_each(output::line)
}
