//! What the app hears of its run: lines of the host, the journal, the history behind a glance; and what news moves on
//! the screen. Folds and forwards; gives no command.

use super::action::Action;
use super::app::{App, Link};
use super::controls::global::GlobalAction;
use super::controls::patch::Anchor;
use super::layout::Pane;
use super::msg::{Dirty, Effect};
use super::news::shown_in;
use super::theme::Role;
use crate::client::ClientEvent;
use crate::domain::ReviewMode;
use crate::event::{BREAKER_OPEN, Event, HostLine, Live, Record, RunStatus};
use crate::telemetry::Board;

/// Without a key for this long the screen may follow the run to another pane by itself.
const IDLE_MS: u64 = 5_000;

impl App {
    pub(super) fn client(&mut self, event: ClientEvent) -> Vec<Effect> {
        match event {
            ClientEvent::Line(line) => return self.host_line(line),
            ClientEvent::Lost(reason) => {
                self.live.forget_calls();
                let since = match &self.link {
                    Link::Lost { since, .. } => *since,
                    Link::Unattached | Link::Connecting | Link::Up => self.now,
                };
                // The header only has room for how long; what to do about it is in the reason.
                if !matches!(&self.link, Link::Lost { reason: told, .. } if *told == reason) {
                    self.say(Role::Warn, reason.clone());
                }
                self.link = Link::Lost { reason, since };
            }
            ClientEvent::Recording => self.recording = true,
            ClientEvent::Restored => self.link = Link::Up,
        }
        self.stain(Dirty::Data);
        Vec::new()
    }

    fn host_line(&mut self, line: HostLine) -> Vec<Effect> {
        let shown = shown_in(&line);
        // After the line is heard: what it shows may have come with it.
        let effects = self.hear(line);
        self.stain_panes(shown);
        effects
    }

    fn hear(&mut self, line: HostLine) -> Vec<Effect> {
        match line {
            HostLine::Welcome { run, run_dir, last_seq, .. } => {
                self.link = Link::Up;
                (self.run, self.run_dir) = (run, run_dir);
                self.last_seq = last_seq;
            }
            HostLine::Glance(state) => {
                if self.state.seq == 0 {
                    self.board = Board::at_a_glance(&state);
                    self.take_state(*state);
                    self.history = Some(Default::default());
                    self.stain(Dirty::Input);
                    return self.arrive();
                }
            }
            HostLine::Event(record) => return self.record(&record),
            HostLine::Live(live) => {
                if matches!(live, Live::Throughput { .. })
                    && matches!(self.state.status, RunStatus::Ended { .. })
                {
                    return Vec::new();
                }
                self.board.hear_live(&live, self.now);
                self.live.hear(live, self.now);
            }
            HostLine::Clients(clients) => self.clients = clients,
            HostLine::Ack { cmd_id, result, .. } => return self.acknowledged(&cmd_id, result),
            HostLine::Dropped { lines } => {
                self.lines.note(self.now, format!("{lines} lines not shown: this client reads too slowly"));
            }
            HostLine::Error { message } => self.say(Role::Bad, format!("host: {message}")),
        }
        Vec::new()
    }

    /// Folds a record into the history behind the glance; the whole takes the glance's place once it is as far.
    fn read_history(&mut self, record: &Record) {
        let Some((history, board)) = &mut self.history else { return };
        // A connection made anew repeats what was under way to the screen.
        if record.seq <= history.seq {
            return;
        }
        history.apply(record);
        board.hear(record);
        self.lines.hear(record, self.last_seq);
        if history.seq >= self.state.seq
            && let Some((whole, board)) = self.history.take()
        {
            self.board = board;
            self.take_state(whole);
            self.stain(Dirty::Input);
        }
    }

    /// The last record that was folded; of the history while that is read.
    pub fn read_seq(&self) -> u64 {
        self.history.as_ref().map_or(self.state.seq, |(history, _)| history.seq)
    }

    /// How much of the history behind the glance has been read, in [0, 1].
    pub fn history_read(&self) -> Option<f64> {
        let (history, _) = self.history.as_ref()?;
        Some(history.seq as f64 / self.state.seq.max(1) as f64)
    }

    fn record(&mut self, record: &Record) -> Vec<Effect> {
        if self.history.is_some() {
            self.read_history(record);
            return Vec::new();
        }
        if record.seq <= self.state.seq {
            return Vec::new();
        }
        if self.state.seq == 0 || record.seq == self.last_seq {
            // The first sight of the run, and the end of its history, do not wait for the slower clock of data.
            self.stain(Dirty::Input);
        }
        self.state.apply(record);
        self.live.settle(&record.event);
        self.index.get_mut().hear(&record.event);
        self.adopt_result(&record.event);
        self.board.hear(record);
        self.lines.hear(record, self.last_seq);
        // Only news moves the screen: history that is still being read does not.
        match record.seq.cmp(&self.last_seq) {
            std::cmp::Ordering::Less => Vec::new(),
            std::cmp::Ordering::Equal => self.arrive(),
            std::cmp::Ordering::Greater => self.follow_event(&record.event),
        }
    }

    /// The history is read: shows what matters now.
    fn arrive(&mut self) -> Vec<Effect> {
        if self.review_label().is_some() {
            self.focus(Pane::Patch);
            return self.call();
        }
        if self.ended() {
            self.focus(Pane::Gate);
        }
        if self.state.outage().is_some() { self.call() } else { Vec::new() }
    }

    /// Shows what just became important, unless somebody is at work elsewhere.
    fn follow_event(&mut self, event: &Event) -> Vec<Effect> {
        let idle = self.now.saturating_sub(self.last_key_at) >= IDLE_MS && self.overlay.is_none();
        match event {
            Event::ReviewOpened { mode: ReviewMode::Manual, edits, .. } if !edits.is_empty() => {
                (self.patch.edit, self.patch.anchor) = (0, Anchor::Edit);
                self.patch.undo.clear();
                self.patch.redo.clear();
                self.patch.line_mode = None;
                if idle {
                    self.stage = None;
                    self.focus(Pane::Patch);
                } else {
                    let patch = self.press_for(Action::Global(GlobalAction::GoPatch));
                    self.say(Role::Warn, format!("a review waits for you: press {patch}"));
                }
                return self.call();
            }
            Event::GateDecided { .. } | Event::TestFinished { .. }
                if idle && self.stage.is_none() && self.arrangement.main == Pane::Patch =>
            {
                let focused = self.arrangement.focus == Pane::Patch;
                self.arrangement.main = Pane::Gate;
                if focused {
                    self.arrangement.focus = Pane::Gate;
                }
            }
            // The run stands still until somebody answers.
            Event::Alert { code, .. } if code == BREAKER_OPEN => return self.call(),
            Event::RunFinished { .. } if idle => {
                self.stage = None;
                self.focus(Pane::Gate);
            }
            _ => {}
        }
        Vec::new()
    }
}
