//! What a command becomes: the event to journal, or why not. Judged on the journal's state alone, under its lock; must not
//! act. First decision wins.

use crate::domain::{Author, Decision, Origin, Phase, Retuned, ReviewComment, Ruling, StepRef};
use crate::event::{
    AckResult, Command, EndStatus, Event, Overruling, OverrulingOutcome, ReviewEdit, ReviewState, RunState,
    RunStatus, at_a_boundary,
};
use crate::text::sanitize;

/// Longest comment or reason, in bytes.
const LONGEST: usize = 4096;

/// The event a command becomes, or why not.
pub fn judge(
    state: &RunState,
    command: Command,
    by: Author,
    expect_rev: Option<u64>,
) -> Result<Event, AckResult> {
    still_going(state)?;
    match command {
        Command::Pause => match &state.status {
            RunStatus::Paused { .. } => Err(AckResult::Noop),
            RunStatus::Cancelling { by } => Err(cancelling(by)),
            _ => Ok(Event::Paused { by }),
        },
        Command::Resume => match &state.status {
            RunStatus::Paused { .. } => Ok(Event::Resumed { by }),
            RunStatus::Cancelling { by } => Err(cancelling(by)),
            _ => Err(AckResult::Noop),
        },
        Command::Cancel => match &state.status {
            RunStatus::Cancelling { .. } => Err(AckResult::Noop),
            _ => Ok(Event::CancelRequested { by }),
        },
        Command::Decide { at, edit, decision } => decide(state, at, edit, decision, by, expect_rev),
        Command::Submit { at } => submit(state, at, by),
        Command::Comment { at, edit, text } => comment(state, at, edit, &text, by),
        Command::Override { at, ruling, reason } => overrule(state, at, ruling, &reason, by, expect_rev),
        Command::CancelRollout { .. } | Command::RequeueRollout { .. } | Command::Retune { .. } => {
            denied("this needs more than the run's state")
        }
    }
}

pub fn still_going(state: &RunState) -> Result<(), AckResult> {
    match &state.status {
        RunStatus::Ended { status: EndStatus::Imported, .. } => {
            denied("the run was imported; it only tells what was")
        }
        RunStatus::Ended { .. } => denied("the run has ended"),
        RunStatus::NotStarted
        | RunStatus::Running
        | RunStatus::Paused { .. }
        | RunStatus::Cancelling { .. } => Ok(()),
    }
}

/// Refuses what happens at a boundary between steps, once there is none to come: the last one is `passed`, or the state
/// tells of what follows it.
pub fn in_time(event: Event, state: &RunState, passed: bool) -> Result<Event, AckResult> {
    if !passed && !matches!(state.phase, Some(Phase::FinalSelection | Phase::Test)) {
        return Ok(event);
    }
    match &event {
        Event::OverrideRequested { at, .. } => denied(format!(
            "all steps are done and the last skills are being measured; the verdict on step {} stands",
            at.step
        )),
        Event::RetuneRequested { changes, .. } => {
            match changes.iter().find(|change| at_a_boundary(&change.key)) {
                None => Ok(event),
                Some(Retuned { key, new, .. }) => denied(format!(
                    "{key}: takes effect between two steps, and all steps are done; start a new run with -o {key}={new}"
                )),
            }
        }
        _ => Ok(event),
    }
}

