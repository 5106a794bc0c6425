//! Controls that hold everywhere: panes, movement, the run, the client.

use crate::tui::action::{Action, Spec, always, rows};
use crate::tui::app::App;
use crate::tui::departure::Departure;
use crate::tui::input::Input;
use crate::tui::layout::{Class, Pane};
use crate::tui::msg::{Dirty, Effect};
use crate::tui::overlay::{Overlay, Prompted};
use crate::tui::search::{Pattern, Search};
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GlobalAction {
    GoOverview,
    GoRuns,
    GoSteps,
    GoRollouts,
    GoPatch,
    GoGate,
    GoCurves,
    GoMachine,
    GoLogs,
    GoConfig,
    NextPane,
    PreviousPane,
    Down,
    Up,
    Left,
    Right,
    Top,
    Bottom,
    HalfDown,
    HalfUp,
    PageDown,
    PageUp,
    OlderStep,
    NewerStep,
    Follow,
    Zoom,
    FlipStrip,
    Filter,
    NextMatch,
    PreviousMatch,
    Copy,
    CopyMore,
    Back,
    Pause,
    Stop,
    NewRun,
    Resume,
    Steer,
    Help,
    Palette,
    Theme,
    Mouse,
    Page,
    Export,
    Count,
    Repaint,
    Suspend,
    Interrupt,
    Quit,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Global GlobalAction:
    GoOverview    "pane.overview"        "overview"  ["0", "g o"]       None, false, always, "overview of the run";
    GoRuns        "pane.runs"            "runs"      ["1"]              None, false, always, "pane 1, runs";
    GoSteps       "pane.steps"           "steps"     ["2"]              None, false, always, "pane 2, steps";
    GoRollouts    "pane.rollouts"        "rollouts"  ["3"]              None, false, always, "pane 3, rollouts";
    GoPatch       "pane.patch"           "patch"     ["4"]              None, false, always, "pane 4, patch under review";
    GoGate        "pane.gate"            "gate"      ["5"]              None, false, always, "pane 5, gate";
    GoCurves      "pane.curves"          "curves"    ["6"]              None, false, always, "pane 6, curves";
    GoMachine     "pane.machine"         "machine"   ["7"]              None, false, always, "pane 7, GPU and host";
    GoLogs        "pane.logs"            "logs"      ["8"]              None, false, always, "pane 8, logs";
    GoConfig      "pane.config"          "config"    ["9"]              None, false, always, "pane 9, config";
    NextPane      "pane.next"            "next pane" ["tab"]            None, false, always, "next pane";
    PreviousPane  "pane.previous"        "previous pane" ["backtab"]        None, false, always, "previous pane";
    Down          "move.down"            "move"      ["j", "down"]      None, false, always, "down";
    Up            "move.up"              "up"        ["k", "up"]        None, false, always, "up";
    Left          "move.left"            "lists"     ["h", "left"]      None, false, always, "to the lists on the left";
    Right         "move.right"           "details"   ["l", "right"]     None, false, always, "to the details on the right";
    Top           "move.top"             "top"       ["g g", "home"]    None, false, always, "to the top";
    Bottom        "move.bottom"          "bottom"    ["G", "end"]       None, false, always, "to the bottom";
    HalfDown      "move.half-down"       "half down" ["ctrl-d"]         None, false, always, "half a page down";
    HalfUp        "move.half-up"         "half up"   ["ctrl-u"]         None, false, always, "half a page up";
    PageDown      "move.page-down"       "page down" ["ctrl-f", "pgdn"] None, false, always, "a page down";
    PageUp        "move.page-up"         "page up"   ["ctrl-b", "pgup"] None, false, always, "a page up";
    OlderStep     "step.older"           "step"      ["["]              None, false, App::has_stage, "previous step";
    NewerStep     "step.newer"           "newer step" ["]"]              None, false, App::has_stage, "next step";
    Follow        "view.follow"          "follow"    ["f"]              None, false, always, "follow what happens now";
    Zoom          "view.zoom"            "zoom"      ["z", "+", "_"]    None, false, App::can_zoom, "give the pane the whole screen, or back";
    FlipStrip     "view.flip"            "curves/logs" ["@"]              None, false, always, "flip the bottom strip: curves or logs";
    Filter        "view.filter"          "filter"    ["/"]              None, false, App::can_filter, "filter a list, or search a text";
    NextMatch     "view.next-match"      "match"     ["n"]              None, false, App::has_search, "next match of the search";
    PreviousMatch "view.previous-match"  "match before" ["N"]           None, false, App::has_search, "match before";
    Copy          "view.copy"            "copy"      ["y"]              None, false, always, "copy what is shown (OSC 52)";
    CopyMore      "view.copy-more"       "copy all"  ["Y"]              None, false, always, "copy it with all that belongs to it";
    Back          "view.back"            "back"      ["esc"]            None, false, always, "back out one level";
    Pause         "run.pause"            "pause"     ["p"]              Some("pause"), true, App::can_steer, "pause at the next boundary, or resume";
    Stop          "run.stop"             "stop run"  ["Q"]              Some("cancel"), true, App::can_steer, "stop the run (asks first; it stays resumable)";
    NewRun        "run.new"              "new run"   ["g n"]            None, false, always, "start a new run by a form";
    Resume        "run.resume"           "resume run" ["g r"]           None, false, always, "resume a run that was stopped, failed or killed";
    Steer         "client.steer"         "steer"     ["g s"]            None, false, App::can_change_role, "steer, where this client only watches; or only watch again";
    Help          "app.help"             "help"      ["?"]              None, false, always, "this help";
    Palette       "app.palette"          "commands"  [":"]              None, false, always, "all commands by name";
    Theme         "view.theme"           "theme"     ["g t"]            None, false, always, "choose the colours";
    Mouse         "view.mouse"           "mouse"     ["M"]              None, false, always, "mouse on or off";
    Page          "view.page"            "pager"     ["o"]              None, false, always, "open what is shown in $PAGER";
    Export        "view.export"          "export"    ["E"]              None, false, always, "write screen, pane or curves to a file: text, SVG, PNG, CSV";
    Count         "app.count"            "count"     ["#"]              None, false, always, "digits, then a motion: do it that often";
    Repaint       "app.repaint"          "repaint"   ["ctrl-l"]         None, false, always, "repaint the screen";
    Suspend       "app.suspend"          "suspend"   ["ctrl-z"]         None, false, always, "suspend the client";
    Interrupt     "app.interrupt"        "leave"     ["ctrl-c"]         None, false, always, "leave a prompt, else the client";
    Quit          "app.quit"             "quit"      ["q"]              None, false, always, "leave the client; the run goes on";
};

