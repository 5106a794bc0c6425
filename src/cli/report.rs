//! `planish report`: what a run came to, as Markdown or as JSON. Reads the run's files only, also while it runs.

use std::path::PathBuf;

use super::locate::Root;
use super::{Failure, exit, output};
use crate::plain::{report, report_json};
use crate::store::{atomic_write, fold_run};

#[derive(clap::Args)]
pub struct Args {
    /// Run folder, or name under the root; absent: the run at work, else the last changed
    run: Option<String>,
    #[command(flatten)]
    root: Root,
    /// One JSON object instead of Markdown
    #[arg(long)]
    json: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    let run = match &args.run {
        Some(name) => args.root.find(name)?,
        None => args.root.latest()?,
    };
    let state = fold_run(&run)?;
    if state.info.is_none() {
        return Err(Failure::usage(format!(
            "{} has not begun, so there is nothing to report; start it with `planish resume {}`",
            run.path().display(),
            run.name()
        )));
    }
    match (&args.out, args.json) {
        (None, true) => output::json(&report_json(&state))?,
        (None, false) => report(&state).iter().try_for_each(|line| output::line(line))?,
        (Some(file), json) => {
            let text = match json {
                true => format!("{:#}\n", report_json(&state)),
                false => report(&state).join("\n") + "\n",
            };
            atomic_write(file, text.as_bytes())?;
            output::note(&format!("wrote {}", file.display()));
        }
    }
    Ok(exit::DONE)
}
