//! Turns item scores into the numbers that the gate compares. Owns exact summation, so that a mean depends neither on
//! the order of items nor on where an evaluation stopped; must not decide anything.

use crate::domain::{GateMetric, GateScore, Score};

/// The compared number: hard, soft or (1 - w) * hard + w * soft, with w cut to [0, 1].
pub fn gate_score(metric: GateMetric, mixed_weight: f64, hard: f64, soft: f64) -> f64 {
    match metric {
        GateMetric::Hard => hard,
        GateMetric::Soft => soft,
        GateMetric::Mixed => {
            let weight = mixed_weight.clamp(0.0, 1.0);
            (1.0 - weight) * hard + weight * soft
        }
    }
}

/// The gate score of one item.
pub fn item_score(metric: GateMetric, mixed_weight: f64, score: &Score) -> f64 {
    gate_score(metric, mixed_weight, score.hard, score.soft)
}

/// Means over the measured `scores` of an evaluation of `n` items; 0 without any.
pub fn summarize<'a>(
    metric: GateMetric,
    mixed_weight: f64,
    n: usize,
    scores: impl IntoIterator<Item = &'a Score>,
) -> GateScore {
    let (hard, soft, done) = sums(scores);
    let (hard, soft) = (hard.mean(done), soft.mean(done));
    GateScore { hard, soft, gate: gate_score(metric, mixed_weight, hard, soft), n, done }
}

/// The best that an evaluation of `n` items can still come to: items without a score count as 1. Equal to
/// [`summarize`] when all have one. Comparable with complete evaluations, which a mean over the measured items is not:
/// items that the incumbent failed are measured first.
pub fn best_case<'a>(
    metric: GateMetric,
    mixed_weight: f64,
    n: usize,
    scores: impl IntoIterator<Item = &'a Score>,
) -> GateScore {
    let (hard, soft, done) = sums(scores);
    let others = n.saturating_sub(done);
    let (hard, soft) = (hard.plus(others).mean(n), soft.plus(others).mean(n));
    GateScore { hard, soft, gate: gate_score(metric, mixed_weight, hard, soft), n, done }
}

/// Sum of hard, sum of soft, and how many there are.
fn sums<'a>(scores: impl IntoIterator<Item = &'a Score>) -> (ExactSum, ExactSum, usize) {
    let (mut hard, mut soft, mut count) = (ExactSum::default(), ExactSum::default(), 0);
    for score in scores {
        hard.add(score.hard);
        soft.add(score.soft);
        count += 1;
    }
    (hard, soft, count)
}

/// A sum of doubles without rounding error until it is read: Shewchuk's non-overlapping partials (1997, "Adaptive
/// precision floating-point arithmetic"), as in Python's `math.fsum`.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactSum {
    /// By increasing magnitude.
    partials: Vec<f64>,
}

impl ExactSum {
    pub fn add(&mut self, number: f64) {
        let mut carried = number;
        let mut kept = 0;
        for i in 0..self.partials.len() {
            let (mut large, mut small) = (carried, self.partials[i]);
            if large.abs() < small.abs() {
                std::mem::swap(&mut large, &mut small);
            }
            carried = large + small;
            let error = small - (carried - large);
            if error != 0.0 {
                self.partials[kept] = error;
                kept += 1;
            }
        }
        self.partials.truncate(kept);
        self.partials.push(carried);
    }

    /// The sum plus a whole number.
    pub fn plus(&self, count: usize) -> Self {
        let mut sum = self.clone();
        sum.add(count as f64);
        sum
    }

    /// The exact sum rounded once, half to even. Never decreases when the exact sum grows.
    pub fn value(&self) -> f64 {
        let mut rest = self.partials.iter().rev().copied();
        let Some(mut sum) = rest.next() else { return 0.0 };
        for partial in rest.by_ref() {
            let rounded = sum + partial;
            let error = partial - (rounded - sum);
            sum = rounded;
            if error != 0.0 {
                // Half way between two doubles, the next partial says which side the exact sum lies on.
                let doubled = error * 2.0;
                let other = sum + doubled;
                let below = rest.next().unwrap_or(0.0);
                if error * below > 0.0 && other - sum == doubled {
                    sum = other;
                }
                break;
            }
        }
        sum
    }

    /// The mean over `n`; 0 for none.
    pub fn mean(&self, n: usize) -> f64 {
        if n == 0 { 0.0 } else { self.value() / n as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(numbers: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.value()
    }

    #[test]
    fn the_best_case_counts_what_is_not_measured_as_right() {
        let score = |hard| Score { hard, soft: hard / 2.0, reason: String::new() };
        let measured = [score(1.0), score(0.0), score(1.0)];
        let best = best_case(GateMetric::Mixed, 0.5, 5, &measured);
        assert_eq!((best.hard, best.soft, best.n, best.done), (0.8, 0.6, 5, 3));
        assert_eq!(best.gate, 0.7);
        let all = best_case(GateMetric::Hard, 0.5, 3, &measured);
        assert_eq!(all, summarize(GateMetric::Hard, 0.5, 3, &measured));
    }

    #[test]
    fn sums_are_rounded_once() {
        assert_eq!(sum(&[0.1; 10]), 1.0, "adding step by step gives 0.9999999999999999");
        assert_eq!(sum(&[1e16, 1.0, 1.0, -1e16]), 2.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 1e-300]), 1.0 + f64::EPSILON, "above half way");
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, -1e-300]), 1.0, "below half way");
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0, "half way goes to the even neighbour");
        assert_eq!(sum(&[]), 0.0);
        assert!(sum(&[0.5, f64::NAN]).is_nan());
    }

    proptest! {
        #[test]
        fn order_never_matters(numbers in prop::collection::vec(0.0..=1.0f64, 0..60), seed in any::<u64>()) {
            let mut shuffled = numbers.clone();
            crate::env::mersenne::Random::new(seed).shuffle(&mut shuffled);
            prop_assert_eq!(sum(&numbers), sum(&shuffled));
        }
    }
}