pub const HINTS: &[Action] = &[Action::Global(GlobalAction::Help), Action::Global(GlobalAction::Quit)];

/// More of a motion than this is a slip of the finger.
const MOST_REPEATS: usize = 1000;

impl App {
    pub(in crate::tui) fn act_global(&mut self, action: GlobalAction) -> Vec<Effect> {
        match action {
            GlobalAction::Quit => return self.depart(Departure::Quit),
            GlobalAction::Interrupt => {
                self.surface.presses.clear();
                self.surface.count = None;
                match self.overlay.take() {
                    None => return self.depart(Departure::Quit),
                    Some(Overlay::Launch(form)) => self.launch = Some(form),
                    Some(_) => {}
                }
            }
            GlobalAction::Suspend => return vec![Effect::Suspend],
            GlobalAction::Stop => self.confirm_stop(),
            GlobalAction::Pause => return self.toggle_pause(),
            GlobalAction::NewRun => return self.open_launch_form(),
            GlobalAction::Resume => return self.open_resume_picker(None),
            GlobalAction::Steer => return self.ask_role(),
            GlobalAction::Help => {
                self.overlay = Some(Overlay::Help { top: 0, filter: Input::default(), typing: false });
            }
            GlobalAction::Palette => {
                self.overlay = Some(Overlay::Palette { input: Input::default(), selected: 0 });
            }
            GlobalAction::Back => self.back(),
            GlobalAction::NextPane => self.cycle(1),
            GlobalAction::PreviousPane => self.cycle(-1),
            GlobalAction::GoOverview => self.focus(Pane::Overview),
            GlobalAction::GoRuns => self.focus(Pane::Runs),
            GlobalAction::GoMachine => self.focus(Pane::Machine),
            GlobalAction::GoConfig => self.focus(Pane::Config),
            GlobalAction::GoSteps => self.focus(Pane::Steps),
            GlobalAction::GoRollouts => self.focus(Pane::Rollouts),
            GlobalAction::GoPatch => self.focus(Pane::Patch),
            GlobalAction::GoGate => self.focus(Pane::Gate),
            GlobalAction::GoCurves => self.focus(Pane::Curves),
            GlobalAction::GoLogs => self.focus(Pane::Logs),
            GlobalAction::Left => self.sideways(true),
            GlobalAction::Right => self.sideways(false),
            GlobalAction::Down => self.move_by(1),
            GlobalAction::Up => self.move_by(-1),
            GlobalAction::Top => self.move_by(-(isize::MAX / 2)),
            GlobalAction::Bottom => self.move_by(isize::MAX / 2),
            GlobalAction::HalfDown => self.move_by(self.page() / 2),
            GlobalAction::HalfUp => self.move_by(-(self.page() / 2)),
            GlobalAction::PageDown => self.move_by(self.page()),
            GlobalAction::PageUp => self.move_by(-self.page()),
            GlobalAction::OlderStep => self.select_stage(1),
            GlobalAction::NewerStep => self.select_stage(-1),
            GlobalAction::Zoom => self.arrangement.zoom = !self.arrangement.zoom,
            GlobalAction::Follow => self.follow(),
            GlobalAction::FlipStrip => self.flip_strip(),
            GlobalAction::Filter => self.ask_filter(),
            GlobalAction::NextMatch => self.go_to_match(true),
            GlobalAction::PreviousMatch => self.go_to_match(false),
            GlobalAction::Copy => return self.copy(self.copied_text()),
            GlobalAction::CopyMore => return self.copy(self.copied_with_context()),
            GlobalAction::Theme => self.choose_theme(),
            GlobalAction::Mouse => return self.toggle_mouse(),
            GlobalAction::Page => return self.page_text(),
            GlobalAction::Export => self.choose_export(),
            GlobalAction::Count => self.surface.count = Some(0),
            GlobalAction::Repaint => self.stain(Dirty::Repaint),
        }
        Vec::new()
    }

