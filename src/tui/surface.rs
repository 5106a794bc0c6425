//! The user's side of the screen: theme, mouse, attention, a pending chord or count, what was done lately. Handles the
//! pointer. Draws nothing and reads no file.

use std::cell::RefCell;

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::action::Action;
use super::app::App;
use super::keymap::Press;
use super::layout::Pane;
use super::msg::{Dirty, Effect};
use super::overlay::{Choice, Chosen, Overlay};
use super::settings::{Settings, ThemeChoice, theme_names};
use super::theme::Role;

/// Lines of one turn of the wheel.
const WHEEL: isize = 3;
/// Actions the palette remembers.
const RECENT: usize = 16;

#[derive(Debug)]
pub struct Surface {
    pub theme: ThemeChoice,
    pub mouse: bool,
    /// The user looks at this terminal; `None`: it has not said.
    pub attention: Option<bool>,
    /// The beginning of a chord.
    pub presses: Vec<Press>,
    /// How often the next motion is to be done; 0: digits are still to come.
    pub count: Option<usize>,
    /// Latest first.
    pub recent: Vec<Action>,
    /// What is wrong in a settings file; said until it is right.
    pub broken: Option<String>,
    /// The selected row of each pane as last drawn: only the view knows it.
    pub selections: RefCell<Vec<(Pane, Rect)>>,
}

impl Default for Surface {
    fn default() -> Self {
        Self {
            theme: Settings::default().theme,
            mouse: false,
            attention: None,
            presses: Vec::new(),
            count: None,
            recent: Vec::new(),
            broken: None,
            selections: RefCell::default(),
        }
    }
}

impl Surface {
    pub fn remember(&mut self, action: Action) {
        self.recent.retain(|known| *known != action);
        self.recent.insert(0, action);
        self.recent.truncate(RECENT);
    }
}

impl App {
    pub(super) fn use_settings(&mut self, settings: Settings) -> Vec<Effect> {
        self.keymap = settings.keymap;
        self.prefs = settings.prefs;
        self.surface.presses.clear();
        self.surface.theme = settings.theme;
        if self.surface.broken.take().is_some() {
            self.say(Role::Good, "the settings can be used again");
        }
        self.stain(Dirty::Input);
        self.use_mouse(settings.mouse)
    }

    pub(super) fn settings_broken(&mut self, why: String) {
        self.surface.broken = Some(why);
        self.stain(Dirty::Input);
    }

    fn use_mouse(&mut self, on: bool) -> Vec<Effect> {
        if std::mem::replace(&mut self.surface.mouse, on) == on {
            return Vec::new();
        }
        vec![Effect::Mouse(on)]
    }

    pub(super) fn toggle_mouse(&mut self) -> Vec<Effect> {
        if self.prefs.low_bandwidth {
            self.say(Role::Warn, "mouse: off while low bandwidth is set");
            return Vec::new();
        }
        let on = !self.surface.mouse;
        let words = if on { "mouse on: shift-drag selects text" } else { "mouse off: dragging selects text" };
        self.say(Role::Dim, words);
        self.use_mouse(on)
    }

    // --- themes ---

    pub(super) fn choose_theme(&mut self) {
        let now = match &self.surface.theme {
            ThemeChoice::Named(name) => name.clone(),
            ThemeChoice::Auto | ThemeChoice::File(_) => String::new(),
        };
        let choices: Vec<Choice> =
            theme_names().map(|(name, doc)| Choice { label: name.to_owned(), doc: doc.to_owned() }).collect();
        let selected = choices.iter().position(|choice| choice.label == now).unwrap_or(0);
        let title = "Theme".to_owned();
        self.overlay = Some(Overlay::Choice { title, choices, selected, then: Chosen::Theme });
    }

    /// The theme that an open chooser points at.
    pub(super) fn previewed(&self) -> Option<ThemeChoice> {
        match &self.overlay {
            Some(Overlay::Choice { choices, selected, then: Chosen::Theme, .. }) => {
                choices.get(*selected).map(|choice| ThemeChoice::Named(choice.label.clone()))
            }
            _ => None,
        }
    }

    pub(super) fn use_theme(&mut self, theme: ThemeChoice) -> Vec<Effect> {
        self.surface.theme = theme.clone();
        vec![Effect::Theme(theme)]
    }

    // --- attention ---

    pub(super) fn focus_changed(&mut self, here: bool) {
        self.surface.attention = Some(here);
        if here {
            // Clocks stood still meanwhile.
            self.stain(Dirty::Data);
        }
    }

    /// Calls the user who is not looking.
    pub(super) fn call(&self) -> Vec<Effect> {
        if self.surface.attention == Some(true) { Vec::new() } else { vec![Effect::Bell] }
    }

    // --- pointer ---

    pub(super) fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        if self.overlay.is_some() || !self.surface.mouse {
            return Vec::new();
        }
        let at = Position::new(event.column, event.row);
        let places = self.places();
        let pane = places.panes.iter().find(|(_, area)| area.contains(at)).map(|(pane, _)| *pane);
        match (event.kind, pane) {
            (MouseEventKind::Down(MouseButton::Left), Some(pane)) => {
                self.stain(Dirty::Input);
                self.focus(pane);
                self.select_under(pane, at);
            }
            (MouseEventKind::Down(MouseButton::Left), None)
                if places.tabs.is_some_and(|tabs| tabs.contains(at)) =>
            {
                self.stain(Dirty::Input);
                if let Some(pane) = super::view::tab_at(self, at.x) {
                    self.focus(pane);
                }
            }
            (MouseEventKind::ScrollDown, Some(pane)) => self.turn(pane, WHEEL),
            (MouseEventKind::ScrollUp, Some(pane)) => self.turn(pane, -WHEEL),
            _ => {}
        }
        Vec::new()
    }

    /// Moves the selection by as many rows as the pointer is from it.
    fn select_under(&mut self, pane: Pane, at: Position) {
        let selected =
            self.surface.selections.borrow().iter().find(|(of, _)| *of == pane).map(|(_, row)| *row);
        let Some(row) = selected else { return };
        let by = isize::from(at.y as i16 - row.y as i16);
        if by != 0 && (row.left()..row.right()).contains(&at.x) {
            self.move_by(by);
        }
    }

    /// The wheel scrolls what is under the pointer; the keys stay where they are.
    fn turn(&mut self, pane: Pane, lines: isize) {
        self.stain(Dirty::Input);
        let focus = std::mem::replace(&mut self.arrangement.focus, pane);
        self.move_by(lines);
        self.arrangement.focus = focus;
    }

    // --- the text of a pane ---

    pub(super) fn page_text(&mut self) -> Vec<Effect> {
        let text = self.copied_text();
        if text.is_empty() {
            self.say(Role::Warn, "nothing here to open in a pager");
            return Vec::new();
        }
        vec![Effect::Page(text)]
    }

    /// Everything looks different from now on.
    pub(super) fn redraw(&mut self) {
        self.stain(Dirty::Input);
    }

    /// What the window is called; says nothing that changes by the second.
    pub fn window_title(&self) -> String {
        let run = crate::text::sanitize_line(self.run_name());
        match self.review_label() {
            Some(label) => format!("planish {run} [{label}]"),
            None => format!("planish {run}"),
        }
    }
}
