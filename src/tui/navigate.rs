//! Keys to actions, and the actions that only move about: focus, selection, scrolling.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::action::{Action, Scope, spec};
use super::app::App;
use super::controls::global::GlobalAction;
use super::help::is_motion;
use super::keymap::{Match, Press};
use super::msg::Effect;
use super::overlay::{Chosen, Outcome, Prompted};
use super::settings::{ThemeChoice, theme_names};
use super::theme::Role;

/// A count is cut at this.
const MOST_COUNT: usize = 999_999;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        // These work inside every overlay and input too.
        if key.modifiers.contains(KeyModifiers::CONTROL)
            && let Some(press) = Press::of(key)
            && let Match::Action(Action::Global(action)) = self.keymap.lookup(Scope::Global, &[press])
            && matches!(action, GlobalAction::Interrupt | GlobalAction::Repaint | GlobalAction::Suspend)
        {
            return self.act_global(action);
        }
        let preview = self.previewed();
        if let Some(outcome) = self.overlay_key(key) {
            return match (self.previewed(), &outcome) {
                (Some(theme), _) if preview.as_ref() != Some(&theme) => vec![Effect::Theme(theme)],
                (None, Outcome::Close) if preview.is_some() => {
                    vec![Effect::Theme(self.surface.theme.clone())]
                }
                _ => self.overlay_outcome(outcome),
            };
        }
        let Some(press) = Press::of(key) else { return Vec::new() };
        if self.takes_into_count(&press) {
            return Vec::new();
        }
        self.surface.presses.push(press);
        match self.keymap.lookup(self.arrangement.focus.scope(), &self.surface.presses) {
            Match::Prefix => Vec::new(),
            Match::None => {
                self.surface.presses.clear();
                self.surface.count = None;
                Vec::new()
            }
            Match::Action(action) => {
                // Esc gives up a chord or a count before it means anything else.
                let begun = self.surface.presses.len() > 1 || self.surface.count.is_some();
                self.surface.presses.clear();
                let count = self.surface.count.take().filter(|count| *count > 0);
                if begun && key.code == KeyCode::Esc {
                    return Vec::new();
                }
                if let Some(spec) = spec(action)
                    && let Some(why) = self.why_not(spec)
                {
                    self.say(Role::Warn, format!("{}: {why}", spec.label));
                    return Vec::new();
                }
                match (spec(action), count) {
                    (_, Some(times)) if is_motion(action) => self.repeat(action, times),
                    (Some(spec), Some(_)) => {
                        self.say(Role::Warn, format!("{} takes no count", spec.label));
                        Vec::new()
                    }
                    _ => self.act(action),
                }
            }
        }
    }

    /// A digit after the key for counts; or one that means nothing else, so that unbinding the digits of panes makes
    /// them count at once.
    fn takes_into_count(&mut self, press: &Press) -> bool {
        let Some(digit) = press.digit().filter(|_| self.surface.presses.is_empty()) else { return false };
        let free = || {
            let scope = self.arrangement.focus.scope();
            self.keymap.lookup(scope, std::slice::from_ref(press)) == Match::None
        };
        let Some(so_far) = self.surface.count.or_else(|| (digit > 0 && free()).then_some(0)) else {
            return false;
        };
        self.surface.count = Some(so_far.saturating_mul(10).saturating_add(digit).min(MOST_COUNT));
        true
    }

    fn overlay_outcome(&mut self, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Stay | Outcome::Close => Vec::new(),
            Outcome::Confirmed(what) => self.confirmed(what),
            Outcome::Act(action) => {
                self.surface.remember(action);
                self.chosen_in_palette(action)
            }
            Outcome::Run(argued) => self.run_argued(argued),
            Outcome::Launch(word) => self.launch_word(word),
            Outcome::Resume(word) => self.resume_word(word),
            Outcome::Chosen(Chosen::Export, index) => self.export(index),
            Outcome::Chosen(Chosen::Theme, index) => match theme_names().nth(index) {
                Some((name, _)) => self.use_theme(ThemeChoice::Named(name.to_owned())),
                None => Vec::new(),
            },
            Outcome::Prompted(Prompted::Reject { at, edits, expect_rev }, reason) => {
                self.reject(at, &edits, &reason, expect_rev)
            }
            Outcome::Prompted(Prompted::Comment { at, edit }, text) => self.comment(at, edit, &text),
            Outcome::Chosen(Chosen::Ruling { at }, index) => {
                self.ask_why(at, index);
                Vec::new()
            }
            Outcome::Prompted(Prompted::Ruling { at, ruling }, reason) => self.overrule(at, ruling, &reason),
            Outcome::Chosen(Chosen::Setting { key, words }, index) => match words.get(index) {
                Some(word) => self.draft_setting(key, Value::String((*word).to_owned())),
                None => Vec::new(),
            },
            Outcome::Prompted(Prompted::Setting { key }, text) => {
                self.draft_setting(key, Value::String(text.trim().to_owned()))
            }
            Outcome::Prompted(Prompted::Retune, reason) => self.send_draft(&reason),
            Outcome::Prompted(Prompted::Filter(pane), text) => {
                self.set_filter(pane, &text);
                Vec::new()
            }
            Outcome::Prompted(Prompted::Search(pane), text) => {
                self.start_search(pane, &text);
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
