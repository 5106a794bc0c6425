//! The registry of named actions: one row each feeds the keymap, the help, the palette, the hint bar and tests.
//! It says what exists and when; `app` does it.

use super::app::App;

/// Where a key means something. `Global` holds everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Global,
    Steps,
    Rollouts,
    Transcript,
    Patch,
    Gate,
    Curves,
    Logs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Quit,
    Stop,
    Pause,
    Help,
    Palette,
    Back,
    NextPane,
    PreviousPane,
    GoSteps,
    GoRollouts,
    GoPatch,
    GoGate,
    GoCurves,
    GoLogs,
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
    Zoom,
    Follow,
    FlipStrip,
    Filter,
    Copy,
    Repaint,
    Suspend,
    Interrupt,
    OpenStep,
    OpenRollout,
    FailuresOnly,
    FoldPrompt,
    NextEdit,
    PreviousEdit,
    NextGroup,
    PreviousGroup,
    Accept,
    Reject,
    Amend,
    Undo,
    AcceptRest,
    RejectRest,
    Rationale,
    FoldContext,
    Submit,
    CursorLeft,
    CursorRight,
    CursorReset,
}

impl Action {
    /// Gives the run a command, which a read-only client may not.
    pub fn steers(self) -> bool {
        use Action::*;
        matches!(self, Stop | Pause | Accept | Reject | Amend | Undo | AcceptRest | RejectRest | Submit)
    }
}

/// One row of the registry.
pub struct Spec {
    pub action: Action,
    /// Stable name, `scope.verb`.
    pub id: &'static str,
    /// For the hint bar.
    pub label: &'static str,
    pub doc: &'static str,
    /// Key sequences; a space separates the presses of a chord.
    pub keys: &'static [&'static str],
    pub scope: Scope,
    /// The `planish ctl` verb that does the same from outside.
    pub ctl: Option<&'static str>,
    pub enabled: fn(&App) -> bool,
}

fn always(_: &App) -> bool {
    true
}

macro_rules! actions {
    ($($action:ident $id:literal $label:literal $keys:tt $scope:ident $ctl:expr, $enabled:expr, $doc:literal;)*) => {
        &[$(Spec {
            action: Action::$action, id: $id, label: $label, doc: $doc, keys: &$keys, scope: Scope::$scope,
            ctl: $ctl, enabled: $enabled,
        }),*]
    };
}

/// All actions, in the order of the help.
#[rustfmt::skip]
pub const ACTIONS: &[Spec] = actions! {
    NextEdit      "patch.next-edit"      "edit"      ["J"]              Patch None, App::has_edits, "next edit";
    PreviousEdit  "patch.previous-edit"  "edit back" ["K"]              Patch None, App::has_edits, "previous edit";
    NextGroup     "patch.next-change"    "change"    ["}"]              Patch None, App::has_edits, "next change group of the diff";
    PreviousGroup "patch.previous-change" "change back" ["{"]           Patch None, App::has_edits, "previous change group";
    Accept        "patch.accept"         "accept"    ["a"]              Patch Some("decide --accept"), App::can_decide, "accept this edit";
    Reject        "patch.reject"         "reject"    ["x"]              Patch Some("decide --reject"), App::can_decide, "reject this edit, with a reason for the optimiser";
    Amend         "patch.amend"          "amend"     ["e"]              Patch Some("decide --amend"), App::can_decide, "edit the text in $EDITOR, then accept it";
    Undo          "patch.undo"           "undo"      ["u"]              Patch Some("decide --undo"), App::can_undo, "take the last decision back";
    AcceptRest    "patch.accept-rest"    "accept all" ["A"]             Patch None, App::can_decide, "accept all undecided edits";
    RejectRest    "patch.reject-rest"    "reject all" ["X"]             Patch None, App::can_decide, "reject all undecided edits";
    Rationale     "patch.rationale"      "why"       ["r"]              Patch None, App::has_edits, "show why, and the items that motivated the edit";
    FoldContext   "patch.fold"           "context"   ["t"]              Patch None, App::has_diff, "show or fold unchanged lines";
    Submit        "patch.submit"         "submit"    ["enter"]          Patch Some("submit"), App::can_decide, "submit the decisions: the gate measures the result";
    OpenStep      "steps.open"           "open"      ["enter"]          Steps None, App::has_stage, "open the step: its patch, or its gate once decided";
    OpenRollout   "rollouts.open"        "transcript" ["enter"]         Rollouts None, App::has_rollouts, "open the transcript";
    FailuresOnly  "rollouts.failures"    "failures"  ["!"]              Rollouts None, App::has_rollouts, "failures only, or all";
    FoldPrompt    "transcript.fold"      "prompt"    ["t"]              Transcript None, always, "show or fold the prompt";
    CursorLeft    "curves.left"          "cursor"    ["h", "left"]      Curves None, App::has_steps, "value cursor to the left";
    CursorRight   "curves.right"         "cursor right" ["l", "right"]  Curves None, App::has_steps, "value cursor to the right";
    CursorReset   "curves.reset"         "last values"      ["0"]              Curves None, App::has_steps, "value cursor off: show last values";
    GoSteps       "pane.steps"           "steps"     ["2"]              Global None, always, "pane 2, steps";
    GoRollouts    "pane.rollouts"        "rollouts"  ["3"]              Global None, always, "pane 3, rollouts";
    GoPatch       "pane.patch"           "patch"     ["4"]              Global None, always, "pane 4, patch under review";
    GoGate        "pane.gate"            "gate"      ["5"]              Global None, always, "pane 5, gate";
    GoCurves      "pane.curves"          "curves"    ["6"]              Global None, always, "pane 6, curves";
    GoLogs        "pane.logs"            "logs"      ["8"]              Global None, always, "pane 8, logs";
    NextPane      "pane.next"            "next pane" ["tab"]            Global None, always, "next pane";
    PreviousPane  "pane.previous"        "previous pane" ["backtab"]    Global None, always, "previous pane";
    Down          "move.down"            "move"      ["j", "down"]      Global None, always, "down";
    Up            "move.up"              "up"        ["k", "up"]        Global None, always, "up";
    Left          "move.left"            "lists"     ["h", "left"]      Global None, always, "to the lists on the left";
    Right         "move.right"           "details"   ["l", "right"]     Global None, always, "to the details on the right";
    Top           "move.top"             "top"       ["g g", "home"]    Global None, always, "to the top";
    Bottom        "move.bottom"          "bottom"    ["G", "end"]       Global None, always, "to the bottom";
    HalfDown      "move.half-down"       "half down" ["ctrl-d"]         Global None, always, "half a page down";
    HalfUp        "move.half-up"         "half up"   ["ctrl-u"]         Global None, always, "half a page up";
    PageDown      "move.page-down"       "page down" ["ctrl-f", "pgdn"] Global None, always, "a page down";
    PageUp        "move.page-up"         "page up"   ["ctrl-b", "pgup"] Global None, always, "a page up";
    OlderStep     "step.older"           "step" ["["]             Global None, App::has_stage, "previous step";
    NewerStep     "step.newer"           "newer step" ["]"]             Global None, App::has_stage, "next step";
    Follow        "view.follow"          "follow"    ["f"]              Global None, always, "follow what happens now";
    Zoom          "view.zoom"            "zoom"      ["z", "+", "_"]    Global None, App::can_zoom, "give the pane the whole screen, or back";
    FlipStrip     "view.flip"            "curves/logs" ["@"]            Global None, always, "flip the bottom strip: curves or logs";
    Filter        "view.filter"          "filter"    ["/"]              Global None, App::can_filter, "filter rollouts or logs by text";
    Copy          "view.copy"            "copy"      ["y"]              Global None, always, "copy what is shown (OSC 52)";
    Back          "view.back"            "back"      ["esc"]            Global None, always, "back out one level";
    Pause         "run.pause"            "pause"     ["p"]              Global Some("pause"), App::can_steer, "pause at the next boundary, or resume";
    Stop          "run.stop"             "stop run"  ["Q"]              Global Some("cancel"), App::can_steer, "stop the run (asks first; it stays resumable)";
    Help          "app.help"             "help"      ["?"]              Global None, always, "this help";
    Palette       "app.palette"          "commands"  [":"]              Global None, always, "all commands by name";
    Repaint       "app.repaint"          "repaint"   ["ctrl-l"]         Global None, always, "repaint the screen";
    Suspend       "app.suspend"          "suspend"   ["ctrl-z"]         Global None, always, "suspend the client";
    Interrupt     "app.interrupt"        "leave"     ["ctrl-c"]         Global None, always, "leave a prompt, else the client";
    Quit          "app.quit"             "quit"      ["q"]              Global None, always, "leave the client; the run goes on";
};

