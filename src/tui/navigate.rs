//! Keys to actions, and the actions that only move about: focus, selection, scrolling.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Scope, Spec, spec};
use super::app::App;
use super::controls::global::GlobalAction;
use super::keymap::{Match, Press};
use super::msg::Effect;
use super::overlay::{Chosen, Outcome, Prompted};
use super::theme::Role;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        // These work inside every overlay and input too.
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.act_global(GlobalAction::Interrupt),
                KeyCode::Char('l') => return self.act_global(GlobalAction::Repaint),
                KeyCode::Char('z') => return self.act_global(GlobalAction::Suspend),
                _ => {}
            }
        }
        if let Some(outcome) = self.overlay_key(key) {
            return self.overlay_outcome(outcome);
        }
        let Some(press) = Press::of(key) else { return Vec::new() };
        self.presses.push(press);
        match self.keymap.lookup(self.arrangement.focus.scope(), &self.presses) {
            Match::Prefix => Vec::new(),
            Match::None => {
                self.presses.clear();
                Vec::new()
            }
            Match::Action(action) => {
                self.presses.clear();
                match spec(action) {
                    Some(spec) if !(spec.enabled)(self) => {
                        self.refuse(spec);
                        Vec::new()
                    }
                    _ => self.act(action),
                }
            }
        }
    }

    fn refuse(&mut self, spec: &Spec) {
        let steers = spec.steers;
        if steers && self.identity.read_only {
            let what = if spec.scope == Scope::Patch { "decide" } else { "steer" };
            return self.say(Role::Warn, format!("read-only: attach without --read-only to {what}"));
        }
        let why = if steers && self.ended() { "the run has ended" } else { "nothing here to do that to" };
        self.say(Role::Warn, format!("{}: {why}", spec.label));
    }

    fn overlay_outcome(&mut self, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Stay | Outcome::Close => Vec::new(),
            Outcome::Confirmed(what) => self.confirmed(what),
            Outcome::Act(action) => self.act(action),
            Outcome::Prompted(Prompted::Reject { at, edits, expect_rev }, reason) => {
                self.reject(at, &edits, &reason, expect_rev)
            }
            Outcome::Chosen(Chosen::Ruling { at }, index) => {
                self.ask_why(at, index);
                Vec::new()
            }
            Outcome::Prompted(Prompted::Ruling { at, ruling }, reason) => self.overrule(at, ruling, &reason),
            Outcome::Prompted(Prompted::Filter(pane), text) => {
                self.set_filter(pane, text);
                Vec::new()
            }
        }
    }

    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Global(action) => self.act_global(action),
            Action::Runs(action) => self.act_runs(action),
            Action::Steps(action) => self.act_steps(action),
            Action::Rollouts(action) => self.act_rollouts(action),
            Action::Transcript(action) => self.act_transcript(action),
            Action::Patch(action) => self.act_patch(action),
            Action::Gate(action) => self.act_gate(action),
            Action::Curves(action) => self.act_curves(action),
            Action::Machine(action) => self.act_machine(action),
            Action::Logs(action) => self.act_logs(action),
            Action::Config(action) => self.act_config(action),
            Action::Overview(action) => self.act_overview(action),
        }
    }

    pub fn run_name(&self) -> &str {
        self.state.info.as_ref().map_or(self.run.as_str(), |info| info.name.as_str())
    }
}
