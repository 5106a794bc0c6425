//! Controls of pane 7: GPU and host.

use crate::tui::action::{Action, Spec};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MachineAction {}

pub const ACTIONS: &[Spec] = &[];

pub const HINTS: &[Action] = &[
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::Copy),
    Action::Global(GlobalAction::Zoom),
];

#[derive(Clone, Debug, Default)]
pub struct MachineView {
    pub scroll: Scroll,
}

impl App {
    pub(in crate::tui) fn act_machine(&mut self, action: MachineAction) -> Vec<Effect> {
        match action {}
    }

    pub(in crate::tui) fn copied_from_machine(&self) -> String {
        let Some((_, sample)) = &self.board.machine else { return String::new() };
        serde_json::to_string(sample).unwrap_or_default()
    }
}
