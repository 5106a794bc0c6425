//! Attempts until a call has its reply: places, waits, retries and the budget around an [`Endpoint`]. Every attempt is paid
//! for; must not know what an endpoint is.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::attempt::{Endpoint, Fault, FaultKind};
use super::breaker::{Abandoned, Breaker, Breakers, Then};
use super::budget::Budget;
use super::dials::Dials;
use super::limiter::{Limiter, Outcome};
use super::prices::Tariff;
use super::quota::Quota;
use super::redact::Redactor;
use super::retry::RetryPolicy;
use super::warm_up::{Lead, WarmUp};
use super::{ChatModel, LiveSink, ModelError, call_item};
use crate::domain::{ChatReply, ChatRequest, Delivery, Usage};
use crate::event::Live;

/// An endpoint as a model.
pub struct Patient {
    endpoint: Arc<dyn Endpoint>,
    policy: RetryPolicy,
    dials: Arc<Dials>,
    budget: Arc<Budget>,
    redactor: Arc<Redactor>,
    tariff: Tariff,
    limiter: Arc<Limiter>,
    breaker: Arc<Breaker>,
    quota: Quota,
    warm_up: Option<WarmUp>,
}

/// Where a call stands.
struct Progress {
    /// Attempts so far.
    attempts: u32,
    /// Retries of this round; a call that was held begins another one.
    retries: u32,
    /// What attempts and the waits between them took in this round.
    spent: Duration,
}

impl Patient {
    /// A model that costs nothing, shares its host with nobody and is limited by the host alone.
    pub fn new(
        endpoint: Arc<dyn Endpoint>,
        policy: RetryPolicy,
        dials: Arc<Dials>,
        budget: Arc<Budget>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self {
            limiter: Arc::new(Limiter::new(0)),
            breaker: Breakers::default().of(endpoint.host()),
            quota: Quota::new(0, 0, 0),
            tariff: Tariff::FREE,
            warm_up: None,
            endpoint,
            policy,
            dials,
            budget,
            redactor,
        }
    }

    pub fn at_prices(mut self, tariff: Tariff) -> Self {
        self.tariff = tariff;
        self
    }

    /// With what all roles of its account and its host share.
    pub fn sharing(mut self, limiter: Arc<Limiter>, breaker: Arc<Breaker>) -> Self {
        (self.limiter, self.breaker) = (limiter, breaker);
        self
    }

