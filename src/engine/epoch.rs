//! What happens between two epochs: the slow update, which writes guidance into the skill, and the meta skill, which
//! writes a memory for the optimizer. Both look at the same training items under the skills of two epochs.

use super::Stop;
use super::calls::Consulted;
use super::evaluation::{EvalItems, EvaluationSpec, begin};
use super::run::Run;
use crate::domain::{
    Brief, ComparisonPair, EpochStage, GateDecision, Item, MetaSkill, PairPolicy, Phase, Rollout, Skill,
    SlowUpdate, StageAction, StepRef, Usage,
};
use crate::env::batches::train_batch;
use crate::event::{EvalPurpose, Event, ItemResult};
use crate::optim::{
    PairInput, comparison_pairs, kept_pairs, meta_skill_reply, slow_update_reply, slow_update_text,
    with_empty_slow_update, with_slow_update,
};

/// Two skills on the same training items.
#[derive(Default)]
struct Comparison {
    all: Vec<ComparisonPair>,
    /// What the optimizer is shown.
    kept: Vec<ComparisonPair>,
    /// Means over the sampled items, before any top-up.
    prev_hard: Option<f64>,
    curr_hard: Option<f64>,
    usage: Usage,
}

/// One round of a comparison: rollouts by item index.
struct Round<'a> {
    items: Vec<&'a Item>,
    prev: Vec<Option<ItemResult>>,
    curr: Vec<Option<ItemResult>>,
    usage: Usage,
}

impl Run {
    /// The stages after the last step `at` of an epoch.
    pub(super) async fn between_epochs(&mut self, at: StepRef) -> Result<(), Stop> {
        let taken_over = self.taken_over.as_ref().filter(|taken_over| taken_over.last.step == at.step);
        let stages_done = taken_over.map(|taken_over| taken_over.stages.clone()).unwrap_or_default();
        let left = |phase| !stages_done.contains(&phase);
        let before = taken_over.and_then(|taken_over| taken_over.before_stages.clone());
        let before = before.unwrap_or_else(|| self.current.clone());
        let optimizer = self.shop.config().optimizer.clone();
        let mut pairs = None;
        if optimizer.use_slow_update && left(Phase::SlowUpdate) {
            self.phase(at, Phase::SlowUpdate)?;
            pairs = self.slow_update(at).await?;
        }
        if optimizer.use_meta_skill && left(Phase::MetaSkill) {
            self.phase(at, Phase::MetaSkill)?;
            self.write_meta_skill(at, &before, pairs).await?;
        }
        if optimizer.use_meta_reflect && left(Phase::MetaReflect) {
            self.phase(at, Phase::MetaReflect)?;
            self.meta_reflect(at).await?;
        }
        self.epoch_end_skill = self.current.clone();
        Ok(())
    }

    /// Returns the pairs it compared, with their trajectories; `None` in the first epoch.
    async fn slow_update(&mut self, at: StepRef) -> Result<Option<Vec<ComparisonPair>>, Stop> {
        let mut found = SlowUpdate {
            action: StageAction::InjectPlaceholder,
            reasoning: String::new(),
            content: String::new(),
            prev_hard: None,
            curr_hard: None,
            pairs: Vec::new(),
            all_pairs: Vec::new(),
            candidate: None,
            decision: None,
            note: String::new(),
        };
        if at.epoch == 1 {
            let with_region = Skill::new(with_empty_slow_update(&self.current.text));
            if with_region.hash != self.current.hash {
                self.current_origin = format!("slow_update_placeholder_epoch_{:02}", at.epoch);
                self.replace_ungated(with_region);
            }
            self.stage_finished(at, EpochStage::SlowUpdate(Box::new(found)), Usage::default())?;
            return Ok(None);
        }
        let mut comparison = self.compare(at, "slow").await?;
        let mut usage = std::mem::take(&mut comparison.usage);
        (found.prev_hard, found.curr_hard) = (comparison.prev_hard, comparison.curr_hard);
        found.pairs = comparison.kept.iter().map(ComparisonPair::without_trajectories).collect();
        if comparison.kept != comparison.all {
            found.all_pairs = comparison.all.iter().map(ComparisonPair::without_trajectories).collect();
        }
        found.action = StageAction::NoContent;
        if comparison.kept.is_empty() {
            found.note = "no training item gave a pair to compare".into();
        } else {
            let brief = Brief::SlowUpdate {
                prev_skill: self.epoch_end_skill.text.clone(),
                skill: self.current.text.clone(),
                previous_guidance: slow_update_text(&self.current.text),
                pairs: comparison.kept.clone(),
            };
            let path = format!("e{:02}/slow/call", at.epoch);
            let Consulted { answer, note, usage: asked } =
                self.shop.consult(at, "slow_update", path, brief, slow_update_reply).await?;
            usage += asked;
            found.note = note;
            if let Some((reasoning, content)) = said(answer, &mut found.note) {
                let candidate = Skill::new(with_slow_update(&self.current.text, &content));
                (found.reasoning, found.content) = (reasoning, content);
                found.candidate = Some(candidate.clone());
                let origin = format!("slow_update_epoch_{:02}", at.epoch);
                if self.shop.config().optimizer.slow_update_gate_with_selection {
                    let purpose = EvalPurpose::SlowCandidate;
                    let (action, decision, spent) =
                        self.gate_stage(at, "slow", purpose, &candidate, origin).await?;
                    usage += spent;
                    (found.action, found.decision) = (action, decision);
                } else if candidate.hash == self.current.hash {
                    found.action = StageAction::SkipNoChange;
                } else {
                    found.action = StageAction::ForceAccept;
                    self.current_origin = origin;
                    self.replace_ungated(candidate);
                }
            }
        }
        self.stage_finished(at, EpochStage::SlowUpdate(Box::new(found)), usage)?;
        Ok(Some(comparison.kept))
    }

