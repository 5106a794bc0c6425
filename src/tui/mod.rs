//! The workbench on a terminal: a client of a host. `App` holds and updates the state of the screen, `draw` turns
//! it into cells, `run` connects both to the terminal and the host's lines. Never uses the engine.

mod action;
mod app;
mod clock;
mod controls;
mod editor;
mod frames;
mod header;
mod help;
mod input;
mod journal_lines;
mod keymap;
mod layout;
mod live;
mod msg;
mod navigate;
mod overlay;
mod paint;
mod panes;
mod patch_doc;
mod plot;
mod preview;
mod rows;
mod runtime;
mod services;
mod stages;
mod steer;
mod term;
mod theme;
mod view;

pub use crate::client::ClientEvent;
pub use action::{Action, Scope, Spec, actions};
pub use app::{App, Identity, Link, Prefs};
pub use controls::patch::Anchor;
pub use keymap::conflicts as key_conflicts;
pub use layout::{Class, Pane};
pub use msg::{Dirty, EditPurpose, Effect, Msg};
pub use overlay::Overlay;
pub use runtime::{Exit, Options, run};
pub use services::{Alone, Ask, RunRow, Services, Told};
pub use stages::Stage;
pub use term::Screen;
pub use theme::{Depth, Role, Theme, ThemeError};
pub use view::draw;
