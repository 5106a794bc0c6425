//! Commands of this client: decisions, submission, pause, stop; their acknowledgements; undo.

use super::app::App;
use super::msg::{EditPurpose, Effect};
use super::overlay::{Confirmed, Overlay, Prompted, Question};
use super::patch_doc::as_decided;
use super::theme::Role;
use crate::domain::{Decision, ReviewMode, StepRef};
use crate::event::{AckResult, ClientLine, Command, ReviewState, RunStatus};
use crate::plain::count;

const REVIEW_CLOSED: &str = "that review is closed";
const SUBMIT: &str = "submit";

/// A command whose answer is awaited.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    pub what: String,
    /// The edit it decides, and how.
    pub decides: Option<(StepRef, usize, Decision)>,
    /// Its place among this client's commands.
    pub number: u64,
}

/// One act of this client and what was before it.
#[derive(Clone, Debug, PartialEq)]
pub struct UndoEntry {
    pub at: StepRef,
    pub before: Vec<(usize, Decision)>,
}

impl App {
    /// The open manual review, if it is the one on the screen.
    pub fn open_shown_review(&self) -> Option<(StepRef, &ReviewState)> {
        let (at, review) = self.state.open_review()?;
        let shown = self.shown_step()?.at == at;
        (shown && review.mode == ReviewMode::Manual).then_some((at, review))
    }

    pub fn can_decide(&self) -> bool {
        self.can_steer() && self.open_shown_review().is_some_and(|(_, review)| !review.edits.is_empty())
    }

    pub fn can_undo(&self) -> bool {
        let open = self.open_shown_review().map(|(at, _)| at);
        self.can_steer() && self.patch.undo.last().is_some_and(|entry| Some(entry.at) == open)
    }

    /// An answer for this edit is on its way.
    pub fn is_pending(&self, at: StepRef, edit: usize) -> bool {
        self.pending_decision(at, edit).is_some()
    }

    /// This client's last word on an edit that the host has not answered yet.
    fn pending_decision(&self, at: StepRef, edit: usize) -> Option<&Decision> {
        let on_edit = self.pending.values().filter_map(|pending| match &pending.decides {
            Some((decided_at, decided, decision)) if (*decided_at, *decided) == (at, edit) => {
                Some((pending.number, decision))
            }
            _ => None,
        });
        on_edit.max_by_key(|(number, _)| *number).map(|(_, decision)| decision)
    }

    /// How edit `edit` will stand once the host has answered what is on its way.
    fn expected(&self, at: StepRef, review: &ReviewState, edit: usize) -> Decision {
        match self.pending_decision(at, edit) {
            Some(decision) => decision.clone(),
            None => review.edits.get(edit).map_or(Decision::Undecided, |slot| slot.decision.clone()),
        }
    }

    pub(super) fn send(&mut self, body: Command, expect_rev: Option<u64>, what: String) -> Effect {
        self.commands += 1;
        let cmd_id = format!("{}-{}", self.identity.client_id, self.commands);
        let decides = match &body {
            Command::Decide { at, edit, decision } => Some((*at, *edit, decision.clone())),
            _ => None,
        };
        self.pending.insert(cmd_id.clone(), Pending { what, decides, number: self.commands });
        Effect::Send(ClientLine::Command { cmd_id, expect_rev, body })
    }

    fn send_decision(&mut self, at: StepRef, edit: usize, decision: Decision, expect_rev: u64) -> Effect {
        let what = format!("edit {}", edit + 1);
        self.send(Command::Decide { at, edit, decision }, Some(expect_rev), what)
    }

    /// Decides `edits` and remembers what was before.
    fn decide(&mut self, at: StepRef, edits: &[usize], decision: &Decision, expect_rev: u64) -> Vec<Effect> {
        let before = match self.open_shown_review() {
            Some((open, review)) if open == at => edits
                .iter()
                .filter(|edit| **edit < review.edits.len())
                .map(|edit| (*edit, self.expected(at, review, *edit)))
                .filter(|(_, before)| before != decision)
                .collect::<Vec<_>>(),
            _ => {
                self.say(Role::Warn, REVIEW_CLOSED);
                return Vec::new();
            }
        };
        let effects = before
            .iter()
            .map(|(edit, _)| self.send_decision(at, *edit, decision.clone(), expect_rev))
            .collect();
        if !before.is_empty() {
            self.patch.undo.push(UndoEntry { at, before });
        }
        effects
    }

