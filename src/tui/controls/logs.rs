//! Controls of pane 8: the run in words.

use crate::tui::action::{Action, Spec};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogsAction {}

pub const ACTIONS: &[Spec] = &[];

pub const HINTS: &[Action] = &[
    Action::Global(GlobalAction::Filter),
    Action::Global(GlobalAction::Follow),
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::FlipStrip),
];

#[derive(Clone, Debug)]
pub struct LogsView {
    pub scroll: Scroll,
    pub follow: bool,
    pub filter: String,
}

impl Default for LogsView {
    fn default() -> Self {
        Self { scroll: Scroll::default(), follow: true, filter: String::new() }
    }
}

impl App {
    pub(in crate::tui) fn act_logs(&mut self, action: LogsAction) -> Vec<Effect> {
        match action {}
    }

    pub(in crate::tui) fn move_in_logs(&mut self, lines: isize) {
        let (total, visible) = self.logs.scroll.extent.get();
        if self.logs.follow {
            self.logs.scroll.top = total.saturating_sub(visible);
        }
        self.logs.scroll.by(lines);
        self.logs.follow = lines > 0 && self.logs.scroll.at_end();
    }

    pub(in crate::tui) fn copied_from_logs(&self) -> String {
        let lines = self.lines.matching(&self.logs.filter);
        lines.last().map(|line| line.text.clone()).unwrap_or_default()
    }
}
