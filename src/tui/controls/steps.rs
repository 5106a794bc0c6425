//! Controls of pane 2: the steps and stages of the run.

use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::controls::patch::Anchor;
use crate::tui::layout::Pane;
use crate::tui::msg::Effect;
use crate::tui::stages::Stage;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepsAction {
    Open,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Steps StepsAction:
    Open          "steps.open"           "open"      ["enter"]          None, false, App::has_stage, "open the step: its patch, or its gate once decided";
};

pub const HINTS: &[Action] = &[
    Action::Steps(StepsAction::Open),
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::OlderStep),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::Pause),
];

impl App {
    pub(in crate::tui) fn act_steps(&mut self, action: StepsAction) -> Vec<Effect> {
        match action {
            StepsAction::Open => {
                // A stage between epochs is told in full beside the patches.
                let staged = matches!(self.shown_stage(), Some(Stage::Between { .. }));
                let decided = self.shown_step().is_none_or(|step| step.gate.is_some());
                self.focus(if decided && !staged { Pane::Gate } else { Pane::Patch });
            }
        }
        Vec::new()
    }

    pub(in crate::tui) fn select_stage(&mut self, rows: isize) {
        let stages = self.stages();
        let Some(shown) = self.shown_stage() else { return };
        let at = stages.place(shown).unwrap_or(0);
        let next = at.saturating_add_signed(rows).min(stages.len() - 1);
        // The newest row means "whatever is newest", so that it keeps up with the run.
        let stage = stages.get(next).filter(|_| next > 0);
        drop(stages);
        self.stage = stage;
        self.rollouts.selected = None;
        (self.patch.edit, self.patch.anchor, self.patch.found) = (0, Anchor::Edit, None);
        (self.gate.scroll.top, self.gate.selected) = (0, 0);
    }
}
