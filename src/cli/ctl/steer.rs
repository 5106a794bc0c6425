//! Steering verbs of `planish ctl`: one wish becomes one command to the host, and its answer the exit code.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::super::{Failure, exit, output};
use crate::client::{ClientEvent, ClientOptions, Connection, Target, author_at, open};
use crate::domain::{Decision, StepRef};
use crate::event::{AckResult, ClientLine, Command, HostLine, RunState, WatchRole};
use crate::store::RunDir;

#[derive(clap::Args)]
pub struct Options {
    /// The answer as JSON
    #[arg(long)]
    json: bool,
    /// Print the command instead of sending it
    #[arg(long)]
    dry_run: bool,
    /// Refuse if somebody decided after this revision (default: the one at the time of the command)
    #[arg(long, value_name = "REV")]
    expect_rev: Option<u64>,
}

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("word").required(true).args(["accept", "reject", "amend", "undo"])))]
pub struct DecideArgs {
    /// Number of the edit, from 1
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub edit: u32,
    /// Keep the edit as it is
    #[arg(long)]
    accept: bool,
    /// Leave the edit out
    #[arg(long)]
    reject: bool,
    /// Accept with the text of this file in place of the edit's content
    #[arg(long, value_name = "FILE")]
    amend: Option<PathBuf>,
    /// Take an earlier decision back
    #[arg(long)]
    undo: bool,
    /// Why; the optimiser reads it
    #[arg(long, default_value = "", conflicts_with_all = ["accept", "undo"])]
    reason: String,
    /// Refuse unless this step is under review
    #[arg(long)]
    pub step: Option<u32>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(clap::Args)]
pub struct SubmitArgs {
    /// Refuse unless this step is under review
    #[arg(long)]
    pub step: Option<u32>,
    #[command(flatten)]
    pub options: Options,
}

impl DecideArgs {
    pub fn decision(&self) -> Result<Decision, Failure> {
        let reason = self.reason.clone();
        if let Some(file) = &self.amend {
            let content = std::fs::read_to_string(file)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
            return Ok(Decision::Amend { content, reason });
        }
        Ok(match (self.accept, self.reject) {
            (true, _) => Decision::Accept,
            (_, true) => Decision::Reject { reason },
            (false, false) => Decision::Undecided,
        })
    }
}

/// What is wanted, before the run's state says which step and revision that means.
pub enum Wish {
    Pause,
    Resume,
    Cancel,
    Decide { edit: u32, step: Option<u32>, decision: Decision },
    Submit { step: Option<u32> },
}

impl Wish {
    fn command(self, state: &RunState) -> Result<Command, Failure> {
        Ok(match self {
            Wish::Pause => Command::Pause,
            Wish::Resume => Command::Resume,
            Wish::Cancel => Command::Cancel,
            Wish::Submit { step } => Command::Submit { at: reviewed(state, step)?.0 },
            Wish::Decide { edit, step, decision } => {
                let (at, edits) = reviewed(state, step)?;
                let edit = edit as usize;
                if edit > edits {
                    return Err(Failure::usage(format!(
                        "step {} has {edits} edits under review; there is no edit {edit}",
                        at.step
                    )));
                }
                Command::Decide { at, edit: edit - 1, decision }
            }
        })
    }
}

/// The step under review and its number of edits.
fn reviewed(state: &RunState, step: Option<u32>) -> Result<(StepRef, usize), Failure> {
    let Some((at, review)) = state.open_review() else {
        return Err(Failure::usage("no review is open; `planish ctl RUN show` tells where the run stands"));
    };
    match step {
        Some(step) if step != at.step => {
            Err(Failure::usage(format!("step {} is under review, not step {step}", at.step)))
        }
        _ => Ok((at, review.edits.len())),
    }
}

/// Refuses a decision on an edit that was decided after revision `expected`. The host lets a person change their own
/// decision, and every `ctl` of a user has one name, so only this tells two scripts of one user apart.
fn refuse_later(command: &Command, state: &RunState, expected: u64) -> Result<(), Failure> {
    let Command::Decide { edit, .. } = command else { return Ok(()) };
    let decided = state.open_review().and_then(|(_, review)| review.edits.get(*edit));
    match decided.and_then(|slot| slot.by.as_ref().filter(|_| slot.rev > expected)) {
        Some(by) => Err(Failure::run(format!(
            "conflict: {} decided first (edit {} was decided after revision {expected})",
            by.0,
            edit + 1
        ))),
        None => Ok(()),
    }
}

