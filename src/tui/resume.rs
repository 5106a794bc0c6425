//! The resume picker: runs that can go on, where each stopped, and what its configuration would change.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::app::App;
use super::form::fuzzy;
use super::input::Input;
use super::msg::{Dirty, Effect};
use super::overlay::Overlay;
use super::services::Ask;
use super::theme::Role;
use crate::store::RunSummary;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResumePicker {
    pub input: Input,
    /// The chosen run; `None`: the first of the list.
    pub chosen: Option<PathBuf>,
    /// What a resume would change, by run.
    pub changes: HashMap<PathBuf, Result<Vec<String>, String>>,
    /// A resume is under way.
    pub starting: bool,
    pub fault: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeWord {
    Move(isize),
    /// The text that narrows the list down has changed.
    Narrow,
    Resume,
}

impl ResumePicker {
    pub fn paste(&mut self, text: &str) {
        self.input.insert(text);
        self.chosen = None;
    }

    pub fn key(&mut self, key: KeyEvent) -> Option<ResumeWord> {
        match key.code {
            KeyCode::Enter => Some(ResumeWord::Resume),
            KeyCode::Down | KeyCode::Tab => Some(ResumeWord::Move(1)),
            KeyCode::Up | KeyCode::BackTab => Some(ResumeWord::Move(-1)),
            KeyCode::PageDown => Some(ResumeWord::Move(10)),
            KeyCode::PageUp => Some(ResumeWord::Move(-10)),
            _ => self.input.edit(key).then_some(ResumeWord::Narrow),
        }
    }
}

impl App {
    pub(super) fn open_resume_picker(&mut self, run: Option<&Path>) -> Vec<Effect> {
        if let Some(run) = run
            && let Some(row) = self.runs.row_of(run)
            && !row.status.resumable()
        {
            let words = format!("{} is {}: nothing to resume", row.name, row.standing());
            self.say(Role::Warn, words);
            return Vec::new();
        }
        let none =
            self.runs.heard && !self.runs.more && !self.runs.rows.iter().any(|row| row.status.resumable());
        if none {
            self.say(
                Role::Warn,
                "nothing to resume: no run here is new, stopped, crashed, failed or out of budget",
            );
            return Vec::new();
        }
        // The attached run is the one that is most likely meant.
        let attached = self
            .attached
            .clone()
            .filter(|path| self.runs.row_of(path).is_some_and(|row| row.status.resumable()));
        let chosen = run.map(Path::to_owned).or(attached);
        self.overlay = Some(Overlay::Resume(ResumePicker { chosen, ..ResumePicker::default() }));
        self.ask_changes()
    }

    /// Runs that can go on and whose name fits what was typed.
    pub fn resumable<'a>(&'a self, picker: &ResumePicker) -> Vec<&'a Arc<RunSummary>> {
        let text = picker.input.text();
        let fits = |run: &&Arc<RunSummary>| run.status.resumable() && fuzzy(&text, &run.name).is_some();
        self.runs.rows.iter().filter(fits).collect()
    }

    /// Place of the chosen run in the list.
    pub fn resume_place(&self, picker: &ResumePicker, list: &[&Arc<RunSummary>]) -> usize {
        let chosen = picker.chosen.as_ref();
        chosen.and_then(|path| list.iter().position(|run| run.path == *path)).unwrap_or(0)
    }

    fn resume_choice(&self) -> Option<PathBuf> {
        let Some(Overlay::Resume(picker)) = &self.overlay else { return None };
        let list = self.resumable(picker);
        list.get(self.resume_place(picker, &list)).map(|run| run.path.clone())
    }

    /// Asks once for each run what a resume would change.
    fn ask_changes(&mut self) -> Vec<Effect> {
        let Some(run) = self.resume_choice() else { return Vec::new() };
        match &self.overlay {
            Some(Overlay::Resume(picker)) if !picker.changes.contains_key(&run) => {
                vec![Effect::Ask(Ask::Changes { run })]
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn told_changes(&mut self, run: PathBuf, result: Result<Vec<String>, String>) {
        self.stain(Dirty::Data);
        if let Some(Overlay::Resume(picker)) = &mut self.overlay {
            picker.changes.insert(run, result);
        }
    }

    pub(super) fn resume_word(&mut self, word: ResumeWord) -> Vec<Effect> {
        let chosen = self.resume_choice();
        match word {
            ResumeWord::Narrow => {
                if let Some(Overlay::Resume(picker)) = &mut self.overlay {
                    picker.chosen = None;
                }
            }
            ResumeWord::Move(by) => {
                let Some(Overlay::Resume(picker)) = &self.overlay else { return Vec::new() };
                let list = self.resumable(picker);
                let last = list.len().saturating_sub(1);
                let next = self.resume_place(picker, &list).saturating_add_signed(by).min(last);
                let next = list.get(next).map(|run| run.path.clone());
                if let Some(Overlay::Resume(picker)) = &mut self.overlay {
                    picker.chosen = next;
                }
            }
            ResumeWord::Resume => {
                let Some(Overlay::Resume(picker)) = &mut self.overlay else { return Vec::new() };
                let Some(run) = chosen.filter(|_| !picker.starting) else { return Vec::new() };
                if let Some(Err(why)) = picker.changes.get(&run) {
                    picker.fault = Some(why.clone());
                    return Vec::new();
                }
                (picker.starting, picker.fault) = (true, None);
                return vec![Effect::Ask(Ask::Resume { run })];
            }
        }
        self.ask_changes()
    }
}
