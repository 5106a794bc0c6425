//! The JSON lines of `--json`: `launch`, events by level, `decision_needed`, `done`. Pure: records in, lines out.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::ReviewMode;
use crate::event::{BREAKER_OPEN, Event, Record, RunState};
use crate::host::HostFile;
use crate::store::RunDir;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Level {
    None,
    /// Everything but results of single items and logs
    #[default]
    Milestones,
    All,
}

/// First line of a started run, on the pipe between host and client and on stdout.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct Launch {
    pub run: String,
    pub pid: u32,
    pub socket: PathBuf,
    pub run_dir: PathBuf,
    pub proto: u32,
}

impl Launch {
    pub fn new(run: &RunDir, host: &HostFile) -> Self {
        Self {
            run: run.name(),
            pid: host.pid,
            socket: host.socket.clone(),
            run_dir: run.path().to_owned(),
            proto: host.protocol,
        }
    }

    pub fn line(&self) -> Value {
        json!({ "launch": self })
    }
}

/// Folds a run and says what is worth a line.
pub struct Report {
    level: Level,
    /// Records up to here were told before.
    after: u64,
    state: RunState,
}

impl Report {
    pub fn new(level: Level, after: u64) -> Self {
        Self { level, after, state: RunState::default() }
    }

    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// The lines of the next record.
    pub fn take(&mut self, record: &Record) -> Vec<Value> {
        if record.seq <= self.state.seq {
            return Vec::new();
        }
        self.state.apply(record);
        if record.seq <= self.after {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if self.wants(&record.event) {
            lines.push(json!({ "event": record }));
        }
        if let Event::ReviewOpened { at, mode: ReviewMode::Manual, edits, timeout_s, .. } = &record.event {
            lines.push(json!({ "decision_needed": {
                "run": self.state.info.as_ref().map(|info| &info.name),
                "at": at,
                "edits": edits.len(),
                "timeout_s": timeout_s,
                "rev": self.state.rev,
            }}));
        }
        if let Event::Alert { code, message, .. } = &record.event
            && code == BREAKER_OPEN
        {
            let run = self.state.info.as_ref().map(|info| &info.name);
            lines.push(json!({ "decision_needed": { "run": run, "alert": code, "message": message, "rev": self.state.rev }}));
        }
        lines
    }

    /// The last line, once the run has ended.
    pub fn done(&self, run_dir: &Path) -> Value {
        let (status, reason) = match &self.state.status {
            crate::event::RunStatus::Ended { status, reason } => (json!(status), reason.as_str()),
            _ => (Value::Null, ""),
        };
        json!({ "done": {
            "status": status,
            "reason": reason,
            "best_score": self.state.best_score,
            "baseline": self.state.baseline_score,
            "best_step": self.state.best_step,
            "test": self.state.test,
            "artefacts": {
                "run_dir": run_dir,
                "events": run_dir.join("events.jsonl"),
                "best_skill": run_dir.join("best_skill.md"),
            },
        }})
    }

    fn wants(&self, event: &Event) -> bool {
        match self.level {
            Level::None => false,
            Level::Milestones => event.is_milestone() && event.effect().is_none(),
            Level::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::StepRef;
    use crate::event::{EndStatus, LogLevel};

    fn record(seq: u64, event: Event) -> Record {
        Record { seq, at: seq, event }
    }

    fn review(mode: ReviewMode) -> Event {
        Event::ReviewOpened {
            at: StepRef { epoch: 1, step: 1, step_in_epoch: 0 },
            mode,
            edits: vec![],
            current_hash: String::new(),
            preview: String::new(),
            timeout_s: Some(60),
            on_timeout: crate::domain::TimeoutPolicy::Accept,
        }
    }

    fn kinds(lines: &[Value]) -> Vec<&str> {
        lines.iter().filter_map(|line| line.as_object()?.keys().next()).map(String::as_str).collect()
    }

    #[test]
    fn the_level_decides_which_events_are_told() {
        let log = || Event::Log { level: LogLevel::Info, message: "x".into() };
        for (level, expected) in [(Level::None, [0, 0]), (Level::Milestones, [0, 1]), (Level::All, [1, 1])] {
            let mut report = Report::new(level, 0);
            let told = [report.take(&record(1, log())), report.take(&record(2, review(ReviewMode::Auto)))];
            assert_eq!(told.map(|lines| lines.len()), expected, "{level:?}");
        }
    }

    #[test]
    fn a_manual_review_asks_for_a_decision() {
        let mut report = Report::new(Level::Milestones, 0);
        let lines = report.take(&record(1, review(ReviewMode::Manual)));
        assert_eq!(kinds(&lines), ["event", "decision_needed"]);
        assert_eq!(lines[1]["decision_needed"]["timeout_s"], 60);
    }

    #[test]
    fn an_open_circuit_breaker_asks_for_a_decision_too() {
        let alert = |code: &str| {
            let (code, message) = (code.to_owned(), "down".to_owned());
            Event::Alert { level: LogLevel::Error, code, message }
        };
        let mut report = Report::new(Level::Milestones, 0);
        assert_eq!(kinds(&report.take(&record(1, alert("stalled")))), ["event"]);
        let lines = report.take(&record(2, alert(BREAKER_OPEN)));
        assert_eq!(kinds(&lines), ["event", "decision_needed"]);
        assert_eq!(lines[1]["decision_needed"]["message"], "down");
    }

    #[test]
    fn what_was_told_before_a_resume_is_folded_but_not_repeated() {
        let mut report = Report::new(Level::All, 1);
        assert!(report.take(&record(1, review(ReviewMode::Manual))).is_empty());
        let end = Event::RunFinished {
            status: EndStatus::Completed,
            reason: String::new(),
            best_hash: String::new(),
            best_step: 0,
            best_score: Some(0.0),
            baseline_score: Some(0.0),
        };
        assert_eq!(kinds(&report.take(&record(2, end))), ["event"]);
        assert!(report.take(&record(2, review(ReviewMode::Manual))).is_empty());
        let done = report.done(Path::new("/runs/x"));
        assert_eq!(done["done"]["status"], "completed");
        assert_eq!(done["done"]["artefacts"]["best_skill"], "/runs/x/best_skill.md");
    }
}
