//! Rollouts and optimiser calls as memoised effects: started early, collected in order.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::task::AbortOnDropHandle;

use super::Stop;
use super::in_flight::{GivenUp, InFlight, Need};
use super::journal::Journal;
use super::settings::Settings;
use super::slots::{Slot, Slots};
use super::steering::Steering;
use crate::config::{Config, ModelConfig};
use crate::domain::{
    Asks, Author, Brief, ChatReply, ChatRequest, EffectKey, Item, Role, Sampling, Skill, StepRef, UpdateMode,
    Usage, fingerprint,
};
use crate::env::{Environment, Judge, RolloutContext};
use crate::event::{Event, ItemResult};
use crate::model::{ChatModel, LiveSink};
use crate::optim::{Prompts, ReplyFault};

/// Everything that tasks of one run share.
pub struct Workshop {
    pub settings: Arc<Settings>,
    pub in_flight: Arc<InFlight>,
    pub env: Arc<dyn Environment>,
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    /// Set where the environment asks one.
    pub judge: Option<Arc<dyn ChatModel>>,
    pub prompts: Prompts,
    pub journal: Arc<Journal>,
    pub steering: Arc<Steering>,
    pub live: LiveSink,
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
    pub need: Need,
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
    /// The configuration as it is now.
    pub fn config(&self) -> Arc<Config> {
        self.settings.config()
    }

    /// Identity of a rollout: its path and everything that determines the result (DESIGN 4).
    pub fn rollout_key(&self, spec: &RolloutSpec<'_>) -> EffectKey {
        let sampling = self.sampling(Role::Target, &spec.path);
        let item = serde_json::to_string(spec.item).unwrap_or_default();
        let sampling = serde_json::to_string(&sampling).unwrap_or_default();
        let mut parts =
            vec![&spec.skill.text, &item, self.target.label(), &sampling, self.env.version(), &spec.path];
        let judge = self.judge.as_ref().map(|judge| {
            let sampling = self.sampling(Role::Judge, &spec.path);
            [judge.label().to_owned(), serde_json::to_string(&sampling).unwrap_or_default()]
        });
        parts.extend(judge.iter().flatten().map(String::as_str));
        parts.extend(spec.readout);
        EffectKey { path: spec.path.clone(), fingerprint: fingerprint(parts) }
    }

    /// Starts a rollout, or recalls its journaled result.
    pub fn start_rollout(self: &Arc<Self>, spec: &RolloutSpec<'_>) -> Result<Pending<ItemResult>, Stop> {
        let key = self.rollout_key(spec);
        if let Some(Event::RolloutFinished { result, .. } | Event::EvaluationItemFinished { result, .. }) =
            self.journal.effect(&key)?
        {
            if result.rollout().is_some() {
                self.in_flight.recalled(&spec.need);
            }
            return Ok(Pending::Recalled(result));
        }
        if let Some(by) = self.cancelled_call(&spec.path) {
            return Ok(Pending::Recalled(given_up(&spec.item.id, &by)));
        }
        let mut entry = self.in_flight.enter(&spec.path, spec.need.clone());
        let shop = self.clone();
        let (item, skill) = (spec.item.clone(), spec.skill.text.clone());
        let (path, stage) = (spec.path.clone(), spec.stage);
        let readout = spec.readout.map(str::to_owned);
        Ok(Pending::Running(AbortOnDropHandle::new(tokio::spawn(async move {
            let _slot = match entry.unless_given_up(shop.slot(&shop.settings.rollout_slots)).await {
                Ok(slot) => slot?,
                Err(GivenUp(by)) => return Ok(given_up(&item.id, &by)),
            };
            let attempt = async |live: LiveSink| {
                let context = RolloutContext {
                    target: shop.target.as_ref(),
                    path: &path,
                    stage,
                    sampling: shop.sampling(Role::Target, &path),
                    readout: readout.as_deref(),
                    live: &live,
                    judge: shop.judge.as_ref().map(|model| Judge {
                        model: model.as_ref(),
                        sampling: shop.sampling(Role::Judge, &path),
                    }),
                };
                shop.env.rollout(&item, &skill, context).await
            };
            match entry.conduct(&shop.live, attempt).await {
                Ok(Ok(rollout)) => {
                    entry.answered();
                    Ok(ItemResult::Scored(Arc::new(rollout)))
                }
                Ok(Err(error)) if error.ends_run() => Err(error.into()),
                Ok(Err(error)) => Ok(ItemResult::Missing { item: item.id, error: error.to_string() }),
                Err(GivenUp(by)) => Ok(given_up(&item.id, &by)),
            }
        }))))
    }