    pub(super) fn accept(&mut self) -> Vec<Effect> {
        let Some(at) = self.open_shown_review().map(|(at, _)| at) else { return Vec::new() };
        let amended = self.open_shown_review().and_then(|(_, review)| review.edits.get(self.patch.edit));
        if amended.is_some_and(|edit| matches!(edit.decision, Decision::Amend { .. })) {
            // An amended edit is accepted as amended; undo takes the amendment back.
            self.say(Role::Good, "accepted as amended; u takes the amendment back");
            self.select_next_undecided();
            return Vec::new();
        }
        let effects = self.decide(at, &[self.patch.edit], &Decision::Accept, self.state.rev);
        self.select_next_undecided();
        effects
    }

    pub(super) fn ask_reason(&mut self, edits: Vec<usize>) {
        let Some(at) = self.open_shown_review().map(|(at, _)| at) else { return };
        let title = match edits.as_slice() {
            [] => return self.say(Role::Warn, "no edit is undecided"),
            [one] => format!("Reject edit {}: why?", one + 1),
            many => format!("Reject {}: why?", count(many.len(), "undecided edit")),
        };
        let then = Prompted::Reject { at, edits, expect_rev: self.state.rev };
        let hint = "the optimiser is told · enter rejects, also without a reason";
        self.overlay = Some(Overlay::Prompt { title, hint, input: super::input::Input::default(), then });
    }

    pub(super) fn reject(&mut self, at: StepRef, edits: &[usize], reason: &str, rev: u64) -> Vec<Effect> {
        let effects = self.decide(at, edits, &Decision::Reject { reason: reason.trim().to_owned() }, rev);
        self.select_next_undecided();
        effects
    }

    pub(super) fn amend(&mut self) -> Vec<Effect> {
        let Some((at, review)) = self.open_shown_review() else { return Vec::new() };
        let edit = self.patch.edit;
        let Some(slot) = review.edits.get(edit) else { return Vec::new() };
        let text = as_decided(slot).content;
        if slot.edit.op == crate::domain::EditOp::Delete {
            self.say(Role::Warn, "a deletion has no text to amend: accept or reject it");
            return Vec::new();
        }
        vec![Effect::OpenEditor {
            text,
            purpose: EditPurpose::Amend { at, edit, expect_rev: self.state.rev },
        }]
    }

    pub(super) fn editor_closed(
        &mut self,
        purpose: EditPurpose,
        result: Result<Option<String>, String>,
    ) -> Vec<Effect> {
        let EditPurpose::Amend { at, edit, expect_rev } = purpose;
        match result {
            Ok(Some(content)) => {
                let decision = Decision::Amend { content, reason: String::new() };
                let effects = self.decide(at, &[edit], &decision, expect_rev);
                self.select_next_undecided();
                effects
            }
            Ok(None) => {
                self.say(Role::Dim, format!("edit {} left as it was", edit + 1));
                Vec::new()
            }
            Err(message) => {
                self.say(Role::Bad, format!("editor: {message}"));
                Vec::new()
            }
        }
    }

    pub(super) fn undo(&mut self) -> Vec<Effect> {
        let Some(entry) = self.patch.undo.pop() else { return Vec::new() };
        let rev = self.state.rev;
        if let Some((edit, _)) = entry.before.first() {
            self.select_edit(*edit);
        }
        entry
            .before
            .into_iter()
            .map(|(edit, before)| self.send_decision(entry.at, edit, before, rev))
            .collect()
    }

    /// Edits of the open review that are undecided and will be.
    pub(super) fn undecided(&self) -> Vec<usize> {
        let Some((at, review)) = self.open_shown_review() else { return Vec::new() };
        let open = |edit: &usize| self.expected(at, review, *edit) == Decision::Undecided;
        (0..review.edits.len()).filter(open).collect()
    }

    pub(super) fn accept_rest(&mut self) -> Vec<Effect> {
        let Some(at) = self.open_shown_review().map(|(at, _)| at) else { return Vec::new() };
        self.decide(at, &self.undecided(), &Decision::Accept, self.state.rev)
    }

    fn select_next_undecided(&mut self) {
        let undecided = self.undecided();
        let next = undecided.iter().find(|edit| **edit > self.patch.edit).or(undecided.first());
        if let Some(next) = next {
            self.select_edit(*next);
        }
    }

