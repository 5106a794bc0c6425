//! Uncertainty of paired scores: tests, intervals, smallest visible gain. Owns the formulas and names their sources;
//! must not decide.

use crate::domain::ExactSum;

/// Two-sided 95 % point of the normal distribution.
pub(super) const Z95: f64 = 1.959_963_984_540_054;

/// ln P(Bin(m, 1/2) = k).
fn ln_half_binomial(m: usize, k: usize) -> f64 {
    let k = k.min(m - k.min(m));
    let choose: f64 = (0..k).map(|i| ((m - i) as f64 / (i + 1) as f64).ln()).sum();
    choose - m as f64 * std::f64::consts::LN_2
}

/// P(from <= Bin(m, 1/2) <= to), summed outwards from the largest term.
fn half_binomial(m: usize, from: usize, to: usize) -> f64 {
    let peak = (m / 2).clamp(from, to);
    let largest = ln_half_binomial(m, peak).exp();
    let mut sum = largest;
    let mut term = largest;
    for k in peak..to {
        term *= (m - k) as f64 / (k + 1) as f64;
        sum += term;
    }
    term = largest;
    for k in (from..peak).rev() {
        term *= (k + 1) as f64 / (m - k) as f64;
        sum += term;
    }
    sum.min(1.0)
}

/// Exact one-sided McNemar test: P(Bin(m, 1/2) >= gains) with m = gains + losses. 1 without discordant items.
pub fn exact_p(gains: usize, losses: usize) -> f64 {
    half_binomial(gains + losses, gains, gains + losses)
}

/// Mid-p of the one-sided McNemar test: the exact p less half the probability of the observed split (Fagerland,
/// Lydersen and Laake 2013). 1 - mid-p is P(candidate is better) under a flat prior.
pub fn mid_p(gains: usize, losses: usize) -> f64 {
    exact_p(gains, losses) - 0.5 * ln_half_binomial(gains + losses, gains).exp()
}

/// Wealth of a bettor who stakes the fraction `stake` on a gain at every discordant item (Waudby-Smith and Ramdas 2024):
/// (1 + stake)^gains * (1 - stake)^losses.
pub fn betting_wealth(gains: usize, losses: usize, stake: f64) -> f64 {
    (gains as f64 * stake.ln_1p() + losses as f64 * (-stake).ln_1p()).exp()
}

/// E-value of the uniform mixture over P(gain) in [1/2, 1]: 2^(m+1) B(b+1, c+1) P(Bin(m+1, 1/2) <= b).
pub fn mixture_e_value(gains: usize, losses: usize) -> f64 {
    let m = gains + losses;
    // B(b+1, c+1) = 1 / ((m+1) C(m, b)), and C(m, b) = 2^m P(Bin(m, 1/2) = b).
    let ln_beta = -((m + 1) as f64).ln() - ln_half_binomial(m, gains) - m as f64 * std::f64::consts::LN_2;
    let ln_scale = (m + 1) as f64 * std::f64::consts::LN_2 + ln_beta;
    ln_scale.exp() * half_binomial(m + 1, 0, gains)
}

