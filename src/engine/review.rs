//! The review stage: waits for people (or not), and turns their decisions into the edits that are applied.

use std::time::Duration;

use super::Stop;
use super::calls::Workshop;
use super::journal::now_ms;
use crate::config::ReviewConfig;
use crate::domain::{
    Decision, Edit, ReviewClose, ReviewComment, ReviewMode, ReviewerNote, Skill, StepRef, TimeoutPolicy,
};
use crate::event::{Event, RejectedEdit, ReviewState, RunStatus};
use crate::optim::reviewer_note;

/// Edits that survived the review, and those that did not.
#[derive(Clone, Debug, Default)]
pub struct Reviewed {
    pub kept: Vec<Edit>,
    pub rejected: Vec<RejectedEdit>,
    /// What was said about the step and its edits, as the optimizer is told it.
    pub notes: Vec<ReviewerNote>,
}

/// Opens the review of `edits`, waits for its end, journals and returns the outcome.
pub async fn review(
    shop: &Workshop,
    at: StepRef,
    edits: &[Edit],
    current: &Skill,
    preview: String,
) -> Result<Reviewed, Stop> {
    let config = shop.config();
    let settings = &config.review;
    let mode = if edits.is_empty() { ReviewMode::Auto } else { settings.mode };
    // Review settings may change on a resume, so a recorded opening stands as it is: whatever was decided in it counts.
    let opened = shop.journal.recall(|event| match event {
        Event::ReviewOpened { at: opened, mode, .. } if *opened == at => Some(*mode),
        _ => None,
    });
    if opened.is_none() {
        shop.journal.emit(Event::ReviewOpened {
            at,
            mode,
            edits: edits.to_vec(),
            current_hash: current.hash.clone(),
            preview,
            timeout_s: (mode == ReviewMode::Manual && settings.timeout_s > 0).then_some(settings.timeout_s),
            on_timeout: settings.on_timeout,
        })?;
    }
    let recorded = shop.journal.recall(|event| match event {
        Event::ReviewClosed { at: closed, kept, rejected, comments, .. } if *closed == at => {
            let notes = reviewer_notes(edits, comments);
            Some(Reviewed { kept: kept.clone(), rejected: rejected.clone(), notes })
        }
        _ => None,
    });
    if let Some(reviewed) = recorded {
        return Ok(reviewed);
    }
    shop.journal.settled().await?;
    let opened = opened.unwrap_or(mode);
    let close = match (opened, mode) {
        (ReviewMode::Manual, ReviewMode::Manual) => wait_for_close(shop, settings).await?,
        (ReviewMode::Auto, _) | (_, ReviewMode::Auto) => ReviewClose::Auto,
    };
    let (mut reviewed, comments) = match opened {
        ReviewMode::Auto => (Reviewed { kept: edits.to_vec(), ..Reviewed::default() }, Vec::new()),
        ReviewMode::Manual => shop.journal.with_state(|state| {
            let review = state.steps.last().and_then(|step| step.review.as_ref());
            review.map_or_else(Default::default, |review| (outcome(review, &close), review.comments.clone()))
        }),
    };
    reviewed.notes = reviewer_notes(edits, &comments);
    shop.journal.emit(Event::ReviewClosed {
        at,
        close,
        kept: reviewed.kept.clone(),
        rejected: reviewed.rejected.clone(),
        comments,
    })?;
    shop.journal.settled().await?;
    Ok(reviewed)
}

