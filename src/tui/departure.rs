//! Leaving a run whose host has not answered every command: a moment's patience, then a question. Owns the commands
//! that are to be sent again by another connection; sends nothing itself.

use std::path::PathBuf;

use super::app::App;
use super::msg::Effect;
use super::overlay::{Confirmed, Overlay, Question};
use super::steer::Pending;
use super::theme::Role;
use crate::plain::count;

/// How long answers are awaited before somebody is asked.
const PATIENCE_MS: u64 = 1_000;
/// Most commands that a question names.
const NAMED: usize = 5;

/// Where a client goes that gives up its place at a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Departure {
    Quit,
    Open {
        run: PathBuf,
    },
    /// It stays as an onlooker.
    Watch,
}

/// A departure that waits for answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaving {
    to: Departure,
    until: u64,
}

impl App {
    /// Goes at once, or as soon as every command is answered. Asked again, it waits no longer.
    pub(super) fn depart(&mut self, to: Departure) -> Vec<Effect> {
        let asked_before = self.leaving.take().is_some_and(|leaving| leaving.to == to);
        if self.pending.is_empty() {
            return self.go(to);
        }
        if asked_before {
            self.overlay = Some(Overlay::Confirm { then: Confirmed::Unanswered { to } });
            return Vec::new();
        }
        self.say(Role::Dim, format!("waiting for the answer to {}…", self.unanswered_count()));
        self.leaving = Some(Leaving { to, until: self.now + PATIENCE_MS });
        Vec::new()
    }

    /// Whatever is not answered.
    pub(super) fn go(&mut self, to: Departure) -> Vec<Effect> {
        match to {
            Departure::Quit => vec![Effect::Quit],
            Departure::Watch => vec![Effect::Reconnect { read_only: true }],
            Departure::Open { run } => {
                let name =
                    run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                self.say(Role::Dim, format!("opening {name}…"));
                vec![Effect::Open { run }]
            }
        }
    }

    /// After an answer: the last one lets go who waited, or was asked.
    pub(super) fn depart_if_answered(&mut self) -> Vec<Effect> {
        if !self.pending.is_empty() {
            return Vec::new();
        }
        if let Some(leaving) = self.leaving.take() {
            return self.go(leaving.to);
        }
        if let Some(Overlay::Confirm { then: Confirmed::Unanswered { to } }) = &self.overlay {
            let to = to.clone();
            self.overlay = None;
            return self.go(to);
        }
        Vec::new()
    }

    /// Patience has an end. Who has begun something else meanwhile does not want to go any more.
    pub(super) fn depart_if_due(&mut self) {
        let Some(leaving) = self.leaving.take_if(|leaving| leaving.until <= self.now) else { return };
        if self.overlay.is_none() {
            self.overlay = Some(Overlay::Confirm { then: Confirmed::Unanswered { to: leaving.to } });
            self.stain(super::msg::Dirty::Input);
        }
    }

    /// Milliseconds until patience ends.
    pub(super) fn next_departure(&self) -> Option<u64> {
        self.leaving.as_ref().map(|leaving| leaving.until.saturating_sub(self.now).max(1))
    }

    pub(super) fn unanswered(&self) -> Question {
        let mut whats: Vec<&str> = self.in_order().into_iter().map(|pending| pending.what.as_str()).collect();
        let more = whats.len().saturating_sub(NAMED);
        whats.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let verb = if self.pending.len() == 1 { "was" } else { "were" };
        Question {
            title: format!("{} {verb} not answered: leave all the same?", self.unanswered_count()),
            details: vec![
                format!("On the way: {}{more}.", whats.join(", ")),
                "The host may have them or not; this client will not hear of it.".to_owned(),
            ],
            verb: "leave all the same",
        }
    }

    pub(super) fn unanswered_count(&self) -> String {
        let decisions = self.pending.values().all(|pending| pending.decides.is_some());
        count(self.pending.len(), if decisions { "decision" } else { "command" })
    }

    /// What is not answered goes by the new connection too; a host that has it already only answers again.
    pub(super) fn send_again(&self) -> Vec<Effect> {
        self.in_order().into_iter().map(|pending| Effect::Send(pending.line.clone())).collect()
    }

    fn in_order(&self) -> Vec<&Pending> {
        let mut pending: Vec<&Pending> = self.pending.values().collect();
        pending.sort_by_key(|pending| pending.number);
        pending
    }
}
