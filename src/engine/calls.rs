//! Rollouts and optimiser calls as memoised effects: started early, collected in order.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::Stop;
use super::journal::Journal;
use super::steering::Steering;
use crate::config::{Config, RoleConfig};
use crate::domain::{
    Brief, ChatReply, ChatRequest, EffectKey, Item, Prompt, Role, Sampling, Skill, fingerprint,
};
use crate::env::{Environment, RolloutContext};
use crate::event::{Event, ItemResult};
use crate::model::{ChatModel, LiveSink};
use crate::optim::Prompts;

/// Everything that tasks of one run share.
pub struct Workshop {
    pub config: Config,
    pub env: Arc<dyn Environment>,
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    pub journal: Arc<Journal>,
    pub steering: Arc<Steering>,
    pub live: LiveSink,
    pub prompts: Prompts,
    /// Bounds rollouts in flight (`env.workers`).
    pub rollout_slots: Arc<Semaphore>,
    /// Bounds optimiser calls in flight (`gradient.analyst_workers`).
    pub analyst_slots: Arc<Semaphore>,
}

/// A result under way. Dropping it aborts the task.
pub enum Pending<T> {
    /// From the journal.
    Recalled(T),
    Running(AbortOnDropHandle<Result<T, Stop>>),
}

impl<T> Pending<T> {
    pub async fn result(self) -> Result<T, Stop> {
        match self {
            Pending::Recalled(value) => Ok(value),
            Pending::Running(task) => match task.await {
                Ok(result) => result,
                Err(error) if error.is_cancelled() => Err(Stop::Cancelled),
                Err(error) => Err(Stop::Failed(format!("a task ended abnormally: {error}"))),
            },
        }
    }
}

/// One item to run under one skill.
pub struct RolloutSpec<'a> {
    /// `e01/s002/rollout/ITEM#0`
    pub path: String,
    pub stage: &'static str,
    pub item: &'a Item,
    pub skill: &'a Skill,
}

impl Workshop {
    /// Identity of a rollout: its path and everything that determines the result (DESIGN 4).
    pub fn rollout_key(&self, spec: &RolloutSpec<'_>) -> EffectKey {
        let sampling = self.sampling(Role::Target, &spec.path);
        let item = serde_json::to_string(spec.item).unwrap_or_default();
        let sampling = serde_json::to_string(&sampling).unwrap_or_default();
        let parts = [&spec.skill.text, &item, self.target.label(), &sampling, self.env.version(), &spec.path];
        EffectKey { path: spec.path.clone(), fingerprint: fingerprint(parts) }
    }

    /// Starts a rollout, or recalls its journaled result.
    pub fn start_rollout(self: &Arc<Self>, spec: &RolloutSpec<'_>) -> Result<Pending<ItemResult>, Stop> {
        let key = self.rollout_key(spec);
        if let Some(Event::RolloutFinished { result, .. } | Event::EvaluationItemFinished { result, .. }) =
            self.journal.effect(&key)?
        {
            return Ok(Pending::Recalled(result));
        }
        let shop = self.clone();
        let (item, skill) = (spec.item.clone(), spec.skill.text.clone());
        let (path, stage) = (spec.path.clone(), spec.stage);
        Ok(Pending::Running(AbortOnDropHandle::new(tokio::spawn(async move {
            let _slot = shop.slot(&shop.rollout_slots).await?;
            let context = RolloutContext {
                target: shop.target.as_ref(),
                path: &path,
                stage,
                sampling: shop.sampling(Role::Target, &path),
                live: &shop.live,
            };
            match shop.env.rollout(&item, &skill, context).await {
                Ok(rollout) => Ok(ItemResult::Scored(Box::new(rollout))),
                Err(error) if error.ends_run() => Err(error.into()),
                Err(error) => Ok(ItemResult::Missing { item: item.id, error: error.to_string() }),
            }
        }))))
    }

    /// The request of one optimiser call.
    pub fn optimizer_request(&self, path: String, stage: &str, prompt: Prompt, brief: Brief) -> ChatRequest {
        let sampling = self.sampling(Role::Optimizer, &path);
        let brief = Some(Box::new(brief));
        ChatRequest { path, role: Role::Optimizer, stage: stage.to_owned(), prompt, sampling, brief }
    }

    /// One optimiser call. A failed call that does not end the run is `Ok(Err(message))`.
    pub async fn call_optimizer(&self, request: &ChatRequest) -> Result<Result<ChatReply, String>, Stop> {
        let _slot = self.slot(&self.analyst_slots).await?;
        match self.optimizer.chat(request, &self.live).await {
            Ok(reply) => Ok(Ok(reply)),
            Err(error) if error.ends_run() => Err(error.into()),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    fn sampling(&self, role: Role, path: &str) -> Sampling {
        let settings = match role {
            Role::Target => &self.config.model.target,
            Role::Optimizer => &self.config.model.optimizer,
        };
        sampling(self.config.train.seed, settings, path)
    }

    async fn slot<'a>(&self, slots: &'a Semaphore) -> Result<tokio::sync::SemaphorePermit<'a>, Stop> {
        let slot = slots.acquire().await.map_err(|_| Stop::Cancelled)?;
        self.steering.may_dispatch().await.map_err(|_| Stop::Cancelled)?;
        Ok(slot)
    }
}

/// Sampling of a role with the call's own seed: the first 52 bits of SHA-256(run seed, path), which every JSON
/// reader keeps exactly.
pub fn sampling(run_seed: u64, role: &RoleConfig, path: &str) -> Sampling {
    let seed = role.send_seed.then(|| {
        let digest = fingerprint([run_seed.to_string().as_str(), path]);
        u64::from_str_radix(&digest[..13], 16).unwrap_or_default()
    });
    Sampling {
        max_tokens: role.max_tokens,
        temperature: role.temperature,
        top_p: role.top_p,
        top_k: role.top_k,
        seed,
        stop: role.stop.clone(),
    }
}

/// The model error of an item that has no score, for places that need a message.
pub fn missing_message(results: &[ItemResult]) -> Option<String> {
    results.iter().find_map(|result| match result {
        ItemResult::Missing { item, error } => Some(format!("{item}: {error}")),
        ItemResult::Scored(_) => None,
    })
}
