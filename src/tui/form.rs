//! The launch form: a configuration, a name, overrides; checked while it is filled in, kept when it is left. Owns what
//! was typed; whether it can start is found out by whoever answers [`Ask::Check`].

use std::path::{Path, PathBuf};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::App;
use super::input::Input;
use super::msg::{Dirty, Effect};
use super::overlay::Overlay;
use super::services::{Ask, Checked, ConfigFile, Draft};
use super::theme::Role;
use crate::config::{Key, find_key, keys};

/// Most completions offered.
const OFFERED: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field {
    #[default]
    Config,
    Name,
    Set,
    Start,
}

impl Field {
    pub const ALL: [Field; 4] = [Field::Config, Field::Name, Field::Set, Field::Start];

    fn step(self, by: isize) -> Self {
        let at = Self::ALL.iter().position(|field| *field == self).unwrap_or(0);
        Self::ALL[(at as isize + by).rem_euclid(Self::ALL.len() as isize) as usize]
    }
}

/// What is known of the draft as it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Check {
    /// Nothing is chosen yet.
    #[default]
    Nothing,
    Asked,
    Good(Box<Checked>),
    Bad(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchForm {
    pub field: Field,
    /// What narrows the configurations down.
    pub search: Input,
    pub configs: Vec<ConfigFile>,
    /// Why there are none.
    pub configs_fault: Option<String>,
    /// Place among the matches.
    pub picked: usize,
    pub chosen: Option<ConfigFile>,
    pub name: Input,
    /// The override being typed.
    pub set: Input,
    /// Place among the completions.
    pub completion: usize,
    pub overrides: Vec<String>,
    pub check: Check,
    /// The draft that was asked about last, while its answer is awaited.
    asked: Option<Draft>,
    /// The draft that `check` tells of.
    known: Option<Draft>,
    pub starting: bool,
    /// Why it did not start.
    pub fault: Option<String>,
}

/// What a key asks of the form's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormWord {
    /// The draft has changed.
    Check,
    Start,
    Leave,
}

/// How well `text` holds the letters of `query` in order: less is better; `None`: it does not.
pub fn fuzzy(query: &str, text: &str) -> Option<usize> {
    let text = text.to_lowercase();
    let mut cost = 0;
    let mut from = 0;
    for c in query.to_lowercase().chars().filter(|c| !c.is_whitespace()) {
        let at = text[from..].find(c)?;
        cost += at;
        from += at + c.len_utf8();
    }
    // Whole words before scattered letters, short texts before long ones.
    let whole = text.contains(&query.to_lowercase());
    Some(cost * 4 + text.len() + if whole { 0 } else { 1_000 })
}

impl LaunchForm {
    pub fn matches(&self) -> Vec<&ConfigFile> {
        let query = self.search.text();
        let mut found: Vec<(usize, &ConfigFile)> =
            self.configs.iter().filter_map(|file| Some((fuzzy(&query, &file.shown)?, file))).collect();
        if !query.trim().is_empty() {
            found.sort_by_key(|(cost, _)| *cost);
        }
        found.into_iter().map(|(_, file)| file).collect()
    }

