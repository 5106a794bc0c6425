//! Controls of pane 8: the run in words.

use std::cell::{Cell, Ref, RefCell};

use crate::event::LogLevel;
use crate::text::sanitize_line;
use crate::tui::action::{Action, Spec, always, rows};
use crate::tui::app::App;
use crate::tui::controls::global::GlobalAction;
use crate::tui::input::Input;
use crate::tui::journal_lines::{LineFilter, LineIndex};
use crate::tui::layout::Pane;
use crate::tui::msg::Effect;
use crate::tui::overlay::{Overlay, Prompted};
use crate::tui::search::step;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogsAction {
    Level,
    Filter,
}

#[rustfmt::skip]
pub const ACTIONS: &[Spec] = rows! { Logs LogsAction:
    Level         "logs.level"           "level"     ["L"]              None, false, always, "show from debug, info, warn or error on";
    Filter        "logs.filter"          "only"      ["&"]              None, false, always, "only lines with a text (/ searches and hides none)";
};

pub const HINTS: &[Action] = &[
    Action::Logs(LogsAction::Level),
    Action::Logs(LogsAction::Filter),
    Action::Global(GlobalAction::Filter),
    Action::Global(GlobalAction::Follow),
    Action::Global(GlobalAction::Down),
    Action::Global(GlobalAction::Zoom),
    Action::Global(GlobalAction::FlipStrip),
];

#[derive(Clone, Debug)]
pub struct LogsView {
    pub follow: bool,
    pub filter: String,
    pub level: LogLevel,
    /// Number of the first line in view, and of the next line when the end went out of view. Unused while following.
    top: usize,
    left_at: usize,
    /// The line that the search went to last.
    pub(in crate::tui) found: Option<usize>,
    /// Rows in view, as last drawn.
    pub(in crate::tui) visible: Cell<usize>,
    index: RefCell<LineIndex>,
}

impl Default for LogsView {
    fn default() -> Self {
        Self {
            follow: true,
            filter: String::new(),
            level: LogLevel::Debug,
            top: 0,
            left_at: 0,
            found: None,
            visible: Cell::new(0),
            index: RefCell::default(),
        }
    }
}

pub fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

impl App {
    pub(in crate::tui) fn act_logs(&mut self, action: LogsAction) -> Vec<Effect> {
        match action {
            LogsAction::Level => {
                self.logs.level = match self.logs.level {
                    LogLevel::Debug => LogLevel::Info,
                    LogLevel::Info => LogLevel::Warn,
                    LogLevel::Warn => LogLevel::Error,
                    LogLevel::Error => LogLevel::Debug,
                };
            }
            LogsAction::Filter => {
                self.overlay = Some(Overlay::Prompt {
                    title: "Only lines with".to_owned(),
                    hint: "part of the text · empty shows all",
                    input: Input::of(&self.logs.filter),
                    then: Prompted::Filter(Pane::Logs),
                });
            }
        }
        Vec::new()
    }

    /// The lines asked for.
    pub(in crate::tui) fn log_index(&self) -> Ref<'_, LineIndex> {
        let filter = LineFilter { least: self.logs.level, text: self.logs.filter.to_lowercase() };
        if let Ok(mut index) = self.logs.index.try_borrow_mut() {
            index.refresh(&self.lines, filter);
        }
        self.logs.index.borrow()
    }

    /// Above the first line stands a row that says what is not kept.
    pub(in crate::tui) fn log_note(&self) -> usize {
        usize::from(self.lines.older() > 0)
    }

    /// Rows, and the first one in view.
    pub(in crate::tui) fn log_rows(&self) -> (usize, usize) {
        let index = self.log_index();
        let total = index.len() + self.log_note();
        let end = total.saturating_sub(self.logs.visible.get());
        let at = match self.logs.top {
            0 => 0,
            number => index.place(number) + self.log_note(),
        };
        (total, if self.logs.follow { end } else { at.min(end) })
    }

    /// Lines that came since the end went out of view.
    pub(in crate::tui) fn new_log_lines(&self) -> usize {
        let index = self.log_index();
        if self.logs.follow { 0 } else { index.len() - index.place(self.logs.left_at) }
    }

    pub(in crate::tui) fn move_in_logs(&mut self, lines: isize) {
        let (total, at) = self.log_rows();
        let end = total.saturating_sub(self.logs.visible.get());
        let next = at.saturating_add_signed(lines).min(end);
        match lines > 0 && next == end {
            true => self.logs.follow = true,
            false => self.show_logs_from(next),
        }
    }

    fn show_logs_from(&mut self, row: usize) {
        let top = row.checked_sub(self.log_note()).and_then(|place| self.log_index().from(place).next());
        self.logs.top = top.unwrap_or(0);
        if std::mem::take(&mut self.logs.follow) {
            self.logs.left_at = self.lines.heard();
        }
    }

    pub(in crate::tui) fn follow_logs(&mut self) {
        match self.logs.follow {
            true => self.show_logs_from(self.log_rows().1),
            false => self.logs.follow = true,
        }
    }

    /// Goes to the next line that holds what is searched for: (which of them, of how many).
    pub(in crate::tui) fn search_logs(&mut self, forward: bool) -> Option<(usize, usize)> {
        let pattern = &self.search.as_ref()?.pattern;
        let holds = |number: &usize| {
            self.lines.get(*number).is_some_and(|line| pattern.is_in(&sanitize_line(&line.text)))
        };
        let matches: Vec<usize> = self.log_index().from(0).filter(holds).collect();
        // The newest line is what a reader of the end means first.
        let chosen = step(&matches, self.logs.found, forward == self.logs.found.is_some())?;
        self.logs.found = Some(matches[chosen]);
        let row = self.log_index().place(matches[chosen]) + self.log_note();
        self.show_logs_from(row.saturating_sub(self.logs.visible.get() / 2));
        Some((chosen + 1, matches.len()))
    }

    pub(in crate::tui) fn copied_from_logs(&self) -> String {
        let index = self.log_index();
        let number = self.logs.found.or_else(|| index.from(index.len().saturating_sub(1)).next());
        number.and_then(|number| self.lines.get(number)).map(|line| line.text.clone()).unwrap_or_default()
    }

    /// The lines in view.
    pub(in crate::tui) fn copied_page_of_logs(&self) -> String {
        let first = self.log_rows().1.saturating_sub(self.log_note());
        let index = self.log_index();
        let shown = index.from(first).take(self.logs.visible.get());
        let lines = shown.filter_map(|number| self.lines.get(number));
        lines.map(|line| format!("{} {}\n", crate::plain::clock(line.at), line.text)).collect()
    }
}
