//! The retry policy: which faults of a call are worth another attempt, and after what wait. Must not do any IO.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

use super::attempt::{Fault, FaultKind};
use super::error_body::ErrorBody;
use crate::domain::fingerprint;

/// Statuses that another attempt may cure.
const RETRYABLE: [u16; 9] = [408, 409, 425, 429, 500, 502, 503, 504, 529];

/// Error codes that no attempt cures, whatever the status.
const HOPELESS: [&str; 2] = ["content_filter", "context_length_exceeded"];

/// Error codes of an account that may not spend more: every other call would fail as well.
const NO_CREDIT: [&str; 4] =
    ["insufficient_quota", "QUOTA_EXCEEDED", "credit_balance_exhausted", "enforced_spend_limit_reached"];

/// Error codes of a login that failed, whatever the status.
const BAD_KEY: [&str; 3] = ["invalid_api_key", "API_KEY_INVALID", "authentication_error"];

/// How often and how patiently a call is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts after the first one.
    pub max_retries: u32,
    /// First wait; it doubles with every attempt.
    pub base: Duration,
    /// Longest wait that this side chooses.
    pub longest: Duration,
    /// Longest wait that a server may ask for.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            cap: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Wait before attempt `retry + 1` (from 0): what the server asked for, else min(longest, base * 2^retry) less up
    /// to 25 %. The jitter comes from the call's path: calls spread out, and a run repeats itself.
    pub fn wait(&self, retry: u32, asked: Option<Duration>, path: &str) -> Duration {
        if let Some(asked) = asked {
            return asked.min(self.cap);
        }
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(retry.min(30)));
        let chosen = doubled.min(self.longest);
        let digest = fingerprint([path, &retry.to_string()]);
        let share =
            u32::from_str_radix(&digest[..6], 16).map_or(0.0, |bits| f64::from(bits) / f64::from(0xff_ffff));
        chosen.mul_f64(1.0 - 0.25 * share)
    }
}