    /// Keys that the override being typed may mean, while it has no `=` yet.
    pub fn completions(&self) -> Vec<&'static Key> {
        let text = self.set.text();
        if text.trim().is_empty() || text.contains('=') {
            return Vec::new();
        }
        let mut found: Vec<(usize, &Key)> =
            keys().filter_map(|key| Some((fuzzy(text.trim(), key.path)?, key))).collect();
        found.sort_by_key(|(cost, _)| *cost);
        found.into_iter().take(OFFERED).map(|(_, key)| key).collect()
    }

    /// The key that the override being typed sets.
    pub fn typed_key(&self) -> Option<&'static Key> {
        let text = self.set.text();
        find_key(text.split_once('=')?.0.trim())
    }

    /// What would start now, the override being typed included.
    pub fn draft(&self) -> Option<Draft> {
        let mut overrides = self.overrides.clone();
        let typed = self.set.text();
        if typed.contains('=') {
            overrides.push(typed.trim().to_owned());
        }
        let config = self.chosen.as_ref()?.path.clone();
        Some(Draft { config, name: self.name.text().trim().to_owned(), overrides })
    }

    pub fn paste(&mut self, text: &str) {
        match self.field {
            Field::Config => self.search.insert(text),
            Field::Name => self.name.insert(text),
            Field::Set => self.set.insert(text),
            Field::Start => {}
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<FormWord> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Some(FormWord::Leave),
            KeyCode::Char('s') if control => return Some(FormWord::Start),
            KeyCode::Tab => self.field = self.field.step(1),
            KeyCode::BackTab => self.field = self.field.step(-1),
            _ => {
                return match self.field {
                    Field::Config => self.config_key(key),
                    Field::Name => self.name_key(key),
                    Field::Set => self.set_key(key),
                    Field::Start => self.start_key(key),
                };
            }
        }
        None
    }

    fn config_key(&mut self, key: KeyEvent) -> Option<FormWord> {
        let last = self.matches().len().saturating_sub(1);
        match key.code {
            KeyCode::Down => self.picked = (self.picked + 1).min(last),
            KeyCode::Up => self.picked = self.picked.saturating_sub(1),
            KeyCode::Enter => {
                let typed = self.search.text().trim().to_owned();
                // A path that is not on the list is taken as it is typed.
                let chosen = match self.matches().get(self.picked) {
                    Some(file) => (*file).clone(),
                    None if typed.is_empty() => return None,
                    None => ConfigFile { path: typed.clone().into(), shown: typed },
                };
                self.chosen = Some(chosen);
                self.field = Field::Name;
                return Some(FormWord::Check);
            }
            _ => {
                if self.search.edit(key) {
                    self.picked = 0;
                }
            }
        }
        None
    }

    fn name_key(&mut self, key: KeyEvent) -> Option<FormWord> {
        match key.code {
            KeyCode::Enter | KeyCode::Down => self.field = Field::Set,
            KeyCode::Up => self.field = Field::Config,
            _ => return self.name.edit(key).then_some(FormWord::Check),
        }
        None
    }

    fn set_key(&mut self, key: KeyEvent) -> Option<FormWord> {
        let offered = self.completions();
        match key.code {
            KeyCode::Down if offered.is_empty() => self.field = Field::Start,
            KeyCode::Up if offered.is_empty() => self.field = Field::Name,
            KeyCode::Down => self.completion = (self.completion + 1).min(offered.len() - 1),
            KeyCode::Up => self.completion = self.completion.saturating_sub(1),
            KeyCode::Enter => match offered.get(self.completion) {
                Some(key) => self.set = Input::of(&format!("{}=", key.path)),
                None if self.set.text().contains('=') => {
                    self.overrides.push(self.set.text().trim().to_owned());
                    self.set = Input::default();
                    return Some(FormWord::Check);
                }
                None if self.set.text().trim().is_empty() => self.field = Field::Start,
                None => {}
            },
            // Takes the last override back into the line.
            KeyCode::Backspace if self.set.text().is_empty() => {
                self.set = Input::of(&self.overrides.pop()?);
                return Some(FormWord::Check);
            }
            _ => {
                let edited = self.set.edit(key);
                self.completion = 0;
                return edited.then_some(FormWord::Check);
            }
        }
        None
    }

    fn start_key(&mut self, key: KeyEvent) -> Option<FormWord> {
        match key.code {
            KeyCode::Enter => return Some(FormWord::Start),
            KeyCode::Up => self.field = Field::Set,
            KeyCode::Down => self.field = Field::Config,
            _ => {}
        }
        None
    }

    /// The question to ask now: one at a time, always about the newest draft.
    fn question(&mut self) -> Vec<Effect> {
        let Some(draft) = self.draft() else {
            self.check = Check::Nothing;
            return Vec::new();
        };
        if self.asked.is_some() || self.known.as_ref() == Some(&draft) {
            return Vec::new();
        }
        self.known = None;
        self.check = Check::Asked;
        self.asked = Some(draft.clone());
        vec![Effect::Ask(Ask::Check(draft))]
    }
}

impl App {
    pub(super) fn open_launch_form(&mut self) -> Vec<Effect> {
        let mut form = self.launch.take().unwrap_or_default();
        // Time has passed since it was left.
        form.known = None;
        let mut effects = form.question();
        self.overlay = Some(Overlay::Launch(form));
        effects.push(Effect::Ask(Ask::Configs));
        effects
    }

    fn form(&mut self) -> Option<&mut LaunchForm> {
        match &mut self.overlay {
            Some(Overlay::Launch(form)) => Some(form),
            _ => self.launch.as_deref_mut(),
        }
    }

