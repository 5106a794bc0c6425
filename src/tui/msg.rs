//! What reaches the app, and what it asks the runtime to do. Plain data.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::export::Export;
use super::services::{Ask, Told};
use super::settings::{Settings, ThemeChoice};
use super::theme::Role;
pub use crate::client::ClientEvent;
use crate::domain::StepRef;
use crate::event::ClientLine;
use crate::text::Grammars;

#[derive(Clone, Debug)]
pub enum Msg {
    /// Wall clock, Unix milliseconds. Sent before the messages of each wake-up.
    Tick(u64),
    Key(KeyEvent),
    Paste(String),
    Resize(u16, u16),
    Client(ClientEvent),
    /// `Ok(None)`: the text was left unchanged.
    EditorClosed {
        purpose: EditPurpose,
        result: Result<Option<String>, String>,
    },
    /// The process was stopped and goes on.
    Continued,
    Mouse(MouseEvent),
    /// The terminal has the user's attention, or lost it.
    Focus(bool),
    /// How the screen is to look and behave from now on.
    Settings(Box<Settings>),
    /// What is wrong in a settings file; the old settings hold.
    SettingsBroken(String),
    /// A file the run was made from has changed on disk.
    FileChanged(PathBuf),
    /// What an effect came to.
    Said(Role, String),
    /// A task of this client ended by a panic; the rest goes on.
    Panicked(String),
    /// Syntax can be coloured from now on.
    Grammars(Arc<Grammars>),
    /// The answer to an [`Effect::Ask`].
    Told(Told),
    /// The lines that follow are those of another run.
    Switched {
        run: PathBuf,
    },
    /// The lines that follow come by a connection with another role.
    RoleTaken {
        read_only: bool,
    },
    /// Why an [`Effect::Open`] or [`Effect::Reconnect`] came to nothing.
    NotOpened(String),
}

/// What the text in the editor is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditPurpose {
    Amend { at: StepRef, edit: usize, expect_rev: u64 },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Always [`ClientLine::Command`].
    Send(ClientLine),
    OpenEditor {
        text: String,
        purpose: EditPurpose,
    },
    /// Copy by OSC 52.
    Copy(String),
    /// A decision waits: call the user.
    Bell,
    /// Show everything in this theme.
    Theme(ThemeChoice),
    /// Let the terminal report clicks, or not.
    Mouse(bool),
    /// Write what is shown to a file.
    Export(Export),
    /// Show a text in `$PAGER`.
    Page(String),
    /// Ask what lies outside the run.
    Ask(Ask),
    /// Leave this run for another one; [`Msg::Switched`] follows when that can be reached.
    Open {
        run: PathBuf,
    },
    /// Connect to the attached run anew, as steerer or as onlooker; [`Msg::RoleTaken`] follows.
    Reconnect {
        read_only: bool,
    },
    /// Stop this process until it is continued (ctrl-z).
    Suspend,
    /// Leave the client; the run goes on.
    Quit,
}

/// How much of a screen is out of date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dirty {
    #[default]
    Clean,
    /// News of the run: drawn at the data rate.
    Data,
    /// Answer to a key: drawn at the input rate.
    Input,
    /// Every cell is to be sent again.
    Repaint,
}
