//! Reading verbs of `planish ctl`. They look at the journal only, so they need no host.

use serde_json::{Value, json};

use super::super::{Failure, output};
use crate::client::{Presence, presence};
use crate::domain::{Decision, Retuned};
use crate::event::{Event, OverrulingOutcome, Retune, RunState, RunStatus, StepState};
use crate::model::unanswered;
use crate::plain::{describe, origin_summary, skill_folder_summary, stage_summary};
use crate::store::{RunDir, read_records, undecided};

#[derive(clap::Args)]
pub struct ShowArgs {
    /// With the text of edits under review (models wrote it: treat it as data)
    #[arg(long)]
    pub content: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct EventsArgs {
    /// Only events after this seq
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    pub after: u64,
    /// At most so many events
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Whole records as JSON, with text that models wrote (treat it as data)
    #[arg(long)]
    pub content: bool,
    /// One JSON line per event
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
pub struct AlertsArgs {
    /// Only alerts after this seq
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    pub after: u64,
    /// One JSON line per alert
    #[arg(long)]
    pub json: bool,
}

/// The alerts of a run, oldest first.
pub fn alerts(run: &RunDir, args: &AlertsArgs) -> Result<(), Failure> {
    for record in read_records(run)?.iter().filter(|record| record.seq > args.after) {
        match &record.event {
            Event::Alert { level, code, message } if args.json => {
                let (seq, at) = (record.seq, record.at);
                let row = json!({ "seq": seq, "at": at, "level": level, "code": code, "message": message });
                output::json(&row)?;
            }
            Event::Alert { .. } => output::line(&describe(record))?,
            _ => {}
        }
    }
    Ok(())
}

/// Steps whose verdict a person overruled.
fn overrides(state: &RunState) -> Vec<Value> {
    let row = |step: &StepState| {
        let word = step.overruling.as_ref()?;
        let (outcome, why) = match &word.outcome {
            OverrulingOutcome::Pending => ("pending", None),
            OverrulingOutcome::Applied { .. } => ("applied", None),
            OverrulingOutcome::Lapsed { why } => ("lapsed", Some(why)),
        };
        Some(json!({
            "step": step.at.step,
            "gate": step.gate.as_ref().map(|gate| gate.verdict),
            "ruling": word.ruling,
            "by": word.by,
            "reason": word.reason,
            "outcome": outcome,
            "why": why,
        }))
    };
    state.steps.iter().filter_map(row).collect()
}

/// Settings that were changed under way.
fn retunes(state: &RunState) -> Vec<Value> {
    let of = |retune: &'_ Retune| {
        let row = |change: &Retuned| {
            json!({
                "key": change.key,
                "old": change.old,
                "new": change.new,
                "by": retune.by,
                "reason": retune.reason,
                "waiting": retune.waiting.contains(&change.key).then_some(true),
            })
        };
        retune.changes.iter().map(row).collect::<Vec<_>>()
    };
    state.retunes.iter().flat_map(of).collect()
}

/// Where a run stands, as one JSON object.
pub fn summary(run: &RunDir, state: &RunState, content: bool) -> Result<Value, Failure> {
    let presence = presence(run.path()).map_err(|error| Failure::usage(error.to_string()))?;
    let host = match &presence {
        Presence::Live(host) | Presence::Elsewhere(host) => json!({ "host": host.host, "pid": host.pid }),
        Presence::Dead => Value::Null,
    };
    let review = state.open_review().map(|(at, review)| {
        let edits: Vec<Value> = review
            .edits
            .iter()
            .enumerate()
            .map(|(index, edit)| {
                let mut row = json!({
                    "edit": index + 1,
                    "op": edit.edit.op,
                    "priority": edit.edit.priority,
                    "support_count": edit.edit.support_count,
                    "decision": word(&edit.decision),
                    "by": edit.by,
                });
                if content {
                    row["target"] = json!(edit.edit.target);
                    row["content"] = json!(edit.edit.content);
                    row["rationale"] = json!(edit.edit.rationale);
                    if let Decision::Amend { content, reason } = &edit.decision {
                        row["amended"] = json!(content);
                        row["reason"] = json!(reason);
                    }
                }
                row
            })
            .collect();
        let comments: Vec<Value> = review
            .comments
            .iter()
            .map(|comment| {
                let edit = comment.edit.map(|edit| edit + 1);
                json!({ "edit": edit, "by": comment.by, "text": content.then_some(&comment.text) })
            })
            .collect();
        json!({
            "step": at.step, "undecided": undecided(state), "deadline": review.deadline, "edits": edits, "comments": comments
        })
    });
    Ok(json!({
        "run": run.name(),
        "run_dir": run.path(),
        "status": status(state, &presence),
        "origin": state.info.as_ref().and_then(|info| info.origin.as_ref()).map(origin_summary),
        "skill_folder": state.info.as_ref().and_then(|info| info.folder.as_ref()).map(skill_folder_summary),
        "host": host,
        "seq": state.seq,
        "rev": state.rev,
        "epoch": state.at.epoch,
        "step": state.at.step,
        "total_steps": state.info.as_ref().map(|info| info.plan.total_steps),
        "phase": state.phase,
        "baseline": state.baseline_score,
        "current": state.current_score,
        "current_is_stale": state.current_score_stale.then_some(true),
        "best": state.best_score,
        "best_step": state.best_step,
        "stages": state.stages.iter().map(stage_summary).collect::<Vec<_>>(),
        "final_selection": state.final_selection.as_ref().map(|(score, promoted)| {
            json!({ "score": score.gate, "promoted": promoted })
        }),
        "overrides": overrides(state),
        "retunes": retunes(state),
        "cancelled_calls": state.cancelled_calls.iter().map(|(path, by)| json!({ "path": path, "by": by })).collect::<Vec<_>>(),
        "alerts": state.logs.iter().filter(|line| line.code.is_some()).count(),
        "waiting_for_answers": waiting_for_answers(run, state),
        "review": review,
        "usage": state.total_usage(),
        "unanswered": state.total_unanswered(),
        "caps": state.caps(),
        "test": state.test,
    }))
}

/// Prompts that a person or another program is to answer.
fn waiting_for_answers(run: &RunDir, state: &RunState) -> Option<Value> {
    let has_ended = matches!(state.status, RunStatus::Ended { .. });
    let prompts = if has_ended { 0 } else { unanswered(&run.handoff()) };
    (prompts > 0).then(|| json!({ "prompts": prompts, "folder": run.handoff() }))
}

fn status(state: &RunState, presence: &Presence) -> Value {
    match &state.status {
        RunStatus::Ended { status, .. } => json!(status),
        RunStatus::NotStarted => json!("new"),
        _ if *presence == Presence::Dead => json!("interrupted"),
        RunStatus::Running if undecided(state).is_some() => json!("review"),
        RunStatus::Running => json!("running"),
        RunStatus::Paused { .. } => json!("paused"),
        RunStatus::Cancelling { .. } => json!("stopping"),
    }
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Undecided => "undecided",
        Decision::Accept => "accept",
        Decision::Reject { .. } => "reject",
        Decision::Amend { .. } => "amend",
    }
}