    /// Measures the candidate of a stage on the selection split and lets the gate decide.
    pub(super) async fn gate_stage(
        &mut self,
        at: StepRef,
        stage: &str,
        purpose: EvalPurpose,
        candidate: &Skill,
        origin: String,
    ) -> Result<(StageAction, Option<GateDecision>, Usage), Stop> {
        if candidate.hash == self.current.hash {
            return Ok((StageAction::SkipNoChange, None, Usage::default()));
        }
        let place = format!("e{:02}/{stage}", at.epoch);
        let mut usage = self.rescore_if_stale(at, format!("{place}/rescore"), at.step).await?;
        if self.incomparable() {
            return Ok((StageAction::Undecided, None, usage));
        }
        let path = format!("{place}/eval");
        let evaluation = self.evaluate_candidate(at, purpose, path.clone(), path, candidate).await?;
        usage += evaluation.spent();
        let decision = self.judge(candidate, &evaluation);
        self.adopt(candidate, evaluation, &decision, origin, at.step);
        Ok((decision.verdict.into(), Some(decision), usage))
    }

    /// `before`: the current skill as the last step left it.
    async fn write_meta_skill(
        &mut self,
        at: StepRef,
        before: &Skill,
        pairs: Option<Vec<ComparisonPair>>,
    ) -> Result<(), Stop> {
        let mut found = MetaSkill {
            action: StageAction::SkipFirstEpoch,
            reasoning: String::new(),
            content: String::new(),
            note: String::new(),
        };
        let mut usage = Usage::default();
        let previous = std::mem::take(&mut self.meta_skill);
        if at.epoch > 1 {
            let pairs = match pairs {
                Some(pairs) => pairs,
                None => {
                    let comparison = self.compare(at, "meta_skill").await?;
                    usage += comparison.usage;
                    comparison.kept
                }
            };
            found.action = StageAction::NoContent;
            if pairs.is_empty() {
                found.note = "no training item gave a pair to compare".into();
            } else {
                let brief = Brief::MetaSkill {
                    prev_skill: self.epoch_end_skill.text.clone(),
                    skill: before.text.clone(),
                    previous,
                    pairs,
                };
                let path = format!("e{:02}/meta_skill/call", at.epoch);
                let Consulted { answer, note, usage: asked } =
                    self.shop.consult(at, "meta_skill", path, brief, meta_skill_reply).await?;
                usage += asked;
                found.note = note;
                if let Some((reasoning, content)) = said(answer, &mut found.note) {
                    found.action = StageAction::WriteMetaSkill;
                    self.meta_skill.clone_from(&content);
                    (found.reasoning, found.content) = (reasoning, content);
                }
            }
        }
        self.stage_finished(at, EpochStage::MetaSkill(found), usage)
    }

    pub(super) fn stage_finished(&self, at: StepRef, stage: EpochStage, usage: Usage) -> Result<(), Stop> {
        self.shop.journal.emit(Event::EpochStageFinished {
            at,
            stage,
            current: self.current.clone(),
            best_hash: self.best.hash.clone(),
            stale: self.stale,
            usage,
        })?;
        Ok(())
    }

