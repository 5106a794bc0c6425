//! Scoring skills on any splits without training: what `planish eval` runs. Writes no journal; a finished call is found
//! again by its fingerprint in the folder that the model records to.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::sync::Semaphore;

use super::Stop;
use super::calls::sampling;
use crate::config::Config;
use crate::domain::{Dataset, Evaluator, Item, Role, Score, Split};
use crate::env::batches::eval_size;
use crate::env::{Environment, Judge, RolloutContext};
use crate::event::ItemResult;
use crate::gate::passed;
use crate::model::{ChatModel, LiveSink};

/// What to score. All skills see the same items in the same number of repeats.
pub struct Scoring<'a> {
    pub config: &'a Config,
    pub env: &'a dyn Environment,
    pub target: &'a dyn ChatModel,
    /// Set where the environment asks one.
    pub judge: Option<&'a dyn ChatModel>,
    pub data: &'a Dataset,
    pub splits: &'a [Split],
    pub skills: &'a [String],
    pub repeats: usize,
}

/// One item under one skill: a result per repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredItem {
    pub split: Split,
    pub item: String,
    pub results: Vec<ItemResult>,
}

impl ScoredItem {
    /// The scores of the answered repeats.
    pub fn scores(&self) -> Vec<&Score> {
        self.results.iter().filter_map(|result| Some(&result.rollout()?.score)).collect()
    }

    /// `None` when no repeat was answered.
    pub fn task_type(&self) -> Option<&str> {
        self.results.iter().find_map(|result| Some(result.rollout()?.task_type.as_str()))
    }

    /// Why the last repeat that was not completely right was not.
    pub fn last_failure(&self) -> Option<&str> {
        let failed = |score: &&&Score| !passed(score);
        self.scores().iter().rev().find(failed).map(|score| score.reason.as_str())
    }

    /// Repeats without an answer, with the error.
    pub fn missing(&self) -> impl Iterator<Item = (usize, &str)> {
        self.results.iter().enumerate().filter_map(|(repeat, result)| match result {
            ItemResult::Missing { error, .. } => Some((repeat, error.as_str())),
            ItemResult::Scored(_) => None,
        })
    }
}

/// Scores `scoring.skills`, each in the order of its split. The limits of the selection and of the test split apply as in
/// a run. `progress` is told how many rollouts of how many are done.
///
/// Repeats of an item are independent draws (their paths end in `#0`, `#1`, … and give their seeds); two skills get equal
/// seeds for the same repeat but never share a call, and are measured side by side, so that a server's drift meets both.
pub async fn score_skills(
    scoring: &Scoring<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Vec<ScoredItem>>, Stop> {
    let items: Vec<(Split, &Item)> =
        scoring.splits.iter().flat_map(|split| items(scoring, *split).map(|item| (*split, item))).collect();
    let slots = Semaphore::new(scoring.config.env.workers);
    let quiet: LiveSink = Arc::new(|_| {});
    let mut rollouts: FuturesOrdered<_> = items
        .iter()
        .flat_map(|(split, item)| {
            let repeats = 0..scoring.repeats;
            repeats.flat_map(move |repeat| {
                (0..scoring.skills.len()).map(move |arm| (*split, *item, repeat, arm))
            })
        })
        .map(|(split, item, repeat, arm)| {
            let (slots, quiet) = (&slots, &quiet);
            async move {
                let _slot = slots.acquire().await.map_err(|_| Stop::Cancelled)?;
                roll_out(scoring, Draw { split, item, repeat, arm }, quiet).await
            }
        })
        .collect();
    let all = rollouts.len();
    let mut results = Vec::with_capacity(all);
    while let Some(result) = rollouts.next().await {
        results.push(result?);
        progress(results.len(), all);
    }
    let mut results = results.into_iter();
    let mut scored: Vec<Vec<ScoredItem>> = vec![Vec::with_capacity(items.len()); scoring.skills.len()];
    for (split, item) in items {
        let at = scored.first().map_or(0, Vec::len);
        for arm in &mut scored {
            arm.push(ScoredItem {
                split,
                item: item.id.clone(),
                results: Vec::with_capacity(scoring.repeats),
            });
        }
        for _ in 0..scoring.repeats {
            for arm in &mut scored {
                arm[at].results.extend(results.next());
            }
        }
    }
    Ok(scored)
}

/// One measurement.
struct Draw<'a> {
    split: Split,
    item: &'a Item,
    repeat: usize,
    arm: usize,
}

fn items<'a>(scoring: &'a Scoring<'_>, split: Split) -> impl Iterator<Item = &'a Item> {
    let evaluator = Evaluator::for_evaluation_stage();
    let (data, limits) = (scoring.data, &scoring.config.evaluation);
    let (open, held, limit) = match split {
        Split::Train => (data.train.as_slice(), [].as_slice(), 0),
        Split::Val => ([].as_slice(), data.val.as_slice(), limits.sel_env_num),
        Split::Test => ([].as_slice(), data.test.as_slice(), limits.test_env_num),
    };
    let n = eval_size(limit, open.len() + held.len());
    open.iter().chain(held.iter().map(move |item| item.open(&evaluator))).take(n)
}

async fn roll_out(scoring: &Scoring<'_>, draw: Draw<'_>, quiet: &LiveSink) -> Result<ItemResult, Stop> {
    let Draw { split, item, repeat, arm } = draw;
    let seeded = format!("eval/{}/{}#{repeat}", split.name(), item.id);
    // The first skill's calls are the same whether another one is compared with it or not.
    let path = if arm == 0 { seeded.clone() } else { format!("arm{}/{seeded}", arm + 1) };
    let context = RolloutContext {
        target: scoring.target,
        path: &path,
        stage: "evaluation",
        sampling: sampling(scoring.config.train.seed, &scoring.config.model, Role::Target, &seeded),
        readout: None,
        live: quiet,
        judge: scoring.judge.map(|model| Judge {
            model,
            sampling: sampling(scoring.config.train.seed, &scoring.config.model, Role::Judge, &seeded),
        }),
    };
    match scoring.env.rollout(item, &scoring.skills[arm], context).await {
        Ok(rollout) => Ok(ItemResult::Scored(Arc::new(rollout))),
        Err(error) if error.ends_run() => Err(Stop::from(error)),
        Err(error) => Ok(ItemResult::Missing { item: item.id.clone(), error: error.to_string() }),
    }
}
