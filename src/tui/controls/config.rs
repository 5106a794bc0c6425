//! Controls of pane 9: the settings of the run, and a draft of changes to them. Owns what is folded, found and drafted;
//! whether a draft is allowed is found out by whoever answers [`Ask::Retune`].

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::config::{Effective, Key, Kind, keys};
use crate::domain::Retuned;
use crate::event::Command;
use crate::tui::action::{Action, Spec, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::input::Input;
use crate::tui::msg::{Dirty, Effect};
use crate::tui::overlay::{Choice, Chosen, Overlay, Prompted};
use crate::tui::services::Ask;
use crate::tui::theme::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigAction {
    Edit,
    Fold,
    Diff,
    Launch,
    TakeBack,
    Apply,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Config ConfigAction:
    Edit          "config.edit"          "edit"      ["enter"]          None, false, App::has_settings, "change the selected setting in the draft; fold a section";
    Fold          "config.fold"          "fold"      ["space"]          None, false, App::has_settings, "fold or unfold the section";
    Diff          "config.diff"          "diff"      ["d"]              None, false, App::has_settings, "only what differs from the launch, or all";
    Launch        "config.launch-value"  "launch value" ["D"]           None, false, App::has_settings, "draft the value that the run began with";
    TakeBack      "config.take-back"     "take back" ["x"]              None, false, App::has_draft, "take the selected change out of the draft";
    Apply         "config.apply"         "apply"     ["ctrl-s"]         Some("set"), true, App::can_retune, "check the draft, ask why, and apply it to the run";
};

pub const HINTS: &[Action] = &[
    Action::Config(ConfigAction::Apply),
    Action::Config(ConfigAction::Edit),
    Action::Config(ConfigAction::TakeBack),
    Action::Config(ConfigAction::Diff),
    Action::Config(ConfigAction::Fold),
    Action::Config(ConfigAction::Launch),
    Action::Global(GlobalAction::Filter),
];

/// What waits for the host's word on a draft.
pub const RETUNE: &str = "settings";

#[derive(Clone, Debug, Default)]
pub struct ConfigView {
    /// Place among the visible lines.
    pub cursor: usize,
    pub folded: BTreeSet<String>,
    pub filter: String,
    pub diff_only: bool,
    /// New values by key: JSON, or the text that was typed.
    pub draft: BTreeMap<String, Value>,
    /// Complaints about the draft by key; "" for those that name no drafted key.
    pub faults: BTreeMap<String, String>,
    /// What the draft was when it was sent.
    sent: BTreeMap<String, Value>,
}

/// One line of the pane.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigLine {
    Section { name: String, settings: usize, changed: usize },
    Setting(Box<Setting>),
}

/// A setting as it is, was, and is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    pub path: String,
    /// `None`: a setting that this version does not know (an import).
    pub key: Option<Known>,
    pub value: Value,
    pub launch: Value,
    /// Takes effect at the next boundary.
    pub waiting: Option<Value>,
    pub drafted: Option<Value>,
    pub origin: Option<String>,
}

/// The registry's row of a setting; two are the same when their paths are.
#[derive(Clone, Copy, Debug)]
pub struct Known(pub &'static Key);

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Setting {
    pub fn changed(&self) -> bool {
        self.value != self.launch || self.waiting.is_some() || self.drafted.is_some()
    }
}

fn section_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(section, _)| section)
}

