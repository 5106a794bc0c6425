//! One optimisation step: rollout, reflect, aggregate, select, review, update, evaluate, gate.

use super::Stop;
use super::calls::{RolloutSpec, missing_message};
use super::evaluation::{Evaluation, EvaluationSpec, evaluate};
use super::reflection::{Analysis, Lesson, aggregate, select, start_analyses};
use super::review::{Reviewed, review};
use super::run::Run;
use crate::domain::{
    ApplySummary, EditReport, GateDecision, Patch, Phase, Rollout, Skill, SourceType, StepMemory, StepRecord,
    StepRef, TokenUsage, Trajectory, Usage, Verdict,
};
use crate::env::batches::Batch;
use crate::event::{EvalPurpose, Event};
use crate::gate::{GateInput, GateItem, Measurement, gate_decision};
use crate::optim::{
    Applied, FailedItem, MinibatchNotes, MissingAnchor, apply_edits, edit_budget, failed_attempt,
    failure_patterns, reviewer_refusal,
};

/// Everything a step found out, until it becomes a record.
#[derive(Default)]
struct Findings {
    rollouts: Vec<Rollout>,
    n_failure_patches: usize,
    n_success_patches: usize,
    merged: Patch,
    ranked: Patch,
    budget: Option<usize>,
    reviewed: Reviewed,
    candidate: Option<Skill>,
    report: Option<EditReport>,
    decision: Option<GateDecision>,
    analyses: Vec<Analysis>,
    tokens: TokenUsage,
}

impl Findings {
    fn spend(&mut self, stage: &str, usage: Usage) {
        *self.tokens.entry(stage.to_owned()).or_default() += usage;
    }
}

impl Run {
    /// Runs one step over its batches (more than one when `train.accumulation` > 1).
    pub async fn step(&mut self, at: StepRef, batches: &[Batch]) -> Result<(), Stop> {
        let mut found = Findings::default();
        self.roll_out_and_reflect(at, batches, &mut found).await?;
        let proposes = |analysis: &Analysis| analysis.patch.as_ref().is_some_and(|p| !p.edits.is_empty());
        if !found.analyses.iter().any(proposes) {
            return self.finish_step(at, found, Verdict::SkipNoPatches);
        }
        let skill = self.current.clone();
        let memory = self.memory.clone();
        let lesson = Lesson { at, skill: &skill, memory: &memory };
        self.phase(at, Phase::Aggregate)?;
        let (merged, usage) = aggregate(&self.shop, &lesson, &found.analyses).await?;
        found.merged = merged;
        found.spend("merge", usage);
        self.phase(at, Phase::Select)?;
        self.schedule_calls += 1;
        let optimizer = &self.shop.config.optimizer;
        let budget = edit_budget(
            optimizer.lr_scheduler,
            optimizer.learning_rate,
            optimizer.min_learning_rate,
            self.schedule_calls,
            self.plan.total_steps as usize,
        );
        found.budget = Some(budget);
        let (ranked, usage) = select(&self.shop, &lesson, &found.merged, budget).await?;
        found.ranked = ranked;
        found.spend("ranking", usage);
        self.phase(at, Phase::Review)?;
        let preview = apply_edits(&skill.text, &found.ranked.edits, MissingAnchor::Skip).skill;
        found.reviewed = review(&self.shop, at, &found.ranked.edits, &skill, preview).await?;
        self.phase(at, Phase::Update)?;
        let Applied { skill: text, report } =
            apply_edits(&skill.text, &found.reviewed.kept, MissingAnchor::Skip);
        let candidate = Skill::new(text);
        self.shop.journal.emit(Event::SkillUpdated {
            at,
            candidate: candidate.clone(),
            report: report.clone(),
            rewrite: None,
            regions_restored: false,
        })?;
        found.report = Some(report);
        found.candidate = Some(candidate.clone());
        if candidate.hash == skill.hash {
            return self.finish_step(at, found, Verdict::SkipNoChange);
        }
        self.phase(at, Phase::Evaluate)?;
        let evaluation = self.evaluate_candidate(at, &candidate).await?;
        found.spend("evaluation", evaluation.usage);
        self.phase(at, Phase::Gate)?;
        let verdict = self.gate(at, &candidate, evaluation, &mut found)?;
        self.finish_step(at, found, verdict)
    }

