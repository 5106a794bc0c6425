//! Watching and steering: a client that only watches may ask to steer, and go back. Nothing that was typed is lost.

use super::app::App;
use super::departure::Departure;
use super::msg::{Dirty, Effect};
use super::overlay::{Confirmed, Overlay, Question};
use super::theme::Role;
use crate::event::WatchRole;

impl App {
    /// Asks before a watching client steers; to watch only needs no word.
    pub(super) fn ask_role(&mut self) -> Vec<Effect> {
        if !self.identity.read_only {
            return self.depart(Departure::Watch);
        }
        self.overlay = Some(Overlay::Confirm { then: Confirmed::Steer });
        Vec::new()
    }

    pub(super) fn steer_question(&self) -> Question {
        let steering: Vec<&str> = self
            .clients
            .iter()
            .filter(|client| client.role == WatchRole::Steer)
            .map(|client| client.name.0.as_str())
            .collect();
        let others = match steering.as_slice() {
            [] => "Nobody else steers it now.".to_owned(),
            names => format!("Steering now: {}.", names.join(", ")),
        };
        Question {
            title: format!("Steer run {}?", self.run_name()),
            details: vec![
                "This client only watches. Steering lets it decide, pause, stop and change settings."
                    .to_owned(),
                others,
            ],
            verb: "steer",
        }
    }

    pub(super) fn role_taken(&mut self, read_only: bool) -> Vec<Effect> {
        self.stain(Dirty::Input);
        if std::mem::replace(&mut self.identity.read_only, read_only) != read_only {
            let words = if read_only { "this client only watches now" } else { "this client steers now" };
            self.say(Role::Good, words);
        }
        if !read_only {
            return self.send_again();
        }
        // An onlooker's commands are refused, whatever became of them before.
        if !self.pending.is_empty() {
            self.say(
                Role::Warn,
                format!("this client only watches now; {} not answered", self.unanswered_count()),
            );
            self.pending.clear();
        }
        Vec::new()
    }
}
