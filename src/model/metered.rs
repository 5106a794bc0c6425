//! A model without attempts of its own (the local worker, the built-in edit search), paid from a budget.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::attempt::request_bound;
use super::budget::Budget;
use super::{ChatModel, LiveSink, ModelError};
use crate::domain::{ChatReply, ChatRequest, Delivery, Usage};

/// A model whose calls are paid from a budget; they cost no money.
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
            let reservation = self.budget.reserve(request, request_bound(request)).await?;
            let result = self.inner.chat(request, live).await;
            match &result {
                Ok(reply) => reservation.answered(Usage { calls: 1, ..reply.usage }),
                Err(_) => reservation.unanswered(Some(Usage { calls: 1, ..Usage::default() })),
            }
            result
        })
    }
}
