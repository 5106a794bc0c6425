//! Measuring one skill on a set of items, in flights that never run an item the verdict does not need.

use std::sync::Arc;

use serde_json::Value;

use super::Stop;
use super::calls::{Pending, RolloutSpec, Workshop, missing_message};
use super::in_flight::Need;
use crate::config::EvaluationConfig;
use crate::domain::{
    EffectKey, Evaluator, GateMetric, GateScore, HeldOut, Item, Rollout, Score, Skill, StepRef, Usage,
};
use crate::event::{EvalPurpose, Event, ItemResult};
use crate::gate::{
    Curtailment, LEADING_WORDS, best_case, density, evaluation_order, item_score, summarize, with_density,
};

/// A skill's results on a split, by item index; `None` was not run (curtailed).
#[derive(Clone, Debug)]
pub struct Evaluation {
    pub results: Vec<Option<ItemResult>>,
    pub score: GateScore,
    /// What measuring cost; results known before cost nothing.
    pub usage: Usage,
    /// What judging of that cost, which is not in `usage`.
    pub judging: Usage,
}

impl Evaluation {
    /// What it cost in all.
    pub fn spent(&self) -> Usage {
        let mut spent = self.usage;
        spent += self.judging;
        spent
    }

    /// Score of the item at `index`; `None` when it was not run or not answered.
    pub fn score_of(&self, index: usize) -> Option<&Score> {
        Some(&self.results[index].as_ref()?.rollout()?.score)
    }

    /// Every item has a score.
    pub fn complete(&self) -> bool {
        self.score.done == self.score.n
    }
}

/// The compared number of an evaluation.
#[derive(Clone, Debug)]
pub struct Metric {
    pub kind: GateMetric,
    /// Weight of soft in the mixed metric.
    pub mixed_weight: f64,
    /// Weight of the bonus for leading words, and the words.
    density: Option<(f64, Vec<String>)>,
}

impl Metric {
    pub fn new(config: &EvaluationConfig) -> Self {
        let words = match config.leading_words.as_slice() {
            [] => LEADING_WORDS.map(str::to_owned).to_vec(),
            words => words.to_vec(),
        };
        Self {
            kind: config.gate_metric,
            mixed_weight: config.gate_mixed_weight,
            density: config.use_semantic_density.then_some((config.semantic_density_weight, words)),
        }
    }

    /// What the text of a skill adds to its gate score; 0 without semantic density.
    pub fn bonus(&self, skill: &Skill) -> f64 {
        match &self.density {
            Some((weight, words)) => with_density(0.0, density(&skill.text, words), *weight),
            None => 0.0,
        }
    }
}

/// The items of an evaluation. Held-out ones are opened here and nowhere else in the engine.
#[derive(Clone)]
pub enum EvalItems<'a> {
    HeldOut(&'a [HeldOut<Item>]),
    Training(Vec<&'a Item>),
}

impl<'a> EvalItems<'a> {
    fn len(&self) -> usize {
        match self {
            Self::HeldOut(items) => items.len(),
            Self::Training(items) => items.len(),
        }
    }

    fn get(&self, index: usize) -> &'a Item {
        match self {
            Self::HeldOut(items) => items[index].open(&Evaluator::for_evaluation_stage()),
            Self::Training(items) => items[index],
        }
    }
}

/// What to measure and why.
pub struct EvaluationSpec<'a> {
    /// `baseline`, `s003`, `e02/slow/prev`, `test_best`.
    pub id: String,
    /// Prefix of its effect paths.
    pub path: String,
    pub purpose: EvalPurpose,
    pub at: StepRef,
    pub skill: &'a Skill,
    pub items: EvalItems<'a>,
    /// Stop as soon as the strict verdict against this evaluation is certain.
    pub against: Option<&'a Evaluation>,
    /// Results of the same skill text on the same items from earlier in the run.
    pub known: Option<&'a [Option<ItemResult>]>,
    /// A diagnostic instruction that every prompt ends with.
    pub readout: Option<&'a str>,
    /// What this is to the run, when nothing can go on without a score of every item: then a missing one ends the run
    /// before it is journaled, so that a resume asks again.
    pub indispensable: Option<&'a str>,
}

/// Runs an evaluation from its first item to its last.
pub async fn evaluate(
    shop: &Arc<Workshop>,
    metric: &Metric,
    spec: EvaluationSpec<'_>,
) -> Result<Evaluation, Stop> {
    begin(shop, metric, spec)?.finish().await
}

/// An evaluation whose first items are running. Several may run at once; each is finished in turn, so that the order
/// of events depends on the program alone.
pub struct Running<'a> {
    shop: Arc<Workshop>,
    spec: EvaluationSpec<'a>,
    metric: &'a Metric,
    bonus: f64,
    order: Vec<usize>,
    curtailment: Option<Curtailment>,
    flight: Vec<(usize, EffectKey, Pending<ItemResult>)>,
    done: usize,
}

/// Announces an evaluation and starts its first flight. The measured prefix and its order depend only on results,
/// never on arrival.
pub fn begin<'a>(
    shop: &Arc<Workshop>,
    metric: &'a Metric,
    spec: EvaluationSpec<'a>,
) -> Result<Running<'a>, Stop> {
    let n = spec.items.len();
    shop.journal.emit(Event::EvaluationStarted {
        eval: spec.id.clone(),
        purpose: spec.purpose,
        at: spec.at,
        skill_hash: spec.skill.hash.clone(),
        n,
    })?;
    let bonus = metric.bonus(spec.skill);
    let (order, curtailment) = match spec.against {
        None => ((0..n).collect(), None),
        Some(incumbent) => {
            let score = |index| {
                incumbent
                    .score_of(index)
                    .map_or(0.0, |score| item_score(metric.kind, metric.mixed_weight, score))
            };
            let scores: Vec<f64> = (0..n).map(score).collect();
            let bar = incumbent.score.gate;
            let curtailment = Curtailment::new(metric.kind, metric.mixed_weight, bar, n).with_bonus(bonus);
            (evaluation_order(&scores), Some(curtailment))
        }
    };
    let shop = shop.clone();
    let mut running = Running { shop, spec, metric, bonus, order, curtailment, flight: Vec::new(), done: 0 };
    running.take_off()?;
    Ok(running)
}