    /// The request of one optimiser call, with the room that its reply needs.
    pub fn optimizer_request(&self, path: String, stage: &str, brief: Brief) -> ChatRequest {
        let mut sampling = self.sampling(Role::Optimizer, &path);
        if holds_whole_skill(&brief) {
            let model = &self.config().model;
            sampling.max_tokens = capped(model.rewrite_max_completion_tokens, model, Role::Optimizer);
        }
        let prompt = self.prompts.render(&brief);
        let brief = Some(Box::new(brief));
        ChatRequest {
            path,
            role: Role::Optimizer,
            stage: stage.to_owned(),
            prompt,
            sampling,
            asks: Asks::default(),
            workspace: None,
            brief,
        }
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
        if let Some(by) = self.cancelled_call(&request.path) {
            return Ok(Err(words_of(&by)));
        }
        let need = analyst_need(&request.path);
        let mut entry = self.in_flight.enter(&request.path, need);
        let _slot = match entry.unless_given_up(self.slot(&self.settings.analyst_slots)).await {
            Ok(slot) => slot?,
            Err(GivenUp(by)) => return Ok(Err(words_of(&by))),
        };
        let attempt = async |live: LiveSink| self.optimizer.chat(request, &live).await;
        match entry.conduct(&self.live, attempt).await {
            Ok(Ok(reply)) => {
                entry.answered();
                Ok(Ok(reply))
            }
            Ok(Err(error)) if error.ends_run() => Err(error.into()),
            Ok(Err(error)) => Ok(Err(error.to_string())),
            Err(GivenUp(by)) => Ok(Err(words_of(&by))),
        }
    }

    /// Who gave up the call at `path`, in this process or before.
    fn cancelled_call(&self, path: &str) -> Option<Author> {
        self.journal.with_state(|state| state.cancelled_calls.get(path).cloned())
    }

    fn sampling(&self, role: Role, path: &str) -> Sampling {
        let config = self.config();
        sampling(config.train.seed, &config.model, role, path)
    }

    async fn slot<'a>(&self, slots: &'a Slots) -> Result<Slot<'a>, Stop> {
        let slot = slots.acquire().await.ok_or(Stop::Cancelled)?;
        self.steering.may_dispatch().await.map_err(|_| Stop::Cancelled)?;
        Ok(slot)
    }
}

fn words_of(by: &Author) -> String {
    format!("cancelled by {}", by.0)
}

fn given_up(item: &str, by: &Author) -> ItemResult {
    ItemResult::Missing { item: item.to_owned(), error: words_of(by) }
}

/// A step needs one answer of its analysts, `e01/s002/analyst/b0/fail001`; repair rounds are spare.
fn analyst_need(path: &str) -> Need {
    match path.split_once("/analyst/") {
        Some((step, place)) if !place.ends_with("/repair") => {
            Need::OneOf { group: format!("{step}/analyst"), what: "the answer of one analyst" }
        }
        Some(_) | None => Need::None,
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
pub fn sampling(run_seed: u64, model: &ModelConfig, role: Role, path: &str) -> Sampling {
    let own = model.role(role);
    let seed = own.send_seed.then(|| {
        let digest = fingerprint([run_seed.to_string().as_str(), path]);
        u64::from_str_radix(&digest[..13], 16).unwrap_or_default()
    });
    Sampling {
        max_tokens: capped(own.max_tokens, model, role),
        temperature: model.temperature(role),
        top_p: own.top_p,
        top_k: own.top_k,
        seed,
        stop: own.stop.clone(),
    }
}

fn capped(tokens: u32, model: &ModelConfig, role: Role) -> u32 {
    model.token_ceiling(role).map_or(tokens, |most| tokens.min(most))
}

/// The model error of an item that has no score, for places that need a message.
pub fn missing_message(results: &[ItemResult]) -> Option<String> {
    results.iter().find_map(|result| match result {
        ItemResult::Missing { item, error } => Some(format!("{item}: {error}")),
        ItemResult::Scored(_) => None,
    })
}
