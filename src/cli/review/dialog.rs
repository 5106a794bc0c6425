//! A review as a conversation: which question is open, what an answer means. Pure; it prints and sends nothing.

use crate::domain::{Decision, EditOp, ReviewMode, StepRef};
use crate::event::{Command, ReviewEdit, ReviewState, RunState};
use crate::plain::review;

/// What is to be done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    Say(String),
    /// Say, and wait for a line.
    Ask(String),
    /// With the revision that the answer was based on.
    Send(Command, u64),
    /// Let the text be edited; [`Dialog::edited`] follows.
    Edit(String),
}

/// The question whose answer is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Edit(usize),
    Reason(usize),
    Comment(usize),
    Amendment(usize),
    Submit,
    /// Somebody else answered meanwhile: one line to go on.
    GoOn(usize),
    /// The host's answer to what was sent about an edit; `true`: then to the next one.
    Host(usize, bool),
}

#[derive(Debug, Default)]
pub struct Dialog {
    /// The review under way.
    at: Option<StepRef>,
    question: Option<Question>,
    /// Revision when the question was asked.
    rev: u64,
}

impl Dialog {
    /// After news of the run: opens, goes on with or ends the conversation.
    pub fn look(&mut self, state: &RunState) -> Vec<Move> {
        let Some((at, review)) = open(state) else {
            self.question = None;
            return match self.at.take() {
                Some(at) => vec![Move::Say(format!("The review of step {} is closed.", at.step))],
                None => Vec::new(),
            };
        };
        if self.at != Some(at) {
            self.at = Some(at);
            let mut moves = vec![Move::Say(review::opening(at, review))];
            moves.extend(self.ask_next(state, 0));
            return moves;
        }
        // A question about an edit that somebody else has decided meanwhile is not to be answered by mistake.
        let (Some(Question::Edit(edit) | Question::Reason(edit) | Question::Comment(edit)), rev) =
            (self.question, self.rev)
        else {
            return Vec::new();
        };
        match review.edits.get(edit).filter(|slot| slot.rev > rev).and_then(review::standing_words) {
            Some(words) => {
                self.question = Some(Question::GoOn(edit));
                vec![Move::Ask(format!("Edit {} was {words} meanwhile. Press enter to go on:", edit + 1))]
            }
            None => Vec::new(),
        }
    }

    /// A line was typed.
    pub fn answer(&mut self, state: &RunState, line: &str) -> Vec<Move> {
        let (Some((at, review)), Some(question)) = (open(state), self.question) else {
            return vec![Move::Say("No question is open.".to_owned())];
        };
        let line = line.trim();
        match question {
            Question::Edit(edit) => match review.edits.get(edit) {
                Some(slot) => self.about_edit(state, at, review, (edit, slot), line),
                None => self.ask_next(state, 0),
            },
            Question::Reason(edit) => {
                let reason = line.to_owned();
                self.decide(at, edit, Decision::Reject { reason })
            }
            Question::Comment(edit) if line.is_empty() => self.ask(state, Question::Edit(edit)),
            Question::Comment(edit) => {
                self.question = Some(Question::Host(edit, false));
                let text = line.to_owned();
                vec![Move::Send(Command::Comment { at, edit: Some(edit), text }, self.rev)]
            }
            Question::Submit => match line {
                "1" | "submit" => {
                    self.question = Some(Question::Host(0, false));
                    vec![Move::Send(Command::Submit { at }, self.rev)]
                }
                "2" | "back" => {
                    let undecided = |slot: &ReviewEdit| slot.decision == Decision::Undecided;
                    let first = review.edits.iter().position(undecided).unwrap_or(0);
                    self.ask(state, Question::Edit(first))
                }
                _ => self.again(state, "Answer with 1 or 2."),
            },
            Question::GoOn(edit) => self.ask_next(state, edit + 1),
            Question::Amendment(_) | Question::Host(..) => Vec::new(),
        }
    }