fn overrule(
    state: &RunState,
    at: StepRef,
    ruling: Ruling,
    reason: &str,
    by: Author,
    expect_rev: Option<u64>,
) -> Result<Event, AckResult> {
    let reason = words("reason", reason)?;
    let Some(step) = state.steps.iter().rfind(|step| step.at == at) else {
        return denied(format!("there is no step {}", at.step));
    };
    let Some(decision) = &step.gate else {
        return denied(format!("the gate has given no verdict on step {}", at.step));
    };
    let last = state.steps.iter().rfind(|step| step.gate.is_some()).map_or(at, |step| step.at);
    if last != at {
        return denied(format!(
            "step {} was decided since; only the last verdict can be overruled",
            last.step
        ));
    }
    let continued = state.info.as_ref().and_then(|info| match &info.origin {
        Some(Origin::Continued(continued)) => Some(continued.last.step),
        Some(Origin::Imported(_)) | None => None,
    });
    if continued.is_some_and(|done| at.step <= done) {
        return denied(format!("step {} was taken over from another run", at.step));
    }
    let lapsed = |word: &&Overruling| matches!(word.outcome, OverrulingOutcome::Lapsed { .. });
    let standing = step.overruling.as_ref().filter(|word| !lapsed(word));
    let already = match standing {
        Some(word) => word.ruling == ruling,
        None => match ruling {
            Ruling::Accept => decision.verdict.accepted(),
            Ruling::AcceptAsBest => decision.takes_best(),
            Ruling::Reject => !decision.verdict.accepted(),
        },
    };
    if already {
        return Err(AckResult::Noop);
    }
    if let (Some(word), Some(expected)) = (standing, expect_rev)
        && word.rev > expected
        && word.by != by
    {
        let detail = format!("step {} was overruled by {} first: {}", at.step, word.by.0, word.ruling.name());
        return Err(AckResult::Conflict { by: word.by.clone(), detail });
    }
    let after = standing.and_then(Overruling::current_hash).unwrap_or(&step.current_hash);
    if step.record.is_some() && state.current_hash != after {
        return denied(format!(
            "the skill that step {} left has since been changed by another step or stage",
            at.step
        ));
    }
    Ok(Event::OverrideRequested { at, ruling, reason, by, rev: state.rev + 1 })
}

/// `changes`: what differs from the present settings, or why they cannot change so.
pub fn retune(
    state: &RunState,
    changes: Result<Vec<Retuned>, String>,
    reason: &str,
    by: Author,
) -> Result<Event, AckResult> {
    still_going(state)?;
    let changes = match changes {
        Err(reason) => return denied(reason),
        Ok(changes) if changes.is_empty() => return Err(AckResult::Noop),
        Ok(changes) => changes,
    };
    let reason = if reason.trim().is_empty() { String::new() } else { words("reason", reason)? };
    Ok(Event::RetuneRequested { changes, reason, by, rev: state.rev + 1 })
}

fn cancelling(by: &Author) -> AckResult {
    AckResult::Denied { reason: format!("{} is stopping the run", by.0) }
}

fn decide(
    state: &RunState,
    at: StepRef,
    edit: usize,
    decision: Decision,
    by: Author,
    expect_rev: Option<u64>,
) -> Result<Event, AckResult> {
    let review = waiting_review(state, at)?;
    let slot = slot(review, at, edit)?;
    if slot.decision == decision {
        return Err(AckResult::Noop);
    }
    if let (Some(first), Some(expected)) = (&slot.by, expect_rev)
        && slot.rev > expected
        && *first != by
    {
        let detail = format!("edit {} was decided by {} first", edit + 1, first.0);
        return Err(AckResult::Conflict { by: first.clone(), detail });
    }
    Ok(Event::EditDecided { at, edit, decision, by, rev: state.rev + 1 })
}

fn comment(
    state: &RunState,
    at: StepRef,
    edit: Option<usize>,
    text: &str,
    by: Author,
) -> Result<Event, AckResult> {
    let review = waiting_review(state, at)?;
    if let Some(edit) = edit {
        slot(review, at, edit)?;
    }
    let text = words("comment", text)?;
    let said = |earlier: &ReviewComment| earlier.edit == edit && earlier.text == text && earlier.by == by;
    if review.comments.iter().any(said) {
        return Err(AckResult::Noop);
    }
    Ok(Event::ReviewCommented { at, edit, text, by, rev: state.rev + 1 })
}

