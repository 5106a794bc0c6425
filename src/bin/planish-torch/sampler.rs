//! Choice of one token from one row of logits. A sequence owns its random stream and draws one number per token, so
//! its sample depends on its own logits and seed only.

use planish::domain::Sampling;

use crate::kernels::exp_sum;

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Stream `index` of `seed`.
    pub fn new(seed: u64, index: u64) -> Self {
        let base = Self(seed).next();
        Self(Self(base.wrapping_add(index)).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), 53 bits.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How to choose; absent values of a request are filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// 0: greedy.
    pub temperature: f32,
    pub top_p: f64,
    /// 0: off.
    pub top_k: usize,
}

impl Policy {
    pub fn new(sampling: &Sampling) -> Result<Self, String> {
        let temperature = sampling.temperature.unwrap_or(1.0);
        if !(0.0..=100.0).contains(&temperature) {
            return Err(format!("temperature {temperature} must lie in 0..=100"));
        }
        let top_p = sampling.top_p.unwrap_or(1.0);
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(format!("top_p {top_p} must lie above 0 and at most at 1"));
        }
        let top_k = sampling.top_k.unwrap_or(0) as usize;
        Ok(Self { temperature: temperature as f32, top_p, top_k })
    }

    /// Chooses a token. `None`: the logits hold no finite largest value.
    pub fn pick(&self, logits: &[f32], random: &mut Random) -> Option<u32> {
        let best = largest(logits)?;
        // Drawn even when greedy, so that changing the temperature does not shift later draws.
        let draw = random.uniform();
        if self.temperature == 0.0 || self.top_k == 1 {
            return Some(best);
        }
        let mut weights = vec![0.0; logits.len()];
        let total = exp_sum(logits, logits[best as usize], 1.0 / self.temperature.max(1e-6), &mut weights);
        if self.top_k == 0 && self.top_p >= 1.0 {
            return Some(draw_from(weights.iter().copied().enumerate(), draw * total).unwrap_or(best));
        }
        let kept = self.kept(&weights, total);
        let total: f64 = kept.iter().map(|(_, weight)| f64::from(*weight)).sum();
        Some(draw_from(kept.into_iter(), draw * total).unwrap_or(best))
    }

    /// The `top_k` largest weights, then the fewest of them whose sum reaches `top_p` of all; largest first, equal
    /// ones by token id.
    fn kept(&self, weights: &[f32], total: f64) -> Vec<(usize, f32)> {
        // Tokens below this can make up at most 1 - top_p together, so none of them is needed.
        let floor = (1.0 - self.top_p) * total / weights.len() as f64;
        let mut kept: Vec<(usize, f32)> =
            weights.iter().copied().enumerate().filter(|(_, weight)| f64::from(*weight) >= floor).collect();
        let order = |a: &(usize, f32), b: &(usize, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.top_k > 0 && self.top_k < kept.len() {
            kept.select_nth_unstable_by(self.top_k - 1, order);
            kept.truncate(self.top_k);
        }
        kept.sort_unstable_by(order);
        let mass: f64 = kept.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let reach = if self.top_k > 0 { mass } else { total } * self.top_p;
        let mut sum = 0.0;
        let needed = kept.iter().position(|(_, weight)| {
            sum += f64::from(*weight);
            sum >= reach
        });
        kept.truncate(needed.map_or(kept.len(), |last| last + 1));
        kept
    }
}

/// The first token at which the running sum exceeds `target`, else the last one with any weight.
fn draw_from(weights: impl Iterator<Item = (usize, f32)>, target: f64) -> Option<u32> {
    let mut sum = 0.0;
    let mut last = None;
    for (token, weight) in weights {
        if weight > 0.0 {
            sum += f64::from(weight);
            last = Some(token as u32);
            if sum > target {
                break;
            }
        }
    }
    last
}

/// Token with the largest logit, the lowest id among equals.
fn largest(logits: &[f32]) -> Option<u32> {
    let mut best = 0;
    for (token, logit) in logits.iter().enumerate() {
        if logit.is_nan() {
            return None;
        }
        if *logit > logits[best] {
            best = token;
        }
    }
    logits.get(best).filter(|logit| logit.is_finite()).map(|_| best as u32)
}

/// log Σ exp(logits): subtracting it from a logit gives the log-probability (log-softmax, in f32).
pub fn log_normaliser(logits: &[f32]) -> f32 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut terms = vec![0.0; logits.len()];
    max + exp_sum(logits, max, 1.0, &mut terms).ln() as f32
}

