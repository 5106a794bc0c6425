//! `planish ctl`: look at a run and steer it from scripts. Every steering verb is one [`Command`] of the protocol;
//! reads are summaries unless text that models wrote is asked for.

mod show;
mod steer;
mod wish;

use wish::Wish;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use super::locate::Root;
use super::run::now_ms;
use super::{Failure, exit, output};
use crate::client::summarize;
use crate::config::nearest;
use crate::plain::describe;
use crate::store::{RunDir, fold_run, glance_run, read_records};
use crate::tui::actions;

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
    Decide(wish::DecideArgs),
    /// Close the open review: undecided edits are accepted
    Submit(wish::SubmitArgs),
    /// Say something to the optimiser about an edit under review, or about the step
    Comment(wish::CommentArgs),
    /// Overrule the gate on the last step that it decided; done between two steps
    Override(wish::OverrideArgs),
    /// Give up a call under way, or begin it anew
    #[command(subcommand)]
    Rollout(RolloutVerb),
    /// Change a setting of the run: at once, or between two steps where results depend on it
    Set(wish::SetArgs),
    /// What needed attention
    Alerts(show::AlertsArgs),
    /// What an action of the workbench does, by its id (`planish keys`)
    Do(DoArgs),
    /// Where the run stands
    Show(show::ShowArgs),
    /// What happened
    Events(show::EventsArgs),
}

#[derive(Subcommand)]
enum RolloutVerb {
    /// Give up the call; its item counts as missing, never as a score
    Cancel(wish::CallArgs),
    /// Begin the call anew, also one that waits for a retry
    Requeue(wish::CallArgs),
}

#[derive(clap::Args)]
struct DoArgs {
    /// Id of the action, as `run.pause`
    action: String,
    /// What its verb needs besides: the number of an edit, `--reason WHY`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// The arguments of a verb on their own.
#[derive(clap::Parser)]
#[command(name = "planish ctl RUN", no_binary_name = true, disable_help_subcommand = true)]
struct Alone {
    #[command(subcommand)]
    verb: Verb,
}

/// Does by its verb what an action of the workbench does, or says why scripts cannot.
async fn perform(run: &RunDir, args: DoArgs) -> Result<u8, Failure> {
    let Some(spec) = actions().find(|spec| spec.id == args.action) else {
        let near = nearest(&args.action, actions().map(|spec| spec.id));
        let remedy =
            near.map_or("`planish keys` lists them".to_owned(), |near| format!("did you mean {near}?"));
        return Err(Failure::usage(format!("no action {}: {remedy}", args.action)));
    };
    let Some(verb) = spec.ctl else {
        return Err(Failure::usage(format!("{}: {}", spec.id, spec.ctl_words())));
    };
    let words = verb.split(' ').map(str::to_owned).chain(args.rest);
    let alone = Alone::try_parse_from(words)
        .map_err(|error| Failure::usage(format!("{} {}", spec.id, refusal(verb, &error))))?;
    act(run, alone.verb).await
}

/// What is wrong with the arguments of a verb, in one line.
fn refusal(verb: &str, error: &clap::Error) -> String {
    if let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    {
        let missing: Vec<String> = missing.iter().map(|name| name.replace(['<', '>'], "")).collect();
        let example = missing.join(" ");
        return format!("needs: {} (as in planish ctl RUN {verb} {example})", missing.join(" and "));
    }
    let told = error.to_string();
    let first = told.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    format!("cannot be done so: {first} (see planish ctl RUN {verb} --help)")
}

pub async fn run(args: Args) -> Result<u8, Failure> {
    let run = args.root.find(&args.run)?;
    act(&run, args.verb).await
}

async fn act(run: &RunDir, verb: Verb) -> Result<u8, Failure> {
    match verb {
        Verb::Pause(options) => steer::steer(run, Wish::Pause, &options).await,
        Verb::Resume(options) => steer::steer(run, Wish::Resume, &options).await,
        Verb::Cancel(options) => steer::steer(run, Wish::Cancel, &options).await,
        Verb::Decide(args) => {
            let decision = args.decision()?;
            let wish = Wish::Decide { edit: args.edit, step: args.step, decision };
            steer::steer(run, wish, &args.options).await
        }
        Verb::Submit(args) => steer::steer(run, Wish::Submit { step: args.step }, &args.options).await,
        Verb::Comment(args) => {
            let wish = Wish::Comment { edit: args.edit, step: args.step, text: args.text };
            steer::steer(run, wish, &args.options).await
        }
        Verb::Override(args) => {
            let ruling = args.ruling();
            let wish = Wish::Override { step: args.step, ruling, reason: args.reason };
            steer::steer(run, wish, &args.options).await
        }
        Verb::Rollout(RolloutVerb::Cancel(args)) => {
            steer::steer(run, Wish::CancelCall { path: args.path }, &args.options).await
        }
        Verb::Rollout(RolloutVerb::Requeue(args)) => {
            steer::steer(run, Wish::RequeueCall { path: args.path }, &args.options).await
        }
        Verb::Set(args) => {
            let wish = Wish::Set { key: args.key, value: args.value, reason: args.reason };
            steer::steer(run, wish, &args.options).await
        }
        Verb::Alerts(args) => show::alerts(run, &args).map(|()| exit::DONE),
        Verb::Do(args) => Box::pin(perform(run, args)).await,
        Verb::Show(args) => {
            let state = if args.content { fold_run(run)? } else { glance_run(run)? };
            let summary = show::summary(run, &state, args.content)?;
            if args.json {
                output::json(&summary)?;
            } else {
                show::lines(&summary, &summarize(run, &state, now_ms()).standing())
                    .iter()
                    .try_for_each(|line| output::line(line))?;
            }
            Ok(exit::DONE)
        }
        Verb::Events(args) => {
            let records = read_records(run)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(verb: &str, rest: &[&str]) -> String {
        let words = verb.split(' ').chain(rest.iter().copied());
        refusal(verb, &Alone::try_parse_from(words).map(drop).unwrap_err())
    }

    #[test]
    fn what_a_verb_needs_is_said_in_one_line() {
        let told = refused("decide --accept", &[]);
        assert_eq!(told, "needs: EDIT (as in planish ctl RUN decide --accept EDIT)");
        let told = refused("decide", &["1"]);
        assert!(told.starts_with("needs: --accept|--reject"), "{told}");
        let told = refused("pause", &["--fast"]);
        assert!(told.contains("--fast") && told.lines().count() == 1 && !told.contains("error"), "{told}");
    }
}
