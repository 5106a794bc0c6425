//! Words to the host that it has not applied: kept by what they are for, and offered again once it denied them. Owns only
//! what a person typed; sends nothing.

use super::app::App;
use super::input::Input;
use crate::domain::{Decision, StepRef};
use crate::event::Command;

/// What words are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Reject { at: StepRef, edit: usize },
    Comment { at: StepRef, edit: Option<usize> },
    Ruling { at: StepRef },
}

impl Purpose {
    /// The words of a command, and what they are for.
    pub(super) fn of(command: &Command) -> Option<(Self, &str)> {
        let (purpose, words) = match command {
            Command::Decide { at, edit, decision: Decision::Reject { reason } } => {
                (Self::Reject { at: *at, edit: *edit }, reason)
            }
            Command::Comment { at, edit, text } => (Self::Comment { at: *at, edit: *edit }, text),
            Command::Override { at, reason, .. } => (Self::Ruling { at: *at }, reason),
            _ => return None,
        };
        (!words.is_empty()).then_some((purpose, words.as_str()))
    }
}

impl App {
    pub(super) fn keep_words(&mut self, purpose: Purpose, words: &str) {
        self.forget_words(purpose);
        self.drafts.push((purpose, words.to_owned()));
    }

    pub(super) fn forget_words(&mut self, purpose: Purpose) {
        self.drafts.retain(|(kept, _)| *kept != purpose);
    }

    /// What a prompt begins with: words for the same purpose that came to nothing.
    pub(super) fn offered_words(&self, purpose: Purpose) -> Input {
        let on_its_way = self.pending.values().any(|pending| pending.words == Some(purpose));
        let kept = self.drafts.iter().find(|(kept, _)| *kept == purpose && !on_its_way);
        kept.map_or_else(Input::default, |(_, words)| Input::of(words))
    }
}
