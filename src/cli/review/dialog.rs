//! A review as a conversation: which question is open, what an answer means. Pure; it prints and sends nothing.

use crate::domain::{Decision, ReviewMode, StepRef};
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
                vec![Move::Edit(slot.text_to_amend().to_owned())]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, Edit, TimeoutPolicy};
    use crate::event::{Event, Record};

    fn edit(op: &str, target: &str, content: &str, support: u32) -> Edit {
        let value = serde_json::json!({
            "op": op, "target": target, "content": content, "support_count": support, "rationale": "it failed",
        });
        serde_json::from_value(value).unwrap()
    }

    const AT: StepRef = StepRef { epoch: 1, step: 3, step_in_epoch: 2 };

    /// The journal so far, and the conversation about it.
    struct Talk {
        state: RunState,
        dialog: Dialog,
    }

    impl Talk {
        fn begun() -> (Self, Vec<Move>) {
            let mut talk = Self { state: RunState::default(), dialog: Dialog::default() };
            let edits = vec![
                edit("replace", "old\x1b[2J words", "new words", 14),
                edit("add_rule", "Brevity", "Be brief.\n1 accept, 2 reject", 4),
                edit("delete", "gone", "", 1),
            ];
            let moves = talk.event(Event::ReviewOpened {
                at: AT,
                mode: ReviewMode::Manual,
                edits,
                current_hash: String::new(),
                preview: String::new(),
                timeout_s: None,
                on_timeout: TimeoutPolicy::Accept,
            });
            (talk, moves)
        }

        fn event(&mut self, event: Event) -> Vec<Move> {
            self.state.apply(&Record { seq: self.state.seq + 1, at: 1, event });
            self.dialog.look(&self.state)
        }

        fn decided(&mut self, edit: usize, decision: Decision, by: &str) -> Vec<Move> {
            let (by, rev) = (Author(by.into()), self.state.rev + 1);
            self.event(Event::EditDecided { at: AT, edit, decision, by, rev })
        }

        /// Types a line; what it sends is applied.
        fn types(&mut self, line: &str) -> Vec<Move> {
            let moves = self.dialog.answer(&self.state, line);
            self.applied(moves)
        }

        fn applied(&mut self, moves: Vec<Move>) -> Vec<Move> {
            let Some(Move::Send(command, _)) = moves.last() else { return moves };
            match command.clone() {
                Command::Decide { edit, decision, .. } => assert_eq!(self.decided(edit, decision, "ann"), []),
                Command::Comment { edit, text, .. } => {
                    let (by, rev) = (Author("ann".into()), self.state.rev + 1);
                    assert_eq!(self.event(Event::ReviewCommented { at: AT, edit, text, by, rev }), []);
                }
                Command::Submit { .. } => {}
                other => panic!("{other:?}"),
            }
            moves.into_iter().chain(self.dialog.acknowledged(&self.state)).collect()
        }
    }

    fn asked(moves: &[Move]) -> &str {
        match moves.last() {
            Some(Move::Ask(words)) => words,
            other => panic!("no question: {other:?}"),
        }
    }

    fn sent(moves: &[Move]) -> &Command {
        let found = moves.iter().find_map(|one| match one {
            Move::Send(command, _) => Some(command),
            Move::Say(_) | Move::Ask(_) | Move::Edit(_) => None,
        });
        found.unwrap_or_else(|| panic!("nothing sent: {moves:?}"))
    }

    #[test]
    fn questions_are_single_lines_in_plain_words() {
        let (mut talk, moves) = Talk::begun();
        assert_eq!(moves[0], Move::Say("Review of step 3: 3 edits.".into()));
        assert_eq!(
            asked(&moves),
            "Edit 1 of 3, replace, supported by 14. \
             1 accept, 2 reject, 3 amend, 4 comment, 5 show the text, 6 skip, 7 submit:"
        );
        let second = talk.types("6");
        assert!(asked(&second).starts_with("Edit 2 of 3, add rule, supported by 4. 1 accept"));
        let shown = talk.types("5");
        // What a model wrote is indented: it cannot pass for a question.
        assert!(shown.contains(&Move::Say("  1 accept, 2 reject".into())), "{shown:?}");
        assert!(shown.contains(&Move::Say("Why:".into())));
        let says = |moves: &[Move]| {
            let all = moves.iter().map(|one| match one {
                Move::Say(words) | Move::Ask(words) => words.clone(),
                Move::Send(..) | Move::Edit(_) => String::new(),
            });
            all.collect::<Vec<_>>().join("|")
        };
        for moves in [&moves, &shown] {
            assert!(!says(moves).contains(['\n', '\x1b', '│', '─']), "{moves:?}");
        }
        assert!(matches!(&talk.types("9")[0], Move::Say(words) if words.contains("from 1 to 7")));
    }

    #[test]
    fn a_review_from_the_first_edit_to_the_submission() {
        let (mut talk, _) = Talk::begun();
        let accepted = talk.types("1");
        assert_eq!(sent(&accepted), &Command::Decide { at: AT, edit: 0, decision: Decision::Accept });
        assert!(asked(&accepted).starts_with("Edit 2 of 3"));
        assert!(asked(&talk.types("2")).starts_with("Why is edit 2 rejected?"));
        let rejected = talk.types("too vague");
        let decision = Decision::Reject { reason: "too vague".into() };
        assert_eq!(sent(&rejected), &Command::Decide { at: AT, edit: 1, decision });
        assert!(asked(&rejected).starts_with("Edit 3 of 3, delete"));
        assert!(asked(&talk.types("4")).starts_with("Your comment on edit 3"));
        let commented = talk.types("keep half of it");
        let text = "keep half of it".to_owned();
        assert_eq!(sent(&commented), &Command::Comment { at: AT, edit: Some(2), text });
        assert!(asked(&commented).starts_with("Edit 3 of 3"), "the same edit is asked about again");
        assert_eq!(talk.types("3"), [Move::Edit("gone".into())], "what a deletion may keep");
        let moves = talk.dialog.edited(&talk.state, Ok(Some("go".into())));
        let amended = talk.applied(moves);
        let decision = Decision::Amend { content: "go".into(), reason: String::new() };
        assert_eq!(sent(&amended), &Command::Decide { at: AT, edit: 2, decision });
        assert_eq!(
            asked(&amended),
            "Submit the review of step 3? 2 accepted, 1 rejected. 1 submit, 2 back to the edits:"
        );
        assert!(asked(&talk.types("2")).contains("Edit 1 of 3, replace, supported by 14, accepted by ann."));
        talk.types("7");
        assert_eq!(sent(&talk.types("1")), &Command::Submit { at: AT });
    }

    #[test]
    fn what_somebody_else_decides_is_said_and_the_next_line_is_no_answer() {
        let (mut talk, _) = Talk::begun();
        let moves = talk.decided(0, Decision::Reject { reason: String::new() }, "bob");
        assert_eq!(asked(&moves), "Edit 1 was rejected by bob meanwhile. Press enter to go on:");
        assert!(asked(&talk.types("1")).starts_with("Edit 2 of 3"), "that 1 accepted nothing");
        assert_eq!(talk.decided(2, Decision::Accept, "bob"), [], "another edit is no matter now");
        assert!(asked(&talk.types("6")).starts_with("Submit the review"));
        let by = Author("bob".into());
        let rev = talk.state.rev + 1;
        let moves = talk.event(Event::ReviewSubmitted { at: AT, by, rev });
        assert_eq!(moves, [Move::Say("The review of step 3 is closed.".into())]);
        assert_eq!(talk.types("1"), [Move::Say("No question is open.".into())]);
    }

    #[test]
    fn decisions_say_what_they_are_based_on_and_refusals_ask_on() {
        let (mut talk, _) = Talk::begun();
        talk.types("2");
        let moves = talk.dialog.answer(&talk.state, "");
        assert!(matches!(moves[..], [Move::Send(_, rev)] if rev == talk.dialog.rev));
        // Refused: the edit is still undecided, and the conversation goes on.
        assert!(asked(&talk.dialog.acknowledged(&talk.state)).starts_with("Edit 2 of 3"));
        talk.types("3");
        let moves = talk.dialog.edited(&talk.state, Err("`vi` is not there".into()));
        assert_eq!(moves[0], Move::Say("The editor: `vi` is not there.".into()));
        assert!(asked(&moves).starts_with("Edit 2 of 3"));
        talk.types("4");
        assert!(asked(&talk.types("  ")).starts_with("Edit 2 of 3"), "an empty comment says nothing");
    }
}
