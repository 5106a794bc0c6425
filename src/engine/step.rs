//! One optimisation step: rollout, reflect, aggregate, select, review, update, evaluate, gate; its record and what the
//! next steps are told about it.

use super::Stop;
use super::evaluation::Evaluation;
use super::overruling::Standing;
use super::reflection::{Analysis, Lesson, aggregate};
use super::review::Reviewed;
use super::run::{EpochStep, Run, remembers};
use crate::domain::{
    AppendixFlush, ApplySummary, BatchRecord, EditReport, FailedItem, GateDecision, LrControlMode,
    LrDecision, MinibatchNotes, Patch, Phase, Rewrite, Rollout, Skill, StepMemory, StepRecord, StepRef,
    TokenUsage, UpdateMode, Usage, Verdict, failure_patterns,
};
use crate::env::batches::Batch;
use crate::event::Event;
use crate::optim::{failed_attempt, reviewer_refusal};

/// Everything a step found out, until it becomes a record.
#[derive(Default)]
pub(super) struct Findings {
    pub rollouts: Vec<Rollout>,
    pub batches: Vec<BatchRecord>,
    pub analyses: Vec<Analysis>,
    /// Analyses of probed items; `None`: nothing was probed.
    pub deep_analyses: Option<Vec<Analysis>>,
    pub merged: Patch,
    pub lr_decision: Option<LrDecision>,
    pub ranked: Patch,
    pub budget: Option<usize>,
    pub reviewed: Reviewed,
    pub rewrite: Option<Rewrite>,
    pub candidate: Option<Skill>,
    pub report: Option<EditReport>,
    pub decision: Option<GateDecision>,
    /// What a person who overrules that decision goes by.
    pub overrulable: Option<(Standing, Evaluation)>,
    pub appendix: Option<AppendixFlush>,
    pub tokens: TokenUsage,
}

impl Findings {
    pub fn spend(&mut self, stage: &str, usage: Usage) {
        *self.tokens.entry(stage.to_owned()).or_default() += usage;
    }

    pub fn spend_judging(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.spend("judge", usage);
        }
    }

    /// All analyses that may propose something, probed ones last.
    fn pool(&self) -> Vec<Analysis> {
        self.analyses.iter().chain(self.deep_analyses.iter().flatten()).cloned().collect()
    }
}

impl Run {
    /// Runs one step over its batches (more than one when `train.accumulation` > 1).
    pub async fn step(&mut self, at: StepRef, batches: &[Batch]) -> Result<(), Stop> {
        let mut found = Findings::default();
        self.roll_out_and_reflect(at, batches, &mut found).await?;
        let verdict = self.propose_and_judge(at, &mut found).await?;
        self.flush_appendix(at, &mut found).await?;
        self.finish_step(at, found, verdict)
    }

    async fn propose_and_judge(&mut self, at: StepRef, found: &mut Findings) -> Result<Verdict, Stop> {
        let pool = found.pool();
        if !pool.iter().any(Analysis::proposes) {
            return Ok(Verdict::SkipNoPatches);
        }
        let (skill, memory, meta_skill) =
            (self.current.clone(), self.memory.clone(), self.meta_skill.clone());
        let lesson = Lesson { at, skill: &skill, memory: &memory, meta_skill: &meta_skill };
        self.phase(at, Phase::Aggregate)?;
        let (merged, usage) = aggregate(&self.shop, &lesson, &pool).await?;
        found.merged = merged;
        found.spend("merge", usage);
        self.choose(&lesson, found).await?;
        let Some(candidate) = self.update(&lesson, found).await? else { return Ok(Verdict::SkipNoRewrite) };
        if candidate.hash == skill.hash {
            return Ok(Verdict::SkipNoChange);
        }
        self.phase(at, Phase::Evaluate)?;
        let since = at.step.saturating_sub(1);
        let usage = self.rescore_if_stale(at, format!("s{:03}/rescore", at.step), since).await?;
        found.spend("evaluation", usage);
        if self.incomparable() {
            return Ok(Verdict::Undecided);
        }
        let (id, path) = (format!("s{:03}", at.step), format!("{}/eval", at.path()));
        let purpose = crate::event::EvalPurpose::Candidate;
        let evaluation = self.evaluate_candidate(at, purpose, id, path, &candidate).await?;
        found.spend("evaluation", evaluation.usage);
        found.spend_judging(evaluation.judging);
        self.phase(at, Phase::Gate)?;
        let decision = self.judge(&candidate, &evaluation);
        self.shop.journal.emit(Event::GateDecided { at, decision: Box::new(decision.clone()) })?;
        found.overrulable = Some((self.standing(), evaluation.clone()));
        self.adopt(&candidate, evaluation, &decision, format!("step_{:04}", at.step), at.step);
        let verdict = decision.verdict;
        found.decision = Some(decision);
        Ok(verdict)
    }

