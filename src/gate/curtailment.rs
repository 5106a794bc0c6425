//! Exact curtailment of the strict gate: stops an evaluation when no score of the items left could change the verdict.
//! Owns the bounds and the order of items; must not stop on likelihood.

use super::score::gate_score;
use crate::domain::{ExactSum, GateMetric, Score};

/// The two sides of the strict rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The candidate's score is above the bar.
    Accept,
    Reject,
}

/// Positions by increasing incumbent score, equal ones in their order: items that the incumbent failed come first,
/// because without a gain there the verdict is soon certain. Only for the exact rule: the order depends on scores.
pub fn evaluation_order(incumbent: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..incumbent.len()).collect();
    order.sort_by(|&a, &b| incumbent[a].total_cmp(&incumbent[b]));
    order
}

/// An evaluation of `n` items against a bar, fed one result at a time in evaluation order.
///
/// An item that has no score yet may still score anything in [0, 1]; so may one that is missing for good. The bounds use
/// the arithmetic of the full evaluation (exact sums, rounded once), which never decreases when an item's score grows.
/// Hence a verdict that is certain is the verdict of the full evaluation, to the last bit.
///
/// To run items concurrently without running one that a serial run would not have: keep at most
/// [`Curtailment::recorded`] + [`Curtailment::next_flight`] items launched, and record results in order.
#[derive(Clone, Debug)]
pub struct Curtailment {
    metric: GateMetric,
    mixed_weight: f64,
    /// Gate score of the incumbent on the same `n` items.
    bar: f64,
    /// Added to every score of the candidate: what its text is worth.
    bonus: f64,
    n: usize,
    hard: ExactSum,
    soft: ExactSum,
    scored: usize,
    missing: usize,
}

impl Curtailment {
    pub fn new(metric: GateMetric, mixed_weight: f64, bar: f64, n: usize) -> Self {
        let (hard, soft) = (ExactSum::default(), ExactSum::default());
        Self { metric, mixed_weight, bar, bonus: 0.0, n, hard, soft, scored: 0, missing: 0 }
    }

    /// With `bonus` on top of the candidate's score.
    pub fn with_bonus(self, bonus: f64) -> Self {
        Self { bonus, ..self }
    }

    /// Takes the next item's score; `None`: the item stays without a score (its retries are spent). A score that is no
    /// number counts as missing.
    pub fn record(&mut self, score: Option<&Score>) {
        match score.filter(|score| !score.hard.is_nan() && !score.soft.is_nan()) {
            Some(score) => {
                self.hard.add(score.hard);
                self.soft.add(score.soft);
                self.scored += 1;
            }
            None => self.missing += 1,
        }
    }

    /// Results recorded so far, missing ones included.
    pub fn recorded(&self) -> usize {
        self.scored + self.missing
    }

    fn left(&self) -> usize {
        self.n.saturating_sub(self.recorded())
    }

    /// Smallest and largest gate score that the full evaluation can still have.
    pub fn bounds(&self) -> (f64, f64) {
        (self.with_ones(0), self.with_ones(self.left() + self.missing))
    }

    /// The full evaluation's gate score if `ones` items without a score had 1 and the others 0.
    fn with_ones(&self, ones: usize) -> f64 {
        let (hard, soft) = (self.hard.plus(ones).mean(self.n), self.soft.plus(ones).mean(self.n));
        gate_score(self.metric, self.mixed_weight, hard, soft) + self.bonus
    }

    /// The side that every completion of the evaluation would be on, or `None`. Against a bar that is no number,
    /// everything is rejected, as in the strict rule.
    pub fn certain(&self) -> Option<Side> {
        let (low, high) = self.bounds();
        if low > self.bar {
            Some(Side::Accept)
        } else if high > self.bar {
            None
        } else {
            Some(Side::Reject)
        }
    }

    /// How many items to launch next: as many as are needed in any case before a verdict can be certain, the smaller of
    /// the numbers needed if all of them were right (to accept) or wrong (to reject). 0 once a rejection is certain; all
    /// that are left once an acceptance is, because the full score becomes the next bar.
    pub fn next_flight(&self) -> usize {
        let left = self.left();
        match self.certain() {
            Some(Side::Reject) => 0,
            Some(Side::Accept) => left,
            None => {
                let to_accept = smallest(left, |right| self.with_ones(right) > self.bar);
                let to_reject =
                    smallest(left, |wrong| self.with_ones(left - wrong + self.missing) <= self.bar);
                to_accept.into_iter().chain(to_reject).min().unwrap_or(left)
            }
        }
    }

    /// Nothing is left to run: a rejection is certain, or every item has its result.
    pub fn finished(&self) -> bool {
        self.next_flight() == 0
    }
}

/// The smallest number in 0..=`most` for which `enough` holds; once true, it stays true.
fn smallest(most: usize, enough: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = (0, most + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    (low <= most).then_some(low)
}

#[cfg(test)]
#[path = "curtailment_tests.rs"]
mod tests;
