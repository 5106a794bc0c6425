//! Arithmetic of axes: readable limits, windows that move in steps, limits that stay put, numbers in few digits. Pure.

/// What the numbers of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Plain,
    /// In [0, 1].
    Share,
    Count,
    Seconds,
    Bytes,
    Watts,
    Celsius,
}

impl Unit {
    /// `value` in about seven columns, with four significant digits.
    pub fn words(self, value: f64) -> String {
        match self {
            Unit::Plain | Unit::Share | Unit::Count => significant(value),
            Unit::Seconds => format!("{}s", significant(value)),
            Unit::Bytes => scaled(value, 1024.0, &["", "K", "M", "G", "T", "P"]),
            Unit::Watts => format!("{}W", significant(value)),
            Unit::Celsius => format!("{}°", significant(value)),
        }
    }
}

/// Four significant digits where seven columns hold them: `0.5167`, `12.34`, `123.4k`; whole numbers below 10,000 as
/// they are.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    if value.is_finite() && size != 0.0 && !(1e-3..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    scaled(value, 1000.0, &["", "k", "M", "G", "T"])
}

fn scaled(value: f64, base: f64, suffixes: &[&str]) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() < 9999.5 && (value - value.round()).abs() < 1e-9 {
        return format!("{:.0}", value + 0.0);
    }
    let (mut value, mut power) = (value, 0);
    while value.abs() >= base * 0.99995 && power + 1 < suffixes.len() {
        value /= base;
        power += 1;
    }
    let decimals = match value.abs() {
        // Seven columns hold no more.
        ..0.099_995 => 5,
        ..0.999_95 => 4,
        ..9.9995 => 3,
        ..99.995 => 2,
        ..999.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", suffixes[power])
}

/// Limits around `low..=high` in whole steps of 1, 2 or 5 times a power of ten; never flat.
pub fn nice_limits(low: f64, high: f64) -> (f64, f64) {
    let span = high - low;
    if !span.is_finite() {
        return (low, high);
    }
    let rough = if span > 0.0 {
        span / 3.0
    } else if low == 0.0 {
        1.0
    } else {
        low.abs() / 3.0
    };
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= rough);
    let step = step.unwrap_or(power * 10.0);
    let (below, above) = ((low / step).floor() * step, (high / step).ceil() * step);
    // Rounding may leave a little of the values outside.
    let (below, above) = (below.min(low), above.max(high));
    match (below.is_finite() && above.is_finite(), above > below) {
        (true, true) => (below, above),
        (true, false) => (below - step, above + step),
        // Too small to divide.
        (false, _) => (low - 1.0, high + 1.0),
    }
}

/// Limits that grow at once with the wanted ones and shrink only to less than half: a curve that moves a little leaves
/// its axis alone. The same wanted limits again change nothing.
pub fn sticky(previous: Option<(f64, f64)>, wanted: (f64, f64)) -> (f64, f64) {
    let Some(previous) = previous else { return wanted };
    let both = (previous.0.min(wanted.0), previous.1.max(wanted.1));
    if (wanted.1 - wanted.0) * 2.0 < both.1 - both.0 { wanted } else { both }
}

/// The least of 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, … times `unit` that is not below `end`: an axis that ends
/// there grows by about a quarter at a time.
pub fn stepped_end(end: f64, unit: f64) -> f64 {
    let ratio = end / unit;
    if !(ratio > 1.0 && ratio.is_finite()) {
        return unit;
    }
    let octave = 2f64.powf(ratio.log2().floor());
    let quarters = ((ratio / octave - 1.0) * 4.0).ceil();
    (octave * (1.0 + quarters / 4.0)) * unit
}

/// The part of `0..=whole` that is shown: all of it halved `zoom` times, around `focus`, or else up to `end`. It moves in
/// quarters of its length.
pub fn window(whole: f64, end: f64, zoom: u32, focus: Option<f64>) -> (f64, f64) {
    if zoom == 0 {
        return (0.0, whole);
    }
    let span = whole / 2f64.powi(zoom.min(MOST_ZOOM) as i32);
    let quarter = span / 4.0;
    let from = match focus {
        Some(focus) => ((focus - span / 2.0) / quarter).floor() * quarter,
        None => (end / quarter).ceil() * quarter - span,
    };
    let from = from.min(whole - span).max(0.0);
    (from, from + span)
}

