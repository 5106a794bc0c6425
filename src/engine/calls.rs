//! Rollouts and optimiser calls as memoised effects: started early, collected in order.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::Stop;
use super::journal::Journal;
use super::steering::Steering;
use crate::config::{Config, RoleConfig};
use crate::domain::{
    Brief, ChatReply, ChatRequest, EffectKey, Item, Role, Sampling, Skill, StepRef, UpdateMode, Usage,
    fingerprint,
};
use crate::env::{Environment, RolloutContext};
use crate::event::{Event, ItemResult};
use crate::model::{ChatModel, LiveSink};
use crate::optim::{Prompts, ReplyFault};

/// Everything that tasks of one run share.
pub struct Workshop {
    pub config: Config,
    pub env: Arc<dyn Environment>,
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    pub prompts: Prompts,
    pub journal: Arc<Journal>,
    pub steering: Arc<Steering>,
    pub live: LiveSink,
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
    /// A diagnostic instruction that the prompt ends with.
    pub readout: Option<&'a str>,
}

/// What the optimizer's reply came to, or why it cannot be used.
pub struct Asked<T> {
    pub answer: Result<T, String>,
    /// False: no call came back, so nothing was said at all.
    pub heard: bool,
    /// Of all rounds.
    pub usage: Usage,
}

/// The journaled outcome of a stage that is one question. Without an answer the note says why.
pub struct Consulted<T> {
    pub answer: Option<T>,
    pub note: String,
    pub usage: Usage,
}

impl Workshop {
    /// Identity of a rollout: its path and everything that determines the result (DESIGN 4).
    pub fn rollout_key(&self, spec: &RolloutSpec<'_>) -> EffectKey {
        let sampling = self.sampling(Role::Target, &spec.path);
        let item = serde_json::to_string(spec.item).unwrap_or_default();
        let sampling = serde_json::to_string(&sampling).unwrap_or_default();
        let mut parts =
            vec![&spec.skill.text, &item, self.target.label(), &sampling, self.env.version(), &spec.path];
        parts.extend(spec.readout);
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
        let readout = spec.readout.map(str::to_owned);
        Ok(Pending::Running(AbortOnDropHandle::new(tokio::spawn(async move {
            let _slot = shop.slot(&shop.rollout_slots).await?;
            let context = RolloutContext {
                target: shop.target.as_ref(),
                path: &path,
                stage,
                sampling: shop.sampling(Role::Target, &path),
                readout: readout.as_deref(),
                live: &shop.live,
            };
            match shop.env.rollout(&item, &skill, context).await {
                Ok(rollout) => Ok(ItemResult::Scored(Arc::new(rollout))),
                Err(error) if error.ends_run() => Err(error.into()),
                Err(error) => Ok(ItemResult::Missing { item: item.id, error: error.to_string() }),
            }
        }))))
    }

    /// The request of one optimiser call, with the room that its reply needs.
    pub fn optimizer_request(&self, path: String, stage: &str, brief: Brief) -> ChatRequest {
        let mut sampling = self.sampling(Role::Optimizer, &path);
        if holds_whole_skill(&brief) {
            sampling.max_tokens = self.config.model.rewrite_max_completion_tokens;
        }
        let prompt = self.prompts.render(&brief);
        let brief = Some(Box::new(brief));
        ChatRequest { path, role: Role::Optimizer, stage: stage.to_owned(), prompt, sampling, brief }
    }

    /// Asks the optimizer and reads its reply; a reply that cannot be used gets one repair round, in which the model
    /// is told why.
    pub async fn ask<T>(
        &self,
        request: &ChatRequest,
        read: impl Fn(&str) -> Result<T, ReplyFault>,
    ) -> Result<Asked<T>, Stop> {
        let reply = match self.call_optimizer(request).await? {
            Ok(reply) => reply,
            Err(error) => return Ok(Asked { answer: Err(error), heard: false, usage: Usage::default() }),
        };
        let mut usage = reply.usage;
        let fault = match read(&reply.text) {
            Ok(answer) => return Ok(Asked { answer: Ok(answer), heard: true, usage }),
            Err(fault) => fault.to_string(),
        };
        let path = format!("{}/repair", request.path);
        let repair = ChatRequest {
            prompt: self.prompts.repair(&request.prompt, &reply.text, &fault),
            sampling: Sampling {
                seed: self.sampling(Role::Optimizer, &path).seed,
                ..request.sampling.clone()
            },
            path,
            ..request.clone()
        };
        let answer = match self.call_optimizer(&repair).await? {
            Ok(second) => {
                usage += second.usage;
                read(&second.text).map_err(|again| match again.to_string() {
                    again if again == fault => format!("{fault}, also after a repair round"),
                    again => format!("{fault}; after a repair round: {again}"),
                })
            }
            Err(error) => Err(format!("{fault}; the repair round failed: {error}")),
        };
        Ok(Asked { answer, heard: true, usage })
    }

    /// [`Workshop::ask`] as a stage of its own, whose outcome is journaled and recalled.
    pub async fn consult<T: Serialize + DeserializeOwned>(
        &self,
        at: StepRef,
        stage: &str,
        path: String,
        brief: Brief,
        read: impl Fn(&str) -> Result<T, ReplyFault>,
    ) -> Result<Consulted<T>, Stop> {
        let recorded = self.journal.recall(|event| match event {
            Event::OptimizerAnswered { path: answered, answer, note, usage, .. } if *answered == path => {
                Some((answer.clone(), note.clone(), *usage))
            }
            _ => None,
        });
        if let Some((answer, note, usage)) = recorded {
            let answer = answer.map(serde_json::from_value).transpose();
            let answer =
                answer.map_err(|error| Stop::Failed(format!("{path}: the recorded answer: {error}")))?;
            return Ok(Consulted { answer, note, usage });
        }
        let request = self.optimizer_request(path.clone(), stage, brief);
        let Asked { answer, usage, .. } = self.ask(&request, read).await?;
        let (answer, note) = match answer {
            Ok(answer) => (Some(answer), String::new()),
            Err(note) => (None, note),
        };
        let json = answer.as_ref().map(serde_json::to_value).transpose();
        let json = json.map_err(|error| Stop::Failed(format!("{path}: {error}")))?;
        let (stage, recorded) = (stage.to_owned(), note.clone());
        self.journal.emit(Event::OptimizerAnswered {
            path,
            at,
            stage,
            answer: json,
            note: recorded,
            usage,
        })?;
        Ok(Consulted { answer, note, usage })
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

fn holds_whole_skill(brief: &Brief) -> bool {
    match brief {
        Brief::Analyze { mode, .. } | Brief::Merge { mode, .. } => *mode == UpdateMode::FullRewriteMinibatch,
        Brief::Rewrite { .. } => true,
        Brief::Rank { .. }
        | Brief::LearningRate { .. }
        | Brief::SlowUpdate { .. }
        | Brief::MetaSkill { .. }
        | Brief::MetaReflect { .. }
        | Brief::Probe { .. }
        | Brief::Consolidate { .. } => false,
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