    /// A motion done `times` times.
    pub(in crate::tui) fn repeat(&mut self, action: Action, times: usize) -> Vec<Effect> {
        let lines = times.min(isize::MAX as usize / 2) as isize;
        match action {
            Action::Global(GlobalAction::Down) => self.move_by(lines),
            Action::Global(GlobalAction::Up) => self.move_by(-lines),
            Action::Global(GlobalAction::OlderStep) => self.select_stage(lines),
            Action::Global(GlobalAction::NewerStep) => self.select_stage(-lines),
            _ => return (0..times.min(MOST_REPEATS)).flat_map(|_| self.act(action)).collect(),
        }
        Vec::new()
    }

    /// Gives the keys to `pane`, and a place on the screen if it has none.
    pub(in crate::tui) fn focus(&mut self, pane: Pane) {
        self.arrangement.focus = pane;
        match pane {
            Pane::Runs | Pane::Patch | Pane::Gate | Pane::Transcript | Pane::Config | Pane::Overview => {
                self.arrangement.main = pane;
            }
            Pane::Curves | Pane::Logs | Pane::Machine => self.arrangement.strip = pane,
            Pane::Steps | Pane::Rollouts => {}
        }
    }

    fn back(&mut self) {
        let focus = self.arrangement.focus;
        if focus == Pane::Curves && self.back_in_curves() {
            // Back to the grid.
        } else if self.search_in(focus).is_some() {
            self.search = None;
            (self.logs.found, self.transcript.found, self.patch.found) = (None, None, None);
        } else if self.filter_of(focus).is_some_and(|filter| !filter.is_empty()) {
            self.set_filter(focus, "");
        } else if focus == Pane::Patch && self.patch.line_mode.take().is_some() {
            // Out of the lines, back to the edits.
        } else if focus == Pane::Patch && std::mem::take(&mut self.patch.rationale) {
            // Back to the diff.
        } else if focus == Pane::Rollouts && self.rollouts.only.take().is_some() {
            self.rollouts.selected = None;
            self.focus(Pane::Patch);
        } else if focus == Pane::Gate && std::mem::take(&mut self.gate.table) {
            // Back to the summary.
        } else if self.arrangement.zoom {
            self.arrangement.zoom = false;
        } else {
            match focus {
                Pane::Transcript => {
                    self.transcript.compared = None;
                    self.arrangement.main = Pane::Gate;
                    self.focus(self.transcript.opened_from);
                }
                Pane::Steps => self.stage = None,
                Pane::Runs if self.is_attached() => {
                    self.arrangement.main = Pane::Gate;
                    self.focus(Pane::Steps);
                }
                Pane::Runs => {}
                _ => self.focus(Pane::Steps),
            }
        }
    }