    pub fn within(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Whether calls with a new long system prompt go one first.
    pub fn warming_up(mut self, wanted: bool) -> Self {
        self.warm_up = wanted.then(WarmUp::default);
        self
    }

    async fn call(
        &self,
        request: &ChatRequest,
        live: &LiveSink,
        progress: &mut Progress,
    ) -> Result<ChatReply, ModelError> {
        let lead = match &self.warm_up {
            Some(warm_up) => warm_up.enter(request).await,
            None => Lead::default(),
        };
        let visit = self.breaker.enter();
        loop {
            if let Err(Abandoned) = visit.pass().await {
                return Err(ModelError::Cancelled);
            }
            let (fault, again) = match self.attempt(request, live, &lead, progress).await? {
                Ok(reply) => {
                    visit.answered();
                    return Ok(reply);
                }
                Err(fault) => {
                    lead.done();
                    self.judge(fault, progress, request)
                }
            };
            match again {
                Again::Now => {}
                Again::After(wait) => {
                    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                    live(Live::CallRetrying { path: request.path.clone(), error: fault.message, wait_ms });
                    tokio::time::sleep(wait).await;
                }
                Again::Never { answered } => {
                    if answered {
                        visit.answered();
                    }
                    return Err(self.error(fault, progress.attempts));
                }
                Again::Exhausted => {
                    match visit.exhausted(self.dials.get().breaker_failures, &fault.message).await {
                        Then::GiveUp => return Err(self.error(fault, progress.attempts)),
                        Then::Abandoned => return Err(ModelError::Cancelled),
                        Then::Anew => (progress.retries, progress.spent) = (0, Duration::ZERO),
                    }
                }
            }
        }
    }

    /// Whether a fault is worth another attempt; its message is redacted from here on.
    fn judge(&self, fault: Fault, progress: &mut Progress, request: &ChatRequest) -> (Fault, Again) {
        let mut fault = Fault { message: self.redactor.redact(&fault.message), ..fault };
        let asked = match fault.kind {
            FaultKind::Temporary { wait } | FaultKind::Overloaded { wait } => wait,
            FaultKind::Learned => return (fault, Again::Now),
            FaultKind::Authentication | FaultKind::Unusable => {
                return (fault, Again::Never { answered: false });
            }
            FaultKind::Refused { .. } => return (fault, Again::Never { answered: true }),
        };
        let limits = self.dials.get();
        if progress.retries >= limits.max_retries {
            return (fault, Again::Exhausted);
        }
        let wait = self.policy.wait(progress.retries, asked, &request.path);
        progress.spent = progress.spent.saturating_add(wait);
        if progress.spent >= limits.call_timeout {
            let seconds = limits.call_timeout.as_secs_f64();
            fault
                .message
                .push_str(&format!("; no time for another attempt (model.call_timeout_s = {seconds})"));
            return (fault, Again::Exhausted);
        }
        progress.retries += 1;
        (fault, Again::After(wait))
    }

    fn error(&self, fault: Fault, attempts: u32) -> ModelError {
        let (host, message) = (self.endpoint.host().to_owned(), fault.message);
        match fault.kind {
            FaultKind::Temporary { .. } | FaultKind::Overloaded { .. } | FaultKind::Learned => {
                ModelError::NoReply { host, attempts, message }
            }
            FaultKind::Authentication => {
                ModelError::Authentication { host, message, remedy: self.endpoint.login() }
            }
            FaultKind::Unusable => ModelError::Unusable { host, message },
            FaultKind::Refused { status } => ModelError::Refused { host, status, message },
        }
    }

    /// Waits for its place, pays, and asks once.
    ///
    /// # Errors
    /// The budget does not allow another attempt.
    async fn attempt(
        &self,
        request: &ChatRequest,
        live: &LiveSink,
        lead: &Lead,
        progress: &mut Progress,
    ) -> Result<Result<ChatReply, Fault>, ModelError> {
        let most = self.endpoint.bound(request);
        let most = Usage { nanodollars: self.tariff.bound(&most), ..most };
        let likely = likely(request, &most);
        let _place = self.quota.place().await;
        let pass = self.limiter.enter(likely).await;
        self.quota.minute(likely).await;
        let limits = self.dials.get();
        let longest = limits.total_timeout.min(limits.call_timeout.saturating_sub(progress.spent));
        if longest.is_zero() {
            // A lesson costs no retry, and others may have shortened the limit meanwhile.
            return Ok(Err(Fault::temporary("the call has taken all of its time")));
        }
        let reservation = self.budget.reserve(request, most).await?;
        progress.attempts += 1;
        live(Live::CallStarted {
            path: request.path.clone(),
            item: call_item(&request.path).to_owned(),
            attempt: progress.attempts,
        });
        let begun = Instant::now();
        let heard = self.heard(live, lead);
        let outcome = tokio::time::timeout(longest, self.endpoint.attempt(request, &heard)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(Fault::temporary(format!("no complete reply within {} s", longest.as_secs_f64())))
        });
        progress.spent = progress.spent.saturating_add(begun.elapsed());
        if let Some(hint) = self.endpoint.rates() {
            self.limiter.hear(&hint);
        }
        match outcome {
            Ok(mut reply) => {
                pass.end(Outcome::Answered);
                let counted = counted(request, &reply);
                reply.usage.nanodollars = self.tariff.priced(counted).nanodollars;
                reservation.answered(Usage { nanodollars: reply.usage.nanodollars, ..counted });
                Ok(Ok(reply))
            }
            Err(fault) => {
                pass.end(match fault.kind {
                    FaultKind::Overloaded { wait } => {
                        Outcome::Overloaded(wait.map(|wait| wait.min(self.policy.cap)))
                    }
                    FaultKind::Temporary { .. }
                    | FaultKind::Learned
                    | FaultKind::Authentication
                    | FaultKind::Unusable
                    | FaultKind::Refused { .. } => Outcome::Other,
                });
                let used = fault
                    .used
                    .as_deref()
                    .map(|used| self.tariff.priced(Usage { calls: used.calls.max(1), ..*used }));
                reservation.unanswered(used);
                Ok(Err(fault))
            }
        }
    }

    /// The sink of an attempt; the first text of the leading call lets the others go.
    fn heard(&self, live: &LiveSink, lead: &Lead) -> LiveSink {
        if !lead.leads() {
            return live.clone();
        }
        let (live, lead) = (live.clone(), lead.clone());
        Arc::new(move |news| {
            if matches!(news, Live::CallDelta { .. }) {
                lead.done();
            }
            live(news);
        })
    }
}

/// What follows a fault.
enum Again {
    Now,
    After(Duration),
    /// Retries or time are used up.
    Exhausted,
    /// `answered`: the host is well, it refuses this call.
    Never {
        answered: bool,
    },
}

/// About how many tokens a server will count for a request, which is less than the most it can be.
fn likely(request: &ChatRequest, most: &Usage) -> u64 {
    (request.prompt.text_bytes().div_ceil(4) as u64 + u64::from(request.sampling.max_tokens))
        .min(most.tokens())
}

/// What a reply used. Servers that report nothing: a cap shall hold for them as well.
fn counted(request: &ChatRequest, reply: &ChatReply) -> Usage {
    match reply.usage.tokens() {
        0 => Usage {
            calls: reply.usage.calls.max(1),
            prompt_tokens: request.prompt.text_bytes().div_ceil(4) as u64,
            completion_tokens: reply.text.len().div_ceil(4) as u64,
            ..reply.usage
        },
        _ => Usage { calls: reply.usage.calls.max(1), ..reply.usage },
    }
}

impl ChatModel for Patient {
    fn label(&self) -> &str {
        self.endpoint.label()
    }

    fn delivery(&self) -> Delivery {
        self.endpoint.delivery()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let started = Instant::now();
            let mut progress = Progress { attempts: 0, retries: 0, spent: Duration::ZERO };
            let result = tokio::select! {
                biased;
                result = self.call(request, live, &mut progress) => result,
                // Also while it waits for its place or for a host to come back.
                stop = self.budget.out_of_time() => Err(stop),
            };
            if progress.attempts == 0 {
                return result;
            }
            live(Live::CallFinished {
                path: request.path.clone(),
                ok: result.is_ok(),
                tokens: result.as_ref().map_or(0, |reply| reply.usage.completion_tokens),
                ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
            result
        })
    }
}
