//! Access to language models: one trait, its implementations, and what stands between them and the engine
//! (record and replay, budget, retries, redaction).

mod address;
mod attempt;
mod azure;
mod breaker;
mod budget;
mod child_env;
mod dialect;
mod dialect_reference;
mod dialects;
mod dials;
pub mod edit_search;
mod error_body;
mod handoff;
pub mod exec;
mod http;
mod label;
mod ledger;
mod lessons;
mod limiter;
pub mod local;
mod login;
mod metered;
pub mod mock;
mod patience;
mod prices;
mod program;
mod quota;
mod rates;
mod reception;
mod record;
mod redact;
mod retry;
mod rungs;
mod secret;
mod server;
mod sse;
mod stack;
mod tls;
mod verdict;
mod warm_up;
mod wire;
pub mod worker_protocol;

pub use attempt::{Endpoint, Fault, FaultKind, request_bound};
pub use azure::TEST_ENDPOINT as TEST_IDENTITY_ENDPOINT;
pub use breaker::{Breaker, Breakers, Opened};
pub use budget::{Budget, NoPrice, Reservation, UnansweredSink};
pub use dialect::{
    Api, AuthStyle, Dialect, DialectKey, Feature, Paths, ReplayReasoning, SystemRole, ThinkingStyle,
    TokenField,
};
pub use dialect_reference::dialect_reference;
pub use dialects::{DialectError, Dialects};
pub use dials::{Dials, Limits};
pub use handoff::unanswered;
pub use http::{HttpEndpoint, HttpSettings, HttpSetupError};
pub use ledger::{LEDGER_FILE, LedgerError, Purpose};
pub use lessons::{Lessons, Notice};
pub use limiter::{Limiter, Limiters};
pub use login::{ApiKey, Login, TokenSource};
pub use metered::Metered;
pub use patience::Patient;
pub use prices::{PriceError, Prices, Tariff};
pub use quota::Quota;
pub use rates::{Allowance, RateHint};
pub use reception::MAX_REPLY_BYTES;
pub use record::{CallRecord, CallStore, Recorded, RecordedRequest, Replay};
pub use redact::Redactor;
pub use retry::RetryPolicy;
pub use secret::{KeyError, KeySource, SHORTEST_KEY};
pub use stack::{LocalBackend, ModelStack, Outline, SetupError, StackParts, key_variables};
pub use wire::{ThinkingError, ThinkingMode};

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::domain::{ChatReply, ChatRequest, Delivery};
use crate::event::Live;

/// Takes high-rate news of calls; must be cheap and never block.
pub type LiveSink = Arc<dyn Fn(Live) + Send + Sync>;

/// A model, or something that answers the same contract. Retries are inside; a reply is complete and not empty.
pub trait ChatModel: Send + Sync {
    /// Names everything outside the request that determines a reply (backend, model, file hash); part of call
    /// fingerprints and shown to people. Never a secret.
    fn label(&self) -> &str;

    /// How it gets the skill document.
    fn delivery(&self) -> Delivery {
        Delivery::Prompt
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>>;
}

/// Log-likelihood of given continuations under a model.
pub trait Likelihood: Send + Sync {
    /// For each (prompt, continuation): sum of token log-probabilities (natural log) and number of tokens.
    fn score<'a>(
        &'a self,
        pairs: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<(f64, usize)>, ModelError>>;
}

/// Why a call has no reply. Texts are redacted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("authentication failed at {host}: {message}; check {remedy}")]
    Authentication { host: String, message: String, remedy: String },
    #[error("{host} cannot be used: {message}")]
    Unusable { host: String, message: String },
    #[error("{}", refused(.host, *.status, .message))]
    Refused { host: String, status: u16, message: String },
    #[error("no reply from {host} after {attempts} attempts: {message}")]
    NoReply { host: String, attempts: u32, message: String },
    #[error("budget exhausted: {limit}")]
    Budget { limit: String },
    #[error("replay has no recorded reply for {path} (request fingerprint {fingerprint})")]
    NotRecorded { path: String, fingerprint: String },
    #[error("worker: {message}")]
    Worker { message: String },
    #[error("cannot record the call: {message}")]
    Store { message: String },
    /// No call was made: the environment has no prompt for the item.
    #[error("cannot build the prompt: {message}")]
    Prompt { message: String },
    /// The judge answered, but gave no verdict.
    #[error("no verdict on the answer: {message}")]
    Unjudged { message: String },
    #[error("cancelled")]
    Cancelled,
}

/// A status of 0 stands for a call that this side did not make.
fn refused(host: &str, status: u16, message: &str) -> String {
    match status {
        0 => format!("the call cannot be put to {host}: {message}"),
        _ => format!("{host} refused the call with status {status}: {message}"),
    }
}

impl ModelError {
    /// The run cannot go on: nothing further would be answered either.
    pub fn ends_run(&self) -> bool {
        !matches!(self, ModelError::Refused { .. } | ModelError::NoReply { .. } | ModelError::Unjudged { .. })
    }
}

/// The item in an effect path: `e02/s005/rollout/ITEM#0/t1` gives `ITEM`, a path without one its last part.
pub fn call_item(path: &str) -> &str {
    let numbered = path.rsplit('/').find_map(|part| part.rsplit_once('#'));
    match numbered {
        Some((item, _)) => item,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_item_of_a_call() {
        assert_eq!(call_item("e02/s005/rollout/ITEM#0"), "ITEM");
        assert_eq!(call_item("e02/s005/rollout/A#B#1/t2"), "A#B");
        assert_eq!(call_item("e02/s005/analyst/f003"), "f003");
    }
}