/// The registry row of an action.
pub fn spec(action: Action) -> Option<&'static Spec> {
    ACTIONS.iter().find(|spec| spec.action == action)
}

impl Scope {
    /// Actions worth a hint here, most useful first.
    pub fn hints(self) -> &'static [Action] {
        use Action::*;
        match self {
            Scope::Global => &[Help, Quit],
            Scope::Steps => &[OpenStep, Down, OlderStep, Zoom, Pause],
            Scope::Rollouts => &[OpenRollout, Down, FailuresOnly, Filter, Follow],
            Scope::Transcript => &[FoldPrompt, Down, Copy, Back, Zoom],
            Scope::Patch => &[
                Accept,
                Reject,
                Amend,
                Submit,
                NextEdit,
                Undo,
                Rationale,
                NextGroup,
                AcceptRest,
                RejectRest,
                FoldContext,
                Down,
                OlderStep,
            ],
            Scope::Gate => &[Down, OlderStep, Zoom, Copy],
            Scope::Curves => &[CursorLeft, CursorReset, Zoom, FlipStrip],
            Scope::Logs => &[Filter, Follow, Down, Zoom, FlipStrip],
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Scope::Global => "Everywhere",
            Scope::Steps => "Steps",
            Scope::Rollouts => "Rollouts",
            Scope::Transcript => "Transcript",
            Scope::Patch => "Patch",
            Scope::Gate => "Gate",
            Scope::Curves => "Curves",
            Scope::Logs => "Logs",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_action_is_named_documented_bound_and_listed_once() {
        let ids: HashSet<_> = ACTIONS.iter().map(|spec| spec.id).collect();
        let actions: HashSet<_> = ACTIONS.iter().map(|spec| spec.action).collect();
        assert_eq!((ids.len(), actions.len()), (ACTIONS.len(), ACTIONS.len()));
        for spec in ACTIONS {
            assert!(!spec.doc.is_empty() && !spec.keys.is_empty() && spec.id.contains('.'), "{}", spec.id);
        }
    }

    #[test]
    fn hints_are_reachable_in_their_scope() {
        for scope in [
            Scope::Global,
            Scope::Steps,
            Scope::Rollouts,
            Scope::Transcript,
            Scope::Patch,
            Scope::Gate,
            Scope::Curves,
            Scope::Logs,
        ] {
            for action in scope.hints() {
                let spec = spec(*action).unwrap();
                assert!(spec.scope == scope || spec.scope == Scope::Global, "{}", spec.id);
            }
        }
    }
}