/// Exit code 0 when the wish is (or was already) fulfilled, 1 on conflict or refusal.
pub async fn steer(run: &RunDir, wish: Wish, options: &Options) -> Result<u8, Failure> {
    let client = ClientOptions {
        role: WatchRole::Steer,
        name: author_at("ctl"),
        live: false,
        glance: false,
        after_seq: 0,
    };
    let mut connection = open(Target::Folder(run.path().to_owned()), client).await?;
    let state = catch_up(&mut connection).await?;
    let body = wish.command(&state)?;
    if let Some(expected) = options.expect_rev {
        refuse_later(&body, &state, expected)?;
    }
    let cmd_id = command_id();
    let line = ClientLine::Command {
        cmd_id: cmd_id.clone(),
        expect_rev: Some(options.expect_rev.unwrap_or(state.rev)),
        body,
    };
    if options.dry_run {
        output::json(&line)?;
        return Ok(exit::DONE);
    }
    if connection.commands.send(line).await.is_err() {
        return Err(Failure::run("the link to the host ended"));
    }
    let (result, rev) = answer(&mut connection, &cmd_id).await?;
    if options.json {
        output::json(&json!({ "result": result, "rev": rev }))?;
    }
    match result {
        AckResult::Applied => told(options, "applied"),
        AckResult::Noop => told(options, "nothing to do: it is so already"),
        AckResult::Conflict { by, detail } => {
            Err(Failure::run(format!("conflict: {} decided first ({detail})", by.0)))
        }
        AckResult::Denied { reason } => Err(Failure::run(format!("denied: {reason}"))),
    }
}

fn told(options: &Options, word: &str) -> Result<u8, Failure> {
    if !options.json {
        output::line(word)?;
    }
    Ok(exit::DONE)
}

/// Folds the run up to the end of its journal at the time of the welcome.
async fn catch_up(connection: &mut Connection) -> Result<RunState, Failure> {
    let mut state = RunState::default();
    let mut end = None;
    while end.is_none_or(|end| state.seq < end) {
        match connection.events.recv().await {
            Some(ClientEvent::Line(HostLine::Welcome { last_seq, .. })) => end = Some(last_seq),
            Some(ClientEvent::Line(HostLine::Event(record))) => state.apply(&record),
            Some(ClientEvent::Line(_) | ClientEvent::Restored) => {}
            Some(ClientEvent::Lost(why)) => return Err(Failure::run(why)),
            None => return Err(Failure::run("the link to the host ended")),
        }
    }
    Ok(state)
}

/// Waits for the answer. The link repeats the command if it is lost; a run without a host denies it.
async fn answer(connection: &mut Connection, cmd_id: &str) -> Result<(AckResult, u64), Failure> {
    while let Some(event) = connection.events.recv().await {
        if let ClientEvent::Line(HostLine::Ack { cmd_id: id, result, rev }) = event
            && id == cmd_id
        {
            return Ok((result, rev));
        }
    }
    Err(Failure::run("the link to the host ended"))
}

fn command_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("ctl-{}-{now}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Edit, ReviewMode};
    use crate::event::{Event, Record};

    fn reviewing(edits: usize) -> RunState {
        let edit: Edit = serde_json::from_str(r#"{"op":"append","content":"x"}"#).unwrap();
        let event = Event::ReviewOpened {
            at: StepRef { epoch: 1, step: 3, step_in_epoch: 2 },
            mode: ReviewMode::Manual,
            edits: vec![edit; edits],
            current_hash: String::new(),
            preview: String::new(),
            timeout_s: None,
            on_timeout: crate::domain::TimeoutPolicy::Accept,
        };
        RunState::fold(&[Record { seq: 1, at: 1, event }])
    }

    fn decide(edit: u32, step: Option<u32>) -> Wish {
        Wish::Decide { edit, step, decision: Decision::Accept }
    }

    fn refusal(wish: Wish, state: &RunState) -> String {
        match wish.command(state) {
            Err(Failure::Message { code: 2, text }) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn edits_count_from_one_here_and_from_zero_on_the_wire() {
        let command = decide(2, Some(3)).command(&reviewing(2)).unwrap();
        let at = StepRef { epoch: 1, step: 3, step_in_epoch: 2 };
        assert_eq!(command, Command::Decide { at, edit: 1, decision: Decision::Accept });
        assert_eq!(Wish::Submit { step: None }.command(&reviewing(2)).unwrap(), Command::Submit { at });
    }

    #[test]
    fn what_is_not_under_review_cannot_be_decided() {
        assert!(refusal(decide(3, None), &reviewing(2)).contains("no edit 3"));
        assert!(refusal(decide(1, Some(2)), &reviewing(2)).contains("step 3 is under review"));
        assert!(refusal(Wish::Submit { step: None }, &RunState::default()).contains("no review is open"));
    }
}
