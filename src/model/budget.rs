//! The hard budget of a run: calls, tokens, wall time, shared by all roles and checked before every call.
//! Must not decide what happens when it is exhausted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{ChatModel, LiveSink, ModelError};
use crate::config::BudgetConfig;
use crate::domain::{ChatReply, ChatRequest, Delivery, Usage};

/// Counts what a run has used. Calls under way count as made, so concurrent calls can't pass `max_calls`; the tokens
/// of a call are known only after it, so `max_tokens` may be passed by the calls then in flight.
#[derive(Debug)]
pub struct Budget {
    limits: RwLock<BudgetConfig>,
    calls: AtomicU64,
    tokens: AtomicU64,
    started: Instant,
    seconds_before: f64,
}

impl Budget {
    /// `used` and `seconds_before` are what the journal says was spent before this process; the clock starts now.
    pub fn new(limits: BudgetConfig, used: Usage, seconds_before: f64) -> Self {
        Self {
            limits: RwLock::new(limits),
            calls: AtomicU64::new(used.calls),
            tokens: AtomicU64::new(used.prompt_tokens + used.completion_tokens),
            started: Instant::now(),
            seconds_before,
        }
    }

    /// Takes one call out of the budget; dropping the reservation uncharged gives it back.
    ///
    /// # Errors
    /// [`ModelError::Budget`] with the limit that is reached and the numbers.
    pub fn reserve(&self) -> Result<Reservation<'_>, ModelError> {
        let seconds = self.seconds();
        let limits = self.limits.read().unwrap_or_else(PoisonError::into_inner).clone();
        if limits.max_seconds > 0 && seconds >= limits.max_seconds as f64 {
            return Err(exhausted("max_seconds", limits.max_seconds, &format!("{seconds:.0} seconds")));
        }
        let tokens = self.tokens.load(Ordering::Relaxed);
        if limits.max_tokens > 0 && tokens >= limits.max_tokens {
            return Err(exhausted("max_tokens", limits.max_tokens, &format!("{tokens} tokens")));
        }
        let may_call = |calls: u64| (limits.max_calls == 0 || calls < limits.max_calls).then_some(calls + 1);
        match self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may_call) {
            Ok(_) => Ok(Reservation { budget: self, kept: false }),
            Err(calls) => Err(exhausted("max_calls", limits.max_calls, &format!("{calls} calls"))),
        }
    }

    /// Counts go on; a limit below them ends the run with the next call.
    pub fn set_limits(&self, limits: BudgetConfig) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Seconds of this process and of those before it.
    pub fn seconds(&self) -> f64 {
        self.seconds_before + self.started.elapsed().as_secs_f64()
    }
}

fn exhausted(key: &str, limit: u64, used: &str) -> ModelError {
    ModelError::Budget { limit: format!("{used} used, budget.{key} = {limit}; raise it and resume") }
}

/// One call taken out of a [`Budget`].
#[derive(Debug)]
pub struct Reservation<'a> {
    budget: &'a Budget,
    kept: bool,
}

impl Reservation<'_> {
    /// The call was made and used this many tokens.
    pub fn charge(mut self, tokens: u64) {
        self.kept = true;
        self.budget.tokens.fetch_add(tokens, Ordering::Relaxed);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.budget.calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A model whose calls are paid from a budget.
pub struct Metered<M> {
    inner: M,
    budget: Arc<Budget>,
}

impl<M: ChatModel> Metered<M> {
    pub fn new(inner: M, budget: Arc<Budget>) -> Self {
        Self { inner, budget }
    }
}

impl<M: ChatModel> ChatModel for Metered<M> {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn delivery(&self) -> Delivery {
        self.inner.delivery()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let reservation = self.budget.reserve()?;
            let reply = self.inner.chat(request, live).await?;
            reservation.charge(reply.usage.tokens());
            Ok(reply)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limits(max_calls: u64, max_tokens: u64, max_seconds: u64) -> BudgetConfig {
        BudgetConfig { max_calls, max_tokens, max_seconds, ..BudgetConfig::default() }
    }

    fn limit(budget: &Budget) -> String {
        match budget.reserve() {
            Err(ModelError::Budget { limit }) => limit,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn calls_in_flight_count_and_failed_ones_are_given_back() {
        let budget = Budget::new(limits(3, 0, 0), Usage { calls: 1, ..Usage::default() }, 0.0);
        let first = budget.reserve().unwrap();
        let second = budget.reserve().unwrap();
        assert!(limit(&budget).contains("3 calls used, budget.max_calls = 3"));
        drop(first);
        second.charge(5);
        assert_eq!((budget.calls(), budget.tokens()), (2, 5));
        assert!(budget.reserve().is_ok());
    }

    #[tokio::test]
    async fn tokens_before_a_resume_count() {
        let used = Usage { prompt_tokens: 60, completion_tokens: 39, ..Usage::default() };
        let budget = Budget::new(limits(0, 100, 0), used, 0.0);
        budget.reserve().unwrap().charge(1);
        assert!(limit(&budget).contains("100 tokens used, budget.max_tokens = 100"));
    }

    #[tokio::test(start_paused = true)]
    async fn seconds_before_a_resume_count() {
        let budget = Budget::new(limits(0, 0, 10), Usage::default(), 4.0);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(budget.reserve().is_ok());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(limit(&budget).contains("10 seconds used, budget.max_seconds = 10"));
    }
}
