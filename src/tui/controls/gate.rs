//! Controls of pane 5: the evidence of the gate.

use crate::domain::{Ruling, StepRef};
use crate::event::Command;
use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::input::Input;
use crate::tui::msg::Effect;
use crate::tui::overlay::{Choice, Chosen, Overlay, Prompted};
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateAction {
    Override,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Gate GateAction:
    Override      "gate.override"        "override"  ["O"]              Some("override"), true, App::can_override, "overrule the gate, with a reason that is recorded";
};

pub const HINTS: &[Action] = &[
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::OlderStep),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::Copy),
];

#[derive(Clone, Debug, Default)]
pub struct GateView {
    pub scroll: Scroll,
}

impl App {
    pub(in crate::tui) fn act_gate(&mut self, action: GateAction) -> Vec<Effect> {
        match action {
            GateAction::Override => self.choose_ruling(),
        }
        Vec::new()
    }

    pub fn can_override(&self) -> bool {
        self.can_steer() && self.shown_step().is_some_and(|step| step.gate.is_some())
    }

    fn choose_ruling(&mut self) {
        let Some(at) = self.shown_step().filter(|step| step.gate.is_some()).map(|step| step.at) else {
            return;
        };
        let doc = |ruling| match ruling {
            Ruling::Accept => "the candidate becomes the current skill",
            Ruling::AcceptAsBest => "the candidate becomes the current and the best skill",
            Ruling::Reject => "back to the skill before this step",
        };
        let choices = Ruling::ALL
            .map(|ruling| Choice { label: ruling.name().to_owned(), doc: doc(ruling).to_owned() })
            .to_vec();
        let title = format!("Overrule the gate at step {}", at.step);
        self.overlay = Some(Overlay::Choice { title, choices, selected: 0, then: Chosen::Ruling { at } });
    }

    pub(in crate::tui) fn ask_why(&mut self, at: StepRef, index: usize) {
        let Some(ruling) = Ruling::ALL.get(index).copied() else { return };
        let title = format!("Step {}: {}. Why?", at.step, ruling.name());
        let hint = "recorded with your name · a reason is needed";
        let then = Prompted::Ruling { at, ruling };
        self.overlay = Some(Overlay::Prompt { title, hint, input: Input::default(), then });
    }

    pub(in crate::tui) fn overrule(&mut self, at: StepRef, ruling: Ruling, reason: &str) -> Vec<Effect> {
        let reason = reason.trim().to_owned();
        if reason.is_empty() {
            self.say(Role::Warn, "not overruled: a reason is needed");
            return Vec::new();
        }
        vec![self.send(Command::Override { at, ruling, reason }, Some(self.state.rev), "override".to_owned())]
    }

    pub(in crate::tui) fn move_in_gate(&mut self, lines: isize) {
        self.gate.scroll.by(lines);
    }

    pub(in crate::tui) fn copied_from_gate(&self) -> String {
        let gate = self.shown_step().and_then(|step| step.gate.as_ref());
        gate.map(|gate| gate.why.clone()).unwrap_or_default()
    }
}