    /// The text that narrows down what a pane lists.
    pub(in crate::tui) fn filter_of(&self, pane: Pane) -> Option<&str> {
        match pane {
            Pane::Runs => Some(&self.runs.filter),
            Pane::Rollouts => Some(self.rollouts.filter.text()),
            Pane::Curves => Some(&self.curves.filter),
            Pane::Logs => Some(&self.logs.filter),
            Pane::Config => Some(&self.config.filter),
            Pane::Steps | Pane::Transcript | Pane::Patch | Pane::Gate | Pane::Machine | Pane::Overview => {
                None
            }
        }
    }

    pub(in crate::tui) fn set_filter(&mut self, pane: Pane, text: &str) {
        match pane {
            Pane::Runs => {
                text.clone_into(&mut self.runs.filter);
                self.runs.refilter(self.now);
                self.runs.cursor = 0;
            }
            Pane::Rollouts => self.filter_rollouts(text),
            Pane::Curves => text.clone_into(&mut self.curves.filter),
            Pane::Logs => {
                text.clone_into(&mut self.logs.filter);
                self.logs.follow = true;
            }
            Pane::Config => {
                text.clone_into(&mut self.config.filter);
                self.config.cursor = 0;
            }
            Pane::Steps | Pane::Transcript | Pane::Patch | Pane::Gate | Pane::Machine | Pane::Overview => {}
        }
    }

    fn cycle(&mut self, by: isize) {
        let places = self.places();
        let order: Vec<Pane> = match places.class {
            Class::Standard | Class::Wide if !self.arrangement.zoom => {
                places.panes.iter().map(|(pane, _)| *pane).collect()
            }
            _ => Pane::NUMBERED.to_vec(),
        };
        let at = order.iter().position(|pane| *pane == self.arrangement.focus).unwrap_or(0);
        let next = (at as isize + by).rem_euclid(order.len() as isize) as usize;
        self.focus(order[next]);
    }

    fn sideways(&mut self, left: bool) {
        let on_left = self.arrangement.focus.is_list();
        match (left, on_left) {
            (true, false) => self.focus(Pane::Rollouts),
            (false, true) => self.focus(self.arrangement.main),
            _ => {}
        }
    }

    fn page(&self) -> isize {
        let height = self.places().of(self.arrangement.focus).map_or(10, |rect| rect.height);
        height.saturating_sub(4).max(1) as isize
    }

    pub(in crate::tui) fn move_by(&mut self, lines: isize) {
        match self.arrangement.focus {
            Pane::Runs => self.move_in_runs(lines),
            Pane::Steps => self.select_stage(lines),
            Pane::Rollouts => self.select_row(lines),
            Pane::Transcript => self.move_in_transcript(lines),
            Pane::Patch => self.move_in_patch(lines),
            Pane::Gate => self.move_in_gate(lines),
            Pane::Curves => self.move_in_curves(lines),
            Pane::Machine => self.machine.scroll.by(lines),
            Pane::Logs => self.move_in_logs(lines),
            Pane::Config => self.move_in_config(lines),
            Pane::Overview => self.overview.scroll.by(lines),
        }
    }

