//! What is under way this moment: calls with their streaming text, and throughput. Fed by live lines and cleared by
//! the events that end a call; holds nothing a journal could give back.

use std::collections::{BTreeMap, VecDeque};

use crate::event::{Event, Live};

/// Raw reply text kept per call: what a screen can show of its end.
const TAIL: usize = 16 * 1024;
/// Throughput samples kept.
const SAMPLES: usize = 4096;
/// How models mark what they think and do not say.
pub const THINK: &str = "<think>";
pub const THINK_END: &str = "</think>";

#[derive(Clone, Debug, PartialEq)]
pub enum CallPhase {
    Running,
    /// Waits for its next attempt since a fault.
    Retrying {
        error: String,
    },
    /// The reply is complete; its result is scored and recorded in its turn.
    Answered,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LiveCall {
    /// Empty for calls of the optimizer.
    pub item: String,
    pub attempt: u32,
    /// Raw (untrusted) end of the reply so far; sanitised when shown, as an escape may span two deltas.
    pub text: String,
    /// Characters received in this attempt.
    pub received: usize,
    /// What streams is inside `<think>`.
    pub thinking: bool,
    pub started_at: u64,
    /// When anything was heard of it last.
    pub heard_at: u64,
    pub phase: CallPhase,
}

impl LiveCall {
    fn begun(item: String, attempt: u32, now: u64) -> Self {
        Self {
            item,
            attempt,
            text: String::new(),
            received: 0,
            thinking: false,
            started_at: now,
            heard_at: now,
            phase: CallPhase::Running,
        }
    }

    fn receive(&mut self, text: &str, now: u64) {
        // A tag may span two deltas.
        let mut from = self.text.len().saturating_sub(THINK_END.len());
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        self.text.push_str(text);
        let (begun, ended) = (self.text[from..].rfind(THINK), self.text[from..].rfind(THINK_END));
        if begun != ended {
            self.thinking = begun > ended;
        }
        self.received += text.chars().count();
        self.heard_at = now;
        cut_front(&mut self.text);
    }
}

#[derive(Clone, Debug, Default)]
pub struct LiveBoard {
    /// By call path, so rows keep their places.
    pub calls: BTreeMap<String, LiveCall>,
    /// (Unix milliseconds, tokens per second).
    pub throughput: VecDeque<(u64, f64)>,
    pub in_flight: usize,
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
                // Of a call that is tried again the whole time counts.
                let began = self.calls.get(&path).filter(|_| attempt > 1).map(|call| call.started_at);
                let call = LiveCall::begun(item, attempt, now);
                self.calls.insert(path, LiveCall { started_at: began.unwrap_or(now), ..call });
            }
            Live::CallDelta { path, text } => {
                if let Some(call) = self.calls.get_mut(&path) {
                    call.receive(&text, now);
                }
            }
            Live::CallRetrying { path, error, .. } => {
                if let Some(call) = self.calls.get_mut(&path) {
                    call.text.clear();
                    (call.received, call.thinking, call.heard_at) = (0, false, now);
                    call.phase = CallPhase::Retrying { error };
                }
            }
            Live::CallFinished { path, ok, .. } => match self.calls.get_mut(&path) {
                Some(call) if ok && !call.item.is_empty() => {
                    (call.phase, call.heard_at) = (CallPhase::Answered, now);
                }
                _ => {
                    self.calls.remove(&path);
                }
            },
            Live::Throughput { tokens_per_s, in_flight } => {
                if self.throughput.len() == SAMPLES {
                    self.throughput.pop_front();
                }
                self.throughput.push_back((now, tokens_per_s));
                self.in_flight = in_flight;
            }
            // The board of numbers keeps these.
            Live::Machine(_) => {}
        }
    }

    /// A journaled result ends its call even if the live line was lost.
    pub fn settle(&mut self, event: &Event) {
        if let Some(key) = event.effect() {
            self.calls.remove(&key.path);
        }
        // What was answered before an evaluation or a phase ended is recorded, or not wanted any more.
        if matches!(event, Event::EvaluationFinished { .. } | Event::PhaseStarted { .. }) {
            self.calls.retain(|_, call| call.phase != CallPhase::Answered);
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
    fn a_call_is_answered_until_its_result_is_recorded() {
        let mut board = LiveBoard::default();
        board.hear(started("p"), 10);
        for (text, thinking) in [("<thi", false), ("nk>so ", true), ("</thin", true), ("k>Lima", false)] {
            board.hear(Live::CallDelta { path: "p".into(), text: text.into() }, 20);
            assert_eq!(board.calls["p"].thinking, thinking, "{text}");
        }
        assert_eq!((board.calls["p"].received, board.calls["p"].heard_at), (22, 20));
        board.hear(Live::CallRetrying { path: "p".into(), error: "503".into(), wait_ms: 1 }, 30);
        board.hear(Live::CallStarted { path: "p".into(), item: "t1".into(), attempt: 2 }, 40);
        assert_eq!((board.calls["p"].started_at, board.calls["p"].received), (10, 0));
        board.hear(Live::CallFinished { path: "p".into(), ok: true, tokens: 1, ms: 1 }, 50);
        assert_eq!(board.calls["p"].phase, CallPhase::Answered);
        board.settle(&Event::PhaseStarted { at: Default::default(), phase: crate::domain::Phase::Reflect });
        assert!(board.calls.is_empty());
        board.hear(started("q"), 60);
        board.hear(Live::CallFinished { path: "q".into(), ok: false, tokens: 0, ms: 1 }, 70);
        assert!(board.calls.is_empty(), "a failed call has no answer to score");
    }

    #[test]
    fn deltas_of_an_unknown_call_are_dropped() {
        let mut board = LiveBoard::default();
        board.hear(Live::CallDelta { path: "p".into(), text: "x".into() }, 2);
        assert!(board.calls.is_empty());
    }
}
