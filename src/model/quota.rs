//! What one role may ask for by its configuration: calls at once, calls and tokens within any minute. Must not know servers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// Zero is no limit.
pub struct Quota {
    places: Option<Arc<Semaphore>>,
    requests_per_minute: u64,
    tokens_per_minute: u64,
    /// Whoever waits takes turns.
    turn: tokio::sync::Mutex<()>,
    lately: Mutex<Lately>,
}

/// The calls of the last minute, oldest first.
#[derive(Default)]
struct Lately {
    calls: VecDeque<(Instant, u64)>,
    tokens: u64,
}

/// A place, free again when dropped.
pub struct Place(#[allow(dead_code)] Option<OwnedSemaphorePermit>);

impl Quota {
    pub fn new(max_concurrency: u32, requests_per_minute: u32, tokens_per_minute: u64) -> Self {
        let places = (max_concurrency > 0).then(|| Arc::new(Semaphore::new(max_concurrency as usize)));
        Self {
            places,
            requests_per_minute: requests_per_minute.into(),
            tokens_per_minute,
            turn: tokio::sync::Mutex::new(()),
            lately: Mutex::new(Lately::default()),
        }
    }

    /// Waits for a place. The minute is asked for apart, just before a call is sent.
    pub async fn place(&self) -> Place {
        match &self.places {
            // Never closed, so an error would mean no limit.
            Some(places) => Place(places.clone().acquire_owned().await.ok()),
            None => Place(None),
        }
    }

    /// Waits until the last minute has room for a call of about so many tokens, and counts it.
    pub async fn minute(&self, tokens: u64) {
        if self.requests_per_minute == 0 && self.tokens_per_minute == 0 {
            return;
        }
        let _turn = self.turn.lock().await;
        loop {
            let now = Instant::now();
            let until = self.lately().take(self.requests_per_minute, self.tokens_per_minute, tokens, now);
            match until {
                None => return,
                Some(until) => tokio::time::sleep_until(until).await,
            }
        }
    }

    fn lately(&self) -> MutexGuard<'_, Lately> {
        self.lately.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lately {
    /// When to look again; `None`: the call is counted. One that is larger than a whole minute goes alone.
    fn take(&mut self, requests: u64, most: u64, tokens: u64, now: Instant) -> Option<Instant> {
        while let Some((at, used)) = self.calls.front().copied()
            && now.duration_since(at) >= MINUTE
        {
            self.calls.pop_front();
            self.tokens -= used;
        }
        let full = requests > 0 && self.calls.len() as u64 >= requests;
        let spent = most > 0 && self.tokens + tokens > most;
        if (full || spent)
            && let Some((oldest, _)) = self.calls.front()
        {
            return Some(*oldest + MINUTE);
        }
        self.calls.push_back((now, tokens));
        self.tokens += tokens;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_minute_has_more_calls_than_allowed() {
        let quota = Quota::new(0, 3, 0);
        let start = Instant::now();
        let mut at = Vec::new();
        for _ in 0..7 {
            quota.minute(1).await;
            at.push(start.elapsed().as_secs());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(at, [0, 1, 2, 60, 61, 62, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_minute_has_more_tokens_than_allowed_and_a_giant_goes_alone() {
        let quota = Quota::new(0, 0, 100);
        let start = Instant::now();
        let mut at = Vec::new();
        for tokens in [60, 40, 1, 500, 1] {
            quota.minute(tokens).await;
            at.push(start.elapsed().as_secs());
        }
        assert_eq!(at, [0, 0, 60, 120, 180]);
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_free_again_when_dropped() {
        let quota = Quota::new(1, 0, 0);
        let place = quota.place().await;
        let second = async || tokio::time::timeout(Duration::from_millis(1), quota.place()).await.is_ok();
        assert!(!second().await);
        drop(place);
        assert!(second().await);
    }
}