    pub(super) fn confirm_submit(&mut self) {
        let Some((at, review)) = self.open_shown_review() else { return };
        if review.submitted.is_some() || self.pending.values().any(|pending| pending.what == SUBMIT) {
            return self.say(Role::Dim, "submitted: the step goes on");
        }
        self.overlay = Some(Overlay::Confirm { then: Confirmed::Submit { at } });
    }

    pub(super) fn confirm_stop(&mut self) {
        self.overlay = Some(Overlay::Confirm { then: Confirmed::Stop });
    }

    /// What a confirmation asks, as things stand now.
    pub fn question(&self, then: &Confirmed) -> Question {
        match then {
            Confirmed::Submit { at } => Question {
                title: format!("Submit the review of step {}?", at.step),
                details: self.submitted_decisions(*at),
                verb: "submit",
            },
            Confirmed::CancelCall { path, item } => Question {
                title: format!("Cancel the call for {item}?"),
                details: vec![
                    path.clone(),
                    String::new(),
                    "Its item counts as missing: not as a failure. What it has streamed is lost.".to_owned(),
                ],
                verb: "cancel the call",
            },
            Confirmed::Stop => Question {
                title: format!("Stop run {}?", self.run_name()),
                details: vec![
                    "It ends at the next boundary and can be resumed with `planish resume`.".to_owned(),
                ],
                verb: "stop the run",
            },
        }
    }

    /// What submitting means, decisions on their way counted as made.
    fn submitted_decisions(&self, at: StepRef) -> Vec<String> {
        let review = match self.state.open_review() {
            Some((open, review)) if open == at => review,
            _ => return vec![REVIEW_CLOSED.to_owned()],
        };
        let decisions: Vec<Decision> =
            (0..review.edits.len()).map(|edit| self.expected(at, review, edit)).collect();
        let n = |wanted: fn(&Decision) -> bool| decisions.iter().filter(|one| wanted(one)).count();
        let amended = n(|one| matches!(one, Decision::Amend { .. }));
        let undecided = n(|one| *one == Decision::Undecided);
        let mut details = vec![
            format!("✓ {} accepted", n(|one| *one == Decision::Accept) + amended),
            format!("✗ {} rejected", n(|one| matches!(one, Decision::Reject { .. }))),
        ];
        if amended > 0 {
            details.push(format!("✎ {amended} of the accepted amended"));
        }
        if undecided > 0 {
            details.push(format!("· {undecided} undecided, accepted by submitting"));
        }
        details.push(String::new());
        details.push("The gate then measures exactly the resulting text.".to_owned());
        details
    }

    pub(super) fn confirmed(&mut self, what: Confirmed) -> Vec<Effect> {
        let at = match what {
            Confirmed::Stop => return vec![self.send(Command::Cancel, None, "stop".to_owned())],
            Confirmed::CancelCall { path, .. } => return self.cancel_call(path),
            Confirmed::Submit { at } => at,
        };
        if self.state.open_review().is_none_or(|(open, _)| open != at) {
            self.say(Role::Warn, REVIEW_CLOSED);
            return Vec::new();
        }
        vec![self.send(Command::Submit { at }, Some(self.state.rev), SUBMIT.to_owned())]
    }

    pub(super) fn toggle_pause(&mut self) -> Vec<Effect> {
        let body = match self.state.status {
            RunStatus::Paused { .. } => Command::Resume,
            _ => Command::Pause,
        };
        let what = if body == Command::Pause { "pause" } else { "resume" };
        vec![self.send(body, None, what.to_owned())]
    }

    pub(super) fn acknowledged(&mut self, cmd_id: &str, result: AckResult) {
        let Some(pending) = self.pending.remove(cmd_id) else { return };
        match result {
            AckResult::Applied | AckResult::Noop => {}
            AckResult::Conflict { by, detail } => {
                self.forget_undo(&pending);
                self.say(Role::Warn, format!("{} was first: {detail}", by.0));
            }
            AckResult::Denied { reason } => {
                self.forget_undo(&pending);
                self.say(Role::Bad, format!("{} denied: {reason}", pending.what));
            }
        }
    }

    /// What did not happen cannot be undone.
    fn forget_undo(&mut self, pending: &Pending) {
        let Some((at, edit, _)) = pending.decides else { return };
        if let Some(entry) = self.patch.undo.iter_mut().rev().find(|entry| entry.at == at) {
            entry.before.retain(|(decided, _)| *decided != edit);
        }
        self.patch.undo.retain(|entry| !entry.before.is_empty());
    }
}
