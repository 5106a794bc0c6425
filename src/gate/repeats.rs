//! Items measured several times: means, intervals and steadiness. The item stays the unit, whatever the number of
//! repeats: repeats of one item are not independent of each other. Must not decide.

use super::statistics::{Z95, wilson_interval};
use crate::domain::{ExactSum, Score};

/// A mean over items with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    pub interval: (f64, f64),
}

/// How a set of items did in `repeats` measurements each.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatSummary {
    pub items: usize,
    pub repeats: usize,
    /// Items with at least one answer; the others have no part in any number below.
    pub scored: usize,
    /// `None` when no item was answered.
    pub hard: Option<Estimate>,
    pub soft: Option<Estimate>,
    /// Items with every repeat answered that passed in all, in some or in none of them. `always` over their sum is
    /// pass^k, `always + sometimes` is pass@k.
    pub always: usize,
    pub sometimes: usize,
    pub never: usize,
    /// Mean squared difference of two repeats of an item, for pass/fail the chance that they differ; `None` without an
    /// item that was answered twice.
    pub flip: Option<f64>,
}

/// Summary of `items`, each given by the scores of its answered repeats.
pub fn repeat_summary(items: &[Vec<&Score>], repeats: usize) -> RepeatSummary {
    let answered: Vec<&Vec<&Score>> = items.iter().filter(|scores| !scores.is_empty()).collect();
    let means = |part: fn(&Score) -> f64| -> Vec<f64> {
        answered.iter().map(|scores| mean(scores.iter().map(|score| part(score)))).collect()
    };
    let (hard, soft) = (means(|score| score.hard), means(|score| score.soft));
    let mut summary = RepeatSummary {
        items: items.len(),
        repeats,
        scored: answered.len(),
        hard: estimate(&hard, rate_interval(&hard, repeats)),
        soft: estimate(&soft, graded_interval(&soft)),
        always: 0,
        sometimes: 0,
        never: 0,
        flip: flip(&answered),
    };
    for scores in answered.iter().filter(|scores| scores.len() == repeats) {
        match scores.iter().filter(|score| passed(score)).count() {
            0 => summary.never += 1,
            passes if passes == repeats => summary.always += 1,
            _ => summary.sometimes += 1,
        }
    }
    summary
}

/// Mean hard and mean soft of an item's answered repeats; `None` without any.
pub fn item_means(scores: &[&Score]) -> Option<(f64, f64)> {
    let part = |part: fn(&Score) -> f64| mean(scores.iter().map(|score| part(score)));
    (!scores.is_empty()).then(|| (part(|score| score.hard), part(|score| score.soft)))
}

/// Completely right: a fraction of the parts is no pass.
pub fn passed(score: &Score) -> bool {
    score.hard >= 1.0 - 1e-9
}

/// 95 % interval of a rate from item means of `repeats` pass/fail measurements each: [`graded_interval`] with no more than
/// all measurements as its sample size. One measurement each gives Wilson's interval itself.
pub fn rate_interval(means: &[f64], repeats: usize) -> (f64, f64) {
    clustered_interval(means, means.len() * repeats.max(1))
}

/// 95 % interval of a mean of values in [0, 1], one per item: Wilson's with the effective sample size of clustered data
/// (Dean and Pagano 2015, "Evaluating confidence interval methods for binomial proportions in clustered surveys"), p (1 -
/// p) over the variance of the mean between items, reduced for its n - 1 degrees of freedom, and at least n. For many
/// values this is Student's interval; it stays inside [0, 1] and is Wilson's own for values of 0 and 1.
pub fn graded_interval(values: &[f64]) -> (f64, f64) {
    clustered_interval(values, usize::MAX)
}

fn clustered_interval(means: &[f64], most: usize) -> (f64, f64) {
    let n = means.len() as f64;
    let rate = mean(means.iter().copied());
    let spread = variance(means);
    let effective = if spread > 0.0 {
        let degrees = Z95 / t_quantile(means.len() - 1);
        rate * (1.0 - rate) / (spread / n) * degrees * degrees
    } else if rate > 0.0 && rate < 1.0 && most < usize::MAX {
        // Equal shares of pass/fail results differ within the items only.
        most as f64
    } else {
        // Equal values say nothing about their spread.
        n
    };
    let effective = effective.clamp(n, (most as f64).max(n));
    wilson_interval(rate * effective, effective)
}

/// Two-sided 95 % point of Student's t (Abramowitz and Stegun 26.7.5; exact for one and two degrees of freedom, within
/// 0.2 % above).
fn t_quantile(degrees: usize) -> f64 {
    let z = Z95;
    match degrees {
        0 => f64::INFINITY,
        1 => 12.706_204_736_432_095,
        2 => 4.302_652_729_911_275,
        _ => {
            let v = degrees as f64;
            let terms = [
                (z.powi(3) + z) / 4.0,
                (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
                (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
                (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z)
                    / 92160.0,
            ];
            terms.iter().rev().fold(0.0, |sum, term| (sum + term) / v) + z
        }
    }
}

fn estimate(values: &[f64], interval: (f64, f64)) -> Option<Estimate> {
    (!values.is_empty()).then(|| Estimate { mean: mean(values.iter().copied()), interval })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len();
    let mut sum = ExactSum::default();
    values.for_each(|value| sum.add(value));
    sum.mean(n)
}

/// Sample variance; 0 for fewer than two values.
fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values.iter().copied());
    let n = values.len() as f64;
    mean(values.iter().map(|value| (value - centre).powi(2))) * n / (n - 1.0)
}