/// Waits for a submission, the timeout or the end of the run.
async fn wait_for_close(shop: &Workshop, settings: &ReviewConfig) -> Result<ReviewClose, Stop> {
    let mut changes = shop.journal.changes();
    loop {
        changes.borrow_and_update();
        let (submitted, deadline) = shop.journal.with_state(|state| {
            let paused = matches!(state.status, RunStatus::Paused { .. });
            let review = state.steps.last().and_then(|step| step.review.as_ref());
            let deadline = review.and_then(|review| review.deadline).filter(|_| !paused);
            (review.and_then(|review| review.submitted.clone()), deadline)
        });
        if let Some(by) = submitted {
            return Ok(ReviewClose::Submitted { by });
        }
        if shop.steering.cancelled() {
            return Err(Stop::Cancelled);
        }
        let deadline = deadline.filter(|_| settings.on_timeout != TimeoutPolicy::Wait);
        let timer = async {
            match deadline {
                Some(deadline) => {
                    tokio::time::sleep(Duration::from_millis(deadline.saturating_sub(now_ms()))).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer => return Ok(ReviewClose::TimedOut { policy: settings.on_timeout }),
            changed = changes.changed() => if changed.is_err() { return Err(Stop::Cancelled) },
            () = shop.steering.cancellation() => return Err(Stop::Cancelled),
        }
    }
}

/// Comments as the optimizer reads them: with the edit they are about.
fn reviewer_notes(edits: &[Edit], comments: &[ReviewComment]) -> Vec<ReviewerNote> {
    let note = |comment: &ReviewComment| {
        let edit = comment.edit.and_then(|edit| edits.get(edit));
        reviewer_note(edit, &comment.text)
    };
    comments.iter().map(note).collect()
}

/// What was decided, applied to the edits in their order. Undecided edits are accepted by a submission and follow
/// the policy on a timeout.
fn outcome(review: &ReviewState, close: &ReviewClose) -> Reviewed {
    let drop_undecided = matches!(close, ReviewClose::TimedOut { policy: TimeoutPolicy::Reject });
    let mut reviewed = Reviewed::default();
    for slot in &review.edits {
        match &slot.decision {
            Decision::Undecided if drop_undecided => reviewed.rejected.push(RejectedEdit {
                edit: slot.edit.clone(),
                reason: "no decision before the review timed out".into(),
                by: None,
            }),
            Decision::Undecided | Decision::Accept => reviewed.kept.push(slot.edit.clone()),
            Decision::Reject { reason } => reviewed.rejected.push(RejectedEdit {
                edit: slot.edit.clone(),
                reason: reason.clone(),
                by: slot.by.clone(),
            }),
            Decision::Amend { content, reason } => {
                let mut edit = slot.edit.amended(content);
                if !reason.is_empty() {
                    edit.rationale.clone_from(reason);
                }
                reviewed.kept.push(edit);
            }
        }
    }
    reviewed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, EditOp, SourceType};
    use crate::event::ReviewEdit;

    fn slot(content: &str, decision: Decision) -> ReviewEdit {
        let edit = Edit {
            priority: None,
            op: EditOp::Append,
            target: String::new(),
            content: content.into(),
            support_count: 1,
            source_type: SourceType::Failure,
            merge_level: None,
            rationale: String::new(),
            motivated_by: Vec::new(),
        };
        ReviewEdit { edit, decision, by: Some(Author("ann@pts/1".into())), rev: 1 }
    }

    fn decided() -> ReviewState {
        ReviewState {
            mode: ReviewMode::Manual,
            edits: vec![
                slot("kept", Decision::Accept),
                slot("struck", Decision::Reject { reason: "wrong city".into() }),
                slot("old words", Decision::Amend { content: "new words".into(), reason: String::new() }),
                slot("open", Decision::Undecided),
            ],
            current_hash: String::new(),
            preview: String::new(),
            deadline: None,
            timeout_s: None,
            on_timeout: TimeoutPolicy::Wait,
            submitted: None,
            closed: None,
            kept: Vec::new(),
            rejected: Vec::new(),
            comments: Vec::new(),
        }
    }

    fn contents(edits: &[Edit]) -> Vec<&str> {
        edits.iter().map(|edit| edit.content.as_str()).collect()
    }

    #[test]
    fn a_submission_accepts_what_nobody_decided_and_applies_amended_text() {
        let reviewed = outcome(&decided(), &ReviewClose::Submitted { by: Author("ann@pts/1".into()) });
        assert_eq!(contents(&reviewed.kept), ["kept", "new words", "open"]);
        assert_eq!(reviewed.rejected[0].reason, "wrong city");
        assert_eq!(reviewed.rejected[0].by, Some(Author("ann@pts/1".into())));
    }

    #[test]
    fn a_deletion_amended_to_keep_a_line_is_applied_so() {
        let mut review = decided();
        let mut cut = slot("", Decision::Amend { content: "- two\n".into(), reason: String::new() });
        (cut.edit.op, cut.edit.target) = (EditOp::Delete, "- one\n- two\n".into());
        review.edits = vec![cut];
        let reviewed = outcome(&review, &ReviewClose::Submitted { by: Author("ann@pts/1".into()) });
        assert_eq!((reviewed.kept[0].op, contents(&reviewed.kept)), (EditOp::Replace, vec!["- two\n"]));
        let skill = "# T\n- one\n- two\n- three\n";
        let applied = crate::optim::apply_edits(skill, &reviewed.kept, Default::default());
        assert_eq!(applied.skill, "# T\n- two\n- three\n");
    }

    #[test]
    fn the_reject_policy_strikes_only_what_nobody_decided() {
        let reviewed = outcome(&decided(), &ReviewClose::TimedOut { policy: TimeoutPolicy::Reject });
        assert_eq!(contents(&reviewed.kept), ["kept", "new words"]);
        assert_eq!(reviewed.rejected.len(), 2);
        let reviewed = outcome(&decided(), &ReviewClose::TimedOut { policy: TimeoutPolicy::Accept });
        assert_eq!(contents(&reviewed.kept), ["kept", "new words", "open"]);
    }
}
