//! Controls of pane 6: the curves.

use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::msg::Effect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CurvesAction {
    Left,
    Right,
    Reset,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Curves CurvesAction:
    Left          "curves.left"          "cursor"    ["h", "left"]      None, false, App::has_steps, "value cursor to the left";
    Right         "curves.right"         "cursor right" ["l", "right"]  None, false, App::has_steps, "value cursor to the right";
    Reset         "curves.reset"         "last values" ["0"]            None, false, App::has_steps, "value cursor off: show last values";
};

pub const HINTS: &[Action] = &[
    Action::Curves(CurvesAction::Left),
    Action::Curves(CurvesAction::Reset),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::FlipStrip),
];

#[derive(Clone, Debug, Default)]
pub struct CurvesView {
    /// Step index under the value cursor.
    pub cursor: Option<usize>,
}

impl App {
    pub(in crate::tui) fn act_curves(&mut self, action: CurvesAction) -> Vec<Effect> {
        match action {
            CurvesAction::Left => self.move_cursor(-1),
            CurvesAction::Right => self.move_cursor(1),
            CurvesAction::Reset => self.curves.cursor = None,
        }
        Vec::new()
    }

    fn move_cursor(&mut self, by: isize) {
        let Some(last) = self.state.steps.len().checked_sub(1) else { return };
        self.curves.cursor = Some(self.curves.cursor.unwrap_or(last).saturating_add_signed(by).min(last));
    }

    pub(in crate::tui) fn move_in_curves(&mut self, _lines: isize) {}

    pub(in crate::tui) fn copied_from_curves(&self) -> String {
        String::new()
    }
}
