//! Limits of single calls that may change while a run goes on. A call takes them as they are when it needs them.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use crate::config::ModelConfig;

#[derive(Debug)]
pub struct Dials(RwLock<Limits>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub max_retries: u32,
    /// Longest silence between two pieces of a body.
    pub read_timeout: Duration,
    /// Longest time for one attempt.
    pub total_timeout: Duration,
    /// Longest time for all attempts of a call and the waits between them.
    pub call_timeout: Duration,
    /// Calls in a row without a reply that open the breaker of their host; 0: none do.
    pub breaker_failures: u32,
}

impl Dials {
    pub fn new(limits: Limits) -> Self {
        Self(RwLock::new(limits))
    }

    pub fn of(config: &ModelConfig) -> Self {
        Self::new(Limits::of(config))
    }

    pub fn get(&self) -> Limits {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, config: &ModelConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Limits::of(config);
    }
}

impl Limits {
    fn of(config: &ModelConfig) -> Self {
        Self {
            max_retries: config.max_retries,
            read_timeout: seconds(config.read_timeout_s),
            total_timeout: seconds(config.total_timeout_s),
            call_timeout: seconds(config.call_timeout_s),
            breaker_failures: config.breaker_failures,
        }
    }
}

/// A time limit of the configuration; 0 (or what is no time at all) means none.
pub fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero()).unwrap_or(Duration::MAX)
}
