//! A run without an engine: records are pushed by the test, decisions follow the rule "first wins".

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use planish::domain::{Author, StepRef};
use planish::engine::RunService;
use planish::event::{AckResult, Command, EndStatus, Event, Live, LogLevel, Record, RunState, encode_line};
use tokio::sync::{broadcast, watch};

struct Journal {
    records: Vec<Arc<Record>>,
    file: File,
    rev: u64,
    decided: HashMap<usize, (Author, u64)>,
}

pub struct FakeRun {
    journal: Mutex<Journal>,
    later: broadcast::Sender<Arc<Record>>,
    live: broadcast::Sender<Arc<Live>>,
    ended: watch::Sender<bool>,
}

pub fn step() -> StepRef {
    StepRef { epoch: 1, step: 1, step_in_epoch: 0 }
}

pub fn decision(n: u64) -> Event {
    Event::ConfigChanged { keys: vec![n.to_string()], changes: Vec::new() }
}

pub fn log(message: &str) -> Event {
    Event::Log { level: LogLevel::Info, message: message.into() }
}

pub fn finished() -> Event {
    Event::RunFinished {
        status: EndStatus::Completed,
        reason: String::new(),
        best_hash: String::new(),
        best_step: 0,
        best_score: Some(0.5),
        baseline_score: Some(0.5),
    }
}

impl FakeRun {
    /// Small channels, so that a burst makes receivers lag.
    pub fn new(run_dir: &Path) -> Arc<Self> {
        let file = OpenOptions::new().create(true).append(true).open(run_dir.join("events.jsonl")).unwrap();
        Arc::new(Self {
            journal: Mutex::new(Journal { records: Vec::new(), file, rev: 0, decided: HashMap::new() }),
            later: broadcast::Sender::new(64),
            live: broadcast::Sender::new(64),
            ended: watch::Sender::new(false),
        })
    }

    pub fn push(&self, event: Event) -> u64 {
        self.append(&mut self.journal.lock().unwrap(), event)
    }

    /// On disk only, as a host does that dies before it tells anyone.
    pub fn push_unheard(&self, event: Event) {
        let mut journal = self.journal.lock().unwrap();
        let seq = journal.records.len() as u64 + 1;
        let record = Record { seq, at: seq, event };
        journal.file.write_all(&encode_line(&record).unwrap()).unwrap();
        journal.records.push(Arc::new(record));
    }

    pub fn push_live(&self, live: Live) {
        let _ = self.live.send(Arc::new(live));
    }

    pub fn last_seq(&self) -> u64 {
        self.journal.lock().unwrap().records.len() as u64
    }

    fn append(&self, journal: &mut Journal, event: Event) -> u64 {
        let seq = journal.records.len() as u64 + 1;
        let over = matches!(event, Event::RunFinished { .. });
        let record = Arc::new(Record { seq, at: seq, event });
        journal.file.write_all(&encode_line(&record).unwrap()).unwrap();
        journal.records.push(Arc::clone(&record));
        let _ = self.later.send(record);
        if over {
            self.ended.send_replace(true);
        }
        seq
    }

    fn decide(&self, command: Command, by: Author, expect_rev: Option<u64>) -> (AckResult, u64) {
        let mut journal = self.journal.lock().unwrap();
        let Command::Decide { at, edit, decision } = command else {
            self.append(&mut journal, Event::Paused { by });
            return (AckResult::Applied, journal.rev);
        };
        if let Some((first, rev)) = journal.decided.get(&edit)
            && expect_rev.is_some_and(|expected| *rev > expected)
        {
            let conflict = AckResult::Conflict { by: first.clone(), detail: "decided before".into() };
            return (conflict, journal.rev);
        }
        journal.rev += 1;
        let rev = journal.rev;
        journal.decided.insert(edit, (by.clone(), rev));
        self.append(&mut journal, Event::EditDecided { at, edit, decision, by, rev });
        (AckResult::Applied, rev)
    }
}

impl RunService for FakeRun {
    fn glance(&self) -> RunState {
        RunState::fold(self.journal.lock().unwrap().records.iter().map(Arc::as_ref)).glance()
    }

    fn run_name(&self) -> String {
        "fake".into()
    }

    fn records(&self, after: u64) -> (Vec<Arc<Record>>, broadcast::Receiver<Arc<Record>>) {
        let journal = self.journal.lock().unwrap();
        let after = (after as usize).min(journal.records.len());
        (journal.records[after..].to_vec(), self.later.subscribe())
    }

    fn live(&self) -> broadcast::Receiver<Arc<Live>> {
        self.live.subscribe()
    }

    fn steer(&self, command: Command, by: Author, rev: Option<u64>) -> BoxFuture<'_, (AckResult, u64)> {
        std::future::ready(self.decide(command, by, rev)).boxed()
    }

    fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }
}
