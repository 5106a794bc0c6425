//! What an attached client without a screen prints: one line per event, with a few connection notices.

use super::describe::{clock, count, describe};
use crate::event::{AckResult, Event, HostLine, LogLevel};

/// Turns host lines into text lines. Byte-stable: the same lines in give the same lines out.
#[derive(Debug, Default)]
pub struct PlainRenderer {
    seq: u64,
}

impl PlainRenderer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lines (without line break) to append for `line`. Live news is too fast for lines and gives none.
    pub fn lines(&mut self, line: &HostLine) -> Vec<String> {
        match line {
            HostLine::Welcome { run, run_dir, .. } if run_dir.is_empty() => vec![format!("watching {run}")],
            HostLine::Welcome { run, run_dir, .. } => vec![format!("watching {run} in {run_dir}")],
            HostLine::Event(record) => {
                // A reconnected link may resend.
                if record.seq <= self.seq {
                    return Vec::new();
                }
                self.seq = record.seq;
                if matches!(record.event, Event::Log { level: LogLevel::Debug, .. }) {
                    return Vec::new();
                }
                vec![format!("{} {}", clock(record.at), describe(record))]
            }
            HostLine::Live(_) | HostLine::Clients(_) | HostLine::Glance(_) => Vec::new(),
            HostLine::Ack { result, .. } => match result {
                AckResult::Applied | AckResult::Noop => Vec::new(),
                AckResult::Conflict { by, detail } => vec![format!("conflict with {}: {detail}", by.0)],
                AckResult::Denied { reason } => vec![format!("denied: {reason}")],
            },
            HostLine::Dropped { lines } => {
                vec![format!("{} not shown (reading too slowly)", count(*lines as usize, "line"))]
            }
            HostLine::Error { message } => vec![format!("host error: {message}")],
        }
        .into_iter()
        .map(|text| crate::text::sanitize_line(&text).into_owned())
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Author;
    use crate::event::Record;

    fn event(seq: u64, event: Event) -> HostLine {
        HostLine::Event(Box::new(Record { seq, at: 1_764_435_600_123, event }))
    }

    #[test]
    fn one_stable_line_per_event_and_none_for_repeats() {
        let mut plain = PlainRenderer::new();
        let paused = event(4, Event::Paused { by: Author("ann".into()) });
        assert_eq!(plain.lines(&paused), ["17:00:00 paused by ann"]);
        assert_eq!(plain.lines(&paused), Vec::<String>::new());
        let log = Event::Log { level: LogLevel::Warn, message: "disk\x1b[2J low".into() };
        assert_eq!(plain.lines(&event(5, log)), ["17:00:00 warning: disk low"]);
    }

    #[test]
    fn a_conflict_names_the_first() {
        let result = AckResult::Conflict { by: Author("bob".into()), detail: "edit 2 was decided".into() };
        let ack = HostLine::Ack { cmd_id: "c1".into(), result, rev: 3 };
        assert_eq!(PlainRenderer::new().lines(&ack), ["conflict with bob: edit 2 was decided"]);
    }
}