    /// Rolls out a sample of training items under the skill of the previous epoch and under the current one. With the
    /// policy `changed`, more items follow until enough of them changed.
    async fn compare(&self, at: StepRef, stage: &str) -> Result<Comparison, Stop> {
        let config = self.shop.config();
        let optimizer = &config.optimizer;
        let wanted = optimizer.slow_update_samples;
        let seed = self.shop.config().train.seed.wrapping_add(2000 * u64::from(at.epoch));
        let n = self.data.train.len();
        let order = train_batch(n, n, seed);
        let (sample, mut rest) = order.split_at(wanted.min(n));
        let round = self.compare_round(at, stage, "", sample).await?;
        let mut comparison = Comparison {
            prev_hard: mean_hard(&round.prev),
            curr_hard: mean_hard(&round.curr),
            all: pairs_of(&round),
            kept: Vec::new(),
            usage: round.usage,
        };
        let policy = optimizer.longitudinal_pair_policy;
        let mut number = 0;
        while policy == PairPolicy::Changed && !rest.is_empty() {
            // No more at once than are certainly needed.
            let lacking = wanted.saturating_sub(kept_pairs(&comparison.all, policy).len());
            if lacking == 0 {
                break;
            }
            number += 1;
            let (next, after) = rest.split_at(lacking.min(rest.len()));
            rest = after;
            let round = self.compare_round(at, stage, &format!("topup{number}/"), next).await?;
            comparison.usage += round.usage;
            comparison.all.extend(pairs_of(&round));
        }
        comparison.kept = kept_pairs(&comparison.all, policy);
        comparison.kept.truncate(wanted);
        Ok(comparison)
    }

    async fn compare_round(
        &self,
        at: StepRef,
        stage: &str,
        round: &str,
        indices: &[usize],
    ) -> Result<Round<'_>, Stop> {
        let items: Vec<&Item> = indices.iter().map(|index| &self.data.train[*index]).collect();
        let place = format!("e{:02}/{stage}/{round}", at.epoch);
        let spec = |name: &str, purpose, skill| EvaluationSpec {
            id: format!("{place}{name}"),
            path: format!("{place}{name}"),
            purpose,
            at,
            skill,
            items: EvalItems::Training(items.clone()),
            against: None,
            known: None,
            readout: None,
            indispensable: None,
        };
        // Both run at once.
        let prev = begin(
            &self.shop,
            &self.metric,
            spec("prev", EvalPurpose::LongitudinalPrev, &self.epoch_end_skill),
        )?;
        let curr =
            begin(&self.shop, &self.metric, spec("curr", EvalPurpose::LongitudinalCurr, &self.current))?;
        let (prev, curr) = (prev.finish().await?, curr.finish().await?);
        let mut usage = prev.spent();
        usage += curr.spent();
        Ok(Round { items, prev: prev.results, curr: curr.results, usage })
    }
}

/// The (reasoning, content) of an answer that has any; the optimizer may also have nothing to say.
fn said(answer: Option<(String, String)>, note: &mut String) -> Option<(String, String)> {
    let (reasoning, content) = answer?;
    if content.is_empty() {
        *note = format!("the optimizer had nothing to say; {reasoning}").trim_end_matches("; ").to_owned();
        return None;
    }
    Some((reasoning, content))
}

fn pairs_of(round: &Round<'_>) -> Vec<ComparisonPair> {
    let rollout = |result: &'_ Option<ItemResult>| -> Option<Rollout> { result.as_ref()?.rollout().cloned() };
    let prev: Vec<Option<Rollout>> = round.prev.iter().map(rollout).collect();
    let curr: Vec<Option<Rollout>> = round.curr.iter().map(rollout).collect();
    let inputs: Vec<PairInput<'_>> = round
        .items
        .iter()
        .zip(prev.iter().zip(&curr))
        .map(|(item, (prev, curr))| PairInput { item, prev: prev.as_ref(), curr: curr.as_ref() })
        .collect();
    comparison_pairs(&inputs)
}

/// Mean hard score of what was answered; `None` when nothing was.
fn mean_hard(results: &[Option<ItemResult>]) -> Option<f64> {
    let scores: Vec<f64> =
        results.iter().flatten().filter_map(|result| Some(result.rollout()?.score.hard)).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}