/// The `count` most likely tokens with their log-probabilities, most likely first, equal ones by token id.
pub fn most_likely(logits: &[f32], normaliser: f32, count: usize) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> =
        logits.iter().enumerate().map(|(token, logit)| (token as u32, logit - normaliser)).collect();
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if count > 0 && count < all.len() {
        all.select_nth_unstable_by(count - 1, order);
    }
    all.truncate(count);
    all.sort_unstable_by(order);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(temperature: f64, top_p: Option<f64>, top_k: Option<u32>) -> Policy {
        let sampling = Sampling {
            max_tokens: 1,
            temperature: Some(temperature),
            top_p,
            top_k,
            seed: None,
            stop: vec![],
        };
        Policy::new(&sampling).unwrap()
    }

    fn counts(policy: &Policy, logits: &[f32], draws: usize) -> Vec<usize> {
        let mut random = Random::new(7, 0);
        let mut counts = vec![0; logits.len()];
        for _ in 0..draws {
            counts[policy.pick(logits, &mut random).unwrap() as usize] += 1;
        }
        counts
    }

    /// Probabilities 1/2, 1/4, 1/8, 1/8.
    fn halves() -> Vec<f32> {
        [4.0f32, 2.0, 1.0, 1.0].iter().map(|w| w.ln()).collect()
    }

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(policy(0.0, None, None).pick(&[1.0, 3.0, 3.0], &mut Random::new(0, 0)), Some(1));
        assert_eq!(policy(0.0, None, None).pick(&[1.0, f32::NAN], &mut Random::new(0, 0)), None);
    }

    #[test]
    fn frequencies_follow_the_probabilities() {
        let counts = counts(&policy(1.0, None, None), &halves(), 80_000);
        for (count, expected) in counts.iter().zip([40_000.0, 20_000.0, 10_000.0, 10_000.0]) {
            let sd = f64::sqrt(expected);
            assert!((*count as f64 - expected).abs() < 4.0 * sd, "{count} {expected}");
        }
    }

    #[test]
    fn temperature_sharpens() {
        // At temperature 1/2 the weights are squared: 16 : 4 : 1 : 1.
        let counts = counts(&policy(0.5, None, None), &halves(), 22_000);
        assert!((counts[0] as f64 - 16_000.0).abs() < 500.0, "{counts:?}");
    }

    #[test]
    fn top_k_and_top_p_cut_the_tail() {
        assert_eq!(counts(&policy(1.0, None, Some(2)), &halves(), 2_000)[2..], [0, 0]);
        let nucleus = counts(&policy(1.0, Some(0.75), None), &halves(), 2_000);
        assert!(nucleus[0] > 0 && nucleus[1] > 0, "{nucleus:?}");
        assert_eq!(nucleus[2..], [0, 0]);
        let single = counts(&policy(1.0, Some(0.1), None), &halves(), 100);
        assert_eq!(single[0], 100);
    }

    #[test]
    fn streams_repeat_by_seed_and_differ_by_seed_and_index() {
        let stream = |seed, index| {
            let mut random = Random::new(seed, index);
            [random.next(), random.next()]
        };
        assert_eq!(stream(1, 2), stream(1, 2));
        assert_ne!(stream(1, 2), stream(2, 1));
        assert_ne!(stream(1, 2), stream(1, 3));
    }

    #[test]
    fn bad_parameters_are_refused_by_name() {
        let mut sampling = Sampling {
            max_tokens: 1,
            temperature: Some(-1.0),
            top_p: None,
            top_k: None,
            seed: None,
            stop: vec![],
        };
        assert!(Policy::new(&sampling).unwrap_err().contains("temperature"));
        sampling.temperature = Some(f64::NAN);
        assert!(Policy::new(&sampling).is_err());
        sampling.temperature = None;
        sampling.top_p = Some(0.0);
        assert!(Policy::new(&sampling).unwrap_err().contains("top_p"));
    }

    #[test]
    fn log_probabilities_are_normalised_and_sorted() {
        let logits = halves();
        let top = most_likely(&logits, log_normaliser(&logits), 3);
        assert_eq!(top.iter().map(|t| t.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert!((top[0].1.exp() - 0.5).abs() < 1e-6 && (top[2].1.exp() - 0.125).abs() < 1e-6);
    }
}
