//! Controls of pane 1: the runs under the root.

use std::path::PathBuf;

use crate::tui::action::{Action, Spec, always, rows};
use crate::tui::app::App;
use crate::tui::msg::Effect;
use crate::tui::services::RunRow;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunsAction {
    Open,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Runs RunsAction:
    Open          "runs.open"            "attach"    ["enter"]          None, false, always, "attach to the selected run";
};

pub const HINTS: &[Action] = &[Action::Runs(RunsAction::Open)];

#[derive(Clone, Debug, Default)]
pub struct RunsView {
    pub rows: Vec<RunRow>,
    pub filter: String,
    /// Drawn over the curves of the attached run, in the order they were marked.
    pub marked: Vec<PathBuf>,
    pub pinned: Option<PathBuf>,
}

impl App {
    pub(in crate::tui) fn act_runs(&mut self, action: RunsAction) -> Vec<Effect> {
        match action {
            RunsAction::Open => {}
        }
        Vec::new()
    }

    pub(in crate::tui) fn move_in_runs(&mut self, _lines: isize) {}

    pub(in crate::tui) fn copied_from_runs(&self) -> String {
        String::new()
    }

    pub(in crate::tui) fn told_runs(&mut self, runs: Result<Vec<RunRow>, String>) -> Vec<Effect> {
        self.runs.rows = runs.unwrap_or_default();
        Vec::new()
    }
}
