//! The journal under construction: numbers records, keeps their clock, and takes secrets out of foreign texts.

use std::sync::Arc;

use crate::domain::{EffectKey, Rollout, fingerprint};
use crate::event::{Event, ItemResult, LogLevel, Record};
use crate::model::Redactor;

pub struct Tape {
    records: Vec<Record>,
    /// Unix milliseconds.
    now: u64,
    redactor: Redactor,
}

impl Tape {
    pub fn starting_at(now: u64) -> Self {
        Self { records: Vec::new(), now, redactor: Redactor::new([]) }
    }

    pub fn into_records(self) -> Vec<Record> {
        self.records
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn push(&mut self, event: Event) {
        self.records.push(Record { seq: self.records.len() as u64 + 1, at: self.now, event });
    }

    pub fn warn(&mut self, message: impl Into<String>) {
        let message = self.redactor.redact(&message.into());
        self.push(Event::Log { level: LogLevel::Warn, message });
    }

    /// Lets recorded time pass.
    pub fn wait(&mut self, seconds: f64) {
        self.now += (seconds.max(0.0) * 1000.0).round() as u64;
    }

    /// Moves the clock forward to `then`; never back.
    pub fn wait_until(&mut self, then: u64) {
        self.now = self.now.max(then);
    }

    /// A result without keys and tokens: error texts may quote what was sent.
    pub fn clean(&self, result: &ItemResult) -> ItemResult {
        match result {
            ItemResult::Scored(rollout) => {
                let reason = self.redactor.redact(&rollout.score.reason);
                let mut rollout = Rollout::clone(rollout);
                rollout.score.reason = reason;
                ItemResult::Scored(Arc::new(rollout))
            }
            ItemResult::Missing { item, error } => {
                ItemResult::Missing { item: item.clone(), error: self.redactor.redact(error) }
            }
        }
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// Identity of an imported result: of no use to a run that computes its own.
pub fn imported_key(path: String) -> EffectKey {
    let fingerprint = fingerprint(["imported", path.as_str()]);
    EffectKey { path, fingerprint }
}
