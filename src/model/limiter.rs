//! How much is asked of one account (a host and a login) at once: concurrency that grows while calls succeed and halves
//! when the server is overloaded, and the server's own word on its limits. Must not know what a call is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::rates::{Allowance, RateHint};

/// The limiters of a run, by account.
#[derive(Default)]
pub struct Limiters(Mutex<HashMap<String, Arc<Limiter>>>);

/// Shared by all roles that call one account.
pub struct Limiter {
    state: Mutex<State>,
    /// Who waits takes turns, so that a big call is not overtaken for ever.
    turn: tokio::sync::Mutex<()>,
    changed: Notify,
}

struct State {
    /// Calls at once, at present; `None`: as many as are asked, until the server has too many.
    limit: Option<usize>,
    /// The same at most; `None`: not configured.
    ceiling: Option<usize>,
    in_flight: usize,
    /// Successes since the limit changed.
    successes: usize,
    cut_at: Option<Instant>,
    /// The server asked for silence.
    silent_until: Option<Instant>,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

/// What is left of an allowance; it fills evenly until it is full.
#[derive(Clone, Copy)]
struct Bucket {
    level: f64,
    limit: Option<u64>,
    per_second: f64,
    at: Instant,
    full_at: Instant,
}

/// How an attempt ended, as far as the account is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    /// The server has more than it can take; it may have asked for silence.
    Overloaded(Option<Duration>),
    /// Nothing that more or fewer calls would change.
    Other,
}

impl Limiters {
    /// The limiter of an account. `most`: calls at once that one more role makes there; 0: not configured.
    pub fn of(&self, account: &str, most: u32) -> Arc<Limiter> {
        let mut limiters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match limiters.get(account) {
            Some(limiter) => {
                limiter.widen(most);
                limiter.clone()
            }
            None => {
                let limiter = Arc::new(Limiter::new(most));
                limiters.insert(account.to_owned(), limiter.clone());
                limiter
            }
        }
    }
}

impl Limiter {
    /// `most`: calls at once; 0: found out.
    pub fn new(most: u32) -> Self {
        let ceiling = (most > 0).then_some(most as usize);
        let state = State {
            limit: ceiling,
            ceiling,
            in_flight: 0,
            successes: 0,
            cut_at: None,
            silent_until: None,
            requests: None,
            tokens: None,
        };
        Self { state: Mutex::new(state), turn: tokio::sync::Mutex::new(()), changed: Notify::new() }
    }

    /// Another role calls here too.
    fn widen(&self, most: u32) {
        let mut state = self.state();
        let widened = |places: usize| (most > 0).then_some(places + most as usize);
        state.ceiling = state.ceiling.and_then(widened);
        state.limit = state.limit.and_then(widened);
    }

    /// Waits until a call of about so many tokens may be sent.
    pub async fn enter(self: &Arc<Self>, tokens: u64) -> Pass {
        let _turn = self.turn.lock().await;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let entered = self.state().enter(tokens, Instant::now());
            match entered {
                Ok(()) => return Pass { limiter: self.clone(), begun: Instant::now(), ended: false },
                Err(None) => changed.await,
                Err(Some(until)) => {
                    let _ = tokio::time::timeout_at(until, changed).await;
                }
            }
        }
    }

    /// The server told how much it still takes.
    pub fn hear(&self, hint: &RateHint) {
        let now = Instant::now();
        let mut state = self.state();
        state.requests = hint.requests.map(|allowance| Bucket::new(&allowance, now)).or(state.requests);
        state.tokens = hint.tokens.map(|allowance| Bucket::new(&allowance, now)).or(state.tokens);
    }

    /// Calls at once, at present; `None`: as many as are asked.
    pub fn limit(&self) -> Option<usize> {
        self.state().limit
    }

    fn end(&self, begun: Instant, outcome: Outcome) {
        let now = Instant::now();
        let mut state = self.state();
        match outcome {
            Outcome::Answered => state.grow(),
            Outcome::Overloaded(silence) => {
                // What was sent before the last cut tells nothing of the limit after it.
                if state.cut_at.is_none_or(|cut| begun >= cut) {
                    state.limit = Some((state.limit.unwrap_or(state.in_flight) / 2).max(1));
                    state.successes = 0;
                    state.cut_at = Some(now);
                }
                let until = silence.map(|silence| now + silence);
                state.silent_until = state.silent_until.max(until);
            }
            Outcome::Other => {}
        }
        state.in_flight -= 1;
        drop(state);
        self.changed.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// `Err`: until when to wait, or until something changes.
    fn enter(&mut self, tokens: u64, now: Instant) -> Result<(), Option<Instant>> {
        if self.limit.is_some_and(|limit| self.in_flight >= limit) {
            return Err(None);
        }
        let silent = self.silent_until.filter(|until| *until > now);
        let buckets = [(&self.requests, 1), (&self.tokens, tokens)];
        let later = buckets.iter().filter_map(|(bucket, amount)| bucket.as_ref()?.later(*amount, now));
        if let Some(until) = silent.into_iter().chain(later).max() {
            return Err(Some(until));
        }
        for (bucket, amount) in [(&mut self.requests, 1), (&mut self.tokens, tokens)] {
            if let Some(bucket) = bucket {
                bucket.take(amount, now);
            }
        }
        self.in_flight += 1;
        Ok(())
    }

    /// One more place after as many successes as there are places; only where they are all in use.
    fn grow(&mut self) {
        let Some(limit) = self.limit else { return };
        if self.in_flight < limit || self.ceiling.is_some_and(|ceiling| limit >= ceiling) {
            return;
        }
        self.successes += 1;
        if self.successes >= limit {
            self.limit = Some(limit + 1);
            self.successes = 0;
        }
    }
}

