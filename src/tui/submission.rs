//! What submitting a review would do, edit by edit and for the text as a whole, and the submission itself.

use super::app::App;
use super::msg::Effect;
use super::overlay::{Confirmed, Overlay, Question};
use super::patch_doc::{Standing, review_mode, standing_of};
use super::preview;
use super::steer::REVIEW_CLOSED;
use super::theme::Role;
use crate::domain::{Decision, Edit, StepRef};
use crate::event::{Command, ReviewState};
use crate::plain::{count, edit_title};
use crate::text::{diff, sanitize, sanitize_line, truncate};

const SUBMIT: &str = "submit";
/// Columns of a line of the summary.
const COLUMNS: usize = 54;
/// Rows of the question besides its lines on edits: edges, counts, result, keys.
const OTHER_ROWS: usize = 12;

impl App {
    pub(super) fn confirm_submit(&mut self) {
        let Some((at, review)) = self.open_shown_review() else { return };
        if review.submitted.is_some() || self.pending.values().any(|pending| pending.what == SUBMIT) {
            return self.say(Role::Dim, "submitted: the step goes on");
        }
        self.overlay = Some(Overlay::Confirm { then: Confirmed::Submit { at } });
    }

    pub(super) fn submit(&mut self, at: StepRef) -> Vec<Effect> {
        if self.state.open_review().is_none_or(|(open, _)| open != at) {
            self.say(Role::Warn, REVIEW_CLOSED);
            return Vec::new();
        }
        vec![self.send(Command::Submit { at }, Some(self.state.rev), SUBMIT.to_owned())]
    }

    pub(super) fn submission(&self, at: StepRef) -> Question {
        Question {
            title: format!("Submit the review of step {}?", at.step),
            details: match self.state.open_review() {
                Some((open, review)) if open == at => self.submitted(at, review),
                _ => vec![REVIEW_CLOSED.to_owned()],
            },
            verb: SUBMIT,
        }
    }

    /// What submitting means, decisions on their way counted as made.
    fn submitted(&self, at: StepRef, review: &ReviewState) -> Vec<String> {
        let current = self.state.skill_text(&review.current_hash).unwrap_or_default();
        let decisions: Vec<Decision> =
            (0..review.edits.len()).map(|edit| self.expected(at, review, edit)).collect();
        let edits = || review.edits.iter().zip(&decisions);
        let room = (self.size.1 as usize).saturating_sub(OTHER_ROWS).max(1);
        let mut details = Vec::new();
        let shown = if review.edits.len() > room { room - 1 } else { room };
        for (number, (slot, decision)) in edits().enumerate().take(shown) {
            let standing = standing_of(&slot.edit, decision, None, current);
            details.push(edit_line(number + 1, &slot.edit, decision, standing));
        }
        if review.edits.len() > shown {
            details.push(format!("… and {} more", review.edits.len() - shown));
        }
        details.push(String::new());
        let n = |wanted: fn(&Decision) -> bool| decisions.iter().filter(|one| wanted(one)).count();
        let amended = n(|one| matches!(one, Decision::Amend { .. }));
        let undecided = n(|one| *one == Decision::Undecided);
        let rejected = n(|one| matches!(one, Decision::Reject { .. }));
        let accepted = n(|one| *one == Decision::Accept) + amended;
        let of_them = if amended > 0 { format!(", {amended} of them amended") } else { String::new() };
        details.push(format!("✓ {accepted} accepted{of_them}  ✗ {rejected} rejected"));
        if undecided > 0 {
            details.push(format!("· {undecided} undecided, accepted by submitting"));
        }
        let kept: Vec<Edit> = edits().filter_map(|(slot, decision)| decided(&slot.edit, decision)).collect();
        details.push(match preview::result(review_mode(review), current, &kept) {
            Some(result) => result_words(current, &result),
            None => "A rewrite call makes the text from the accepted suggestions.".to_owned(),
        });
        details.push("The gate then measures exactly the resulting text.".to_owned());
        details
    }
}

/// The edit as a submission would keep it.
fn decided(edit: &Edit, decision: &Decision) -> Option<Edit> {
    match decision {
        Decision::Undecided | Decision::Accept => Some(edit.clone()),
        Decision::Amend { content, .. } => Some(edit.amended(content)),
        Decision::Reject { .. } => None,
    }
}

fn edit_line(number: usize, edit: &Edit, decision: &Decision, standing: Standing) -> String {
    let why = match decision {
        Decision::Reject { reason } if reason.is_empty() => String::new(),
        Decision::Reject { reason } => format!(": {}", sanitize_line(reason)),
        Decision::Undecided | Decision::Accept | Decision::Amend { .. } => standing.part_words(),
    };
    let title = edit_title(edit);
    // A reason is worth more than the whole title.
    let room = COLUMNS.saturating_sub(8);
    let title = if why.is_empty() { title } else { truncate(&title, room / 2) };
    truncate(&format!("{} {number} {}{why}", standing.mark().0, title.trim_end()), COLUMNS)
}

/// How the text changes: lines, characters, about how many tokens.
fn result_words(before: &str, after: &str) -> String {
    if before == after {
        return "The text stays as it is.".to_owned();
    }
    let changed = diff(&sanitize(before), &sanitize(after));
    let chars = |text: &str| text.chars().count();
    // Four characters a token is the usual rule of thumb for English.
    let tokens = |text: &str| chars(text).div_ceil(4);
    format!(
        "Result: +{} −{} lines, {} characters (was {}), about {} tokens (was {}).",
        changed.added(),
        changed.removed(),
        chars(after),
        chars(before),
        tokens(after),
        tokens(before),
    )
}

impl Standing {
    /// `: 2 of 3 changes`, or nothing.
    fn part_words(self) -> String {
        match self {
            Standing::Partly { taken, of } => format!(": {taken} of {}", count(of, "changed line")),
            Standing::Amended => ": edited by hand".to_owned(),
            Standing::Undecided | Standing::Accepted | Standing::Rejected => String::new(),
        }
    }
}