/// Judges an answer with an error status, or an error object inside a 200 (then `status` is its own code, or 200).
pub fn judge_answer(status: u16, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Fault {
    judge_error(status, headers, ErrorBody::read(body), now)
}

/// The same for a body that was read.
pub(super) fn judge_error(status: u16, headers: &HeaderMap, error: ErrorBody, now: SystemTime) -> Fault {
    let fault = judge(status, headers, error, now);
    // Inside a 200 the error may come after half a reply.
    if status == 200 { fault } else { fault.unbilled() }
}

fn judge(status: u16, headers: &HeaderMap, error: ErrorBody, now: SystemTime) -> Fault {
    let message = error.message;
    let has = |known: &[&str]| error.codes.iter().any(|code| known.contains(&code.as_str()));
    if error.moderated {
        return Fault::refused(status, message);
    }
    if matches!(status, 401 | 403) || has(&BAD_KEY) {
        return Fault::new(FaultKind::Authentication, message);
    }
    if status == 402 || has(&NO_CREDIT) {
        let message =
            format!("status {status}: {message}; the account has no credit left: top it up, then resume");
        return Fault::new(FaultKind::Unusable, message);
    }
    let hopeless = has(&HOPELESS);
    let retry = match header(headers, "x-should-retry") {
        _ if hopeless => false,
        Some("true") => true,
        Some("false") => false,
        _ => RETRYABLE.contains(&status) || status == 200,
    };
    if !retry {
        return Fault::refused(status, message);
    }
    let wait = asked_wait(headers, now);
    let kind = match status {
        429 | 529 => FaultKind::Overloaded { wait },
        _ => FaultKind::Temporary { wait },
    };
    Fault::new(kind, format!("status {status}: {message}"))
}

/// `retry-after-ms`, else `retry-after` as seconds or as an HTTP date.
fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let seconds = |text: &str| text.trim().parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
    if let Some(ms) = header(headers, "retry-after-ms").and_then(seconds) {
        return Some(Duration::from_secs_f64(ms / 1000.0));
    }
    let after = header(headers, "retry-after")?;
    match seconds(after) {
        Some(seconds) => Some(Duration::from_secs_f64(seconds)),
        None => {
            let date = httpdate::parse_http_date(after).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn judged(status: u16, pairs: &[(&'static str, &str)], body: &str) -> Fault {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        judge_answer(status, &headers(pairs), body.as_bytes(), now)
    }

    #[test]
    fn waits_double_with_downward_jitter_and_a_ceiling() {
        let policy = RetryPolicy::default();
        for (retry, full) in [(0, 0.5), (1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 8.0), (40, 8.0)] {
            for path in ["a", "b", "c", "d"] {
                let wait = policy.wait(retry, None, path).as_secs_f64();
                assert!((0.75 * full..=full).contains(&wait), "{retry}: {wait}");
            }
        }
        assert_eq!(policy.wait(1, None, "a"), policy.wait(1, None, "a"));
        assert_ne!(policy.wait(1, None, "a"), policy.wait(1, None, "b"));
        assert_eq!(policy.wait(0, Some(Duration::from_secs(7)), "a"), Duration::from_secs(7));
        assert_eq!(policy.wait(0, Some(Duration::from_secs(700)), "a"), Duration::from_secs(60));
    }

    #[test]
    fn retries_exactly_the_curable_statuses() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            let overloaded = matches!(status, 429 | 529);
            let want = match overloaded {
                true => FaultKind::Overloaded { wait: None },
                false => FaultKind::Temporary { wait: None },
            };
            assert_eq!(judged(status, &[], "{}").kind, want, "{status}");
        }
        for status in [300, 400, 404, 413, 422, 501] {
            assert_eq!(judged(status, &[], "{}").kind, FaultKind::Refused { status });
        }
        for status in [401, 403] {
            let fault = judged(status, &[("x-should-retry", "true")], r#"{"error":{"message":"no key"}}"#);
            assert_eq!(fault, Fault::new(FaultKind::Authentication, "no key").unbilled());
        }
    }

    #[test]
    fn codes_and_headers_overrule_the_status() {
        for code in HOPELESS {
            let body = format!(r#"{{"error":{{"message":"m","code":"{code}"}}}}"#);
            let fault = judged(429, &[("x-should-retry", "true")], &body);
            assert_eq!(fault, Fault::refused(429, "m").unbilled());
        }
        for code in NO_CREDIT {
            let body = format!(r#"{{"error":{{"message":"m","code":"{code}"}}}}"#);
            assert_eq!(judged(429, &[("x-should-retry", "true")], &body).kind, FaultKind::Unusable);
        }
        assert_eq!(judged(402, &[], "{}").kind, FaultKind::Unusable);
        let kind = |status, should: &str| judged(status, &[("x-should-retry", should)], "").kind;
        assert_eq!(kind(500, "false"), FaultKind::Refused { status: 500 });
        assert_eq!(kind(400, "true"), FaultKind::Temporary { wait: None });
    }

    #[test]
    fn reads_every_form_of_retry_after() {
        for (pairs, want) in [
            (vec![("retry-after-ms", "1500"), ("retry-after", "9")], Some(1.5)),
            (vec![("retry-after", "2")], Some(2.0)),
            (vec![("retry-after", "0.25")], Some(0.25)),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30.0)),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0.0)),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "-3")], None),
            (vec![], None),
        ] {
            let FaultKind::Overloaded { wait } = judged(429, &pairs, "{}").kind else {
                panic!("not retried")
            };
            assert_eq!(wait.map(|wait| wait.as_secs_f64()), want, "{pairs:?}");
        }
    }

    #[test]
    fn a_key_is_bad_whatever_the_status_and_moderation_is_no_bad_key() {
        let body = r#"{"error":{"message":"m","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        assert_eq!(judged(400, &[], body).kind, FaultKind::Authentication);
        let body = r#"{"error":{"message":"m","code":403,"metadata":{"flagged_input":"x"}}}"#;
        assert_eq!(judged(403, &[], body), Fault::refused(403, "m").unbilled());
        let body = r#"{"error":{"message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
        assert_eq!(judged(429, &[], body).kind, FaultKind::Unusable);
    }
}
