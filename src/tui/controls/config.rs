//! Controls of pane 9: the settings of the run.

use crate::tui::action::{Action, Spec};
use crate::tui::app::{App, Scroll};
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigAction {}

pub const ACTIONS: &[Spec] = &[];

pub const HINTS: &[Action] = &[];

#[derive(Clone, Debug, Default)]
pub struct ConfigView {
    pub scroll: Scroll,
}

impl App {
    pub(in crate::tui) fn act_config(&mut self, action: ConfigAction) -> Vec<Effect> {
        match action {}
    }

    pub(in crate::tui) fn move_in_config(&mut self, lines: isize) {
        self.config.scroll.by(lines);
    }

    pub(in crate::tui) fn copied_from_config(&self) -> String {
        String::new()
    }
}
