//! An append-only column of numbers with summaries of 4, 16, 64… of them, so that the extent of any range costs the
//! logarithm of its length. Knows no x axis. Anything but a finite number is a gap.

use std::ops::Range;

/// Entries of one level that an entry of the next one sums up.
const FAN: usize = 4;

/// What a range of numbers spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Infinite and above `high` where the range has no finite number.
    pub low: f64,
    pub high: f64,
    /// The least number above 0: where a logarithmic axis begins. Infinite without one.
    pub least_positive: f64,
    /// Finite numbers that a logarithmic axis cannot show.
    pub not_positive: u32,
    pub gaps: u32,
}

impl Extent {
    pub const EMPTY: Self = Self {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
        least_positive: f64::INFINITY,
        not_positive: 0,
        gaps: 0,
    };

    pub fn of(value: f64) -> Self {
        if !value.is_finite() {
            return Self { gaps: 1, ..Self::EMPTY };
        }
        let positive = value > 0.0;
        Self {
            low: value,
            high: value,
            least_positive: if positive { value } else { f64::INFINITY },
            not_positive: u32::from(!positive),
            gaps: 0,
        }
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            least_positive: self.least_positive.min(other.least_positive),
            not_positive: self.not_positive.saturating_add(other.not_positive),
            gaps: self.gaps.saturating_add(other.gaps),
        }
    }

    /// Least and greatest finite number.
    pub fn limits(&self) -> Option<(f64, f64)> {
        (self.low <= self.high).then_some((self.low, self.high))
    }

    /// Least and greatest number above 0.
    pub fn positive_limits(&self) -> Option<(f64, f64)> {
        (self.least_positive <= self.high).then_some((self.least_positive, self.high))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pyramid {
    values: Vec<f64>,
    /// `levels[k][i]` sums up the values from `i * FAN^(k+1)`; only whole groups have an entry.
    levels: Vec<Vec<Extent>>,
}

impl Pyramid {
    pub fn push(&mut self, value: f64) {
        self.values.push(value);
        let mut filled = self.values.len();
        let mut level = 0;
        while filled.is_multiple_of(FAN) {
            let sum = match level {
                0 => {
                    self.values[filled - FAN..].iter().fold(Extent::EMPTY, |sum, v| sum.with(Extent::of(*v)))
                }
                _ => self.levels[level - 1][filled - FAN..].iter().fold(Extent::EMPTY, |sum, e| sum.with(*e)),
            };
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(sum);
            filled /= FAN;
            level += 1;
        }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The extent of the values in `range`, which may reach beyond the end.
    pub fn extent(&self, range: Range<usize>) -> Extent {
        let (mut from, mut to) = (range.start, range.end.min(self.values.len()));
        let mut sum = Extent::EMPTY;
        let mut level = 0;
        while from < to {
            let entry = |index: usize| match level {
                0 => Extent::of(self.values[index]),
                _ => self.levels[level - 1][index],
            };
            // Up to the next whole group from both sides; the groups between are entries of the next level.
            while from < to && !from.is_multiple_of(FAN) {
                sum = sum.with(entry(from));
                from += 1;
            }
            while from < to && !to.is_multiple_of(FAN) {
                to -= 1;
                sum = sum.with(entry(to));
            }
            (from, to) = (from / FAN, to / FAN);
            level += 1;
        }
        sum
    }
}

impl FromIterator<f64> for Pyramid {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut out = Self::default();
        values.into_iter().for_each(|value| out.push(value));
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute(values: &[f64]) -> Extent {
        values.iter().fold(Extent::EMPTY, |sum, value| sum.with(Extent::of(*value)))
    }

    fn any_value() -> impl Strategy<Value = f64> {
        prop_oneof![
            6 => -1e9..1e9f64,
            1 => Just(0.0),
            1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE]),
            2 => any::<f64>(),
        ]
    }

    proptest! {
        #[test]
        fn any_range_is_that_of_its_values(
            values in prop::collection::vec(any_value(), 0..700),
            a in 0usize..800,
            b in 0usize..800,
        ) {
            let pyramid: Pyramid = values.iter().copied().collect();
            let (from, to) = (a.min(b), a.max(b));
            let inside = &values[from.min(values.len())..to.min(values.len())];
            prop_assert_eq!(pyramid.extent(from..to), brute(inside));
            prop_assert_eq!(pyramid.extent(0..values.len()), brute(&values));
        }
    }

    #[test]
    fn gaps_and_values_a_logarithm_lacks_are_counted() {
        let pyramid: Pyramid = [0.0, -1.0, f64::NAN, 5.0, f64::INFINITY, 2.0].into_iter().collect();
        let extent = pyramid.extent(0..6);
        assert_eq!((extent.limits(), extent.positive_limits()), (Some((-1.0, 5.0)), Some((2.0, 5.0))));
        assert_eq!((extent.not_positive, extent.gaps), (2, 2));
        assert_eq!(pyramid.extent(2..3).limits(), None);
    }

    #[test]
    fn summaries_are_a_third_of_the_values() {
        let pyramid: Pyramid = (0..100_000).map(f64::from).collect();
        let entries: usize = pyramid.levels.iter().map(Vec::len).sum();
        assert!(entries * 3 <= pyramid.len());
        assert_eq!(pyramid.extent(777..99_000).limits(), Some((777.0, 98_999.0)));
    }
}
