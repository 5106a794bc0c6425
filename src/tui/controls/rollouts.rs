//! Controls of pane 3: rollouts and optimizer calls.

use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::layout::Pane;
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RolloutsAction {
    Open,
    FailuresOnly,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Rollouts RolloutsAction:
    Open          "rollouts.open"        "transcript" ["enter"]         None, false, App::has_rollouts, "open the transcript";
    FailuresOnly  "rollouts.failures"    "failures"  ["!"]              None, false, App::has_rollouts, "failures only, or all";
};

pub const HINTS: &[Action] = &[
    Action::Rollouts(RolloutsAction::Open),
    Action::Global(GlobalAction::Down),
    Action::Rollouts(RolloutsAction::FailuresOnly),
    Action::Global(GlobalAction::Filter),
    Action::Global(GlobalAction::Follow),
];

#[derive(Clone, Debug, Default)]
pub struct RolloutsView {
    /// Key of the selected row; `None`: the first.
    pub selected: Option<String>,
    pub filter: String,
    pub failures_only: bool,
    /// Only these items: those that motivated an edit.
    pub only: Option<Vec<String>>,
}

impl App {
    pub(in crate::tui) fn act_rollouts(&mut self, action: RolloutsAction) -> Vec<Effect> {
        match action {
            RolloutsAction::Open => self.open_transcript(),
            RolloutsAction::FailuresOnly => {
                self.rollouts.failures_only = !self.rollouts.failures_only;
                self.rollouts.selected = None;
            }
        }
        Vec::new()
    }

    pub(in crate::tui) fn select_row(&mut self, by: isize) {
        let rows = self.rows();
        let Some(last) = rows.len().checked_sub(1) else { return };
        let next = self.selected_row(&rows).saturating_add_signed(by).min(last);
        let key = rows[next].key.clone();
        self.rollouts.selected = Some(key);
        self.transcript.scroll.top = 0;
        self.transcript.follow = true;
    }

    fn open_transcript(&mut self) {
        if self.rollouts.selected.is_none() {
            self.select_row(0);
        }
        self.focus(Pane::Transcript);
    }
}
