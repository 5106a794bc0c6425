//! The lines of the Logs pane: one per event in the words of `plain`, the newest few thousand.

use std::collections::VecDeque;

use crate::event::{EndStatus, Event, ItemResult, LogLevel, Record};
use crate::plain::describe;

const LINES: usize = 4000;

#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    pub at: u64,
    pub level: LogLevel,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct JournalLines {
    lines: VecDeque<JournalLine>,
    /// Lines ever heard; tells how many are new since.
    pub heard: usize,
}

impl JournalLines {
    /// `last_seq`: end of the history being read; what would scroll out anyway is not put into words.
    pub fn hear(&mut self, record: &Record, last_seq: u64) {
        if record.seq + LINES as u64 <= last_seq {
            return;
        }
        self.push(JournalLine { at: record.at, level: level(&record.event), text: describe(record) });
    }

    /// A line that is this client's own.
    pub fn note(&mut self, at: u64, text: String) {
        self.push(JournalLine { at, level: LogLevel::Warn, text });
    }

    fn push(&mut self, line: JournalLine) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        self.heard += 1;
    }

    /// Lines that contain `filter` (any case), oldest first.
    pub fn matching(&self, filter: &str) -> Vec<&JournalLine> {
        let filter = filter.to_lowercase();
        self.lines
            .iter()
            .filter(|line| filter.is_empty() || line.text.to_lowercase().contains(&filter))
            .collect()
    }
}

fn level(event: &Event) -> LogLevel {
    match event {
        Event::Alert { level, .. } | Event::Log { level, .. } => *level,
        Event::RolloutFinished { result: ItemResult::Missing { .. }, .. }
        | Event::EvaluationItemFinished { result: ItemResult::Missing { .. }, .. } => LogLevel::Warn,
        Event::RunFinished { status: EndStatus::Failed, .. } => LogLevel::Error,
        Event::RunFinished { status: EndStatus::BudgetExhausted, .. } => LogLevel::Warn,
        Event::RolloutFinished { .. } | Event::EvaluationItemFinished { .. } => LogLevel::Debug,
        _ => LogLevel::Info,
    }
}