/// Wilson's score interval (1927) of a rate, 95 %. Both may be fractional; (0, 1) for n = 0.
pub fn wilson_interval(passed: f64, n: f64) -> (f64, f64) {
    if n.is_nan() || n <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = Z95 * Z95;
    let rate = passed / n;
    let centre = (rate + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 / (1.0 + z2 / n) * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// 95 % interval of the mean paired difference; each difference is in [-1, 1]. For pass/fail this is the adjusted Wald
/// interval of Agresti and Min (2005, "Simple improved confidence intervals for comparing matched proportions"), which
/// adds half a pair to each of the four cells, i.e. two pairs with differences 0, 0 and half weights at +1 and -1; graded
/// differences get the same two pseudo-pairs. (-1, 1) without pairs.
pub fn paired_interval(differences: &[f64]) -> (f64, f64) {
    if differences.is_empty() {
        return (-1.0, 1.0);
    }
    let n = (differences.len() + 2) as f64;
    let mean = sum(differences.iter().copied()) / n;
    let second_moment = (sum(differences.iter().map(|d| d * d)) + 1.0) / n;
    let half = Z95 * ((second_moment - mean * mean).max(0.0) / n).sqrt();
    ((mean - half).max(-1.0), (mean + half).min(1.0))
}

/// Smallest mean gain on `n` items that a one-sided test at alpha 0.1 sees with power 0.8:
/// (1.282 + 0.842) sqrt(psi / n), where psi is the discordance (share of items whose result differs; for graded scores
/// the mean squared difference). 1 for n = 0.
pub fn smallest_visible_gain(psi: f64, n: usize) -> f64 {
    if n == 0 { 1.0 } else { (2.124 * (psi / n as f64).sqrt()).min(1.0) }
}

/// A paired comparison on equal items.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedGain {
    pub n: usize,
    /// Mean difference, second minus first.
    pub mean: f64,
    /// 95 %, [`paired_interval`].
    pub interval: (f64, f64),
    /// Items on which the second is better, and worse.
    pub gains: usize,
    pub losses: usize,
    /// [`mid_p`]; `None` without discordant items.
    pub mid_p: Option<f64>,
    /// Mean squared difference; for pass/fail the share of discordant items. Where no item differs, as if one did.
    pub psi: f64,
}

/// Compares two score lists of the same items, in the same order: `pairs` of (first, second).
pub fn paired_gain(pairs: &[(f64, f64)]) -> PairedGain {
    let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
    let n = differences.len();
    let gains = differences.iter().filter(|difference| **difference > 0.0).count();
    let losses = differences.iter().filter(|difference| **difference < 0.0).count();
    let mean = if n == 0 { 0.0 } else { sum(differences.iter().copied()) / n as f64 };
    let squares = sum(differences.iter().map(|difference| difference * difference));
    let psi = if n == 0 { 1.0 } else { (if squares > 0.0 { squares } else { 1.0 }) / n as f64 };
    PairedGain {
        n,
        mean,
        interval: paired_interval(&differences),
        gains,
        losses,
        mid_p: (gains + losses > 0).then(|| mid_p(gains, losses)),
        psi,
    }
}

fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sum = ExactSum::default();
    numbers.for_each(|number| sum.add(number));
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// gains, losses, exact p, mid-p, wealth at stake 0.5, mixture e-value, P(better).
    type Row = (usize, usize, f64, f64, f64, f64, f64);

    #[test]
    fn published_values() {
        let rows: [Row; 13] = [
            (2, 0, 0.2500, 0.1250, 2.250, 2.333, 0.8750),
            (3, 0, 0.1250, 0.0625, 3.375, 3.750, 0.9375),
            (4, 0, 0.0625, 0.0312, 5.062, 6.200, 0.9688),
            (5, 0, 0.0312, 0.0156, 7.594, 10.500, 0.9844),
            (7, 0, 0.0078, 0.0039, 17.086, 31.875, 0.9961),
            (8, 0, 0.0039, 0.0020, 25.629, 56.778, 0.9980),
            (3, 1, 0.3125, 0.1875, 1.688, 1.300, 0.8125),
            (5, 1, 0.1094, 0.0625, 3.797, 2.857, 0.9375),
            (7, 2, 0.0898, 0.0547, 4.271, 2.689, 0.9453),
            (12, 5, 0.0717, 0.0481, 4.055, 2.240, 0.9519),
            (3, 3, 0.6562, 0.5000, 0.422, 0.457, 0.5000),
            (0, 2, 1.0000, 0.8750, 0.250, 0.333, 0.1250),
            (0, 0, 1.0, 0.5, 1.0, 1.0, 0.5),
        ];
        for (gains, losses, exact, mid, wealth, e_value, better) in rows {
            let near = |value: f64, wanted: f64, tolerance: f64| {
                assert!((value - wanted).abs() <= tolerance, "{gains}-{losses}: {value} instead of {wanted}");
            };
            near(exact_p(gains, losses), exact, 6e-5);
            near(mid_p(gains, losses), mid, 6e-5);
            near(betting_wealth(gains, losses, 0.5), wealth, 6e-4);
            near(mixture_e_value(gains, losses), e_value, 6e-4);
            near(1.0 - mid_p(gains, losses), better, 6e-5);
        }
    }

    #[test]
    fn large_counts_stay_finite() {
        let p = mid_p(5_200, 4_800);
        assert!((p - 3.17e-5).abs() < 1e-6, "normal tail at z = 4: {p}");
        assert!((mid_p(4_000, 4_000) - 0.5).abs() < 1e-9);
        assert_eq!(exact_p(0, 10_000), 1.0);
    }

    #[test]
    fn wilson_matches_published_values() {
        let (low, high) = wilson_interval(8.0, 10.0);
        assert!((low - 0.4902).abs() < 5e-5 && (high - 0.9433).abs() < 5e-5, "{low} {high}");
        assert_eq!(wilson_interval(0.0, 5.0).0, 0.0);
        assert_eq!(wilson_interval(5.0, 5.0).1, 1.0);
        assert_eq!(wilson_interval(0.0, 0.0), (0.0, 1.0));
    }

    #[test]
    fn the_paired_interval_is_agresti_and_mins_on_pass_fail() {
        // 12 gains, 5 losses, 83 ties: (b - c) / (n + 2) -+ z sqrt(b + c + 1 - (b - c)^2 / (n + 2)) / (n + 2).
        let differences: Vec<f64> = (0..100)
            .map(|i| {
                if i < 12 {
                    1.0
                } else if i < 17 {
                    -1.0
                } else {
                    0.0
                }
            })
            .collect();
        let (n, gap) = (102.0, 7.0);
        let half = Z95 * (18.0_f64 - gap * gap / n).sqrt() / n;
        let (low, high) = paired_interval(&differences);
        assert!((low - (gap / n - half)).abs() < 1e-12 && (high - (gap / n + half)).abs() < 1e-12);
    }

    #[test]
    fn no_data_and_no_difference_promise_nothing() {
        assert_eq!(paired_interval(&[]), (-1.0, 1.0));
        let (low, high) = paired_interval(&[0.0; 10]);
        assert!(low < -0.1 && high > 0.1, "{low} {high}");
        let gain = paired_gain(&[(0.5, 0.5); 10]);
        assert_eq!((gain.mean, gain.mid_p, gain.psi), (0.0, None, 0.1));
    }

    #[test]
    fn smallest_visible_gain_matches_the_published_table() {
        // (psi, n, points)
        for (psi, n, points) in [(0.1, 10, 21.0), (0.2, 100, 9.5), (0.3, 40, 18.0), (0.3, 400, 5.8)] {
            let gain = 100.0 * smallest_visible_gain(psi, n);
            assert!((gain - points).abs() < 0.6, "{psi} {n}: {gain}");
        }
        assert_eq!(smallest_visible_gain(0.2, 0), 1.0);
    }

    #[test]
    fn graded_pairs_count_by_sign_and_size() {
        let gain = paired_gain(&[(0.25, 0.75), (1.0, 0.5), (0.5, 0.5), (0.0, 1.0)]);
        assert_eq!((gain.gains, gain.losses), (2, 1));
        assert_eq!((gain.mean, gain.psi), (0.25, 0.375));
    }
}