    fn about_edit(
        &mut self,
        state: &RunState,
        at: StepRef,
        review: &ReviewState,
        (edit, slot): (usize, &ReviewEdit),
        line: &str,
    ) -> Vec<Move> {
        match line {
            "1" | "accept" => self.decide(at, edit, Decision::Accept),
            "2" | "reject" => self.ask(state, Question::Reason(edit)),
            "3" | "amend" => {
                self.question = Some(Question::Amendment(edit));
                // What a deletion may keep is in its target.
                let text = match (&slot.decision, slot.edit.op) {
                    (Decision::Amend { content, .. }, _) => content,
                    (Decision::Undecided | Decision::Accept | Decision::Reject { .. }, EditOp::Delete) => {
                        &slot.edit.target
                    }
                    (Decision::Undecided | Decision::Accept | Decision::Reject { .. }, _) => {
                        &slot.edit.content
                    }
                };
                vec![Move::Edit(text.clone())]
            }
            "4" | "comment" => self.ask(state, Question::Comment(edit)),
            "5" | "show" => {
                let mut moves: Vec<Move> =
                    review::edit_text(edit + 1, review, slot).into_iter().map(Move::Say).collect();
                moves.extend(self.ask(state, Question::Edit(edit)));
                moves
            }
            "6" | "skip" => self.ask_next(state, edit + 1),
            "7" | "submit" => self.ask(state, Question::Submit),
            _ => self.again(state, "Answer with a number from 1 to 7."),
        }
    }

    /// The editor was left.
    pub fn edited(&mut self, state: &RunState, result: Result<Option<String>, String>) -> Vec<Move> {
        let Some(Question::Amendment(edit)) = self.question else { return Vec::new() };
        let at = match (self.at, open(state)) {
            (Some(at), Some((now, _))) if at == now => at,
            _ => return self.look(state),
        };
        let said = match result {
            Ok(Some(content)) => {
                return self.decide(at, edit, Decision::Amend { content, reason: String::new() });
            }
            Ok(None) => format!("Edit {} is left as it was.", edit + 1),
            Err(message) => format!("The editor: {message}."),
        };
        let mut moves = vec![Move::Say(said)];
        moves.extend(self.ask(state, Question::Edit(edit)));
        moves
    }

    /// The host has answered what was sent last.
    pub fn acknowledged(&mut self, state: &RunState) -> Vec<Move> {
        match self.question {
            Some(Question::Host(edit, true)) => self.ask_next(state, edit + 1),
            Some(Question::Host(edit, false)) if open(state).is_some() => {
                self.ask(state, Question::Edit(edit))
            }
            _ => Vec::new(),
        }
    }

    fn decide(&mut self, at: StepRef, edit: usize, decision: Decision) -> Vec<Move> {
        self.question = Some(Question::Host(edit, true));
        vec![Move::Send(Command::Decide { at, edit, decision }, self.rev)]
    }

    /// About the first undecided edit from `from` on; after the last one about the submission.
    fn ask_next(&mut self, state: &RunState, from: usize) -> Vec<Move> {
        let Some((_, review)) = open(state) else { return Vec::new() };
        let next =
            (from..review.edits.len()).find(|edit| review.edits[*edit].decision == Decision::Undecided);
        self.ask(state, next.map_or(Question::Submit, Question::Edit))
    }

    fn again(&mut self, state: &RunState, hint: &str) -> Vec<Move> {
        let mut moves = vec![Move::Say(hint.to_owned())];
        if let Some(question) = self.question {
            moves.extend(self.ask(state, question));
        }
        moves
    }

    fn ask(&mut self, state: &RunState, question: Question) -> Vec<Move> {
        let Some((at, review)) = open(state) else { return Vec::new() };
        // A reason belongs to the question before it: what it is based on stays.
        if !matches!(question, Question::Reason(_) | Question::Comment(_)) {
            self.rev = state.rev;
        }
        self.question = Some(question);
        let rollouts = state.step().map_or(0, |step| step.rollouts.len());
        match question {
            Question::Edit(edit) => review.edits.get(edit).map_or_else(Vec::new, |slot| {
                let words = review::edit_question(edit + 1, review, slot, rollouts);
                vec![Move::Say(review::title_line(edit + 1, slot)), Move::Ask(words)]
            }),
            Question::Reason(edit) => vec![Move::Ask(review::reason_question(edit + 1))],
            Question::Comment(edit) => vec![Move::Ask(review::comment_question(edit + 1))],
            Question::Submit => vec![Move::Ask(review::submit_question(at, review))],
            Question::GoOn(_) | Question::Amendment(_) | Question::Host(..) => Vec::new(),
        }
    }
}

/// The open manual review that takes decisions.
pub fn open(state: &RunState) -> Option<(StepRef, &ReviewState)> {
    let (at, review) = state.open_review()?;
    let asks = review.mode == ReviewMode::Manual && !review.edits.is_empty() && review.submitted.is_none();
    asks.then_some((at, review))
}
