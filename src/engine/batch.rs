//! The first half of a step: rollouts of its batches, reflection on them, and the second look at representative items.

use super::Stop;
use super::calls::{Consulted, Pending, RolloutSpec, missing_message};
use super::evaluation::{EvalItems, EvaluationSpec, evaluate};
use super::in_flight::Need;
use super::reflection::{self, Analyses, Lesson, start_analyses};
use super::run::Run;
use super::step::{Findings, mean_of, round6};
use crate::domain::{
    BatchRecord, Brief, DeepProbe, Delivery, EffectKey, Item, Phase, ProbeAnswer, Rollout, SourceType,
    StepRef, Trajectory, Turn,
};
use crate::env::batches::Batch;
use crate::event::{EvalPurpose, Event, ItemResult};
use crate::optim::{conversation_text, probe_examples, probe_reply, representatives, with_reference};

/// Rollouts of one batch under way, in item order.
struct Started<'a> {
    batch: &'a Batch,
    pending: Vec<(&'a Item, EffectKey, Pending<ItemResult>)>,
}

/// A batch whose rollouts are in; `items` and `trajectories` belong together by place.
struct Look<'a> {
    number: usize,
    batch: &'a Batch,
    items: Vec<&'a Item>,
    trajectories: Vec<Trajectory>,
}

impl Run {
    /// Rolls out all batches at once and reflects on each as soon as its rollouts are in. Journaled batch by
    /// batch: rollouts in item order, then analyses in minibatch order.
    pub(super) async fn roll_out_and_reflect(
        &self,
        at: StepRef,
        batches: &[Batch],
        found: &mut Findings,
    ) -> Result<(), Stop> {
        self.phase(at, Phase::Rollout)?;
        let started = batches
            .iter()
            .enumerate()
            .map(|(number, batch)| self.start_batch(at, number, batch, batches.len() > 1))
            .collect::<Result<Vec<_>, _>>()?;
        let lesson = Lesson { at, skill: &self.current, memory: &self.memory, meta_skill: &self.meta_skill };
        let mut results: Vec<ItemResult> = Vec::new();
        // Held back until one rollout is answered: when none is, the run stops and a resume asks again.
        let mut unanswered = Vec::new();
        let mut reflecting = Vec::with_capacity(batches.len());
        for (number, Started { batch, pending }) in started.into_iter().enumerate() {
            let before = found.rollouts.len();
            let mut trajectories = Vec::with_capacity(pending.len());
            let mut items = Vec::with_capacity(pending.len());
            for (item, key, pending) in pending {
                let result = pending.result().await?;
                let index = results.len();
                unanswered.push(Event::RolloutFinished { key, at, index, result: result.clone() });
                if result.rollout().is_some() || !found.rollouts.is_empty() {
                    for event in unanswered.drain(..) {
                        self.shop.journal.emit(event)?;
                    }
                }
                if let Some(rollout) = result.rollout() {
                    trajectories.push(self.trajectory(item, rollout));
                    items.push(item);
                    found.spend("rollout", rollout.usage);
                    found.spend_judging(rollout.judging_usage());
                    found.rollouts.push(rollout.clone());
                }
                results.push(result);
            }
            let rollouts = &found.rollouts[before..];
            found.batches.push(BatchRecord {
                batch_idx: number,
                batch_seed: batch.seed,
                n_envs: rollouts.len(),
                hard: round6(mean_of(rollouts, |rollout| rollout.score.hard)),
                soft: round6(mean_of(rollouts, |rollout| rollout.score.soft)),
                n_failure_patches: 0,
                n_success_patches: 0,
            });
            let shown =
                reflection::Batch { number, seed: batch.seed, trajectories: &trajectories, deep: false };
            let analyses = start_analyses(&self.shop, &lesson, &shown)?;
            reflecting.push((Look { number, batch, items, trajectories }, analyses));
        }
        if found.rollouts.is_empty() && !results.is_empty() {
            let message = missing_message(&results).unwrap_or_default();
            return Err(Stop::Failed(format!("no rollout of step {} was answered; {message}", at.step)));
        }
        self.phase(at, Phase::Reflect)?;
        let mut looked_at = Vec::with_capacity(reflecting.len());
        for (look, analyses) in reflecting {
            self.collect(at, look.number, analyses, found).await?;
            looked_at.push(look);
        }
        if self.shop.config().gradient.use_deep_reflect {
            self.phase(at, Phase::DeepReflect)?;
            for look in &looked_at {
                self.deep_reflect(&lesson, look, found).await?;
            }
        }
        Ok(())
    }

