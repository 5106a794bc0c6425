//! Controls of the overview of the run.

use crate::tui::action::{Action, Spec};
use crate::tui::app::{App, Scroll};
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OverviewAction {}

pub const ACTIONS: &[Spec] = &[];

pub const HINTS: &[Action] = &[];

#[derive(Clone, Debug, Default)]
pub struct OverviewView {
    pub scroll: Scroll,
}

impl App {
    pub(in crate::tui) fn act_overview(&mut self, action: OverviewAction) -> Vec<Effect> {
        match action {}
    }

    pub(in crate::tui) fn copied_from_overview(&self) -> String {
        String::new()
    }
}