/// A value as people read it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl App {
    /// All settings of the run, in the order of the reference.
    pub fn settings(&self) -> Vec<Setting> {
        if !self.state.config.is_object() {
            return Vec::new();
        }
        let effective = self.state.effective_config();
        let waiting = self.state.waiting_settings();
        let origins = self.state.info.as_ref().map(|info| &info.origins);
        let setting = |path: &str, key: Option<Known>, pointer: &str| Setting {
            value: effective.pointer(pointer).cloned().unwrap_or_default(),
            launch: self.state.config.pointer(pointer).cloned().unwrap_or_default(),
            waiting: waiting.iter().find(|one| one.key == path).map(|one| one.new.clone()),
            drafted: self.config.draft.get(path).cloned(),
            origin: origins.and_then(|origins| origins.get(path)).cloned(),
            path: path.to_owned(),
            key,
        };
        if self.state.config.get("train").is_none_or(|section| !section.is_object()) {
            // An import has the flat configuration of the program that made it.
            let flat = self.state.config.as_object().into_iter().flatten();
            return flat.map(|(name, _)| setting(name, None, &format!("/{}", escaped(name)))).collect();
        }
        keys()
            .map(|key| setting(key.path, Some(Known(key)), &format!("/{}", key.path.replace('.', "/"))))
            .collect()
    }

    /// The lines of the pane: sections and what is visible of them.
    pub fn config_lines(&self) -> Vec<ConfigLine> {
        let view = &self.config;
        let filter = view.filter.to_lowercase();
        let fits = |one: &Setting| {
            (!view.diff_only || one.changed())
                && (filter.is_empty()
                    || one.path.to_lowercase().contains(&filter)
                    || shown(&one.value).to_lowercase().contains(&filter)
                    || one.key.is_some_and(|key| key.0.doc.to_lowercase().contains(&filter)))
        };
        let mut lines: Vec<ConfigLine> = Vec::new();
        let mut head = None;
        for one in self.settings().into_iter().filter(fits) {
            let section = section_of(&one.path).to_owned();
            let is_head =
                |at: &usize| matches!(&lines[*at], ConfigLine::Section { name, .. } if *name == section);
            let at = head.filter(is_head).unwrap_or_else(|| {
                lines.push(ConfigLine::Section { name: section.clone(), settings: 0, changed: 0 });
                lines.len() - 1
            });
            head = Some(at);
            if let ConfigLine::Section { settings, changed, .. } = &mut lines[at] {
                *settings += 1;
                *changed += usize::from(one.changed());
            }
            if !view.folded.contains(&section) || !filter.is_empty() {
                lines.push(ConfigLine::Setting(Box::new(one)));
            }
        }
        lines
    }

    fn config_line(&self) -> Option<ConfigLine> {
        let mut lines = self.config_lines();
        let last = lines.len().checked_sub(1)?;
        Some(lines.swap_remove(self.config.cursor.min(last)))
    }

    pub fn has_settings(&self) -> bool {
        self.state.config.is_object()
    }

    pub fn has_draft(&self) -> bool {
        !self.config.draft.is_empty()
    }

    pub fn can_retune(&self) -> bool {
        self.can_steer() && self.has_draft()
    }

    pub(in crate::tui) fn act_config(&mut self, action: ConfigAction) -> Vec<Effect> {
        match action {
            ConfigAction::Diff => {
                self.config.diff_only = !self.config.diff_only;
                self.config.cursor = 0;
            }
            ConfigAction::Apply => self.apply_draft(),
            ConfigAction::Edit => match self.config_line() {
                Some(ConfigLine::Section { name, .. }) => self.fold(name),
                Some(ConfigLine::Setting(setting)) => self.edit_setting(&setting),
                None => {}
            },
            ConfigAction::Fold => match self.config_line() {
                Some(ConfigLine::Section { name, .. }) => self.fold(name),
                Some(ConfigLine::Setting(setting)) => self.fold(section_of(&setting.path).to_owned()),
                None => {}
            },
            ConfigAction::Launch => {
                let Some(ConfigLine::Setting(setting)) = self.config_line() else { return Vec::new() };
                if setting.value == setting.launch {
                    self.say(Role::Dim, format!("{}: is as it was at the launch", setting.path));
                } else if self.may_change(&setting) {
                    return self.draft_setting(&setting.path, setting.launch);
                }
            }
            ConfigAction::TakeBack => {
                let Some(ConfigLine::Setting(setting)) = self.config_line() else { return Vec::new() };
                if self.config.draft.remove(&setting.path).is_some() {
                    return self.check_draft();
                }
            }
        }
        Vec::new()
    }

    fn fold(&mut self, section: String) {
        if !self.config.folded.remove(&section) {
            self.config.folded.insert(section.clone());
        }
        let head = |line: &ConfigLine| matches!(line, ConfigLine::Section { name, .. } if *name == section);
        self.config.cursor = self.config_lines().iter().position(head).unwrap_or(0);
    }

    /// Says why not.
    fn may_change(&mut self, setting: &Setting) -> bool {
        let path = &setting.path;
        let new_run = self.press_for(Action::Global(GlobalAction::NewRun));
        let why = if self.ended() && self.unsteerable().is_none() {
            format!("{path}: the run has ended; a new run ({new_run}) can have another value")
        } else if let Some(why) = self.why_not_steer() {
            format!("{path}: {why}")
        } else {
            match setting.key.map(|key| key.0.effective) {
                Some(Effective::Live | Effective::NextStep) => return true,
                Some(Effective::Restart) => {
                    format!(
                        "{path}: changes only with a restart: planish resume {} -o {path}=…",
                        self.run_name()
                    )
                }
                Some(Effective::NewRun) => {
                    format!(
                        "{path}: recorded results depend on it; start a new run ({new_run}) with another value"
                    )
                }
                None => format!("{path}: this version does not know that setting"),
            }
        };
        self.say(Role::Warn, why);
        false
    }

    fn edit_setting(&mut self, setting: &Setting) {
        if !self.may_change(setting) {
            return;
        }
        let Some(Known(key)) = setting.key else { return };
        let now = setting.drafted.as_ref().unwrap_or(&setting.value);
        let words: &[&str] = match key.kind {
            Kind::Flag => &["true", "false"],
            Kind::Choice(words) => words,
            Kind::Count { .. }
            | Kind::Number { .. }
            | Kind::Text
            | Kind::Path(_)
            | Kind::TextList
            | Kind::Table
            | Kind::Folders => {
                let text = if now.is_null() { String::new() } else { shown(now) };
                self.overlay = Some(Overlay::Prompt {
                    title: format!("{} ({} {})", key.path, key.kind.name(), key.kind.limits()),
                    hint: "as after `-o KEY=` · enter drafts it",
                    input: Input::of(text.trim_matches('"')),
                    then: Prompted::Setting { key: key.path },
                });
                return;
            }
        };
        let choices = words.iter().map(|word| Choice {
            label: (*word).to_owned(),
            doc: if shown(&setting.value) == **word { "now".to_owned() } else { String::new() },
        });
        self.overlay = Some(Overlay::Choice {
            title: key.path.to_owned(),
            choices: choices.collect(),
            selected: words.iter().position(|word| shown(now) == **word).unwrap_or(0),
            then: Chosen::Setting { key: key.path, words },
        });
    }

    /// Drafts a value, or takes a change back that would change nothing.
    pub(in crate::tui) fn draft_setting(&mut self, path: &str, value: Value) -> Vec<Effect> {
        let now = self.settings().into_iter().find(|one| one.path == path);
        let same = now.is_some_and(|one| one.waiting.is_none() && shown(&one.value) == shown(&value));
        if same {
            self.config.draft.remove(path);
        } else {
            self.config.draft.insert(path.to_owned(), value);
        }
        self.check_draft()
    }

    /// Drafts a value and goes on to apply the draft.
    pub(in crate::tui) fn set_setting(&mut self, path: &str, value: Value) -> Vec<Effect> {
        let effects = self.draft_setting(path, value);
        if self.has_draft() {
            self.apply_draft();
        }
        effects
    }

    fn check_draft(&mut self) -> Vec<Effect> {
        self.config.faults.clear();
        // Without the settings of the run its host is the first to know.
        if self.config.draft.is_empty() || !self.has_settings() {
            return Vec::new();
        }
        vec![Effect::Ask(Ask::Retune {
            config: self.state.effective_config(),
            wanted: self.config.draft.clone(),
        })]
    }

    pub(in crate::tui) fn told_retune(
        &mut self,
        wanted: &BTreeMap<String, Value>,
        result: Result<Vec<Retuned>, Vec<(String, String)>>,
    ) {
        if *wanted != self.config.draft {
            return;
        }
        self.stain(Dirty::Data);
        self.config.faults.clear();
        for (key, complaint) in result.err().into_iter().flatten() {
            let key = if self.config.draft.contains_key(&key) { key } else { String::new() };
            self.config.faults.insert(key, complaint);
        }
    }

    /// Says what is wrong with the draft, if anything is known to be.
    fn draft_is_faulty(&mut self) -> bool {
        let Some((key, fault)) = self.config.faults.iter().next() else { return false };
        let words = if key.is_empty() { fault.clone() } else { format!("{key}: {fault}") };
        self.say(Role::Bad, words);
        true
    }

    fn apply_draft(&mut self) {
        if self.draft_is_faulty() {
            return;
        }
        let n = self.config.draft.len();
        let names: Vec<&str> = self.config.draft.keys().map(String::as_str).take(3).collect();
        let more = if n > names.len() { ", …" } else { "" };
        self.overlay = Some(Overlay::Prompt {
            title: format!("Change {}{more}: why?", names.join(", ")),
            hint: "kept in the journal · enter applies, also without a reason",
            input: Input::default(),
            then: Prompted::Retune,
        });
    }

    pub(in crate::tui) fn send_draft(&mut self, reason: &str) -> Vec<Effect> {
        if self.config.draft.is_empty() || self.draft_is_faulty() {
            return Vec::new();
        }
        let changes = self.config.draft.clone();
        self.config.sent.clone_from(&changes);
        let reason = reason.trim().to_owned();
        vec![self.send(Command::Retune { changes, reason }, None, RETUNE.to_owned())]
    }

    /// The draft holds: what was not changed since is done.
    pub(in crate::tui) fn retuned(&mut self) {
        let sent = std::mem::take(&mut self.config.sent);
        self.config.draft.retain(|key, value| sent.get(key) != Some(value));
    }

    pub(in crate::tui) fn move_in_config(&mut self, lines: isize) {
        let last = self.config_lines().len().saturating_sub(1);
        self.config.cursor = self.config.cursor.min(last).saturating_add_signed(lines).min(last);
    }

    pub(in crate::tui) fn copied_from_config(&self) -> String {
        match self.config_line() {
            Some(ConfigLine::Setting(setting)) => format!("{}={}", setting.path, shown(&setting.value)),
            Some(ConfigLine::Section { name, .. }) => name,
            None => String::new(),
        }
    }
}

/// A key as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
