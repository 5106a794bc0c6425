//! Why an action cannot be done now, and what would help. Judges by what the screen shows; does nothing.

use super::action::{Action, Spec};
use super::app::App;
use super::controls::config::ConfigAction;
use super::controls::gate::GateAction;
use super::controls::global::GlobalAction;
use super::controls::patch::PatchAction;
use super::controls::rollouts::RolloutsAction;
use crate::event::{EndStatus, RunStatus};

impl App {
    /// Why nobody can steer this run, however they are attached.
    pub(super) fn unsteerable(&self) -> Option<&'static str> {
        let imported = || matches!(self.state.status, RunStatus::Ended { status: EndStatus::Imported, .. });
        if !self.is_attached() {
            Some("no run is attached")
        } else if self.recording {
            Some("a replay cannot be steered")
        } else if imported() {
            Some("an imported run cannot be steered")
        } else {
            None
        }
    }

    /// Why this client cannot steer the run now; `None`: it can.
    pub(super) fn why_not_steer(&self) -> Option<String> {
        if let Some(why) = self.unsteerable() {
            Some(why.to_owned())
        } else if self.ended() {
            Some("the run has ended".to_owned())
        } else if self.identity.read_only {
            Some(format!("read-only, {} steers", self.press_for(Action::Global(GlobalAction::Steer))))
        } else {
            None
        }
    }

    /// Why an action cannot be done now; `None`: it can.
    pub(super) fn why_not(&self, spec: &Spec) -> Option<String> {
        if (spec.enabled)(self) {
            return None;
        }
        let steering = if spec.action == Action::Global(GlobalAction::Steer) {
            self.unsteerable().map(str::to_owned)
        } else {
            self.why_not_steer().filter(|_| spec.steers)
        };
        Some(steering.unwrap_or_else(|| self.needed_for(spec)))
    }

    /// What an action would need.
    fn needed_for(&self, spec: &Spec) -> String {
        match spec.action {
            Action::Gate(GateAction::Override) => return self.why_not_overruled(),
            Action::Patch(PatchAction::Undo) => "no decision to take back",
            Action::Patch(PatchAction::Redo) => "no decision was taken back",
            Action::Patch(_) if spec.steers => return self.why_undecidable(),
            Action::Patch(_) => "no edit is shown",
            Action::Gate(_) => "no item is measured yet",
            Action::Rollouts(RolloutsAction::Cancel | RolloutsAction::Requeue) => {
                "no call under way is selected"
            }
            Action::Rollouts(RolloutsAction::Mark) => "no item with a result is selected",
            Action::Rollouts(RolloutsAction::AcceptEdit) => "these are not the rollouts behind an open edit",
            Action::Rollouts(_) => "no item is listed",
            Action::Transcript(_) if self.transcript.compared.is_some() => "not where two are compared",
            Action::Transcript(_) => "no item selected",
            Action::Runs(_) => "no run is listed",
            Action::Curves(_) => "nothing is measured yet",
            Action::Config(ConfigAction::Apply | ConfigAction::TakeBack) => "no setting is drafted",
            Action::Config(_) => "the settings are not known",
            Action::Steps(_) | Action::Global(GlobalAction::OlderStep | GlobalAction::NewerStep) => {
                "no step has begun"
            }
            Action::Global(GlobalAction::Zoom) => "the pane has all of this small screen",
            Action::Global(GlobalAction::NextMatch | GlobalAction::PreviousMatch) => {
                "nothing was searched here"
            }
            Action::Global(GlobalAction::Filter) => "this pane has nothing to filter or search",
            Action::Global(_) | Action::Machine(_) | Action::Logs(_) | Action::Overview(_) => {
                "nothing for it here"
            }
        }
        .to_owned()
    }

    fn why_undecidable(&self) -> String {
        match self.state.open_review() {
            Some((at, _)) if self.shown_step().is_none_or(|shown| shown.at != at) => {
                format!("the open review is of step {} (f goes there)", at.step)
            }
            Some(_) => "this review takes no decisions".to_owned(),
            None => "no review is open".to_owned(),
        }
    }
}
