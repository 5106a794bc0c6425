//! One curve: its values with three x columns (step, time, tokens), and the same smoothed over the whole series. Append
//! only; what must be thinned out keeps its extremes. Draws nothing and knows no name.

use std::ops::Range;

use super::pyramid::{Extent, Pyramid};

/// What a curve is drawn over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Axis {
    #[default]
    Step,
    /// Milliseconds since the run began.
    Time,
    /// Tokens of all calls so far.
    Tokens,
}

impl Axis {
    pub const ALL: [Axis; 3] = [Axis::Step, Axis::Time, Axis::Tokens];

    pub fn name(self) -> &'static str {
        match self {
            Axis::Step => "step",
            Axis::Time => "time",
            Axis::Tokens => "tokens",
        }
    }
}

/// A place in the run on all three axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    pub step: f64,
    pub time: f64,
    pub tokens: f64,
}

impl Moment {
    pub fn on(&self, axis: Axis) -> f64 {
        match axis {
            Axis::Step => self.step,
            Axis::Time => self.time,
            Axis::Tokens => self.tokens,
        }
    }

    /// No earlier than `other` on any axis.
    fn at_least(self, other: Self) -> Self {
        let later = |own: f64, other: f64| if own >= other { own } else { other };
        Self {
            step: later(self.step, other.step),
            time: later(self.time, other.time),
            tokens: later(self.tokens, other.tokens),
        }
    }
}

/// How much of the mean so far stays in each smoothed value (exponential moving average).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Smoothing {
    #[default]
    Off,
    Some,
    Much,
}

impl Smoothing {
    pub const ALL: [Smoothing; 3] = [Smoothing::Off, Smoothing::Some, Smoothing::Much];

