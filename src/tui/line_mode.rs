//! The lines of one edit under the cursor of a reviewer: where the cursor can stand, what is marked, and what a toggle
//! decides. A mark is nothing but what the decision on the edit says, so every client shows the same.

use std::ops::Range;
use std::rc::Rc;

use super::action::Action;
use super::app::App;
use super::controls::patch::PatchAction;
use super::msg::Effect;
use super::patch_doc::{CONTEXT, DocRow, folded};
use super::theme::Role;
use crate::domain::{Decision, StepRef};
use crate::optim::{Choice, EditLines};
use crate::text::Mark;

/// The cursor, as a place among [`LineDoc::stops`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineMode {
    pub cursor: usize,
}

/// What is taken of an edit, of a change group or of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Undecided,
    All,
    Part,
    None,
    ByHand,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineRow {
    /// A change group begins; its number from 0.
    Head(usize),
    /// A line of the diff.
    Line(usize),
    /// Unchanged lines that are not shown.
    Fold(Range<usize>),
}

#[derive(Debug)]
pub struct LineDoc {
    pub lines: EditLines,
    pub rows: Vec<LineRow>,
    /// The rows a cursor can stand on: heads and changed lines.
    pub stops: Vec<usize>,
}

impl LineDoc {
    fn new(lines: EditLines) -> Self {
        let diff = lines.diff();
        let mut rows = Vec::new();
        for row in folded(diff, CONTEXT) {
            match row {
                DocRow::Line(place) => {
                    let head = diff.group_at(place).filter(|group| diff.groups[*group].lines.start == place);
                    rows.extend(head.map(LineRow::Head));
                    rows.push(LineRow::Line(place));
                }
                DocRow::Fold(lines) => rows.push(LineRow::Fold(lines)),
                DocRow::Pair { .. } => {}
            }
        }
        let stands = |row: &LineRow| match row {
            LineRow::Head(_) => true,
            LineRow::Line(place) => diff.lines[*place].mark != Mark::Same,
            LineRow::Fold(_) => false,
        };
        let stops = (0..rows.len()).filter(|row| stands(&rows[*row])).collect();
        Self { lines, rows, stops }
    }

    /// The places in the diff that the row stands for.
    pub fn places(&self, row: &LineRow) -> Range<usize> {
        match row {
            LineRow::Head(group) => self.lines.diff().groups[*group].lines.clone(),
            LineRow::Line(place) => *place..place + 1,
            LineRow::Fold(_) => 0..0,
        }
    }

    /// The row under the cursor, kept inside.
    pub fn row_at(&self, mode: LineMode) -> usize {
        let last = self.stops.len().saturating_sub(1);
        self.stops.get(mode.cursor.min(last)).copied().unwrap_or(0)
    }

    /// The change group of the row under the cursor.
    pub fn group_at(&self, mode: LineMode) -> usize {
        let heads = self.rows[..=self.row_at(mode).min(self.rows.len() - 1)].iter();
        heads.filter(|row| matches!(row, LineRow::Head(_))).count().saturating_sub(1)
    }
}

impl Taken {
    pub fn of(choice: &Choice, places: impl Iterator<Item = usize>) -> Self {
        let taken = match choice {
            Choice::Undecided => return Taken::Undecided,
            Choice::ByHand => return Taken::ByHand,
            Choice::Lines(taken) => taken,
        };
        let (mut some, mut all) = (false, true);
        for place in places {
            let here = taken.get(place).copied().unwrap_or(false);
            (some, all) = (some || here, all && here);
        }
        match (some, all) {
            (_, true) => Taken::All,
            (true, false) => Taken::Part,
            (false, false) => Taken::None,
        }
    }

    pub fn mark(self) -> (&'static str, Role) {
        match self {
            Taken::Undecided => ("[ ]", Role::Warn),
            Taken::All => ("[✓]", Role::Good),
            Taken::Part => ("[~]", Role::Good),
            Taken::None => ("[✗]", Role::Bad),
            Taken::ByHand => ("[✎]", Role::Good),
        }
    }
}

impl App {
    /// The lines of the selected edit; `None` when there are none to choose from.
    pub fn line_doc(&self) -> Option<Rc<LineDoc>> {
        let at = self.shown_step()?.at;
        let review = self.shown_review()?;
        let key = (at, self.patch.edit);
        let mut cache = self.patch.line_doc.borrow_mut();
        if let Some((cached, doc)) = cache.as_ref()
            && *cached == key
        {
            return Some(Rc::clone(doc));
        }
        let slot = review.edits.get(self.patch.edit)?;
        let current = self.state.skill_text(&review.current_hash).unwrap_or_default();
        let doc = Rc::new(LineDoc::new(EditLines::of(&slot.edit, current)?));
        *cache = Some((key, Rc::clone(&doc)));
        Some(doc)
    }

