//! What servers say in headers about how much they still take. Must not wait or decide.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

/// A server's word on its limits, as of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateHint {
    pub requests: Option<Allowance>,
    pub tokens: Option<Allowance>,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// What there is when nothing is used; `None`: not told.
    pub limit: Option<u64>,
    pub remaining: u64,
    /// Until all of it is there again.
    pub reset: Duration,
}

impl RateHint {
    /// `None`: the headers tell nothing.
    pub fn read(headers: &HeaderMap, now: SystemTime) -> Option<Self> {
        let hint = Self {
            requests: plain(headers, "requests").or_else(|| dated(headers, "requests", now)),
            tokens: plain(headers, "tokens").or_else(|| dated(headers, "tokens", now)).or_else(|| {
                tighter(dated(headers, "input-tokens", now), dated(headers, "output-tokens", now))
            }),
        };
        (hint != Self::default()).then_some(hint)
    }
}

/// `x-ratelimit-remaining-requests: 59`, with a duration until the reset.
fn plain(headers: &HeaderMap, what: &str) -> Option<Allowance> {
    let named = |part: &str| text(headers, &format!("x-ratelimit-{part}-{what}"));
    Some(Allowance {
        limit: named("limit").and_then(count),
        remaining: named("remaining").and_then(count)?,
        reset: named("reset").and_then(duration)?,
    })
}

/// `anthropic-ratelimit-requests-remaining: 59`, with the date of the reset.
fn dated(headers: &HeaderMap, what: &str, now: SystemTime) -> Option<Allowance> {
    let named = |part: &str| text(headers, &format!("anthropic-ratelimit-{what}-{part}"));
    let at: jiff::Timestamp = named("reset")?.parse().ok()?;
    Some(Allowance {
        limit: named("limit").and_then(count),
        remaining: named("remaining").and_then(count)?,
        reset: SystemTime::from(at).duration_since(now).unwrap_or_default(),
    })
}

/// The one with the smaller part left.
fn tighter(one: Option<Allowance>, other: Option<Allowance>) -> Option<Allowance> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.remaining < one.remaining { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Negative numbers (some gateways send -1) mean that the server does not know.
fn count(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// `120ms`, `1s`, `6m0s`, `1h2m3.5s`; a plain number is seconds. Nothing at all (`0`, with -1 remaining) is no word.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|at| *at > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        total += number
            * match &rest[digits..unit_end] {
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> Option<RateHint> {
        let headers = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let now = SystemTime::from("2026-11-30T12:00:00Z".parse::<jiff::Timestamp>().unwrap());
        RateHint::read(&headers.collect(), now)
    }

    fn allowance(limit: u64, remaining: u64, ms: u64) -> Option<Allowance> {
        Some(Allowance { limit: Some(limit), remaining, reset: Duration::from_millis(ms) })
    }

    #[test]
    fn reads_durations_until_a_reset() {
        for (text, want) in [
            ("120ms", Some(120)),
            ("1s", Some(1000)),
            ("6m0s", Some(360_000)),
            ("1h2m3.5s", Some(3_723_500)),
            ("2", Some(2000)),
            ("0", Some(0)),
            ("soon", None),
            ("5 parsecs", None),
            ("s", None),
            ("-1", None),
            ("", Some(0)),
        ] {
            assert_eq!(duration(text).map(|wait| wait.as_millis()), want, "{text:?}");
        }
    }

    #[test]
    fn reads_both_families_of_headers() {
        let hint = read(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ]);
        let want =
            RateHint { requests: allowance(60, 59, 1000), tokens: allowance(150_000, 149_984, 360_000) };
        assert_eq!(hint, Some(want));
        let hint = read(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:02Z"),
            ("anthropic-ratelimit-input-tokens-limit", "30000"),
            ("anthropic-ratelimit-input-tokens-remaining", "29000"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-30T12:00:02Z"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "10"),
            ("anthropic-ratelimit-output-tokens-reset", "2026-11-30T12:01:00Z"),
        ]);
        let want = RateHint { requests: allowance(50, 49, 2000), tokens: allowance(8000, 10, 60_000) };
        assert_eq!(hint, Some(want));
    }

    #[test]
    fn what_a_server_does_not_know_is_no_limit() {
        assert_eq!(read(&[]), None);
        let unknown = read(&[
            ("x-ratelimit-limit-requests", "-1"),
            ("x-ratelimit-remaining-requests", "-1"),
            ("x-ratelimit-reset-requests", "0"),
            ("x-ratelimit-remaining-tokens", "a few"),
            ("anthropic-ratelimit-requests-remaining", "3"),
            ("anthropic-ratelimit-requests-reset", "tomorrow"),
        ]);
        assert_eq!(unknown, None);
    }
}
