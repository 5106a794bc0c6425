//! The beginning of a run that continues a foreign one: its state instead of a seed's, measured where no result of exactly
//! these texts on these items is recorded.

use std::collections::HashMap;
use std::sync::Arc;

use super::Stop;
use super::calls::Workshop;
use super::evaluation::{EvalItems, Evaluation, EvaluationSpec, Metric, evaluate, recorded_results};
use super::run::{EpochStep, Run, remembers, with_appendix_region};
use crate::domain::{Continued, Dataset, EpochStage, HeldSkill, Phase, Skill, StepMemory, StepRef, Verdict};
use crate::event::{EvalPurpose, Event, ItemResult, LogLevel, RunPlan};
use crate::store::RunDir;

/// What the control flow passes over, because a foreign run has done it.
pub(super) struct TakenOver {
    pub last: StepRef,
    /// Stages behind the last step.
    pub stages: Vec<Phase>,
    /// The current skill between the last step and those stages.
    pub before_stages: Option<Skill>,
}

impl TakenOver {
    fn of(continued: &Continued) -> Self {
        let stages = continued.stages_done().map(|stage| match stage {
            EpochStage::SlowUpdate(_) => Phase::SlowUpdate,
            EpochStage::MetaSkill(_) => Phase::MetaSkill,
            EpochStage::MetaReflect(_) => Phase::MetaReflect,
        });
        Self {
            last: continued.last,
            stages: stages.collect(),
            before_stages: continued.before_stages().cloned(),
        }
    }
}

impl Run {
    /// `fresh`: the run has only now begun, so what was taken over is said.
    pub(super) async fn take_over(
        shop: Arc<Workshop>,
        data: Dataset,
        plan: RunPlan,
        continued: &Continued,
        run_dir: RunDir,
        fresh: bool,
    ) -> Result<Self, Stop> {
        for message in continued.warnings.iter().filter(|_| fresh) {
            let message = message.clone();
            shop.journal.outside(|_| Ok(Event::Log { level: LogLevel::Warn, message }))?;
        }
        let metric = Metric::new(&shop.config().evaluation);
        shop.journal.emit(Event::PhaseStarted { at: StepRef::default(), phase: Phase::Baseline })?;
        let items = EvalItems::HeldOut(&data.val[..plan.val]);
        let measure =
            |held, purpose, name| remeasure(&shop, &metric, items.clone(), held, purpose, name, fresh);
        let current_evaluation = measure(&continued.current, EvalPurpose::Rescore, "current").await?;
        let (best, current) = (&continued.best.skill, &continued.current.skill);
        let mut measured = HashMap::from([(current.hash.clone(), current_evaluation.results.clone())]);
        let best_score = if best.hash == current.hash {
            current_evaluation.score.clone()
        } else {
            let evaluation = measure(&continued.best, EvalPurpose::RescoreBest, "best").await?;
            measured.insert(best.hash.clone(), evaluation.results);
            evaluation.score
        };
        let val_ids =
            current_evaluation.results.iter().flatten().map(|result| result.item().to_owned()).collect();
        let previous = previous_epoch(&shop, continued)?;
        let with_region = with_appendix_region(&shop, current)?;
        let steps = steps_of_epoch(continued);
        Ok(Self {
            metric,
            val_ids,
            initial: continued.initial.clone(),
            stale: with_region.hash != current.hash,
            epoch_end_skill: previous,
            current: with_region,
            current_evaluation,
            current_origin: continued.current.origin.clone(),
            best: best.clone(),
            best_score,
            best_step: continued.best_step,
            best_origin: continued.best.origin.clone(),
            meta_skill: continued.meta_skill().to_owned(),
            meta_summary: continued.meta_summary().to_owned(),
            memory: step_buffer(&steps),
            epoch_steps: steps,
            decided: Vec::new(),
            schedule_calls: continued.schedule_calls,
            measured,
            taken_over: Some(TakenOver::of(continued)),
            shop,
            data,
            plan,
            run_dir,
        })
    }
}

/// The skill that the stages after this epoch compare with.
fn previous_epoch(shop: &Workshop, continued: &Continued) -> Result<Skill, Stop> {
    let config = shop.config();
    let optimizer = &config.optimizer;
    let compared = optimizer.use_slow_update || optimizer.use_meta_skill;
    match continued.previous_epoch() {
        Some(skill) => Ok(skill.clone()),
        None if continued.last.epoch <= 1 || !compared => Ok(continued.initial.clone()),
        None => Err(Stop::Failed(format!(
            "the skill at the end of epoch {} is not in the folder that is continued; bring its skills/skill_vNNNN.md \
             back, or set optimizer.use_slow_update and optimizer.use_meta_skill to false",
            continued.last.epoch - 1
        ))),
    }
}

/// A skill's selection results: the recorded ones where they are of these items, else measured now.
async fn remeasure(
    shop: &Arc<Workshop>,
    metric: &Metric,
    items: EvalItems<'_>,
    held: &HeldSkill,
    purpose: EvalPurpose,
    name: &str,
    fresh: bool,
) -> Result<Evaluation, Stop> {
    let known: Option<Vec<Option<ItemResult>>> = recorded_results(&items, &held.measured);
    if fresh {
        let message = match (&known, held.measured.is_empty()) {
            (Some(known), _) => {
                format!(
                    "{} recorded selection results of the {name} skill stand, as asked for; other prompts and maybe \
                     another scorer made them",
                    known.len()
                )
            }
            (None, true) => format!("the {name} skill is measured again on the selection split"),
            (None, false) => format!(
                "the recorded selection results of the {name} skill are of other items; it is measured again"
            ),
        };
        shop.journal.outside(|_| Ok(Event::Log { level: LogLevel::Info, message }))?;
    }
    let what = format!("the measurement of the {name} skill");
    let id = format!("resume_{name}");
    let spec = EvaluationSpec {
        id: id.clone(),
        path: id,
        purpose,
        at: StepRef::default(),
        skill: &held.skill,
        items,
        against: None,
        known: known.as_deref(),
        readout: None,
        indispensable: Some(&what),
    };
    evaluate(shop, metric, spec).await
}

/// The steps of the epoch under way of which the step buffer knows something.
fn steps_of_epoch(continued: &Continued) -> Vec<EpochStep> {
    let step = |done: &crate::domain::DoneStep| {
        Some(EpochStep {
            action: done.record.action,
            selection_hard: done.record.selection_hard,
            current_score: done.record.current_score,
            best_score: done.record.best_score,
            selected: done
                .ranked
                .as_ref()
                .filter(|_| done.record.action != Verdict::SkipNoPatches)
                .map(|patch| patch.edits.clone()),
            memory: done.memory.clone()?,
        })
    };
    continued.steps.iter().filter_map(step).collect()
}

fn step_buffer(steps: &[EpochStep]) -> Vec<StepMemory> {
    let kept = |step: &&EpochStep| remembers(step.action, &step.memory);
    steps.iter().filter(kept).map(|step| step.memory.clone()).collect()
}