    fn start_batch<'a>(
        &'a self,
        at: StepRef,
        number: usize,
        batch: &'a Batch,
        several: bool,
    ) -> Result<Started<'a>, Stop> {
        let prefix = if several { format!("b{number}/") } else { String::new() };
        let start = |index: &usize| {
            let item = &self.data.train[*index];
            let spec = RolloutSpec {
                path: format!("{}/rollout/{prefix}{}#0", at.path(), item.id),
                stage: "rollout",
                item,
                skill: &self.current,
                readout: None,
                need: Need::OneOf { group: at.path(), what: "one answered rollout of the step" },
            };
            Ok((item, self.shop.rollout_key(&spec), self.shop.start_rollout(&spec)?))
        };
        Ok(Started { batch, pending: batch.items.iter().map(start).collect::<Result<_, Stop>>()? })
    }

    /// A training rollout as the optimizer may see it.
    fn trajectory(&self, item: &Item, rollout: &Rollout) -> Trajectory {
        let trajectory = Trajectory::of_training(item, rollout);
        let is_agent = self.shop.target.delivery() == Delivery::Files;
        if is_agent && !self.shop.config().model.codex.codex_trace_to_optimizer {
            return Trajectory { turns: Vec::new(), ..trajectory };
        }
        trajectory
    }

    async fn collect(
        &self,
        at: StepRef,
        number: usize,
        analyses: Analyses,
        found: &mut Findings,
    ) -> Result<(), Stop> {
        for analysis in analyses.collect(&self.shop, at).await? {
            found.spend("analyst", analysis.usage);
            if analysis.patch.is_some() {
                let record = &mut found.batches[number];
                match analysis.source {
                    SourceType::Failure => record.n_failure_patches += 1,
                    SourceType::Success => record.n_success_patches += 1,
                }
            }
            found.analyses.push(analysis);
        }
        Ok(())
    }

    /// Looks a second time at representative items of a batch, with a diagnostic instruction, and reflects on that.
    async fn deep_reflect(
        &self,
        lesson: &Lesson<'_>,
        look: &Look<'_>,
        found: &mut Findings,
    ) -> Result<(), Stop> {
        let (at, number, seed) = (lesson.at, look.number, look.batch.seed);
        let trajectories = &look.trajectories;
        let config = self.shop.config();
        let gradient = &config.gradient;
        let failed: Vec<bool> = trajectories.iter().map(|trajectory| trajectory.hard < 1e-9).collect();
        let types: Vec<&str> = trajectories.iter().map(|trajectory| trajectory.task_type.as_str()).collect();
        let (failures, successes) = (gradient.deep_reflect_failures, gradient.deep_reflect_successes);
        let picked = representatives(&failed, &types, failures, successes, seed);
        if picked.is_empty() {
            return Ok(());
        }
        let items: Vec<&Item> = picked.iter().map(|index| look.items[*index]).collect();
        let with_reference =
            |trajectory: Trajectory, item: &Item| with_reference(trajectory, &self.shop.env.reference(item));
        let shown: Vec<Trajectory> = picked
            .iter()
            .zip(&items)
            .map(|(index, item)| with_reference(trajectories[*index].clone(), item))
            .collect();
        // Of an agent's traces only one can be gone back into.
        let traced = shown.iter().position(|trajectory| !trajectory.turns.is_empty());
        let (items, shown) = match traced {
            Some(place) => (vec![items[place]], vec![shown[place].clone()]),
            None => (items, shown),
        };
        let trace = shown[0].turns.clone();
        let last_step = trace.len().checked_sub(1).map(|last| last as u64);
        let ids: Vec<String> = shown.iter().map(|trajectory| trajectory.item.clone()).collect();
        let examples = probe_examples(&shown);
        let brief = Brief::Probe {
            skill: lesson.skill.text.clone(),
            trajectories: shown,
            memory: lesson.memory.to_vec(),
            meta_skill: lesson.meta_skill.to_owned(),
        };
        let path = format!("{}/deep/probe/b{number}", at.path());
        let read = |text: &str| {
            let probe = probe_reply(text, &ids, last_step)?;
            Ok(ProbeAnswer { probe, examples: examples.clone() })
        };
        let Consulted { answer, usage, .. } =
            self.shop.consult::<ProbeAnswer>(at, "deep_probe", path, brief, read).await?;
        found.spend("deep_probe", usage);
        let Some(ProbeAnswer { probe, .. }) = answer else { return Ok(()) };
        let readout = readout(&probe, &trace);
        let spec = EvaluationSpec {
            id: format!("s{:03}/deep/b{number}", at.step),
            path: format!("{}/deep/rollout/b{number}", at.path()),
            purpose: EvalPurpose::DeepProbe,
            at,
            skill: lesson.skill,
            items: EvalItems::Training(items.clone()),
            against: None,
            known: None,
            readout: Some(&readout),
            indispensable: None,
        };
        let probed = evaluate(&self.shop, &self.metric, spec).await?;
        found.spend("rollout", probed.usage);
        found.spend_judging(probed.judging);
        let probed: Vec<Trajectory> = items
            .iter()
            .zip(&probed.results)
            .filter_map(|(item, result)| {
                let trajectory = self.trajectory(item, result.as_ref()?.rollout()?);
                Some(with_reference(trajectory, item))
            })
            .collect();
        let shown = reflection::Batch { number, seed, trajectories: &probed, deep: true };
        let analyses = start_analyses(&self.shop, lesson, &shown)?.collect(&self.shop, at).await?;
        for analysis in &analyses {
            found.spend("analyst", analysis.usage);
        }
        found.deep_analyses.get_or_insert_default().extend(analyses);
        Ok(())
    }
}

/// The instruction, behind the trace up to the step that it is put after.
fn readout(probe: &DeepProbe, trace: &[Turn]) -> String {
    let instruction = &probe.probe_instruction;
    let step = probe.probe_after_step.and_then(|step| usize::try_from(step).ok());
    match step.filter(|_| !trace.is_empty()) {
        Some(step) => {
            let past = conversation_text(&trace[..=step.min(trace.len() - 1)]);
            format!("Up to here you did this:\n\n<trace>\n{past}\n</trace>\n\n{instruction}")
        }
        None => instruction.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_of_a_trace_shows_it_up_to_its_step() {
        let trace: Vec<Turn> = ["one", "two", "three"].map(|text| Turn::tool(text, "")).into();
        let probe = |step| DeepProbe {
            probe_instruction: "Say why.".into(),
            probe_after_step: step,
            ..DeepProbe::default()
        };
        let text = readout(&probe(Some(1)), &trace);
        assert!(
            text.contains("[action] two") && !text.contains("three") && text.ends_with("Say why."),
            "{text}"
        );
        assert_eq!(readout(&probe(Some(9)), &[]), "Say why.");
        assert_eq!(readout(&probe(None), &trace), "Say why.");
    }
}