impl Running<'_> {
    /// Starts the items that are needed in any case before a verdict can be certain.
    fn take_off(&mut self) -> Result<(), Stop> {
        let left = self.order.len() - self.done;
        let size = self.curtailment.as_ref().map_or(left, Curtailment::next_flight).min(left);
        for place in self.done..self.done + size {
            let index = self.order[place];
            let (key, pending) = self.start_item(index)?;
            self.flight.push((index, key, pending));
        }
        Ok(())
    }

    fn start_item(&self, index: usize) -> Result<(EffectKey, Pending<ItemResult>), Stop> {
        let item = self.spec.items.get(index);
        let rollout = RolloutSpec {
            path: format!("{}/{}#0", self.spec.path, item.id),
            stage: "evaluation",
            item,
            skill: self.spec.skill,
            readout: self.spec.readout,
            need: self.spec.indispensable.map_or(Need::None, |what| Need::This(what.to_owned())),
        };
        let key = self.shop.rollout_key(&rollout);
        // What was never answered may be answered now.
        if let Some(Some(known @ ItemResult::Scored(_))) = self.spec.known.map(|known| &known[index]) {
            return Ok((key, Pending::Recalled(without_cost(known))));
        }
        Ok((key, self.shop.start_rollout(&rollout)?))
    }

    pub async fn finish(mut self) -> Result<Evaluation, Stop> {
        let n = self.order.len();
        let mut results: Vec<Option<ItemResult>> = vec![None; n];
        let (mut usage, mut judging) = (Usage::default(), Usage::default());
        let mut lacking = Vec::new();
        while !self.flight.is_empty() {
            for (index, key, pending) in std::mem::take(&mut self.flight) {
                let result = pending.result().await?;
                self.done += 1;
                if self.spec.indispensable.is_some() && (!lacking.is_empty() || result.rollout().is_none()) {
                    // A resume asks for it again; what came after it lies in the stored calls.
                    lacking.extend(Some(result).filter(|result| result.rollout().is_none()));
                    continue;
                }
                self.shop.journal.emit(Event::EvaluationItemFinished {
                    key,
                    eval: self.spec.id.clone(),
                    index,
                    result: result.clone(),
                })?;
                if let Some(curtailment) = &mut self.curtailment {
                    curtailment.record(result.rollout().map(|rollout| &rollout.score));
                }
                if let Some(rollout) = result.rollout() {
                    usage += rollout.usage;
                    judging += rollout.judging_usage();
                }
                results[index] = Some(result);
            }
            self.take_off()?;
        }
        if let Some(what) = self.spec.indispensable
            && let Some(first) = missing_message(&lacking)
        {
            return Err(Stop::Failed(format!(
                "{what} lacks {} of {n} items, so nothing can be compared with it; {first}",
                lacking.len()
            )));
        }
        let Metric { kind, mixed_weight, .. } = *self.metric;
        let scored = results.iter().filter_map(|result| Some(&result.as_ref()?.rollout()?.score));
        // A candidate is compared, so what was not measured must not flatter or blame it.
        let mut score = match self.spec.against {
            Some(_) => best_case(kind, mixed_weight, n, scored),
            None => summarize(kind, mixed_weight, n, scored),
        };
        score.gate += self.bonus;
        let missing = results.iter().flatten().filter(|result| result.rollout().is_none()).count();
        self.shop.journal.emit(Event::EvaluationFinished {
            eval: self.spec.id.clone(),
            score: score.clone(),
            curtailed: self.done < n,
            missing,
        })?;
        Ok(Evaluation { results, score, usage, judging })
    }
}

/// Recorded rollouts as results by item index, if there is one of every item and all ask what the items ask.
pub fn recorded_results(items: &EvalItems<'_>, rollouts: &[Rollout]) -> Option<Vec<Option<ItemResult>>> {
    if rollouts.len() != items.len() {
        return None;
    }
    let result = |index| {
        let item = items.get(index);
        let rollout = rollouts.iter().find(|rollout| rollout.item == item.id)?;
        let same = |recorded: &str, field: &str| match item.fields.get(field) {
            _ if recorded.is_empty() => false,
            Some(Value::String(text)) => text == recorded,
            Some(Value::Array(texts)) => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                texts.join(" | ") == recorded
            }
            // Another form of task: nothing says that the row is of it.
            Some(_) | None => false,
        };
        let fits = same(&rollout.task, "question") && same(&rollout.gold, "answers");
        fits.then(|| Some(ItemResult::Scored(Arc::new(rollout.clone()))))
    };
    (0..items.len()).map(result).collect()
}

/// A result measured earlier in the run, at no cost now.
fn without_cost(known: &ItemResult) -> ItemResult {
    let mut result = known.clone();
    if let ItemResult::Scored(rollout) = &mut result {
        let rollout = Arc::make_mut(rollout);
        rollout.usage = Usage::default();
        rollout.ms = 0;
        rollout.judging = None;
    }
    result
}