/// A person's words, made inert; refused when there are none or too many.
fn words(what: &str, text: &str) -> Result<String, AckResult> {
    if text.len() > LONGEST {
        return denied(format!("the {what} has {} bytes; the limit is {LONGEST}, shorten it", text.len()));
    }
    match sanitize(text).trim() {
        "" => denied(format!("the {what} is empty; say why in a few words")),
        text => Ok(text.to_owned()),
    }
}

fn denied<T>(reason: impl Into<String>) -> Result<T, AckResult> {
    Err(AckResult::Denied { reason: reason.into() })
}

fn submit(state: &RunState, at: StepRef, by: Author) -> Result<Event, AckResult> {
    waiting_review(state, at)?;
    Ok(Event::ReviewSubmitted { at, by, rev: state.rev + 1 })
}

fn slot(review: &ReviewState, at: StepRef, edit: usize) -> Result<&ReviewEdit, AckResult> {
    match review.edits.get(edit) {
        Some(slot) => Ok(slot),
        None => denied(format!("step {} has edits 1 to {}, not {}", at.step, review.edits.len(), edit + 1)),
    }
}

/// The open review of step `at`, if it still takes decisions.
fn waiting_review(state: &RunState, at: StepRef) -> Result<&ReviewState, AckResult> {
    let Some((open, review)) = state.open_review() else {
        return Err(AckResult::Denied { reason: "no review is open".into() });
    };
    if open != at {
        let reason = format!("the open review is that of step {}, not {}", open.step, at.step);
        return Err(AckResult::Denied { reason });
    }
    match &review.submitted {
        None => Ok(review),
        Some(first) => {
            let detail = format!("the review was submitted by {} first", first.0);
            Err(AckResult::Conflict { by: first.clone(), detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Edit, ReviewMode, TimeoutPolicy};
    use crate::event::Record;

    const AT: StepRef = StepRef { epoch: 1, step: 3, step_in_epoch: 2 };

    fn folded(events: Vec<Event>) -> RunState {
        let records: Vec<Record> =
            events.into_iter().zip(1..).map(|(event, seq)| Record { seq, at: seq, event }).collect();
        RunState::fold(&records)
    }

    fn opened() -> Event {
        let edit: Edit = serde_json::from_str(r#"{"op":"append","content":"x"}"#).unwrap();
        Event::ReviewOpened {
            at: AT,
            mode: ReviewMode::Manual,
            edits: vec![edit],
            current_hash: String::new(),
            preview: String::new(),
            timeout_s: None,
            on_timeout: TimeoutPolicy::Accept,
        }
    }

    fn ann() -> Author {
        Author("ann".into())
    }

    fn refusal(answer: Result<Event, AckResult>) -> String {
        match answer {
            Err(AckResult::Denied { reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn comments_are_made_inert_bounded_and_said_once() {
        let say = |state: &RunState, edit, text: &str| {
            judge(state, Command::Comment { at: AT, edit, text: text.into() }, ann(), None)
        };
        let state = folded(vec![opened()]);
        assert!(refusal(say(&RunState::default(), None, "x")).contains("no review is open"));
        assert!(refusal(say(&state, Some(1), "x")).contains("edits 1 to 1, not 2"));
        assert!(refusal(say(&state, None, " \u{1b}[2J\n")).contains("the comment is empty"));
        assert!(refusal(say(&state, None, &"x".repeat(4097))).contains("the limit is 4096"));
        let said = say(&state, Some(0), " too \u{1b}[31mlong\u{202e} ").unwrap();
        let Event::ReviewCommented { text, rev: 1, .. } = &said else { panic!("{said:?}") };
        assert_eq!(text, "too long");
        let state = folded(vec![opened(), said]);
        assert_eq!(say(&state, Some(0), "too long"), Err(AckResult::Noop));
        assert!(say(&state, None, "too long").is_ok());
        let submitted = Event::ReviewSubmitted { at: AT, by: ann(), rev: 2 };
        let state = folded(vec![opened(), submitted]);
        assert!(matches!(say(&state, None, "late"), Err(AckResult::Conflict { .. })));
    }
}
