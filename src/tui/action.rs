//! The registry of named actions: one row each feeds the keymap, the help, the palette, the hint bar, `planish keys` and
//! tests. It says what exists and when; the modules of `controls` own their rows and do them.

use super::app::App;
use super::controls::{
    config, curves, gate, global, logs, machine, overview, patch, rollouts, runs, steps, transcript,
};
use super::controls::{
    config::ConfigAction, curves::CurvesAction, gate::GateAction, global::GlobalAction, logs::LogsAction,
    machine::MachineAction, overview::OverviewAction, patch::PatchAction, rollouts::RolloutsAction,
    runs::RunsAction, steps::StepsAction, transcript::TranscriptAction,
};

/// Where a key means something. `Global` holds everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Global,
    Runs,
    Steps,
    Rollouts,
    Transcript,
    Patch,
    Gate,
    Curves,
    Machine,
    Logs,
    Config,
    Overview,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Global(GlobalAction),
    Runs(RunsAction),
    Steps(StepsAction),
    Rollouts(RolloutsAction),
    Transcript(TranscriptAction),
    Patch(PatchAction),
    Gate(GateAction),
    Curves(CurvesAction),
    Machine(MachineAction),
    Logs(LogsAction),
    Config(ConfigAction),
    Overview(OverviewAction),
}

/// One row of the registry.
pub struct Spec {
    pub action: Action,
    /// Stable name, `scope.verb`.
    pub id: &'static str,
    /// For the hint bar.
    pub label: &'static str,
    pub doc: &'static str,
    /// Default key sequences; a space separates the presses of a chord.
    pub keys: &'static [&'static str],
    pub scope: Scope,
    /// The `planish ctl` verb that does the same from outside; `None`: it changes this screen only.
    pub ctl: Option<&'static str>,
    /// Gives the run a command, which a read-only client may not.
    pub steers: bool,
    pub enabled: fn(&App) -> bool,
}

impl Spec {
    /// How `planish ctl` does the same, or why it does not.
    pub fn ctl_words(&self) -> String {
        match (self.ctl, self.steers) {
            (Some(verb), _) => format!("ctl {verb}"),
            (None, false) => "changes this screen only".to_owned(),
            (None, true) => {
                // One command of the protocol for each of several things.
                let verb = match self.action {
                    Action::Patch(PatchAction::AcceptRest) => "decide EDIT --accept",
                    Action::Patch(PatchAction::RejectRest) => "decide EDIT --reject --reason WHY",
                    _ => "show",
                };
                format!("several commands: ctl {verb}, for each")
            }
        }
    }
}

pub(super) fn always(_: &App) -> bool {
    true
}

/// Rows of one scope: `Variant "id" "label" [keys] ctl steers, enabled, "doc";`
macro_rules! rows {
    ($scope:ident $kind:ident: $($action:ident $id:literal $label:literal $keys:tt $ctl:expr, $steers:literal, $enabled:expr, $doc:literal;)*) => {
        &[$($crate::tui::action::Spec {
            action: $crate::tui::action::Action::$scope($kind::$action),
            id: $id, label: $label, doc: $doc, keys: &$keys,
            scope: $crate::tui::action::Scope::$scope,
            ctl: $ctl, steers: $steers, enabled: $enabled,
        }),*]
    };
}
pub(super) use rows;

/// All actions, in the order of the help.
pub fn actions() -> impl Iterator<Item = &'static Spec> {
    Scope::ALL.into_iter().flat_map(|scope| scope.rows())
}

/// The registry row of an action.
pub fn spec(action: Action) -> Option<&'static Spec> {
    actions().find(|spec| spec.action == action)
}

impl Scope {
    pub const ALL: [Scope; 12] = [
        Scope::Patch,
        Scope::Gate,
        Scope::Runs,
        Scope::Steps,
        Scope::Rollouts,
        Scope::Transcript,
        Scope::Curves,
        Scope::Machine,
        Scope::Logs,
        Scope::Config,
        Scope::Overview,
        Scope::Global,
    ];

    /// The actions of this scope.
    pub fn rows(self) -> &'static [Spec] {
        match self {
            Scope::Global => global::ACTIONS,
            Scope::Runs => runs::ACTIONS,
            Scope::Steps => steps::ACTIONS,
            Scope::Rollouts => rollouts::ACTIONS,
            Scope::Transcript => transcript::ACTIONS,
            Scope::Patch => patch::ACTIONS,
            Scope::Gate => gate::ACTIONS,
            Scope::Curves => curves::ACTIONS,
            Scope::Machine => machine::ACTIONS,
            Scope::Logs => logs::ACTIONS,
            Scope::Config => config::ACTIONS,
            Scope::Overview => overview::ACTIONS,
        }
    }

    /// Actions worth a hint here, most useful first.
    pub fn hints(self) -> &'static [Action] {
        match self {
            Scope::Global => global::HINTS,
            Scope::Runs => runs::HINTS,
            Scope::Steps => steps::HINTS,
            Scope::Rollouts => rollouts::HINTS,
            Scope::Transcript => transcript::HINTS,
            Scope::Patch => patch::HINTS,
            Scope::Gate => gate::HINTS,
            Scope::Curves => curves::HINTS,
            Scope::Machine => machine::HINTS,
            Scope::Logs => logs::HINTS,
            Scope::Config => config::HINTS,
            Scope::Overview => overview::HINTS,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Scope::Global => "Everywhere",
            Scope::Runs => "Runs",
            Scope::Steps => "Steps",
            Scope::Rollouts => "Rollouts",
            Scope::Transcript => "Transcript",
            Scope::Patch => "Patch",
            Scope::Gate => "Gate",
            Scope::Curves => "Curves",
            Scope::Machine => "GPU",
            Scope::Logs => "Logs",
            Scope::Config => "Config",
            Scope::Overview => "Overview",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_action_is_named_documented_bound_and_listed_once() {
        let ids: HashSet<_> = actions().map(|spec| spec.id).collect();
        let all: HashSet<_> = actions().map(|spec| spec.action).collect();
        assert_eq!((ids.len(), all.len()), (actions().count(), actions().count()));
        for spec in actions() {
            assert!(!spec.doc.is_empty() && spec.id.contains('.'), "{}", spec.id);
        }
    }

    #[test]
    fn every_action_works_from_outside_or_says_why_not() {
        for spec in actions() {
            let words = spec.ctl_words();
            assert!(spec.ctl.is_none() || spec.steers, "{}: only what changes the run has a verb", spec.id);
            assert!(!words.contains("ctl show"), "{} steers the run but names no verb", spec.id);
        }
    }

    #[test]
    fn hints_are_reachable_in_their_scope() {
        for scope in Scope::ALL {
            for action in scope.hints() {
                let spec = spec(*action).unwrap();
                assert!(spec.scope == scope || spec.scope == Scope::Global, "{}", spec.id);
            }
        }
    }
}