impl Bucket {
    fn new(allowance: &Allowance, now: Instant) -> Self {
        let Allowance { limit, remaining, reset } = *allowance;
        let missing = limit.map_or(0, |limit| limit.saturating_sub(remaining));
        let per_second = if reset.is_zero() { 0.0 } else { missing as f64 / reset.as_secs_f64() };
        let full_at = now.checked_add(reset).unwrap_or(now);
        Self { level: remaining as f64, limit, per_second, at: now, full_at }
    }

    fn level(&self, now: Instant) -> f64 {
        self.level + self.per_second * now.duration_since(self.at).as_secs_f64()
    }

    /// When the amount will be there; `None`: it is. More than fits waits for a full bucket.
    fn later(&self, amount: u64, now: Instant) -> Option<Instant> {
        let lacking = amount as f64 - self.level(now);
        if now >= self.full_at || lacking <= 0.0 {
            return None;
        }
        let fits = self.limit.is_some_and(|limit| amount <= limit);
        let wait = Duration::try_from_secs_f64(lacking / self.per_second).ok().filter(|_| fits);
        // A nanosecond is lost in rounding.
        let until = wait.and_then(|wait| now.checked_add(wait + Duration::from_micros(1)));
        Some(until.map_or(self.full_at, |until| until.min(self.full_at)))
    }

    fn take(&mut self, amount: u64, now: Instant) {
        self.level = self.level(now) - amount as f64;
        self.at = now;
    }
}

/// A call under way. Dropped, it ended without telling how.
pub struct Pass {
    limiter: Arc<Limiter>,
    begun: Instant,
    ended: bool,
}

impl Pass {
    pub fn end(mut self, outcome: Outcome) {
        self.ended = true;
        self.limiter.end(self.begun, outcome);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.ended {
            self.limiter.end(self.begun, Outcome::Other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn enters(limiter: &Arc<Limiter>, tokens: u64) -> Option<Pass> {
        tokio::time::timeout(Duration::from_millis(1), limiter.enter(tokens)).await.ok()
    }

    async fn fill(limiter: &Arc<Limiter>) -> Vec<Pass> {
        let mut passes = Vec::new();
        while let Some(pass) = enters(limiter, 1).await {
            passes.push(pass);
        }
        passes
    }

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_server_halves_once_per_round_and_never_below_one() {
        let limiter = Arc::new(Limiter::new(0));
        let mut passes = Vec::new();
        for _ in 0..9 {
            passes.push(enters(&limiter, 1).await.unwrap());
        }
        assert_eq!(limiter.limit(), None, "nobody said how many are too many");
        tokio::time::advance(Duration::from_secs(1)).await;
        passes.into_iter().for_each(|pass| pass.end(Outcome::Overloaded(None)));
        assert_eq!(limiter.limit(), Some(4), "one round of calls, one cut");
        for want in [2, 1, 1] {
            tokio::time::advance(Duration::from_secs(1)).await;
            fill(&limiter).await.into_iter().for_each(|pass| pass.end(Outcome::Overloaded(None)));
            assert_eq!(limiter.limit(), Some(want));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_more_place_for_as_many_successes_as_there_are_places_up_to_the_ceiling() {
        let limiter = Arc::new(Limiter::new(3));
        fill(&limiter).await.remove(0).end(Outcome::Overloaded(None));
        assert_eq!(limiter.limit(), Some(1));
        let success = async || enters(&limiter, 1).await.unwrap().end(Outcome::Answered);
        success().await;
        assert_eq!(limiter.limit(), Some(2));
        success().await;
        success().await;
        assert_eq!(limiter.limit(), Some(2), "the second place is not in use");
        for _ in 0..9 {
            fill(&limiter).await.into_iter().for_each(|pass| pass.end(Outcome::Answered));
        }
        assert_eq!(limiter.limit(), Some(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_that_the_server_asks_for_holds_for_all_calls() {
        let limiter = Arc::new(Limiter::new(4));
        let start = Instant::now();
        let pass = limiter.enter(1).await;
        pass.end(Outcome::Overloaded(Some(Duration::from_secs(7))));
        drop(limiter.enter(1).await);
        assert_eq!(start.elapsed(), Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_s_own_word_spreads_calls_over_its_window() {
        let limiter = Arc::new(Limiter::new(100));
        let allowance = |limit, remaining| {
            let reset = Duration::from_secs(10);
            RateHint { requests: None, tokens: Some(Allowance { limit, remaining, reset }) }
        };
        // 900 of 1000 are missing and come back in 10 s: 90 a second.
        limiter.hear(&allowance(Some(1000), 100));
        let start = Instant::now();
        drop(limiter.enter(100).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(limiter.enter(180).await);
        assert_eq!(start.elapsed().as_secs(), 2);
        // More than the server ever holds waits for all of it.
        drop(limiter.enter(5000).await);
        assert_eq!(start.elapsed().as_secs(), 10);
        limiter.hear(&allowance(None, 0));
        let start = Instant::now();
        drop(limiter.enter(1).await);
        assert_eq!(start.elapsed().as_secs(), 10, "without a limit nobody knows how fast it fills");
    }

    #[tokio::test(start_paused = true)]
    async fn roles_of_one_account_share_and_those_of_another_do_not() {
        let limiters = Limiters::default();
        let (target, optimizer) = (limiters.of("host key", 2), limiters.of("host key", 3));
        assert!(Arc::ptr_eq(&target, &optimizer));
        assert_eq!(fill(&target).await.len(), 5);
        assert!(!Arc::ptr_eq(&target, &limiters.of("host other", 2)));
    }
}