    /// Rolls out all batches at once and reflects on each as soon as its rollouts are in. Journaled batch by
    /// batch: rollouts in item order, then analyses in minibatch order.
    async fn roll_out_and_reflect(
        &self,
        at: StepRef,
        batches: &[Batch],
        found: &mut Findings,
    ) -> Result<(), Stop> {
        self.phase(at, Phase::Rollout)?;
        let mut started = Vec::with_capacity(batches.len());
        for (number, batch) in batches.iter().enumerate() {
            let mut pending = Vec::with_capacity(batch.items.len());
            for (place, index) in batch.items.iter().enumerate() {
                let item = &self.data.train[*index];
                let prefix = if batches.len() > 1 { format!("b{number}/") } else { String::new() };
                let spec = RolloutSpec {
                    path: format!("{}/rollout/{prefix}{}#0", at.path(), item.id),
                    stage: "rollout",
                    item,
                    skill: &self.current,
                };
                pending.push((place, item, self.shop.rollout_key(&spec), self.shop.start_rollout(&spec)?));
            }
            started.push(pending);
        }
        let mut analyses = Vec::new();
        let mut results = Vec::new();
        let lesson = Lesson { at, skill: &self.current, memory: &self.memory };
        let mut reflecting = Vec::with_capacity(batches.len());
        for (number, (batch, pending)) in batches.iter().zip(started).enumerate() {
            let mut trajectories = Vec::with_capacity(pending.len());
            for (place, item, key, pending) in pending {
                let result = pending.result().await?;
                self.shop.journal.emit(Event::RolloutFinished {
                    key,
                    at,
                    index: results.len() + place - trajectories.len(),
                    result: result.clone(),
                })?;
                if let Some(rollout) = result.rollout() {
                    trajectories.push(Trajectory::of_training(item, rollout));
                    found.spend("rollout", rollout.usage);
                    found.rollouts.push(rollout.clone());
                }
                results.push(result);
            }
            reflecting.push(start_analyses(&self.shop, &lesson, number, batch.seed, &trajectories)?);
        }
        if found.rollouts.is_empty() && !results.is_empty() {
            let message = missing_message(&results).unwrap_or_default();
            return Err(Stop::Failed(format!("no rollout of step {} was answered; {message}", at.step)));
        }
        self.phase(at, Phase::Reflect)?;
        for calls in reflecting {
            analyses.extend(calls.collect(&self.shop, at).await?);
        }
        for analysis in &analyses {
            found.spend("analyst", analysis.usage);
            if analysis.patch.is_none() {
                continue;
            }
            match analysis.source {
                SourceType::Failure => found.n_failure_patches += 1,
                SourceType::Success => found.n_success_patches += 1,
            }
        }
        found.analyses = analyses;
        Ok(())
    }

    async fn evaluate_candidate(&self, at: StepRef, candidate: &Skill) -> Result<Evaluation, Stop> {
        let against = self.shop.config.evaluation.use_gate.then_some(&self.current_evaluation);
        let spec = EvaluationSpec {
            id: format!("s{:03}", at.step),
            path: format!("{}/eval", at.path()),
            purpose: EvalPurpose::Candidate,
            at,
            skill: candidate,
            items: &self.data.val[..self.plan.val],
            against,
            known: self.measured.get(&candidate.hash).map(Vec::as_slice),
        };
        evaluate(&self.shop, self.metric, spec).await
    }

    fn gate(
        &mut self,
        at: StepRef,
        candidate: &Skill,
        evaluation: Evaluation,
        found: &mut Findings,
    ) -> Result<Verdict, Stop> {
        let items: Vec<GateItem<'_>> = self
            .val_ids
            .iter()
            .enumerate()
            .filter_map(|(index, id)| {
                let current = self.current_evaluation.score_of(index)?;
                let candidate = match (&evaluation.results[index], evaluation.score_of(index)) {
                    (_, Some(score)) => Measurement::Scored(score),
                    (Some(_), None) => Measurement::Missing,
                    (None, None) => Measurement::NotRun,
                };
                Some(GateItem { id, current, candidate })
            })
            .collect();
        let decision = gate_decision(&GateInput {
            metric: self.metric.kind,
            mixed_weight: self.metric.mixed_weight,
            use_gate: self.shop.config.evaluation.use_gate,
            candidate_hash: &candidate.hash,
            items: &items,
            best: &self.best_score,
        });
        self.shop.journal.emit(Event::GateDecided { at, decision: Box::new(decision.clone()) })?;
        let verdict = decision.verdict;
        self.measured.insert(candidate.hash.clone(), evaluation.results.clone());
        if verdict.accepted() {
            self.current = candidate.clone();
            self.current_origin = format!("step_{:04}", at.step);
            if decision.takes_best() {
                self.best = candidate.clone();
                self.best_score = evaluation.score.clone();
                self.best_step = at.step;
                self.best_origin.clone_from(&self.current_origin);
            }
            self.current_evaluation = evaluation;
        }
        found.decision = Some(decision);
        Ok(verdict)
    }