    pub(super) fn told_configs(&mut self, files: Result<Vec<ConfigFile>, String>) {
        self.stain(Dirty::Data);
        let Some(form) = self.form() else { return };
        match files {
            Ok(files) => (form.configs, form.configs_fault) = (files, None),
            Err(fault) => form.configs_fault = Some(fault),
        }
    }

    pub(super) fn told_checked(
        &mut self,
        draft: &Draft,
        result: Result<Box<Checked>, Vec<String>>,
    ) -> Vec<Effect> {
        self.stain(Dirty::Data);
        let Some(form) = self.form() else { return Vec::new() };
        if form.asked.take_if(|asked| asked == draft).is_none() {
            return Vec::new();
        }
        if form.draft().as_ref() != Some(draft) {
            return form.question();
        }
        form.known = Some(draft.clone());
        form.check = match result {
            Ok(checked) => Check::Good(checked),
            Err(complaints) => Check::Bad(complaints),
        };
        Vec::new()
    }

    pub(super) fn launch_word(&mut self, word: FormWord) -> Vec<Effect> {
        let Some(form) = self.form() else { return Vec::new() };
        match word {
            FormWord::Leave => Vec::new(),
            FormWord::Check => {
                form.fault = None;
                form.question()
            }
            FormWord::Start => {
                let Some(draft) = form.draft() else {
                    form.fault = Some("choose a configuration first".to_owned());
                    form.field = Field::Config;
                    return Vec::new();
                };
                if form.starting || matches!(form.check, Check::Bad(_)) {
                    return Vec::new();
                }
                (form.starting, form.fault) = (true, None);
                vec![Effect::Ask(Ask::Start(draft))]
            }
        }
    }

    /// A run was started or resumed: it is attached to if that is still waited for. What it was asked with stays where
    /// that failed.
    pub(super) fn told_started(&mut self, result: Result<PathBuf, String>) -> Vec<Effect> {
        self.stain(Dirty::Input);
        let waited_for = match &self.overlay {
            Some(Overlay::Launch(form)) => form.starting,
            Some(Overlay::Resume(picker)) => picker.starting,
            _ => false,
        };
        let told = match (result, &mut self.overlay) {
            // It goes on where this client saw it stop; what was typed stays.
            (Ok(run), overlay) if self.attached.as_ref() == Some(&run) => {
                if matches!(overlay, Some(Overlay::Resume(_))) {
                    self.overlay = None;
                }
                return vec![Effect::Reconnect { read_only: self.identity.read_only }];
            }
            (Ok(run), _) if waited_for => {
                self.overlay = None;
                return self.open_run(run);
            }
            (Ok(run), _) => {
                // Its form has served its turn.
                self.launch = self.launch.take().filter(|form| !form.starting);
                self.say_ready(&run, "started");
                return Vec::new();
            }
            (Err(fault), Some(Overlay::Launch(form))) => {
                (form.starting, form.fault) = (false, Some(fault));
                return Vec::new();
            }
            (Err(fault), Some(Overlay::Resume(picker))) => {
                (picker.starting, picker.fault) = (false, Some(fault));
                return Vec::new();
            }
            (Err(fault), _) => fault,
        };
        if let Some(form) = &mut self.launch {
            form.starting = false;
        }
        self.say(Role::Bad, told);
        Vec::new()
    }

    /// Whether a run that was asked for takes the screen now that it is there: not from under what somebody does
    /// meanwhile.
    pub fn admits(&mut self, run: &Path) -> bool {
        let free = self.overlay.is_none();
        if !free {
            self.say_ready(run, "can be opened");
        }
        free
    }

    fn say_ready(&mut self, run: &Path, what: &str) {
        let name = run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.say(Role::Good, format!("run {name} {what}; press 1 and enter to open it"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_order_are_found_and_whole_words_first() {
        assert!(fuzzy("bsz", "train.batch_size").is_some());
        assert_eq!(fuzzy("xyz", "train.batch_size"), None);
        let mut names = ["configs/searchqa.toml", "configs/demo.toml", "runs/deep-memo/config.toml"];
        names.sort_by_key(|name| fuzzy("demo", name).unwrap_or(usize::MAX));
        assert_eq!(names[0], "configs/demo.toml");
        assert_eq!(fuzzy("é", "Éa").map(|_| ()), Some(()));
    }
}