    /// Journals the record and fills the step buffer.
    fn finish_step(&mut self, at: StepRef, found: Findings, action: Verdict) -> Result<(), Stop> {
        let memory = memory(at, &found, action);
        self.remember_decision(at, &found, &memory);
        self.epoch_steps.push(EpochStep {
            action,
            selection_hard: found.decision.as_ref().map(|decision| decision.candidate.hard),
            current_score: self.current_evaluation.score.gate,
            best_score: self.best_score.gate,
            selected: (action != Verdict::SkipNoPatches).then(|| found.reviewed.kept.clone()),
            memory: memory.clone(),
        });
        if remembers(action, &memory) {
            self.memory.push(memory);
        }
        let record = self.record(at, found, action);
        self.shop.journal.emit(Event::StepFinished {
            record: Box::new(record),
            current_hash: self.current.hash.clone(),
            best_hash: self.best.hash.clone(),
        })?;
        Ok(())
    }

    fn record(&self, at: StepRef, found: Findings, action: Verdict) -> StepRecord {
        let n = found.rollouts.len();
        let mean = |value: fn(&Rollout) -> f64| round6(mean_of(&found.rollouts, value));
        let patches = |analyses: &[Analysis], source| {
            analyses.iter().filter(|analysis| analysis.source == source && analysis.patch.is_some()).count()
        };
        let (failure, success) = (crate::domain::SourceType::Failure, crate::domain::SourceType::Success);
        let n_failure_patches = patches(&found.analyses, failure);
        let n_success_patches = patches(&found.analyses, success);
        let deep = |source| found.deep_analyses.as_ref().map(|analyses| patches(analyses, source));
        let (n_deep_failure_patches, n_deep_success_patches) = (deep(failure), deep(success));
        let deep_patches = n_deep_failure_patches.unwrap_or(0) + n_deep_success_patches.unwrap_or(0);
        let config = self.shop.config();
        let optimizer = &config.optimizer;
        let appendix = found.appendix.as_ref();
        StepRecord {
            at,
            tokens: found.tokens,
            rollout_hard: mean(|rollout| rollout.score.hard),
            rollout_soft: mean(|rollout| rollout.score.soft),
            rollout_n: n,
            accumulation_batches: found.batches,
            n_patches: n_failure_patches + n_success_patches + deep_patches,
            n_failure_patches,
            n_success_patches,
            n_deep_failure_patches,
            n_deep_success_patches,
            n_edits_merged: found.merged.edits.len(),
            n_edits_ranked: found.ranked.edits.len(),
            edit_budget: found.budget,
            lr_control_mode: match optimizer.skill_update_mode {
                UpdateMode::FullRewriteMinibatch => LrControlMode::None,
                UpdateMode::Patch | UpdateMode::RewriteFromSuggestions => optimizer.lr_control_mode,
            },
            lr_decision: found.lr_decision,
            support_counts: found.ranked.edits.iter().map(|edit| edit.support_count).collect(),
            candidate_hash: found.candidate.as_ref().map(|candidate| candidate.hash.clone()),
            candidate_skill_len: found.candidate.as_ref().map(|candidate| candidate.text.chars().count()),
            rewrite_change_summary: found.rewrite.map(|rewrite| rewrite.change_summary),
            edit_apply_summary: found.report.as_ref().map(ApplySummary::of),
            selection_hard: found.decision.as_ref().map(|decision| decision.candidate.hard),
            selection_soft: found.decision.as_ref().map(|decision| decision.candidate.soft),
            gate_metric: self.metric.kind,
            candidate_gate_score: found.decision.as_ref().map(|decision| decision.candidate.gate),
            candidate_at_most: found
                .decision
                .as_ref()
                .is_some_and(|decision| decision.candidate.done < decision.candidate.n),
            action,
            current_score: self.current_evaluation.score.gate,
            best_score: self.best_score.gate,
            best_step: self.best_step,
            current_origin: self.current_origin.clone(),
            best_origin: self.best_origin.clone(),
            skill_len: self.current.text.chars().count(),
            current_score_stale: self.stale,
            n_execution_lapse_notes: appendix.map(|flush| flush.step_notes.len()),
            n_appendix_notes_added: appendix.map(|flush| flush.added),
            n_appendix_notes_total: appendix
                .map(|flush| flush.consolidated.as_ref().unwrap_or(&flush.appendix_after).len()),
            n_appendix_notes_consolidated: appendix
                .and_then(|flush| Some(flush.consolidated.as_ref()?.len())),
        }
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
        at_most: rejected.is_some_and(|decision| decision.candidate.done < decision.candidate.n),
        failed_attempts,
        reviewer_notes: found.reviewed.notes.clone(),
    }
}

/// Mean over rollouts; 0 without any.
pub(super) fn mean_of(rollouts: &[Rollout], value: fn(&Rollout) -> f64) -> f64 {
    let sum: f64 = rollouts.iter().map(value).sum();
    if rollouts.is_empty() { 0.0 } else { sum / rollouts.len() as f64 }
}

/// Six decimals, as the history keeps rollout means.
pub(super) fn round6(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
