//! `planish compare`: runs side by side, their curves as CSV or SVG on request. Reads the runs' files only.

use std::path::PathBuf;

use super::locate::Root;
use super::{Failure, exit, output};
use crate::event::RunState;
use crate::plain::{Look, comparison, comparison_json, csv, svg};
use crate::store::{atomic_write, read_records};
use crate::telemetry::Board;

/// Columns where the terminal does not say.
const COLUMNS: usize = 160;

#[derive(clap::Args)]
pub struct Args {
    /// Run folders, or names under the root; the others are compared with the first
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    root: Root,
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Write every series of the runs to this file: run,series,step,time_s,tokens,value
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the curves of the runs into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let mut found = Vec::new();
    for name in &args.runs {
        let run = args.root.find(name)?;
        let records = read_records(&run)?;
        let state = RunState::fold(&records);
        if state.info.is_none() {
            return Err(Failure::usage(format!(
                "{} has not begun, so there is nothing to compare; start it with `planish resume {}`",
                run.path().display(),
                run.name()
            )));
        }
        let mut board = Board::default();
        records.iter().for_each(|record| board.hear(record));
        // The folder's name: copies of a run all call themselves the same.
        board.run = run.name();
        found.push((run.name(), state, board));
    }
    let states: Vec<(&str, &RunState)> =
        found.iter().map(|(name, state, _)| (name.as_str(), state)).collect();
    if args.json {
        output::json(&comparison_json(&states))?;
    } else {
        comparison(&states, COLUMNS).iter().try_for_each(|line| output::line(line))?;
    }
    let boards: Vec<&Board> = found.iter().map(|(_, _, board)| board).collect();
    if let Some(file) = &args.csv {
        atomic_write(file, csv(&boards).as_bytes())?;
        output::note(&format!("wrote {}", file.display()));
    }
    if let Some(file) = &args.svg {
        let mut charts = Vec::new();
        for chart in boards.iter().flat_map(|board| board.charts()) {
            if !charts.contains(&chart) {
                charts.push(chart);
            }
        }
        atomic_write(file, svg(&boards, &charts, Look::default()).as_bytes())?;
        output::note(&format!("wrote {}", file.display()));
    }
    Ok(exit::DONE)
}
