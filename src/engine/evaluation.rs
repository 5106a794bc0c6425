//! Measuring one skill on a held-out split, in flights that never run an item the verdict does not need.

use std::sync::Arc;

use super::Stop;
use super::calls::{Pending, RolloutSpec, Workshop};
use crate::domain::{
    EffectKey, Evaluator, GateMetric, GateScore, HeldOut, Item, Score, Skill, StepRef, Usage,
};
use crate::event::{EvalPurpose, Event, ItemResult};
use crate::gate::{Curtailment, best_case, evaluation_order, item_score, summarize};

/// A skill's results on a split, by item index; `None` was not run (curtailed).
#[derive(Clone, Debug)]
pub struct Evaluation {
    pub results: Vec<Option<ItemResult>>,
    pub score: GateScore,
    /// What measuring cost; results known before cost nothing.
    pub usage: Usage,
}

impl Evaluation {
    /// Score of the item at `index`; `None` when it was not run or not answered.
    pub fn score_of(&self, index: usize) -> Option<&Score> {
        Some(&self.results[index].as_ref()?.rollout()?.score)
    }
}

/// The compared number of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    pub kind: GateMetric,
    /// Weight of soft in the mixed metric.
    pub mixed_weight: f64,
}

/// What to measure and why.
pub struct EvaluationSpec<'a> {
    /// `baseline`, `s003`, `test_base`, `test_best`: also the prefix of its effect paths.
    pub id: String,
    pub path: String,
    pub purpose: EvalPurpose,
    pub at: StepRef,
    pub skill: &'a Skill,
    pub items: &'a [HeldOut<Item>],
    /// Stop as soon as the strict verdict against this evaluation is certain.
    pub against: Option<&'a Evaluation>,
    /// Results of the same skill text on the same items from earlier in the run.
    pub known: Option<&'a [Option<ItemResult>]>,
}

/// Runs an evaluation. The measured prefix and its order depend only on results, never on arrival.
pub async fn evaluate(
    shop: &Arc<Workshop>,
    metric: Metric,
    spec: EvaluationSpec<'_>,
) -> Result<Evaluation, Stop> {
    let n = spec.items.len();
    let journal = &shop.journal;
    journal.emit(Event::EvaluationStarted {
        eval: spec.id.clone(),
        purpose: spec.purpose,
        at: spec.at,
        skill_hash: spec.skill.hash.clone(),
        n,
    })?;
    let (order, mut curtailment) = match spec.against {
        None => ((0..n).collect(), None),
        Some(incumbent) => {
            let score = |index| {
                incumbent
                    .score_of(index)
                    .map_or(0.0, |score| item_score(metric.kind, metric.mixed_weight, score))
            };
            let scores: Vec<f64> = (0..n).map(score).collect();
            let bar = incumbent.score.gate;
            (evaluation_order(&scores), Some(Curtailment::new(metric.kind, metric.mixed_weight, bar, n)))
        }
    };
    let mut results: Vec<Option<ItemResult>> = vec![None; n];
    let mut done = 0;
    let mut usage = Usage::default();
    while done < n {
        let flight = curtailment.as_ref().map_or(n - done, Curtailment::next_flight);
        if flight == 0 {
            break;
        }
        let indices = &order[done..(done + flight).min(n)];
        let pending =
            indices.iter().map(|index| start_item(shop, &spec, *index)).collect::<Result<Vec<_>, _>>()?;
        for (index, (key, pending)) in indices.iter().zip(pending) {
            let result = pending.result().await?;
            journal.emit(Event::EvaluationItemFinished {
                key,
                eval: spec.id.clone(),
                index: *index,
                result: result.clone(),
            })?;
            if let Some(curtailment) = &mut curtailment {
                curtailment.record(result.rollout().map(|rollout| &rollout.score));
            }
            if let Some(rollout) = result.rollout() {
                usage += rollout.usage;
            }
            results[*index] = Some(result);
        }
        done += indices.len();
    }
    let curtailed = done < n;
    let scored = results.iter().filter_map(|result| Some(&result.as_ref()?.rollout()?.score));
    // A candidate is compared, so what was not measured must not flatter or blame it.
    let score = match spec.against {
        Some(_) => best_case(metric.kind, metric.mixed_weight, n, scored),
        None => summarize(metric.kind, metric.mixed_weight, n, scored),
    };
    let missing = results.iter().flatten().filter(|result| result.rollout().is_none()).count();
    journal.emit(Event::EvaluationFinished {
        eval: spec.id.clone(),
        score: score.clone(),
        curtailed,
        missing,
    })?;
    Ok(Evaluation { results, score, usage })
}

fn start_item(
    shop: &Arc<Workshop>,
    spec: &EvaluationSpec<'_>,
    index: usize,
) -> Result<(EffectKey, Pending<ItemResult>), Stop> {
    let item = spec.items[index].open(&Evaluator::for_evaluation_stage());
    let rollout = RolloutSpec {
        path: format!("{}/{}#0", spec.path, item.id),
        stage: "evaluation",
        item,
        skill: spec.skill,
    };
    let key = shop.rollout_key(&rollout);
    if let Some(Some(known)) = spec.known.map(|known| &known[index]) {
        return Ok((key, Pending::Recalled(without_cost(known))));
    }
    Ok((key, shop.start_rollout(&rollout)?))
}

/// A result measured earlier in the run, at no cost now.
fn without_cost(known: &ItemResult) -> ItemResult {
    let mut result = known.clone();
    if let ItemResult::Scored(rollout) = &mut result {
        rollout.usage = Usage::default();
        rollout.ms = 0;
    }
    result
}
