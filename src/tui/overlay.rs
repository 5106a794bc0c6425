//! What lies over the panes and takes the keys: help, palette, a question, a line to fill in.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::action::Action;
use super::app::App;
use super::departure::Departure;
use super::form::{FormWord, LaunchForm};
use super::input::Input;
use super::layout::Pane;
use super::palette::{Argued, Then, entries};
use super::resume::{ResumePicker, ResumeWord};
use crate::domain::{Ruling, StepRef};

#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    Help {
        top: usize,
        filter: Input,
        /// Keys go to the filter.
        typing: bool,
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
    /// Commands to the run are not answered.
    Unanswered {
        to: Departure,
    },
    /// The call under way at `path`, for `item`.
    CancelCall {
        path: String,
        item: String,
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
    /// A built-in theme.
    Theme,
    /// A subject and a format.
    Export,
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
    Run(Argued),
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
            | Outcome::Run(_)
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
            Overlay::Help { filter, typing: true, .. } => filter.insert(text),
            Overlay::Launch(form) => form.paste(text),
            Overlay::Resume(picker) => picker.paste(text),
            Overlay::Help { .. } | Overlay::Confirm { .. } | Overlay::Choice { .. } => {}
        }
    }

    /// Esc goes back one step inside the overlay.
    fn steps_back(&self) -> bool {
        matches!(self, Overlay::Help { filter, typing, .. } if *typing || !filter.text().is_empty())
    }

    pub fn key(&mut self, key: KeyEvent, app: &App) -> Outcome {
        if let Overlay::Launch(form) = self {
            return form.key(key).map_or(Outcome::Stay, Outcome::Launch);
        }
        if key.code == KeyCode::Esc && !self.steps_back() {
            return Outcome::Close;
        }
        match self {
            Overlay::Launch(_) => {}
            Overlay::Resume(picker) => return picker.key(key).map_or(Outcome::Stay, Outcome::Resume),
            Overlay::Help { top, filter, typing: typing @ true } => match key.code {
                KeyCode::Esc => (*filter, *typing) = (Input::default(), false),
                KeyCode::Enter => *typing = false,
                _ => {
                    filter.edit(key);
                    *top = 0;
                }
            },
            Overlay::Help { top, filter, typing } => match key.code {
                KeyCode::Esc => *filter = Input::default(),
                KeyCode::Char('/') => *typing = true,
                KeyCode::Char('q' | '?') | KeyCode::Enter => return Outcome::Close,
                KeyCode::Char('j' | ' ') | KeyCode::Down => *top += 1,
                KeyCode::Char('k') | KeyCode::Up => *top = top.saturating_sub(1),
                KeyCode::PageDown => *top += 10,
                KeyCode::PageUp => *top = top.saturating_sub(10),
                _ => {}
            },
            Overlay::Palette { input, selected } => match key.code {
                KeyCode::Enter => {
                    let found = entries(app, &input.text());
                    match found.into_iter().nth(*selected).map(|entry| entry.then) {
                        Some(Then::Act(action)) => return Outcome::Act(action),
                        Some(Then::Run(argued)) => return Outcome::Run(argued),
                        Some(Then::Fill(text)) => (*input, *selected) = (Input::of(&text), 0),
                        Some(Then::Refuse(_)) | None => {}
                    }
                }
                KeyCode::Down | KeyCode::Tab => {
                    let last = entries(app, &input.text()).len().saturating_sub(1);
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

impl App {
    pub(super) fn overlay_key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let mut overlay = self.overlay.take()?;
        let outcome = overlay.key(key, self);
        if let Overlay::Help { top, filter, .. } = &mut overlay {
            *top = (*top).min(self.help_end(&filter.text()));
        }
        match overlay {
            overlay if outcome.stays() => self.overlay = Some(overlay),
            Overlay::Launch(form) => self.launch = Some(form),
            _ => {}
        }
        Some(outcome)
    }
}