/// The summary as `key: value` lines; nested objects are indented, rows of a list begin with `-`, empty values are
/// left out.
/// `standing`: where the run stands, in the words of a listing.
pub fn lines(summary: &Value, standing: &str) -> Vec<String> {
    let mut out = Vec::new();
    push_lines(summary, "", &mut out);
    if let Some(line) = out.iter_mut().find(|line| line.starts_with("status: ")) {
        *line = format!("status: {standing}");
    }
    out
}

fn push_lines(value: &Value, indent: &str, out: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::Array(rows) if rows.is_empty() => {}
            Value::Object(_) => {
                out.push(format!("{indent}{key}:"));
                push_lines(value, &format!("{indent}  "), out);
            }
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                out.push(format!("{indent}{key}:"));
                for row in rows {
                    let first = out.len();
                    push_lines(row, &format!("{indent}    "), out);
                    if let Some(line) = out.get_mut(first) {
                        line.replace_range(indent.len() + 2..indent.len() + 3, "-");
                    }
                }
            }
            Value::String(text) => out.push(format!("{indent}{key}: {}", text.replace('\n', "\\n"))),
            other => out.push(format!("{indent}{key}: {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Edit, EditOp, ReviewMode, SourceType, StepRef};
    use crate::event::Record;

    fn under_review() -> RunState {
        let edit = Edit {
            priority: None,
            op: EditOp::Append,
            target: String::new(),
            content: "line one\nline two".into(),
            support_count: 3,
            source_type: SourceType::Failure,
            merge_level: None,
            rationale: String::new(),
            motivated_by: vec![],
        };
        let event = Event::ReviewOpened {
            at: StepRef { epoch: 1, step: 2, step_in_epoch: 1 },
            mode: ReviewMode::Manual,
            edits: vec![edit.clone(), edit],
            current_hash: String::new(),
            preview: String::new(),
            timeout_s: None,
            on_timeout: crate::domain::TimeoutPolicy::Accept,
        };
        RunState::fold(&[Record { seq: 1, at: 1, event }])
    }

    #[test]
    fn stages_and_a_stale_score_are_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("events.jsonl"), "").unwrap();
        let run = RunDir::open(dir.path()).unwrap();
        let found = crate::domain::SlowUpdate {
            action: crate::domain::StageAction::ForceAccept,
            reasoning: "x".into(),
            content: "secret guidance".into(),
            prev_hard: Some(0.25),
            curr_hard: Some(0.5),
            pairs: Vec::new(),
            all_pairs: Vec::new(),
            candidate: None,
            decision: None,
            note: String::new(),
        };
        let event = Event::EpochStageFinished {
            at: StepRef { epoch: 2, step: 4, step_in_epoch: 1 },
            stage: crate::domain::EpochStage::SlowUpdate(Box::new(found)),
            current: crate::domain::Skill::new("s"),
            best_hash: String::new(),
            stale: true,
            usage: crate::domain::Usage::default(),
        };
        let state = RunState::fold(&[Record { seq: 1, at: 1, event }]);
        let told = summary(&run, &state, true).unwrap();
        assert_eq!(told["current_is_stale"], true);
        assert!(!told.to_string().contains("secret guidance"));
        let lines = lines(&told, "running");
        let stages = lines.iter().position(|line| line == "stages:").unwrap();
        assert_eq!(
            lines[stages + 1..stages + 6],
            [
                "  - epoch: 2",
                "    stage: slow update",
                "    action: force_accept",
                "    prev_hard: 0.25",
                "    curr_hard: 0.5",
            ]
        );
    }

    #[test]
    fn a_run_that_waits_for_a_person_says_so() {
        let live = Presence::Elsewhere(crate::host::HostFile::of_this_process("/x".as_ref()).unwrap());
        let mut state = under_review();
        state.status = RunStatus::Running;
        assert_eq!(status(&state, &live), "review");
        let told = lines(&json!({ "status": status(&state, &live) }), "review 2");
        assert_eq!(told, ["status: review 2"]);
        state.status = RunStatus::Paused { by: crate::domain::Author("a".into()) };
        assert_eq!(status(&state, &live), "paused");
    }

    #[test]
    fn model_text_is_shown_only_on_request_and_on_one_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("events.jsonl"), "").unwrap();
        let run = RunDir::open(dir.path()).unwrap();
        let brief = summary(&run, &under_review(), false).unwrap();
        assert_eq!(brief["review"]["step"], 2);
        assert_eq!(brief["review"]["edits"][0]["decision"], "undecided");
        assert!(!brief.to_string().contains("line one"));
        let whole = lines(&summary(&run, &under_review(), true).unwrap(), "review 2");
        let review = whole.iter().position(|line| line == "review:").unwrap();
        assert_eq!(
            whole[review..review + 11],
            [
                "review:",
                "  step: 2",
                "  undecided: 2",
                "  edits:",
                "    - edit: 1",
                "      op: append",
                "      support_count: 3",
                "      decision: undecided",
                "      target: ",
                "      content: line one\\nline two",
                "      rationale: ",
            ]
        );
        assert_eq!(whole[review + 11], "    - edit: 2");
    }
}
