//! What is under way this moment: calls with their streaming text, and throughput. Fed by live lines and cleared by
//! the events that end a call; holds nothing a journal could give back.

use std::collections::{BTreeMap, VecDeque};

use crate::domain::MachineSample;
use crate::event::{Event, Live};

/// Raw reply text kept per call: what a screen can show of its end.
const TAIL: usize = 16 * 1024;
/// Throughput samples kept.
const SAMPLES: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub enum CallPhase {
    Running,
    /// Waits for its next attempt since a fault.
    Retrying {
        error: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct LiveCall {
    /// Empty for calls of the optimizer.
    pub item: String,
    pub attempt: u32,
    /// Raw (untrusted) end of the reply so far; sanitised when shown, as an escape may span two deltas.
    pub text: String,
    pub started_at: u64,
    pub phase: CallPhase,
}

#[derive(Clone, Debug, Default)]
pub struct LiveBoard {
    /// By call path, so rows keep their places.
    pub calls: BTreeMap<String, LiveCall>,
    /// (Unix milliseconds, tokens per second).
    pub throughput: VecDeque<(u64, f64)>,
    pub in_flight: usize,
    /// (Unix milliseconds, sample).
    pub machine: VecDeque<(u64, MachineSample)>,
}

impl LiveBoard {
    /// Tokens per second and what they are: of now while calls run, the last ones when idle, their mean over the
    /// samples seen once the run has `ended`. `None` when none was seen.
    pub fn rate(&self, ended: bool) -> Option<(f64, String)> {
        let last = self.throughput.back()?.1;
        if self.in_flight > 0 {
            return Some((last, format!("{} in flight", self.in_flight)));
        }
        let busy = || self.throughput.iter().map(|sample| sample.1).filter(|rate| *rate > 0.0);
        if ended {
            let n = busy().count();
            let mean = if n == 0 { 0.0 } else { busy().sum::<f64>() / n as f64 };
            return Some((mean, "mean".to_owned()));
        }
        Some((busy().next_back().unwrap_or(last), "idle".to_owned()))
    }

    pub fn hear(&mut self, live: Live, now: u64) {
        match live {
            Live::CallStarted { path, item, attempt } => {
                let call = LiveCall {
                    item,
                    attempt,
                    text: String::new(),
                    started_at: now,
                    phase: CallPhase::Running,
                };
                self.calls.insert(path, call);
            }
            Live::CallDelta { path, text } => {
                if let Some(call) = self.calls.get_mut(&path) {
                    call.text.push_str(&text);
                    cut_front(&mut call.text);
                }
            }
            Live::CallRetrying { path, error, .. } => {
                if let Some(call) = self.calls.get_mut(&path) {
                    call.text.clear();
                    call.phase = CallPhase::Retrying { error };
                }
            }
            Live::CallFinished { path, .. } => {
                self.calls.remove(&path);
            }
            Live::Throughput { tokens_per_s, in_flight } => {
                if self.throughput.len() == SAMPLES {
                    self.throughput.pop_front();
                }
                self.throughput.push_back((now, tokens_per_s));
                self.in_flight = in_flight;
            }
            Live::Machine(sample) => {
                if self.machine.len() == SAMPLES {
                    self.machine.pop_front();
                }
                self.machine.push_back((now, sample));
            }
        }
    }

    /// A journaled result ends its call even if the live line was lost.
    pub fn settle(&mut self, event: &Event) {
        if let Some(key) = event.effect() {
            self.calls.remove(&key.path);
        }
        if matches!(event, Event::RunFinished { .. } | Event::HostStarted { .. }) {
            self.forget_calls();
        }
    }

    /// After a lost link nobody knows what is in flight.
    pub fn forget_calls(&mut self) {
        self.calls.clear();
        self.in_flight = 0;
    }
}

fn cut_front(text: &mut String) {
    if text.len() > 2 * TAIL {
        let mut at = text.len() - TAIL;
        while !text.is_char_boundary(at) {
            at += 1;
        }
        text.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(path: &str) -> Live {
        Live::CallStarted { path: path.into(), item: "t1".into(), attempt: 1 }
    }

    #[test]
    fn deltas_append_and_memory_is_bounded() {
        let mut board = LiveBoard::default();
        board.hear(started("p"), 1);
        for _ in 0..100 {
            board.hear(Live::CallDelta { path: "p".into(), text: "é".repeat(1000) }, 2);
        }
        assert!(board.calls["p"].text.len() <= 2 * TAIL + 2000);
        for at in 0..SAMPLES as u64 + 10 {
            board.hear(Live::Throughput { tokens_per_s: 1.0, in_flight: 1 }, at);
        }
        assert_eq!(board.throughput.len(), SAMPLES);
    }

    #[test]
    fn a_rate_once_seen_is_kept() {
        let mut board = LiveBoard::default();
        assert_eq!(board.rate(true), None);
        for (tokens_per_s, in_flight) in [(80.0, 2), (0.0, 2), (100.0, 1)] {
            board.hear(Live::Throughput { tokens_per_s, in_flight }, 1);
        }
        assert_eq!(board.rate(false), Some((100.0, "1 in flight".to_owned())));
        board.hear(Live::Throughput { tokens_per_s: 0.0, in_flight: 0 }, 2);
        assert_eq!(board.rate(false), Some((100.0, "idle".to_owned())));
        assert_eq!(board.rate(true), Some((90.0, "mean".to_owned())));
    }

    #[test]
    fn deltas_of_an_unknown_call_are_dropped() {
        let mut board = LiveBoard::default();
        board.hear(Live::CallDelta { path: "p".into(), text: "x".into() }, 2);
        assert!(board.calls.is_empty());
    }
}