    fn follow(&mut self) {
        match self.arrangement.focus {
            Pane::Logs => self.follow_logs(),
            Pane::Transcript => self.transcript.follow = !self.transcript.follow,
            _ => {
                self.stage = None;
                self.rollouts.selected = None;
                self.say(Role::Dim, "following the newest step");
            }
        }
    }

    fn flip_strip(&mut self) {
        let was_focused = self.arrangement.focus == self.arrangement.strip;
        self.arrangement.strip = match self.arrangement.strip {
            Pane::Curves => Pane::Logs,
            _ => Pane::Curves,
        };
        if was_focused || self.places().class == Class::Compact {
            self.arrangement.focus = self.arrangement.strip;
        }
    }

    fn ask_filter(&mut self) {
        let pane = self.arrangement.focus;
        if pane.is_searched() {
            let text = self.search_in(pane).map(|search| search.pattern.text.clone()).unwrap_or_default();
            let title = format!("Search {}", pane.title().to_lowercase());
            let hint = "in any case, unless it has a capital letter · n and N go on";
            let then = Prompted::Search(pane);
            self.overlay = Some(Overlay::Prompt { title, hint, input: Input::of(&text), then });
            return;
        }
        let Some(text) = self.filter_of(pane).map(str::to_owned) else { return };
        let title = format!("Filter {}", pane.title().to_lowercase());
        let hint = match pane {
            Pane::Rollouts => "words · pass fail missing running · group:train · -word not · empty shows all",
            _ => "part of the text · empty shows all",
        };
        self.overlay =
            Some(Overlay::Prompt { title, hint, input: Input::of(&text), then: Prompted::Filter(pane) });
    }

    /// The search of a pane, if that is what was searched last.
    pub(in crate::tui) fn search_in(&self, pane: Pane) -> Option<&Search> {
        self.search.as_ref().filter(|search| search.pane == pane)
    }

    pub fn has_search(&self) -> bool {
        self.search_in(self.arrangement.focus).is_some()
    }

    pub(in crate::tui) fn start_search(&mut self, pane: Pane, text: &str) {
        self.search = Pattern::of(text).map(|pattern| Search { pane, pattern, found: None });
        (self.logs.found, self.transcript.found, self.patch.found) = (None, None, None);
        self.go_to_match(true);
    }

    fn go_to_match(&mut self, forward: bool) {
        let found = match self.search.as_ref().map(|search| search.pane) {
            Some(Pane::Logs) => self.search_logs(forward),
            Some(Pane::Transcript) => self.search_transcript(forward),
            Some(Pane::Patch) => self.search_patch(forward),
            _ => None,
        };
        if let Some(search) = &mut self.search {
            search.found = found;
        }
    }

    fn copy(&mut self, text: String) -> Vec<Effect> {
        if text.is_empty() {
            self.say(Role::Warn, "copy: nothing here to copy");
            return Vec::new();
        }
        self.say(Role::Dim, format!("copied {} characters (OSC 52)", text.chars().count()));
        vec![Effect::Copy(text)]
    }

    fn copied_with_context(&self) -> String {
        match self.arrangement.focus {
            Pane::Logs => self.copied_page_of_logs(),
            Pane::Rollouts | Pane::Transcript => self.copied_transcript(),
            Pane::Gate => self.copied_evidence(),
            _ => self.copied_text(),
        }
    }

    pub(in crate::tui) fn copied_text(&self) -> String {
        match self.arrangement.focus {
            Pane::Runs => self.copied_from_runs(),
            Pane::Rollouts | Pane::Transcript => self.copied_from_transcript(),
            Pane::Patch => self.copied_from_patch(),
            Pane::Gate | Pane::Steps => self.copied_from_gate(),
            Pane::Curves => self.copied_from_curves(),
            Pane::Machine => self.copied_from_machine(),
            Pane::Logs => self.copied_from_logs(),
            Pane::Config => self.copied_from_config(),
            Pane::Overview => self.copied_from_overview(),
        }
    }
}