/// A window of a four-thousandth of the whole is as near as it gets.
pub const MOST_ZOOM: u32 = 12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn four_digits_in_seven_columns() {
        for (value, words) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.516_66, "0.5167"),
            (0.5, "0.5000"),
            (0.051_666, "0.05167"),
            (0.001_234, "0.00123"),
            (0.000_9, "9.00e-4"),
            (31.0, "31"),
            (12.345, "12.35"),
            (-3.25, "-3.250"),
            (999.96, "1.000k"),
            (9_999.0, "9999"),
            (12_345.0, "12.35k"),
            (1_234_567.0, "1.235M"),
            (0.000_012, "1.20e-5"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(significant(value), words, "{value}");
        }
        assert_eq!(Unit::Bytes.words(1536.0 * 1024.0 * 1024.0), "1.500G");
        assert_eq!(Unit::Bytes.words(1023.0 * 1024.0), "1023K");
        assert_eq!(Unit::Seconds.words(0.844), "0.8440s");
    }

    #[test]
    fn axes_end_at_readable_numbers() {
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
        assert!(near(nice_limits(0.31, 0.58), (0.3, 0.6)));
        assert!(near(nice_limits(0.5, 0.5), (0.4, 0.6)));
        assert!(near(nice_limits(0.0, 0.0), (-1.0, 1.0)));
        assert!(near(nice_limits(-7.0, 12.0), (-10.0, 20.0)));
    }

    #[test]
    fn sticky_limits_grow_at_once_and_shrink_late() {
        assert_eq!(sticky(None, (0.0, 1.0)), (0.0, 1.0));
        assert_eq!(sticky(Some((0.0, 1.0)), (0.2, 1.2)), (0.0, 1.2));
        assert_eq!(sticky(Some((0.0, 1.0)), (0.4, 1.0)), (0.0, 1.0));
        assert_eq!(sticky(Some((0.0, 1.0)), (0.4, 0.6)), (0.4, 0.6));
        assert_eq!(sticky(Some((0.0, 1.0)), (10.0, 11.0)), (10.0, 11.0));
    }

    #[test]
    fn windows_move_in_quarters_around_the_cursor() {
        assert_eq!(window(80.0, 30.0, 0, Some(3.0)), (0.0, 80.0));
        assert_eq!(window(80.0, 31.0, 2, None), (15.0, 35.0));
        assert_eq!(window(80.0, 34.9, 2, None), (15.0, 35.0));
        assert_eq!(window(80.0, 35.1, 2, None), (20.0, 40.0));
        assert_eq!(window(80.0, 80.0, 2, Some(40.0)), (30.0, 50.0));
        assert_eq!(window(80.0, 80.0, 2, Some(0.0)), (0.0, 20.0));
        assert_eq!(window(80.0, 80.0, 2, Some(80.0)), (60.0, 80.0));
    }

    proptest! {
        #[test]
        fn any_limits_hold_what_they_are_of(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(a.is_finite() && b.is_finite());
            let (low, high) = (a.min(b), a.max(b));
            let limits = nice_limits(low, high);
            prop_assert!(limits.0 <= low && high <= limits.1 && limits.0 < limits.1 || low == high, "{limits:?}");
            let stuck = sticky(Some((0.0, 1.0)), limits);
            prop_assert_eq!(sticky(Some(stuck), limits), stuck);
        }

        #[test]
        fn axes_grow_by_a_quarter_at_most(end in 1.0f64..1e12) {
            let stepped = stepped_end(end, 1.0);
            prop_assert!(stepped >= end && stepped <= end * 1.2500001);
            prop_assert_eq!(stepped_end(stepped, 1.0), stepped);
        }

        #[test]
        fn a_window_holds_its_focus(whole in 1.0f64..1e9, part in 0.0f64..1.0, zoom in 0u32..14) {
            let focus = whole * part;
            let (from, to) = window(whole, whole, zoom, Some(focus));
            let room = whole * 1e-9;
            prop_assert!(from <= focus + room && focus <= to + room && from >= 0.0 && to <= whole + room);
        }
    }
}
