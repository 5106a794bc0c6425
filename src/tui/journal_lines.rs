//! The lines of the Logs pane: one per event in the words of `plain`, the newest few thousand, and which of them are
//! asked for. What is older stays in the journal.

use std::collections::VecDeque;

use crate::event::{EndStatus, Event, ItemResult, LogLevel, Record};
use crate::plain::describe;

const LINES: usize = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    pub at: u64,
    pub level: LogLevel,
    /// Somebody should look at it.
    pub alert: bool,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct JournalLines {
    lines: VecDeque<JournalLine>,
    /// Number of the first line kept; how many are older.
    first: usize,
}

impl JournalLines {
    /// `last_seq`: end of the history being read; what would scroll out anyway is not put into words.
    pub fn hear(&mut self, record: &Record, last_seq: u64) {
        if record.seq + LINES as u64 <= last_seq {
            self.first += self.lines.len() + 1;
            return self.lines.clear();
        }
        self.push(JournalLine {
            at: record.at,
            level: level(&record.event),
            alert: matches!(record.event, Event::Alert { .. }),
            text: describe(record),
        });
    }

    /// A line that is this client's own.
    pub fn note(&mut self, at: u64, text: String) {
        self.push(JournalLine { at, level: LogLevel::Warn, alert: false, text });
    }

    fn push(&mut self, line: JournalLine) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
            self.first += 1;
        }
        self.lines.push_back(line);
    }

    /// Lines that are not kept any more.
    pub fn older(&self) -> usize {
        self.first
    }

    /// Lines ever heard: the number of the next one.
    pub fn heard(&self) -> usize {
        self.first + self.lines.len()
    }

    pub fn get(&self, number: usize) -> Option<&JournalLine> {
        self.lines.get(number.checked_sub(self.first)?)
    }
}

/// What of the lines is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LineFilter {
    pub least: LogLevel,
    /// Part of the text, in lower case.
    pub text: String,
}

impl LineFilter {
    fn passes(&self, line: &JournalLine) -> bool {
        line.level >= self.least && (self.text.is_empty() || line.text.to_lowercase().contains(&self.text))
    }
}

/// Numbers of the lines that pass a filter, kept up as lines come and go, so that a frame costs what it shows.
#[derive(Clone, Debug, Default)]
pub struct LineIndex {
    filter: Option<LineFilter>,
    heard: usize,
    numbers: VecDeque<usize>,
}

impl LineIndex {
    pub fn refresh(&mut self, lines: &JournalLines, filter: LineFilter) {
        if self.filter.as_ref() != Some(&filter) || self.heard > lines.heard() {
            (self.heard, self.numbers) = (0, VecDeque::new());
        }
        while self.numbers.front().is_some_and(|number| *number < lines.older()) {
            self.numbers.pop_front();
        }
        for number in self.heard.max(lines.older())..lines.heard() {
            if lines.get(number).is_some_and(|line| filter.passes(line)) {
                self.numbers.push_back(number);
            }
        }
        self.heard = lines.heard();
        self.filter = Some(filter);
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Numbers from the `place`th on.
    pub fn from(&self, place: usize) -> impl Iterator<Item = usize> {
        self.numbers.iter().skip(place).copied()
    }

    /// How many lines before `number` pass.
    pub fn place(&self, number: usize) -> usize {
        self.numbers.partition_point(|one| *one < number)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lines: &mut JournalLines, n: u64) {
        for seq in lines.heard() as u64 + 1..=lines.heard() as u64 + n {
            let level = if seq.is_multiple_of(3) { LogLevel::Warn } else { LogLevel::Info };
            let event = Event::Log { level, message: format!("line {seq}") };
            lines.hear(&Record { seq, at: seq, event }, 0);
        }
    }

    fn filter(least: LogLevel, text: &str) -> LineFilter {
        LineFilter { least, text: text.to_owned() }
    }

    #[test]
    fn an_index_that_is_kept_up_equals_one_made_anew() {
        let mut lines = JournalLines::default();
        let asked = filter(LogLevel::Warn, "9");
        let mut kept = LineIndex::default();
        for n in [0, 5, 4_000, LINES as u64 - 1, 1, 2_500] {
            heard(&mut lines, n);
            kept.refresh(&lines, asked.clone());
            let mut fresh = LineIndex::default();
            fresh.refresh(&lines, asked.clone());
            assert_eq!(kept.numbers, fresh.numbers);
        }
        assert!(lines.older() > 0 && lines.get(lines.older() - 1).is_none());
        assert_eq!(lines.heard() - lines.older(), LINES);
        kept.refresh(&lines, filter(LogLevel::Debug, ""));
        assert_eq!(kept.len(), LINES);
        assert_eq!(kept.place(lines.older() + 7), 7);
    }

    #[test]
    fn history_that_would_scroll_out_is_counted_but_not_kept() {
        let mut lines = JournalLines::default();
        let last = 3 * LINES as u64;
        for seq in 1..=last {
            let event = Event::Log { level: LogLevel::Info, message: String::new() };
            lines.hear(&Record { seq, at: seq, event }, last);
        }
        assert_eq!((lines.older(), lines.heard()), (2 * LINES, 3 * LINES));
    }
}
