//! Commands of this client: decisions, comments, pause, stop; their acknowledgements; undo and redo.

use super::action::Action;
use super::app::App;
use super::controls::config::{ConfigAction, RETUNE};
use super::controls::global::GlobalAction;
use super::controls::patch::PatchAction;
use super::departure::Departure;
use super::msg::{EditPurpose, Effect};
use super::overlay::{Confirmed, Overlay, Prompted, Question};
use super::theme::Role;
use crate::domain::{Decision, ReviewMode, StepRef};
use crate::event::{AckResult, ClientLine, Command, ReviewState, RunStatus};
use crate::plain::count;

pub(super) const REVIEW_CLOSED: &str = "that review is closed";

/// A command whose answer is awaited.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    pub what: String,
    /// The edit it decides, and how.
    pub decides: Option<(StepRef, usize, Decision)>,
    /// Its place among this client's commands.
    pub number: u64,
    /// As it was sent, for the next connection.
    pub line: ClientLine,
}

/// One act of this client: what it decided, and what was before it.
#[derive(Clone, Debug, PartialEq)]
pub struct UndoEntry {
    pub at: StepRef,
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub edit: usize,
    pub before: Decision,
    pub after: Decision,
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
        self.can_repeat(&self.patch.undo)
    }

    pub fn can_redo(&self) -> bool {
        self.can_repeat(&self.patch.redo)
    }

    fn can_repeat(&self, acts: &[UndoEntry]) -> bool {
        let open = self.open_shown_review().map(|(at, _)| at);
        self.can_steer() && acts.last().is_some_and(|entry| Some(entry.at) == open)
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
    pub(super) fn expected(&self, at: StepRef, review: &ReviewState, edit: usize) -> Decision {
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
        let line = ClientLine::Command { cmd_id: cmd_id.clone(), expect_rev, body };
        let pending = Pending { what, decides, number: self.commands, line: line.clone() };
        self.pending.insert(cmd_id, pending);
        Effect::Send(line)
    }

    fn send_decision(&mut self, at: StepRef, edit: usize, decision: Decision, expect_rev: u64) -> Effect {
        let what = format!("edit {}", edit + 1);
        self.send(Command::Decide { at, edit, decision }, Some(expect_rev), what)
    }

    /// Decides `edits` and remembers what was before.
    pub(super) fn decide(
        &mut self,
        at: StepRef,
        edits: &[usize],
        decision: &Decision,
        expect_rev: u64,
    ) -> Vec<Effect> {
        let changes: Vec<Change> = match self.open_shown_review() {
            Some((open, review)) if open == at => edits
                .iter()
                .filter(|edit| **edit < review.edits.len())
                .map(|edit| Change {
                    edit: *edit,
                    before: self.expected(at, review, *edit),
                    after: decision.clone(),
                })
                .filter(|change| change.before != change.after)
                .collect(),
            _ => {
                self.say(Role::Warn, REVIEW_CLOSED);
                return Vec::new();
            }
        };
        if changes.is_empty() {
            return Vec::new();
        }
        let effects = changes
            .iter()
            .map(|change| self.send_decision(at, change.edit, change.after.clone(), expect_rev))
            .collect();
        self.patch.undo.push(UndoEntry { at, changes });
        self.patch.redo.clear();
        effects
    }

    pub(super) fn accept(&mut self) -> Vec<Effect> {
        let Some(at) = self.open_shown_review().map(|(at, _)| at) else { return Vec::new() };
        let amended = self.open_shown_review().and_then(|(_, review)| review.edits.get(self.patch.edit));
        if amended.is_some_and(|edit| matches!(edit.decision, Decision::Amend { .. })) {
            // An amended edit is accepted as amended; undo takes the amendment back.
            let undo = self.press_for(Action::Patch(PatchAction::Undo));
            self.say(Role::Good, format!("accepted as amended; {undo} takes the amendment back"));
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
        vec![Effect::OpenEditor {
            text: slot.text_to_amend().to_owned(),
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
        let effects = self.again(&entry, |change| &change.before);
        self.patch.redo.push(entry);
        effects
    }

    pub(super) fn redo(&mut self) -> Vec<Effect> {
        let Some(entry) = self.patch.redo.pop() else { return Vec::new() };
        let effects = self.again(&entry, |change| &change.after);
        self.patch.undo.push(entry);
        effects
    }

    /// Decides what an act changed as `side` of it says.
    fn again(&mut self, entry: &UndoEntry, side: fn(&Change) -> &Decision) -> Vec<Effect> {
        let rev = self.state.rev;
        if let Some(change) = entry.changes.first() {
            self.select_edit(change.edit);
        }
        let changes = entry.changes.iter();
        changes.map(|change| self.send_decision(entry.at, change.edit, side(change).clone(), rev)).collect()
    }

    /// Asks for words to the optimiser about `edit`, or about the step.
    pub(super) fn ask_comment(&mut self, edit: Option<usize>) {
        let Some(at) = self.open_shown_review().map(|(at, _)| at) else { return };
        let title = match edit {
            Some(edit) => format!("Comment on edit {}", edit + 1),
            None => format!("Comment on step {}", at.step),
        };
        let then = Prompted::Comment { at, edit };
        let hint = "the optimiser reads it in later steps · esc says nothing";
        self.overlay = Some(Overlay::Prompt { title, hint, input: super::input::Input::default(), then });
    }

    pub(super) fn comment(&mut self, at: StepRef, edit: Option<usize>, text: &str) -> Vec<Effect> {
        let text = text.trim().to_owned();
        if text.is_empty() {
            self.say(Role::Dim, "nothing said, nothing sent");
            return Vec::new();
        }
        vec![self.send(Command::Comment { at, edit, text }, None, "comment".to_owned())]
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
        if self.patch.line_mode.is_some() {
            return;
        }
        let undecided = self.undecided();
        let next = undecided.iter().find(|edit| **edit > self.patch.edit).or(undecided.first());
        if let Some(next) = next {
            self.select_edit(*next);
        }
    }

    pub(super) fn confirm_stop(&mut self) {
        self.overlay = Some(Overlay::Confirm { then: Confirmed::Stop });
    }

    /// What a confirmation asks, as things stand now.
    pub fn question(&self, then: &Confirmed) -> Question {
        match then {
            Confirmed::Submit { at } => self.submission(*at),
            Confirmed::Steer => self.steer_question(),
            Confirmed::Unanswered { .. } => self.unanswered(),
            Confirmed::Leave { .. } => Question {
                title: format!("Leave run {}?", self.run_name()),
                details: vec![format!(
                    "{} drafted and not applied ({}, {} applies): leaving forgets the draft.",
                    count(self.config.draft.len(), "setting"),
                    self.press_for(Action::Global(GlobalAction::GoConfig)),
                    self.press_for(Action::Config(ConfigAction::Apply)),
                )],
                verb: "leave it",
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

    pub(super) fn confirmed(&mut self, what: Confirmed) -> Vec<Effect> {
        match what {
            Confirmed::Stop => vec![self.send(Command::Cancel, None, "stop".to_owned())],
            Confirmed::CancelCall { path, .. } => self.cancel_call(path),
            Confirmed::Submit { at } => self.submit(at),
            Confirmed::Steer => vec![Effect::Reconnect { read_only: false }],
            Confirmed::Leave { run } => self.depart(Departure::Open { run }),
            Confirmed::Unanswered { to } => self.go(to),
        }
    }

    pub(super) fn toggle_pause(&mut self) -> Vec<Effect> {
        let body = match self.state.status {
            RunStatus::Paused { .. } => Command::Resume,
            _ => Command::Pause,
        };
        let what = if body == Command::Pause { "pause" } else { "resume" };
        vec![self.send(body, None, what.to_owned())]
    }

    pub(super) fn acknowledged(&mut self, cmd_id: &str, result: AckResult) -> Vec<Effect> {
        let Some(pending) = self.pending.remove(cmd_id) else { return Vec::new() };
        match result {
            AckResult::Applied if pending.what == RETUNE => {
                self.retuned();
                self.say(Role::Good, "settings changed; the journal has the reason");
            }
            AckResult::Noop if pending.what == RETUNE => {
                self.retuned();
                self.say(Role::Dim, "the settings are so already; nothing changed");
            }
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
        self.depart_if_answered()
    }

    /// What did not happen cannot be undone.
    fn forget_undo(&mut self, pending: &Pending) {
        let Some((at, edit, _)) = pending.decides else { return };
        let acts = &mut self.patch.undo;
        if let Some(entry) = acts.iter_mut().rev().find(|entry| entry.at == at) {
            entry.changes.retain(|change| change.edit != edit);
        }
        acts.retain(|entry| !entry.changes.is_empty());
    }
}
