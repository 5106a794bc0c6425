//! Attempts until a call has its reply: waits, retries and the budget around an [`Endpoint`]. Every attempt is paid for;
//! must not know what an endpoint is.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::attempt::{Endpoint, Fault, FaultKind};
use super::budget::Budget;
use super::dials::Dials;
use super::redact::Redactor;
use super::retry::RetryPolicy;
use super::{ChatModel, LiveSink, ModelError, call_item};
use crate::domain::{ChatReply, ChatRequest, Delivery};
use crate::event::Live;

/// An endpoint as a model.
pub struct Patient {
    endpoint: Arc<dyn Endpoint>,
    policy: RetryPolicy,
    dials: Arc<Dials>,
    budget: Arc<Budget>,
    redactor: Arc<Redactor>,
}

impl Patient {
    pub fn new(
        endpoint: Arc<dyn Endpoint>,
        policy: RetryPolicy,
        dials: Arc<Dials>,
        budget: Arc<Budget>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self { endpoint, policy, dials, budget, redactor }
    }

    async fn attempts(&self, request: &ChatRequest, live: &LiveSink) -> Result<ChatReply, ModelError> {
        let host = || self.endpoint.host().to_owned();
        let (mut attempt, mut retry) = (0, 0);
        loop {
            attempt += 1;
            let (path, item) = (request.path.clone(), call_item(&request.path).to_owned());
            live(Live::CallStarted { path, item, attempt });
            let fault = match self.attempt(request, live).await? {
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            let message = self.redactor.redact(&fault.message);
            let asked = match fault.kind {
                FaultKind::Temporary { wait } | FaultKind::Overloaded { wait } => wait,
                FaultKind::Learned => continue,
                FaultKind::Authentication => {
                    let remedy = self.endpoint.login();
                    return Err(ModelError::Authentication { host: host(), message, remedy });
                }
                FaultKind::Unusable => return Err(ModelError::Unusable { host: host(), message }),
                FaultKind::Refused { status } => {
                    return Err(ModelError::Refused { host: host(), status, message });
                }
            };
            if retry >= self.dials.get().max_retries {
                return Err(ModelError::NoReply { host: host(), attempts: attempt, message });
            }
            let wait = self.policy.wait(retry, asked, &request.path);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            live(Live::CallRetrying { path: request.path.clone(), error: message, wait_ms });
            tokio::time::sleep(wait).await;
            retry += 1;
        }
    }

    /// # Errors
    /// The budget does not allow another attempt.
    async fn attempt(
        &self,
        request: &ChatRequest,
        live: &LiveSink,
    ) -> Result<Result<ChatReply, Fault>, ModelError> {
        let reservation = self.budget.reserve()?;
        let total = self.dials.get().total_timeout;
        let outcome = tokio::time::timeout(total, self.endpoint.attempt(request, live)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            Err(Fault::temporary(format!("no complete reply within {} s", total.as_secs_f64())))
        });
        let used = match &outcome {
            Ok(reply) if reply.usage.tokens() > 0 => reply.usage.tokens(),
            // Servers that report nothing: a token limit shall hold for them as well.
            Ok(reply) => (request.prompt.text_bytes() + reply.text.len()).div_ceil(4) as u64,
            Err(fault) => fault.used.as_ref().map_or(0, |used| used.tokens()),
        };
        reservation.charge(used);
        Ok(outcome)
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
            let result = self.attempts(request, live).await;
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
