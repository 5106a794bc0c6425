//! Scoring a skill on any split without training: what `planish eval` runs. Writes no journal.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::sync::Semaphore;

use super::Stop;
use super::calls::sampling;
use crate::config::Config;
use crate::domain::{Dataset, Evaluator, Item, Split};
use crate::env::{Environment, RolloutContext};
use crate::event::ItemResult;
use crate::model::{ChatModel, LiveSink};

/// Rolls out every item of `split` under `skill` and returns the results in item order.
pub async fn score_skill(
    config: &Config,
    env: &dyn Environment,
    target: &dyn ChatModel,
    data: &Dataset,
    split: Split,
    skill: &str,
) -> Result<Vec<ItemResult>, Stop> {
    let evaluator = Evaluator::for_evaluation_stage();
    let items: Vec<&Item> = match split {
        Split::Train => data.train.iter().collect(),
        Split::Val => data.val.iter().map(|item| item.open(&evaluator)).collect(),
        Split::Test => data.test.iter().map(|item| item.open(&evaluator)).collect(),
    };
    let slots = Semaphore::new(config.env.workers);
    let quiet: LiveSink = Arc::new(|_| {});
    let mut rollouts: FuturesOrdered<_> = items
        .into_iter()
        .map(|item| {
            let (slots, quiet) = (&slots, &quiet);
            async move {
                let _slot = slots.acquire().await.map_err(|_| Stop::Cancelled)?;
                let path = format!("eval/{}/{}#0", split.name(), item.id);
                let context = RolloutContext {
                    target,
                    path: &path,
                    stage: "evaluation",
                    sampling: sampling(config.train.seed, &config.model.target, &path),
                    readout: None,
                    live: quiet,
                };
                match env.rollout(item, skill, context).await {
                    Ok(rollout) => Ok(ItemResult::Scored(Box::new(rollout))),
                    Err(error) if error.ends_run() => Err(Stop::from(error)),
                    Err(error) => Ok(ItemResult::Missing { item: item.id.clone(), error: error.to_string() }),
                }
            }
        })
        .collect();
    let mut results = Vec::with_capacity(rollouts.len());
    while let Some(result) = rollouts.next().await {
        results.push(result?);
    }
    Ok(results)
}