    pub fn factor(self) -> f64 {
        match self {
            Smoothing::Off => 0.0,
            Smoothing::Some => 0.6,
            Smoothing::Much => 0.9,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Ema {
    values: Pyramid,
    /// The mean so far; begins with the first number, so that it is not drawn to 0.
    mean: Option<f64>,
}

impl Ema {
    fn push(&mut self, value: f64, factor: f64) {
        if !value.is_finite() {
            return self.values.push(f64::NAN);
        }
        let mean = self.mean.map_or(value, |mean| factor * mean + (1.0 - factor) * value);
        self.mean = Some(mean);
        self.values.push(mean);
    }
}

/// Points in the order of the run: no x column ever goes back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    at: Vec<Moment>,
    raw: Pyramid,
    some: Ema,
    much: Ema,
    /// Points ever pushed; more than are kept once the series was thinned out.
    heard: usize,
}

impl Series {
    /// A moment before the last point's is taken for that point's: a program that starts again counts anew.
    pub fn push(&mut self, at: Moment, value: f64) {
        self.at.push(self.at.last().map_or(at, |last| at.at_least(*last)));
        self.raw.push(value);
        self.some.push(value, Smoothing::Some.factor());
        self.much.push(value, Smoothing::Much.factor());
        self.heard += 1;
    }

    pub fn len(&self) -> usize {
        self.at.len()
    }

    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    pub fn heard(&self) -> usize {
        self.heard
    }

    pub fn moment(&self, index: usize) -> Option<Moment> {
        self.at.get(index).copied()
    }

    /// The values as they are drawn.
    pub fn values(&self, smoothing: Smoothing) -> &Pyramid {
        match smoothing {
            Smoothing::Off => &self.raw,
            Smoothing::Some => &self.some.values,
            Smoothing::Much => &self.much.values,
        }
    }

    /// The points with x in `[from, to)`.
    pub fn between(&self, axis: Axis, from: f64, to: f64) -> Range<usize> {
        let start = self.first_at(axis, from);
        start..self.first_at(axis, to).max(start)
    }

    /// The first point whose x is at least `x`.
    pub fn first_at(&self, axis: Axis, x: f64) -> usize {
        self.at.partition_point(|at| at.on(axis) < x)
    }

    /// The last point whose x is at most `x`.
    pub fn last_until(&self, axis: Axis, x: f64) -> Option<usize> {
        self.at.partition_point(|at| at.on(axis) <= x).checked_sub(1)
    }

    /// The last finite value.
    pub fn last(&self, smoothing: Smoothing) -> Option<f64> {
        self.values(smoothing).values().iter().rev().copied().find(|value| value.is_finite())
    }

    pub fn extent(&self, smoothing: Smoothing) -> Extent {
        self.values(smoothing).extent(0..self.len())
    }

    /// Keeps of each four points the least, the greatest and a gap if there is one. What is smoothed later still goes on
    /// from all points heard.
    pub fn thin_out(&mut self) {
        let kept: Vec<usize> = (0..self.len()).step_by(4).flat_map(|from| self.tellers(from)).collect();
        self.at = kept.iter().map(|index| self.at[*index]).collect();
        for column in [&mut self.raw, &mut self.some.values, &mut self.much.values] {
            *column = kept.iter().map(|index| column.values()[*index]).collect();
        }
    }

    /// The points to keep of the four from `from` on, in order.
    fn tellers(&self, from: usize) -> Vec<usize> {
        let group = from..(from + 4).min(self.len());
        let value = |index: &usize| self.raw.values()[*index];
        let finite = || group.clone().filter(|index| value(index).is_finite());
        let by_value = |a: &usize, b: &usize| value(a).total_cmp(&value(b));
        let gap = group.clone().find(|index| !value(index).is_finite());
        let mut kept: Vec<usize> =
            [finite().min_by(by_value), finite().max_by(by_value), gap].into_iter().flatten().collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(step: f64) -> Moment {
        Moment { step, time: step * 10.0, tokens: step * 100.0 }
    }

    fn series(values: &[f64]) -> Series {
        let mut out = Series::default();
        for (step, value) in values.iter().enumerate() {
            out.push(at(step as f64), *value);
        }
        out
    }

    /// The definition, over the whole series every time.
    fn naive(values: &[f64], factor: f64) -> Vec<f64> {
        (0..values.len())
            .map(|end| {
                if !values[end].is_finite() {
                    return f64::NAN;
                }
                let numbers = values[..=end].iter().filter(|value| value.is_finite());
                numbers
                    .fold(None, |mean: Option<f64>, value| {
                        Some(mean.map_or(*value, |mean| factor * mean + (1.0 - factor) * value))
                    })
                    .unwrap_or(f64::NAN)
            })
            .collect()
    }

    fn same(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
    }

    proptest! {
        #[test]
        fn smoothing_is_the_moving_average_of_the_whole_series(
            values in prop::collection::vec(prop_oneof![5 => -10.0..10.0f64, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)], 0..80),
        ) {
            let series = series(&values);
            for smoothing in [Smoothing::Some, Smoothing::Much] {
                prop_assert!(same(series.values(smoothing).values(), &naive(&values, smoothing.factor())));
            }
        }

        #[test]
        fn thinning_out_keeps_extremes_gaps_and_order(
            values in prop::collection::vec(prop_oneof![5 => -10.0..10.0f64, 1 => Just(f64::NAN)], 1..200),
        ) {
            let whole = series(&values);
            let mut thin = whole.clone();
            thin.thin_out();
            let (before, after) = (whole.extent(Smoothing::Off), thin.extent(Smoothing::Off));
            prop_assert_eq!((before.low, before.high), (after.low, after.high));
            prop_assert_eq!(before.gaps > 0, after.gaps > 0);
            prop_assert!(thin.at.windows(2).all(|pair| pair[0].step < pair[1].step));
            prop_assert!(thin.len() * 4 <= whole.len() * 3 + 12);
            prop_assert_eq!(thin.heard(), values.len());
        }
    }

    #[test]
    fn smoothing_goes_on_from_all_points_after_thinning() {
        let (mut whole, mut thin) = (series(&[1.0, 5.0, 3.0, 9.0]), series(&[1.0, 5.0, 3.0, 9.0]));
        thin.thin_out();
        assert_eq!(thin.len(), 2);
        whole.push(at(9.0), 2.0);
        thin.push(at(9.0), 2.0);
        assert_eq!(whole.last(Smoothing::Much), thin.last(Smoothing::Much));
    }

    #[test]
    fn x_never_goes_back() {
        let mut series = series(&[1.0, 2.0, 3.0]);
        series.push(at(0.0), 4.0);
        assert_eq!(series.moment(3), Some(at(2.0)));
        assert_eq!(series.between(Axis::Step, 1.0, 2.0), 1..2);
        assert_eq!(series.between(Axis::Time, 15.0, 1e9), 2..4);
        assert_eq!(series.last_until(Axis::Tokens, 150.0), Some(1));
        assert_eq!(series.last_until(Axis::Tokens, -1.0), None);
    }
}