    /// Journals the record and fills the step buffer.
    fn finish_step(&mut self, at: StepRef, found: Findings, action: Verdict) -> Result<(), Stop> {
        if action != Verdict::SkipNoPatches {
            self.memory.push(memory(at, &found, action));
        }
        let n = found.rollouts.len();
        let mean = |value: fn(&Rollout) -> f64| {
            let sum: f64 = found.rollouts.iter().map(value).sum();
            round6(if n == 0 { 0.0 } else { sum / n as f64 })
        };
        let record = StepRecord {
            at,
            tokens: found.tokens,
            rollout_hard: mean(|rollout| rollout.score.hard),
            rollout_soft: mean(|rollout| rollout.score.soft),
            rollout_n: n,
            accumulation_batches: Vec::new(),
            n_patches: found.n_failure_patches + found.n_success_patches,
            n_failure_patches: found.n_failure_patches,
            n_success_patches: found.n_success_patches,
            n_deep_failure_patches: None,
            n_deep_success_patches: None,
            n_edits_merged: found.merged.edits.len(),
            n_edits_ranked: found.ranked.edits.len(),
            edit_budget: found.budget,
            lr_control_mode: self.shop.config.optimizer.lr_control_mode,
            lr_decision: None,
            support_counts: found.ranked.edits.iter().map(|edit| edit.support_count).collect(),
            candidate_hash: found.candidate.as_ref().map(|candidate| candidate.hash.clone()),
            candidate_skill_len: found.candidate.as_ref().map(|candidate| candidate.text.chars().count()),
            rewrite_change_summary: None,
            edit_apply_summary: found.report.as_ref().map(ApplySummary::of),
            selection_hard: found.decision.as_ref().map(|decision| decision.candidate.hard),
            selection_soft: found.decision.as_ref().map(|decision| decision.candidate.soft),
            gate_metric: self.metric.kind,
            candidate_gate_score: found.decision.as_ref().map(|decision| decision.candidate.gate),
            action,
            current_score: self.current_evaluation.score.gate,
            best_score: self.best_score.gate,
            best_step: self.best_step,
            current_origin: self.current_origin.clone(),
            best_origin: self.best_origin.clone(),
            skill_len: self.current.text.chars().count(),
            current_score_stale: false,
            n_execution_lapse_notes: None,
            n_appendix_notes_added: None,
            n_appendix_notes_total: None,
            n_appendix_notes_consolidated: None,
        };
        self.shop.journal.emit(Event::StepFinished {
            record: Box::new(record),
            current_hash: self.current.hash.clone(),
            best_hash: self.best.hash.clone(),
        })?;
        Ok(())
    }

    pub(super) fn phase(&self, at: StepRef, phase: Phase) -> Result<(), Stop> {
        Ok(self.shop.journal.emit(Event::PhaseStarted { at, phase })?)
    }
}

/// What the next steps of this epoch are told about this one.
fn memory(at: StepRef, found: &Findings, action: Verdict) -> StepMemory {
    let failures: Vec<_> = found
        .rollouts
        .iter()
        .filter(|rollout| rollout.score.failed())
        .map(|rollout| FailedItem { id: &rollout.item, reason: &rollout.score.reason })
        .collect();
    let notes: Vec<_> = found
        .analyses
        .iter()
        .map(|analysis| MinibatchNotes { items: &analysis.items, notes: &analysis.failures })
        .collect();
    let mut failed_attempts: Vec<_> =
        found.reviewed.rejected.iter().map(|row| reviewer_refusal(&row.edit, &row.reason)).collect();
    let rejected = found.decision.as_ref().filter(|_| action == Verdict::Reject);
    if rejected.is_some() {
        failed_attempts.extend(found.reviewed.kept.iter().map(failed_attempt));
    }
    StepMemory {
        step: at.step,
        action: action.name().into(),
        n_total: found.rollouts.len(),
        n_fail: failures.len(),
        failure_patterns: failure_patterns(&failures, &notes),
        scores: rejected.map(|decision| (decision.current.gate, decision.candidate.gate)),
        failed_attempts,
    }
}

/// Six decimals, as the history keeps rollout means.
fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