fn flip(answered: &[&Vec<&Score>]) -> Option<f64> {
    let twice = answered.iter().filter(|scores| scores.len() > 1);
    let flips: Vec<f64> = twice
        .map(|scores| 2.0 * variance(&scores.iter().map(|score| score.hard).collect::<Vec<_>>()))
        .collect();
    (!flips.is_empty()).then(|| mean(flips.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::mersenne::Random;

    fn scores(rows: &[&[f64]]) -> Vec<Vec<Score>> {
        let score = |hard: &f64| Score { hard: *hard, soft: hard / 2.0, reason: String::new() };
        rows.iter().map(|row| row.iter().map(score).collect()).collect()
    }

    fn summary(rows: &[&[f64]], repeats: usize) -> RepeatSummary {
        let scores = scores(rows);
        let items: Vec<Vec<&Score>> = scores.iter().map(|row| row.iter().collect()).collect();
        repeat_summary(&items, repeats)
    }

    #[test]
    fn the_item_is_the_unit_and_missing_repeats_are_no_zeros() {
        let told = summary(&[&[1.0, 1.0], &[1.0, 0.0], &[0.0, 0.0], &[1.0], &[]], 2);
        assert_eq!((told.items, told.scored), (5, 4));
        assert_eq!((told.always, told.sometimes, told.never), (1, 1, 1), "only items with all repeats");
        assert_eq!(told.hard.unwrap().mean, (1.0 + 0.5 + 0.0 + 1.0) / 4.0);
        assert_eq!(told.soft.unwrap().mean, told.hard.unwrap().mean / 2.0);
        assert_eq!(told.flip, Some((0.0 + 1.0 + 0.0) / 3.0));
    }

    #[test]
    fn a_part_is_no_pass() {
        let told = summary(&[&[0.5, 0.5], &[0.5, 1.0]], 2);
        assert_eq!((told.always, told.sometimes, told.never), (0, 1, 1));
    }

    #[test]
    fn nothing_measured_has_no_mean() {
        let told = summary(&[&[], &[]], 3);
        assert_eq!((told.hard, told.soft, told.flip, told.scored), (None, None, None, 0));
        assert_eq!(summary(&[], 1).hard, None);
    }

    #[test]
    fn one_measurement_each_is_wilsons_interval() {
        let means = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(rate_interval(&means, 1), wilson_interval(8.0, 10.0));
        assert_eq!(
            rate_interval(&[1.0; 6], 3),
            wilson_interval(6.0, 6.0),
            "a sweep says nothing about noise"
        );
        assert_eq!(rate_interval(&[], 1), (0.0, 1.0));
    }

    #[test]
    fn repeats_of_steady_items_add_nothing_and_of_noisy_ones_at_most_themselves() {
        let steady = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(rate_interval(&steady, 9), wilson_interval(4.0, 8.0), "nine times the same answer");
        let noisy = [0.5; 8];
        assert_eq!(rate_interval(&noisy, 2), wilson_interval(8.0, 16.0));
    }

    #[test]
    fn students_t_matches_the_published_table() {
        for (degrees, wanted) in
            [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423)]
        {
            let found = t_quantile(degrees);
            assert!((found / wanted - 1.0).abs() < 2e-3, "{degrees}: {found}");
        }
    }

    #[test]
    fn graded_values_are_wilsons_at_the_ends_and_students_in_the_long_run() {
        let binary = [1.0, 1.0, 0.0, 1.0, 0.0];
        assert_eq!(graded_interval(&binary), wilson_interval(3.0, 5.0));
        assert_eq!(graded_interval(&[0.5]), wilson_interval(0.5, 1.0));
        assert_eq!(graded_interval(&[0.5; 4]), wilson_interval(2.0, 4.0));
        assert_eq!(graded_interval(&[]), (0.0, 1.0));
        let many: Vec<f64> = (0..400).map(|i| 0.3 + 0.2 * f64::from(i % 5) / 4.0).collect();
        let half = t_quantile(399) * (variance(&many) / 400.0).sqrt();
        let (low, high) = graded_interval(&many);
        assert!(
            (low - (0.4 - half)).abs() < 1e-4 && (high - (0.4 + half)).abs() < 1e-4,
            "{low} {high} {half}"
        );
    }

    /// Items drawn from a population of which half are even chances and half nearly sure; the interval must hold the
    /// population's mean about 95 times in 100, also when repeats make the items look like many.
    #[test]
    fn intervals_cover_what_they_claim() {
        let mut random = Random::new(11);
        for (items, repeats) in [(15, 1), (15, 5), (60, 3)] {
            let mut covered = 0;
            for _ in 0..1000 {
                let means: Vec<f64> = (0..items)
                    .map(|_| {
                        let chance = if random.random() < 0.5 { 0.5 } else { 0.95 };
                        let passes = (0..repeats).filter(|_| random.random() < chance).count();
                        passes as f64 / repeats as f64
                    })
                    .collect();
                let (low, high) = rate_interval(&means, repeats);
                covered += usize::from(low <= 0.725 && 0.725 <= high);
            }
            assert!((925..=990).contains(&covered), "{items} items, {repeats} repeats: {covered} of 1000");
        }
        for (items, power, truth) in [(10, 1, 0.5), (15, 4, 0.2), (100, 4, 0.2)] {
            let mut covered = 0;
            for _ in 0..1000 {
                let values: Vec<f64> = (0..items).map(|_| random.random().powi(power)).collect();
                let (low, high) = graded_interval(&values);
                covered += usize::from(low <= truth && truth <= high);
            }
            assert!((920..=990).contains(&covered), "{items} graded items: {covered} of 1000");
        }
    }
}
