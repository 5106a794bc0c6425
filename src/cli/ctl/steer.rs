//! How `planish ctl` steers: a wish becomes one command to the host, and its answer the exit code.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::super::{Failure, exit, output};
use super::wish::Wish;
use crate::client::{ClientEvent, ClientOptions, Connection, Target, author_at, open};
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
            Some(ClientEvent::Line(_) | ClientEvent::Restored | ClientEvent::Recording) => {}
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
