//! `planish ctl`: look at a run and steer it from scripts. Every steering verb is one [`Command`] of the protocol;
//! reads are summaries unless text that models wrote is asked for.

mod show;
mod steer;

use clap::Subcommand;

use super::locate::Root;
use super::{Failure, exit, output};
use crate::plain::describe;
use crate::store::{fold_run, glance_run, read_records};

#[derive(clap::Args)]
pub struct Args {
    /// Folder or name of the run
    run: String,
    #[command(flatten)]
    root: Root,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Stop dispatching at the next boundary
    Pause(steer::Options),
    /// Go on after a pause
    Resume(steer::Options),
    /// End the run at the next boundary; it stays resumable
    Cancel(steer::Options),
    /// Decide one edit of the open review
    Decide(steer::DecideArgs),
    /// Close the open review: undecided edits are accepted
    Submit(steer::SubmitArgs),
    /// Where the run stands
    Show(show::ShowArgs),
    /// What happened
    Events(show::EventsArgs),
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let run = args.root.find(&args.run)?;
    match args.verb {
        Verb::Pause(options) => steer::steer(&run, steer::Wish::Pause, &options).await,
        Verb::Resume(options) => steer::steer(&run, steer::Wish::Resume, &options).await,
        Verb::Cancel(options) => steer::steer(&run, steer::Wish::Cancel, &options).await,
        Verb::Decide(args) => {
            let decision = args.decision()?;
            let wish = steer::Wish::Decide { edit: args.edit, step: args.step, decision };
            steer::steer(&run, wish, &args.options).await
        }
        Verb::Submit(args) => {
            steer::steer(&run, steer::Wish::Submit { step: args.step }, &args.options).await
        }
        Verb::Show(args) => {
            let state = if args.content { fold_run(&run)? } else { glance_run(&run)? };
            let summary = show::summary(&run, &state, args.content)?;
            if args.json {
                output::json(&summary)?;
            } else {
                show::lines(&summary).iter().try_for_each(|line| output::line(line))?;
            }
            Ok(exit::DONE)
        }
        Verb::Events(args) => {
            let records = read_records(&run)?;
            let from = records.partition_point(|record| record.seq <= args.after);
            for record in records[from..].iter().take(args.limit.unwrap_or(usize::MAX)) {
                match (args.content, args.json) {
                    (true, _) => output::json(record)?,
                    (false, true) => output::json(&serde_json::json!({
                        "seq": record.seq, "at": record.at, "kind": record.event.kind(),
                    }))?,
                    (false, false) => output::line(&describe(record))?,
                }
            }
            Ok(exit::DONE)
        }
    }
}
