//! Steering verbs of `planish ctl`: their arguments, and the command that each becomes by the run's state.

use std::path::PathBuf;

use serde_json::Value;

use super::super::Failure;
use super::steer::Options;
use crate::domain::{Decision, Ruling, StepRef};
use crate::event::{Command, RunState};

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

#[derive(clap::Args)]
pub struct CommentArgs {
    /// Number of the edit it is about, from 1; without it: the step as a whole
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub edit: Option<u32>,
    /// The words; the optimiser reads them
    #[arg(long)]
    pub text: String,
    /// Refuse unless this step is under review
    #[arg(long)]
    pub step: Option<u32>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("ruling").required(true).args(["accept", "best", "reject"])))]
pub struct OverrideArgs {
    /// The step; it must be the last that the gate decided, which it is without this
    pub step: Option<u32>,
    /// The candidate becomes the current skill
    #[arg(long)]
    accept: bool,
    /// The candidate becomes the current and the best skill
    #[arg(long)]
    best: bool,
    /// The skill goes back to what it was before the step
    #[arg(long)]
    reject: bool,
    /// Why; it is journaled, and the optimiser reads it
    #[arg(long)]
    pub reason: String,
    #[command(flatten)]
    pub options: Options,
}

impl OverrideArgs {
    pub fn ruling(&self) -> Ruling {
        match (self.accept, self.best) {
            (true, _) => Ruling::Accept,
            (_, true) => Ruling::AcceptAsBest,
            (false, false) => Ruling::Reject,
        }
    }
}

#[derive(clap::Args)]
pub struct CallArgs {
    /// Path of the call, as `planish attach --json` tells it: e01/s002/rollout/ITEM#0
    pub path: String,
    #[command(flatten)]
    pub options: Options,
}

#[derive(clap::Args)]
pub struct SetArgs {
    /// Full key, as `planish schema` lists it
    pub key: String,
    /// Its new value, as after -o KEY=
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Why; it is journaled
    #[arg(long, default_value = "")]
    pub reason: String,
    #[command(flatten)]
    pub options: Options,
}

/// What is wanted, before the run's state says which step and revision that means.
pub enum Wish {
    Pause,
    Resume,
    Cancel,
    Decide { edit: u32, step: Option<u32>, decision: Decision },
    Submit { step: Option<u32> },
    Comment { edit: Option<u32>, step: Option<u32>, text: String },
    Override { step: Option<u32>, ruling: Ruling, reason: String },
    CancelCall { path: String },
    RequeueCall { path: String },
    Set { key: String, value: String, reason: String },
}

impl Wish {
    pub fn command(self, state: &RunState) -> Result<Command, Failure> {
        Ok(match self {
            Wish::Pause => Command::Pause,
            Wish::Resume => Command::Resume,
            Wish::Cancel => Command::Cancel,
            Wish::Submit { step } => Command::Submit { at: reviewed(state, step)?.0 },
            Wish::Decide { edit, step, decision } => {
                let (at, edits) = reviewed(state, step)?;
                Command::Decide { at, edit: place(edit, edits, at)?, decision }
            }
            Wish::Comment { edit, step, text } => {
                let (at, edits) = reviewed(state, step)?;
                let edit = edit.map(|edit| place(edit, edits, at)).transpose()?;
                Command::Comment { at, edit, text }
            }
            Wish::Override { step, ruling, reason } => {
                Command::Override { at: decided(state, step)?, ruling, reason }
            }
            Wish::CancelCall { path } => Command::CancelRollout { path },
            Wish::RequeueCall { path } => Command::RequeueRollout { path },
            Wish::Set { key, value, reason } => {
                Command::Retune { changes: [(key, Value::String(value))].into(), reason }
            }
        })
    }
}

/// An edit's place from 0, given its number.
fn place(edit: u32, edits: usize, at: StepRef) -> Result<usize, Failure> {
    let number = edit as usize;
    if number > edits {
        let step = at.step;
        return Err(Failure::usage(format!(
            "step {step} has {edits} edits under review; there is no edit {edit}"
        )));
    }
    Ok(number - 1)
}

/// The named step, else the last that the gate decided.
fn decided(state: &RunState, step: Option<u32>) -> Result<StepRef, Failure> {
    let found = match step {
        Some(step) => state.steps.iter().rfind(|one| one.at.step == step),
        None => state.steps.iter().rfind(|one| one.gate.is_some()),
    };
    match (found, step) {
        (Some(found), _) => Ok(found.at),
        (None, Some(step)) => Err(Failure::usage(format!("there is no step {step} yet"))),
        (None, None) => Err(Failure::usage("the gate has decided no step yet; there is nothing to override")),
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
    fn a_comment_is_on_an_edit_or_on_the_step_and_a_value_is_sent_as_it_was_written() {
        let at = StepRef { epoch: 1, step: 3, step_in_epoch: 2 };
        let say = |edit| Wish::Comment { edit, step: None, text: "x".into() }.command(&reviewing(2));
        let said = |edit| Command::Comment { at, edit, text: "x".into() };
        assert_eq!((say(None).unwrap(), say(Some(2)).unwrap()), (said(None), said(Some(1))));
        assert!(say(Some(3)).is_err());
        let set = Wish::Set { key: "env.workers".into(), value: "2".into(), reason: String::new() };
        let Command::Retune { changes, .. } = set.command(&RunState::default()).unwrap() else { panic!() };
        assert_eq!(changes["env.workers"], "2");
        let nothing = Wish::Override { step: None, ruling: Ruling::Reject, reason: "x".into() };
        assert!(refusal(nothing, &reviewing(2)).contains("nothing to override"));
    }

    #[test]
    fn what_is_not_under_review_cannot_be_decided() {
        assert!(refusal(decide(3, None), &reviewing(2)).contains("no edit 3"));
        assert!(refusal(decide(1, Some(2)), &reviewing(2)).contains("step 3 is under review"));
        assert!(refusal(Wish::Submit { step: None }, &RunState::default()).contains("no review is open"));
    }
}