    /// The lines under the cursor, in line mode.
    pub fn chosen_lines(&self) -> Option<(LineMode, Rc<LineDoc>)> {
        self.patch.line_mode.and_then(|mode| Some((mode, self.line_doc()?)))
    }

    /// What is taken of the selected edit, answers on their way counted.
    pub fn line_choice(&self, doc: &LineDoc) -> Choice {
        match (self.shown_step(), self.shown_review()) {
            (Some(step), Some(review)) => doc.lines.choice(&self.expected(step.at, review, self.patch.edit)),
            _ => Choice::Undecided,
        }
    }

    pub(super) fn toggle_line_mode(&mut self) {
        if self.patch.line_mode.take().is_some() {
            return;
        }
        match self.line_doc() {
            Some(_) => self.patch.line_mode = Some(LineMode::default()),
            None => self.say(Role::Warn, "this edit has no lines to choose from"),
        }
    }

    pub(super) fn move_line_cursor(&mut self, by: isize) {
        let Some((mode, doc)) = self.chosen_lines() else { return };
        let last = doc.stops.len().saturating_sub(1);
        let cursor = mode.cursor.min(last).saturating_add_signed(by).min(last);
        self.patch.line_mode = Some(LineMode { cursor });
    }

    /// To the head of the next or the previous change group; first to that of its own.
    pub(super) fn move_to_group(&mut self, forward: bool) {
        let Some((mode, doc)) = self.chosen_lines() else { return };
        let here = mode.cursor.min(doc.stops.len().saturating_sub(1));
        let head = |stop: &usize| matches!(doc.rows[doc.stops[*stop]], LineRow::Head(_));
        let found = match forward {
            true => (here + 1..doc.stops.len()).find(head),
            false => (0..here).rev().find(head),
        };
        if let Some(cursor) = found {
            self.patch.line_mode = Some(LineMode { cursor });
        }
    }

    /// The next mark for what is under the cursor: a line, a change group or the edit.
    pub(super) fn cycle_mark(&mut self) -> Vec<Effect> {
        if let Some((mode, doc)) = self.chosen_lines() {
            return self.toggle_lines(mode, &doc);
        }
        let Some((at, review)) = self.open_shown_review() else { return Vec::new() };
        let edit = self.patch.edit;
        let next = match self.expected(at, review, edit) {
            Decision::Undecided | Decision::Amend { .. } => Decision::Accept,
            Decision::Accept => Decision::Reject { reason: String::new() },
            Decision::Reject { .. } => Decision::Undecided,
        };
        if matches!(next, Decision::Reject { .. }) {
            let words = format!("edit {} rejected without a reason; x tells the optimiser why", edit + 1);
            self.say(Role::Dim, words);
        }
        self.decide(at, &[edit], &next, self.state.rev)
    }

    fn toggle_lines(&mut self, mode: LineMode, doc: &LineDoc) -> Vec<Effect> {
        let Some(at) = self.open_shown_review().map(|(at, _)| at) else { return Vec::new() };
        // Submitting takes what is undecided, so a first toggle leaves out what is under the cursor.
        let mut taken = match self.line_choice(doc) {
            Choice::Lines(taken) => taken,
            Choice::Undecided => doc.lines.all(),
            Choice::ByHand => {
                let undo = self.press_for(Action::Patch(PatchAction::Undo));
                let why = "edited by hand, so there are no lines to choose";
                self.say(Role::Warn, format!("{why}: {undo} takes that back"));
                return Vec::new();
            }
        };
        let places = doc.places(&doc.rows[doc.row_at(mode)]);
        let take = !places.clone().all(|place| taken[place]);
        places.for_each(|place| taken[place] = take);
        let decision = doc.lines.decision(&taken);
        if matches!(decision, Decision::Reject { .. }) {
            self.ask_reason(vec![self.patch.edit]);
            return Vec::new();
        }
        self.decide(at, &[self.patch.edit], &decision, self.state.rev)
    }
}

/// What a cached [`LineDoc`] depends on; the edits of a review never change.
pub type LineKey = (StepRef, usize);
