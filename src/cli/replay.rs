//! `planish replay`: play a recorded run. Needs no key, model, network or host.

use std::sync::Arc;

use super::dump::{Dump, dump};
use super::locate::Root;
use super::present::{View, present};
use super::run::Viewing;
use super::screen::Screen;
use super::{Failure, exit};
use crate::client;
use crate::event::scan;
use crate::store::read_records;
use crate::tui::Alone;

/// Recording of a real demo run.
const DEMO: &[u8] = include_bytes!("../../assets/demo-run/events.jsonl");

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["run", "demo"])))]
pub struct Args {
    /// Folder or name of the run
    run: Option<String>,
    /// The recording that comes with planish
    #[arg(long)]
    demo: bool,
    #[command(flatten)]
    root: Root,
    /// How much faster than it happened; `inf` does not wait at all
    #[arg(long, default_value_t = 4.0, value_parser = speed)]
    speed: f64,
    /// Lines instead of the workbench
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    screen: Screen,
    #[command(flatten)]
    dump: Dump,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed > 0.0 => Ok(speed),
        _ => Err("give a number above 0, or `inf`".into()),
    }
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let (name, records) = match &args.run {
        Some(run) => {
            let run = args.root.find(run)?;
            (run.name(), read_records(&run)?)
        }
        None => {
            let tail = scan(DEMO).map_err(|error| Failure::run(format!("the demo recording: {error}")))?;
            ("demo".to_owned(), tail.records)
        }
    };
    if let Some(file) = &args.dump.file {
        let connection = client::replay(name, records, f64::INFINITY);
        return dump(connection, None, file, &args.dump, &args.screen).await;
    }
    let view = View::choose(args.plain, false);
    let viewing = Viewing { screen: args.screen.clone(), ..Viewing::default() };
    let connection = client::replay(name, records, args.speed);
    present(connection, view, None, Arc::new(Alone), true, &viewing).await?;
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, RunState, RunStatus};

    #[test]
    fn the_demo_recording_is_whole_and_ends() {
        let tail = scan(DEMO).unwrap();
        assert_eq!(tail.valid_len, DEMO.len());
        let state = RunState::fold(&tail.records);
        assert!(matches!(state.status, RunStatus::Ended { .. }));
        let unknown = tail.records.iter().find(|record| matches!(record.event, Event::Unknown(_)));
        assert_eq!(unknown, None);
    }

    #[test]
    fn speeds() {
        assert_eq!(speed("2.5"), Ok(2.5));
        assert_eq!(speed("inf"), Ok(f64::INFINITY));
        for bad in ["0", "-1", "NaN", "fast"] {
            assert!(speed(bad).is_err(), "{bad}");
        }
    }
}
