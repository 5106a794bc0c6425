//! Controls of the overview of the run.

use crate::plain::score;
use crate::tui::action::{Action, Spec};
use crate::tui::app::{App, Scroll};
use crate::tui::controls::global::GlobalAction;
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OverviewAction {}

pub const ACTIONS: &[Spec] = &[];

pub const HINTS: &[Action] = &[
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::Copy),
    Action::Global(GlobalAction::Pause),
    Action::Global(GlobalAction::Steer),
];

#[derive(Clone, Debug, Default)]
pub struct OverviewView {
    pub scroll: Scroll,
}

impl App {
    pub(in crate::tui) fn act_overview(&mut self, action: OverviewAction) -> Vec<Effect> {
        match action {}
    }

    pub(in crate::tui) fn copied_from_overview(&self) -> String {
        let state = &self.state;
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), score);
        let mut out = vec![
            format!("run {}", self.run_name()),
            format!("folder {}", self.run_dir),
            format!("baseline {}", number(state.baseline_score)),
            format!("best {} by {}", number(state.best_score), state.best_origin()),
        ];
        out.extend(state.test.as_ref().map(|test| {
            format!("test {} -> {} on {} items", score(test.base_hard), score(test.best_hard), test.n)
        }));
        out.join("\n")
    }
}
