//! Sums that do not depend on the order of their numbers. Owns exact summation; must not know what is added.

/// A sum of doubles without rounding error until it is read: Shewchuk's non-overlapping partials (1997, "Adaptive
/// precision floating-point arithmetic"), as in Python's `math.fsum`.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
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
