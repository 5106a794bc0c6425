//! What lies over the panes and takes the keys: help, palette, a question, a line to fill in.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::action::{Action, Spec, actions};
use super::app::App;
use super::form::{FormWord, LaunchForm};
use super::input::Input;
use super::layout::Pane;
use super::resume::{ResumePicker, ResumeWord};
use crate::domain::{Ruling, StepRef};

#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    Help {
        top: usize,
    },
    Palette {
        input: Input,
        selected: usize,
    },
    /// What it asks is worked out when it is drawn: the run goes on under it.
    Confirm {
        then: Confirmed,
    },
    /// One of a few.
    Choice {
        title: String,
        choices: Vec<Choice>,
        selected: usize,
        then: Chosen,
    },
    Prompt {
        title: String,
        hint: &'static str,
        input: Input,
        then: Prompted,
    },
    /// A run is prepared.
    Launch(Box<LaunchForm>),
    /// A run is chosen to go on.
    Resume(ResumePicker),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Confirmed {
    Stop,
    /// A client that only watches begins to steer.
    Steer,
    /// Another run is attached, and drafted settings are lost.
    Leave {
        run: PathBuf,
    },
    Submit {
        at: StepRef,
    },
}

/// One line of an [`Overlay::Choice`].
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub label: String,
    pub doc: String,
}

/// What the number of the chosen line is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Chosen {
    /// One of [`Ruling::ALL`].
    Ruling { at: StepRef },
    /// The new value of a setting: one of the words.
    Setting { key: &'static str, words: &'static [&'static str] },
}

/// What a confirmation asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub title: String,
    pub details: Vec<String>,
    /// The word for yes: what it does.
    pub verb: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Prompted {
    /// Reason for rejecting these edits.
    Reject {
        at: StepRef,
        edits: Vec<usize>,
        expect_rev: u64,
    },
    /// Words to the optimiser about an edit, or about the step.
    Comment {
        at: StepRef,
        edit: Option<usize>,
    },
    Filter(Pane),
    /// The new value of a setting.
    Setting {
        key: &'static str,
    },
    /// Why the drafted settings change.
    Retune,
    Search(Pane),
    /// Why the gate is overruled.
    Ruling {
        at: StepRef,
        ruling: Ruling,
    },
}

/// What a key did to an overlay.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Stay,
    Close,
    Confirmed(Confirmed),
    Prompted(Prompted, String),
    Chosen(Chosen, usize),
    Act(Action),
    Launch(FormWord),
    Resume(ResumeWord),
}

impl Outcome {
    /// The overlay stays where it is.
    fn stays(&self) -> bool {
        match self {
            Outcome::Stay | Outcome::Launch(FormWord::Check | FormWord::Start) | Outcome::Resume(_) => true,
            Outcome::Launch(FormWord::Leave)
            | Outcome::Close
            | Outcome::Confirmed(_)
            | Outcome::Prompted(..)
            | Outcome::Chosen(..)
            | Outcome::Act(_) => false,
        }
    }
}

impl Overlay {
    /// Something is chosen from the runs under the root.
    pub fn lists_runs(&self) -> bool {
        matches!(self, Overlay::Resume(_))
    }

    pub fn paste(&mut self, text: &str) {
        match self {
            Overlay::Prompt { input, .. } => input.insert(text),
            Overlay::Palette { input, selected } => {
                input.insert(text);
                *selected = 0;
            }
            Overlay::Launch(form) => form.paste(text),
            Overlay::Resume(picker) => picker.paste(text),
            Overlay::Help { .. } | Overlay::Confirm { .. } | Overlay::Choice { .. } => {}
        }
    }

    pub fn key(&mut self, key: KeyEvent, app_enabled: &dyn Fn(&Spec) -> bool) -> Outcome {
        if let Overlay::Launch(form) = self {
            return form.key(key).map_or(Outcome::Stay, Outcome::Launch);
        }
        if key.code == KeyCode::Esc {
            return Outcome::Close;
        }
        match self {
            Overlay::Launch(_) => {}
            Overlay::Resume(picker) => return picker.key(key).map_or(Outcome::Stay, Outcome::Resume),
            Overlay::Help { top } => match key.code {
                KeyCode::Char('q' | '?') | KeyCode::Enter => return Outcome::Close,
                KeyCode::Char('j' | ' ') | KeyCode::Down => *top += 1,
                KeyCode::Char('k') | KeyCode::Up => *top = top.saturating_sub(1),
                KeyCode::PageDown => *top += 10,
                KeyCode::PageUp => *top = top.saturating_sub(10),
                _ => {}
            },
            Overlay::Palette { input, selected } => match key.code {
                KeyCode::Enter => {
                    let found = palette_matches(&input.text());
                    let chosen = found.get(*selected).filter(|spec| app_enabled(spec));
                    return chosen.map_or(Outcome::Stay, |spec| Outcome::Act(spec.action));
                }
                KeyCode::Down | KeyCode::Tab => {
                    let last = palette_matches(&input.text()).len().saturating_sub(1);
                    *selected = (*selected + 1).min(last);
                }
                KeyCode::Up | KeyCode::BackTab => *selected = selected.saturating_sub(1),
                _ => {
                    if input.edit(key) {
                        *selected = 0;
                    }
                }
            },
            Overlay::Confirm { then } => match key.code {
                KeyCode::Char('y') | KeyCode::Enter => return Outcome::Confirmed(then.clone()),
                KeyCode::Char('n' | 'q') => return Outcome::Close,
                _ => {}
            },
            Overlay::Choice { choices, selected, then, .. } => {
                let last = choices.len().saturating_sub(1);
                match key.code {
                    KeyCode::Enter => return Outcome::Chosen(then.clone(), *selected),
                    KeyCode::Char('j') | KeyCode::Down => *selected = (*selected + 1).min(last),
                    KeyCode::Char('k') | KeyCode::Up => *selected = selected.saturating_sub(1),
                    KeyCode::Char('q') => return Outcome::Close,
                    KeyCode::Char(digit @ '1'..='9') => {
                        let index = digit as usize - '1' as usize;
                        if index <= last {
                            return Outcome::Chosen(then.clone(), index);
                        }
                    }
                    _ => {}
                }
            }
            Overlay::Prompt { input, then, .. } => match key.code {
                KeyCode::Enter => return Outcome::Prompted(then.clone(), input.text()),
                _ => {
                    input.edit(key);
                }
            },
        }
        Outcome::Stay
    }
}

/// Registry rows whose name or description holds every word of `query`.
pub fn palette_matches(query: &str) -> Vec<&'static Spec> {
    let query = query.to_lowercase();
    actions()
        .filter(|spec| query.split_whitespace().all(|word| spec.id.contains(word) || spec.doc.contains(word)))
        .collect()
}

impl App {
    pub(super) fn overlay_key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let mut overlay = self.overlay.take()?;
        let outcome = overlay.key(key, &|spec| (spec.enabled)(self));
        if let Overlay::Help { top } = &mut overlay {
            *top = (*top).min(self.help_end());
        }
        match overlay {
            overlay if outcome.stays() => self.overlay = Some(overlay),
            Overlay::Launch(form) => self.launch = Some(form),
            _ => {}
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palette_finds_by_words_of_name_and_description() {
        let found = palette_matches("reject reason");
        assert_eq!(found.iter().map(|spec| spec.id).collect::<Vec<_>>(), ["patch.reject"]);
        assert_eq!(palette_matches("").len(), actions().count());
    }
}
