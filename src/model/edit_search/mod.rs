//! The built-in edit search: answers optimizer calls offline, deterministically, in the JSON contract of a model.
//! It is a search that is ordered by a model's log-likelihood, never a model: it must not be shown as one.

mod combine;
mod document;
mod guidance;
mod measure;
mod rules;
mod search;
mod shape;
mod stages;

pub use document::example_block;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::{ChatModel, Likelihood, LiveSink, ModelError, call_item};
use crate::domain::{Brief, ChatReply, ChatRequest, FinishReason, SourceType, Usage};
use crate::event::Live;

/// Raised when the same brief would get another answer than before: recorded calls are then not reused.
const VERSION: u32 = 1;

/// Proposes, merges and ranks edits; see [`search`] for what it tries.
pub struct EditSearch {
    likelihood: Arc<dyn Likelihood>,
    label: String,
}

impl EditSearch {
    /// `scorer` names the model behind `likelihood`.
    pub fn new(likelihood: Arc<dyn Likelihood>, scorer: &str) -> Self {
        Self { likelihood, label: format!("built-in edit search {VERSION}, scored by {scorer}") }
    }

    async fn answer(&self, request: &ChatRequest) -> Result<String, ModelError> {
        let brief = request.brief.as_deref().ok_or_else(|| ModelError::Worker {
            message: "the built-in edit search answers the optimizer's calls only".into(),
        })?;
        let likelihood = &*self.likelihood;
        let reply = match brief {
            Brief::Analyze {
                mode, source: SourceType::Failure, skill, budget, trajectories, memory, ..
            } => {
                let search = search::Search { likelihood, skill, trajectories, memory, mode: *mode };
                search.analyze(*budget).await?
            }
            Brief::Analyze { mode, source: SourceType::Success, trajectories, .. } => {
                search::success_reply(*mode, trajectories.len())
            }
            Brief::Merge { mode, patches, .. } => combine::merge(*mode, patches),
            Brief::Rank { patch, budget, .. } => combine::rank(patch, *budget),
            Brief::LearningRate { patch, .. } => stages::learning_rate(patch),
            Brief::Rewrite { skill, suggestions, .. } => shape::rewrite(skill, suggestions),
            Brief::SlowUpdate { skill, previous_guidance, pairs, .. } => {
                guidance::slow_update(likelihood, skill, previous_guidance, pairs).await?
            }
            Brief::MetaSkill { prev_skill, skill, pairs, .. } => stages::meta_skill(prev_skill, skill, pairs),
            Brief::MetaReflect { mode, history, .. } => stages::meta_reflect(*mode, history),
            Brief::Probe { .. } => stages::probe(),
            Brief::Consolidate { notes } => stages::consolidate(notes),
        };
        Ok(reply.to_string())
    }
}

impl ChatModel for EditSearch {
    fn label(&self) -> &str {
        &self.label
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        live: &'a LiveSink,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let (path, started) = (request.path.clone(), Instant::now());
            let item = call_item(&path).to_owned();
            live(Live::CallStarted { path: path.clone(), item, attempt: 1 });
            let answer = self.answer(request).await;
            let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            live(Live::CallFinished { path, ok: answer.is_ok(), tokens: 0, ms });
            // A call like any other of the optimizer, but no model's: it has no tokens.
            let (finish, usage) = (FinishReason::Stop, Usage { calls: 1, ..Usage::default() });
            answer.map(|text| ChatReply::of_text(text, finish, usage, ms))
        })
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
