//! Turns item scores into the numbers that the gate compares. Sums are exact, so that a mean depends neither on the
//! order of items nor on where an evaluation stopped; must not decide anything.

use crate::domain::{ExactSum, GateMetric, GateScore, Score};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
