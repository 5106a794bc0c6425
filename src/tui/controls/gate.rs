//! Controls of pane 5: the evidence of the gate.

use crate::domain::{GateDecision, Ruling, StepRef};
use crate::event::Command;
use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::input::Input;
use crate::tui::item_table::{ItemSort, ItemTableCache};
use crate::tui::msg::Effect;
use crate::tui::overlay::{Choice, Chosen, Overlay, Prompted};
use crate::tui::stages::Stage;
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateAction {
    Items,
    Sort,
    Override,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Gate GateAction:
    Items         "gate.items"           "items"     ["enter"]          None, false, App::has_items, "item by item; there, the two transcripts of an item";
    Sort          "gate.sort"            "sort"      ["d"]              None, false, App::has_items, "sort items: change, difference, name";
    Override      "gate.override"        "override"  ["O"]              Some("override"), true, App::can_override, "overrule the gate, with a reason that is recorded";
};

pub const HINTS: &[Action] = &[
    Action::Gate(GateAction::Items),
    Action::Gate(GateAction::Sort),
    Action::Gate(GateAction::Override),
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::OlderStep),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::Copy),
];

#[derive(Clone, Debug, Default)]
pub struct GateView {
    pub scroll: Scroll,
    /// Item by item instead of the summary.
    pub table: bool,
    pub sort: ItemSort,
    /// Place of the selected item in the table.
    pub selected: usize,
    pub(in crate::tui) items: ItemTableCache,
}

impl App {
    pub(in crate::tui) fn act_gate(&mut self, action: GateAction) -> Vec<Effect> {
        match action {
            GateAction::Items if self.gate.table => self.open_item(),
            GateAction::Items => self.gate.table = true,
            GateAction::Sort => {
                (self.gate.table, self.gate.selected) = (true, 0);
                self.gate.sort = self.gate.sort.next();
            }
            GateAction::Override => self.choose_ruling(),
        }
        Vec::new()
    }

    pub fn has_items(&self) -> bool {
        self.item_table().is_some()
    }

    /// The decision on the shown step or stage.
    pub(in crate::tui) fn shown_decision(&self) -> Option<&GateDecision> {
        match self.shown_stage()? {
            Stage::Step(number) => self.step(number)?.gate.as_ref(),
            Stage::Between { epoch, kind } => self.found(epoch, kind)?.1.stage.candidate().1,
            Stage::Baseline | Stage::FinalSelection | Stage::Test => None,
        }
    }

    /// Both transcripts of the selected item; the one there is where only one side has it.
    fn open_item(&mut self) {
        let Some(table) = self.item_table() else { return };
        let Some(line) = table.lines.get(self.gate.selected.min(table.lines.len().saturating_sub(1))) else {
            return;
        };
        match (line.current.result(), line.candidate.result()) {
            (Some(old), Some(new)) => self.compare([old, new]),
            (Some(one), None) | (None, Some(one)) => self.open_result(one),
            (None, None) => {}
        }
    }

    pub fn can_override(&self) -> bool {
        self.can_steer() && self.overrulable().is_some()
    }

    /// The shown step, where it is the last one that the gate decided.
    fn overrulable(&self) -> Option<StepRef> {
        let last = self.state.steps.get(self.run_index().last_gated(&self.state)?)?.at;
        (self.shown_step()?.at == last).then_some(last)
    }

    fn choose_ruling(&mut self) {
        let Some(at) = self.overrulable() else { return };
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
        match self.item_table().filter(|_| self.gate.table) {
            Some(table) => {
                let last = table.lines.len().saturating_sub(1);
                self.gate.selected = self.gate.selected.min(last).saturating_add_signed(lines).min(last);
            }
            None => self.gate.scroll.by(lines),
        }
    }

    pub(in crate::tui) fn copied_from_gate(&self) -> String {
        let gate = self.shown_step().and_then(|step| step.gate.as_ref());
        gate.map(|gate| gate.why.clone()).unwrap_or_default()
    }

    /// The decision with its evidence, item by item.
    pub(in crate::tui) fn copied_evidence(&self) -> String {
        let mut out = self.copied_from_gate();
        let Some(table) = self.item_table() else { return out };
        let (current, candidate) = table.sides.names;
        out.push_str(&format!("\n\nitem\t{current}\t{candidate}\tchange\n"));
        for line in &table.lines {
            let (old, new) = (line.current.words(), line.candidate.words());
            out.push_str(&format!("{}\t{old}\t{new}\t{}\n", line.item, line.change().mark()));
        }
        out
    }
}
