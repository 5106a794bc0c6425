//! The fold of a journal into [`RunState`]: one event at a time, pure and the same everywhere.

use super::batch_path::{batch_segment, rollout_batch};
use super::{
    Analysis, BatchProbe, EvalPurpose, EvalState, Event, LogLevel, LogLine, Overruling, OverrulingOutcome,
    Record, Rescore, ReviewEdit, ReviewState, RunInfo, RunState, RunStatus, SkillVersion, StageState,
    StepState,
};
use crate::domain::{EpochStage, Origin, ReviewComment, Rollout, Ruling, Skill, StepRef, UpdateMode, Usage};

/// Log lines kept in memory; older ones stay in the journal.
const LOG_LINES: usize = 2000;

impl RunState {
    /// Folds records in order.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Applies the next record. Records at or below `seq` are ignored, so a resent one does no harm.
    pub fn apply(&mut self, record: &Record) {
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        self.updated_at = record.at;
        if record.event.is_progress() {
            self.progress_at = record.at;
        }
        self.apply_event(&record.event, record.at);
    }

    fn step_mut(&mut self, at: StepRef, now: u64) -> &mut StepState {
        // Nearly always the last one.
        let index = match self.steps.iter().rposition(|step| step.at.step == at.step) {
            Some(index) => index,
            None => {
                self.steps.push(StepState { at, started_at: now, ..StepState::default() });
                self.steps.len() - 1
            }
        };
        &mut self.steps[index]
    }

    fn add_usage(&mut self, stage: &str, usage: Usage) {
        *self.usage.entry(stage.to_owned()).or_default() += usage;
    }

    fn add_rollout_usage(&mut self, stage: &str, rollout: &Rollout) {
        self.add_usage(stage, rollout.usage);
        if let Some(judging) = &rollout.judging {
            self.add_usage("judge", judging.usage);
        }
    }

    fn log(&mut self, at: u64, level: LogLevel, code: Option<String>, message: String) {
        if self.logs.len() == LOG_LINES {
            self.logs.pop_front();
        }
        self.logs.push_back(LogLine { at, level, code, message });
    }

    fn apply_event(&mut self, event: &Event, now: u64) {
        match event {
            Event::RunStarted {
                run,
                seed,
                config,
                config_hash,
                skill,
                plan,
                origin,
                folder,
                origins,
                ..
            } => {
                self.info = Some(RunInfo {
                    name: run.clone(),
                    seed: *seed,
                    config_hash: config_hash.clone(),
                    plan: plan.clone(),
                    origin: origin.clone(),
                    folder: folder.clone(),
                    started_at: now,
                    update_mode: update_mode(config),
                    origins: origins.clone(),
                });
                self.config.clone_from(config);
                self.status = RunStatus::Running;
                for hash in [&mut self.initial_hash, &mut self.current_hash, &mut self.best_hash] {
                    hash.clone_from(&skill.hash);
                }
                let version = SkillVersion { skill: skill.clone(), step: 0, accepted: true };
                self.skills.insert(skill.hash.clone(), version);
                if let Some(Origin::Continued(continued)) = origin {
                    self.take_over(continued, now);
                }
            }
            Event::PhaseStarted { at, phase } => {
                self.at = *at;
                self.phase = Some(*phase);
                self.phase_started_at = now;
                if at.step > 0 && phase.of_step() {
                    let step = self.step_mut(*at, now);
                    step.phase = Some(*phase);
                    step.phase_starts.push((*phase, now));
                }
            }
            Event::RolloutFinished { key, at, result, .. } => {
                if let Some(rollout) = result.rollout() {
                    self.add_rollout_usage("rollout", rollout);
                }
                let step = self.step_mut(*at, now);
                if rollout_batch(&key.path, result.item()) == Some(step.batch_starts.len()) {
                    step.batch_starts.push(step.rollouts.len());
                }
                step.rollouts.push(result.clone());
            }
            Event::AnalysisFinished {
                key,
                at,
                source,
                minibatch,
                items,
                patch,
                failures,
                success_patterns,
                appendix_notes,
                deep,
                note,
                usage,
            } => {
                self.add_usage("analyst", *usage);
                self.step_mut(*at, now).analyses.push(Analysis {
                    source: *source,
                    batch: batch_segment(&key.path).unwrap_or(0),
                    minibatch: *minibatch,
                    items: items.clone(),
                    patch: patch.clone(),
                    failures: failures.clone(),
                    success_patterns: success_patterns.clone(),
                    appendix_notes: appendix_notes.clone(),
                    deep: *deep,
                    note: note.clone(),
                });
            }
            Event::OptimizerAnswered { path, at, stage, answer, usage, .. } => {
                self.add_usage(stage, *usage);
                self.optimizer_answered(*at, stage, path, answer.as_ref(), now);
            }
            Event::MergeFinished { at, patch, usage, .. } => {
                self.add_usage("merge", *usage);
                self.step_mut(*at, now).merged = Some(patch.clone());
            }
            Event::EditsSelected { at, budget, patch, ranking, usage, .. } => {
                self.add_usage("ranking", *usage);
                let step = self.step_mut(*at, now);
                step.ranked = Some(patch.clone());
                step.budget = *budget;
                step.ranking.clone_from(ranking);
            }
            Event::ReviewOpened { at, mode, edits, current_hash, preview, timeout_s, on_timeout } => {
                let review = ReviewState {
                    mode: *mode,
                    edits: edits.iter().map(ReviewEdit::undecided).collect(),
                    current_hash: current_hash.clone(),
                    preview: preview.clone(),
                    deadline: timeout_s.map(|seconds| now + seconds * 1000),
                    timeout_s: *timeout_s,
                    submitted: None,
                    on_timeout: *on_timeout,
                    closed: None,
                    kept: Vec::new(),
                    rejected: Vec::new(),
                    comments: Vec::new(),
                };
                self.step_mut(*at, now).review = Some(review);
            }
            Event::ReviewClosed { at, close, kept, rejected, comments } => {
                if let Some(review) = &mut self.step_mut(*at, now).review {
                    review.closed = Some(close.clone());
                    review.kept.clone_from(kept);
                    review.rejected.clone_from(rejected);
                    review.comments.clone_from(comments);
                }
            }
            Event::SkillUpdated { at, candidate, report, rewrite, regions_restored } => {
                self.remember(candidate, at.step, false);
                let step = self.step_mut(*at, now);
                step.candidate = Some(candidate.clone());
                step.report = Some(report.clone());
                step.rewrite.clone_from(rewrite);
                step.regions_restored = *regions_restored;
            }
            Event::AppendixUpdated { at, flush, skill } => {
                self.remember(skill, at.step, true);
                if at.step == 0 {
                    self.current_hash.clone_from(&skill.hash);
                    self.current_score_stale = true;
                } else {
                    self.step_mut(*at, now).appendix = Some(flush.clone());
                }
            }
            Event::EpochStageFinished { at, stage, current, best_hash, stale, usage: _ } => {
                self.stage_finished(*at, stage);
                self.remember(current, at.step, true);
                self.current_hash.clone_from(&current.hash);
                self.best_hash.clone_from(best_hash);
                self.current_score_stale = *stale;
                self.stages.push(StageState {
                    at: *at,
                    stage: stage.clone(),
                    current_hash: current.hash.clone(),
                    started_at: self.phase_started_at,
                    finished_at: now,
                });
            }
            Event::FinalSelectionFinished { score, promoted } => {
                if *promoted {
                    self.best_hash.clone_from(&self.current_hash);
                    self.best_score = Some(score.gate);
                    self.best_step = self.at.step;
                }
                if score.done == score.n {
                    self.current_score = Some(score.gate);
                    self.current_score_stale = false;
                }
                self.final_selection = Some((score.clone(), *promoted));
            }
            Event::EvaluationStarted { eval, purpose, at, skill_hash, n } => {
                let state = EvalState {
                    purpose: *purpose,
                    at: *at,
                    skill_hash: skill_hash.clone(),
                    n: *n,
                    results: Vec::new(),
                    score: None,
                    curtailed: false,
                    missing: 0,
                };
                self.evals.insert(eval.clone(), state);
                self.eval_order.push(eval.clone());
                if *purpose == EvalPurpose::Candidate {
                    self.step_mut(*at, now).eval = Some(eval.clone());
                }
            }
            Event::EvaluationItemFinished { eval, index, result, .. } => {
                let on_training_items =
                    self.evals.get(eval).is_some_and(|eval| eval.purpose.on_training_items());
                if let Some(rollout) = result.rollout() {
                    self.add_rollout_usage(if on_training_items { "rollout" } else { "evaluation" }, rollout);
                }
                if let Some(state) = self.evals.get_mut(eval) {
                    state.results.push((*index, result.clone()));
                }
            }
            Event::EvaluationFinished { eval, score, curtailed, missing } => {
                if let Some(state) = self.evals.get_mut(eval) {
                    state.score = Some(score.clone());
                    state.curtailed = *curtailed;
                    state.missing = *missing;
                    match state.purpose {
                        EvalPurpose::Baseline => {
                            self.baseline_score = Some(score.gate);
                            self.current_score = Some(score.gate);
                            self.best_score = Some(score.gate);
                        }
                        EvalPurpose::Rescore => {
                            let of_best = state.skill_hash == self.best_hash;
                            let rescore = Rescore::of(eval, state.at.step, score, of_best, self.best_score);
                            if rescore != Rescore::NoScore {
                                self.current_score = Some(score.gate);
                                self.current_score_stale = false;
                            }
                            if rescore.is_best() {
                                self.best_hash.clone_from(&state.skill_hash);
                                self.best_score = Some(score.gate);
                            }
                            match rescore {
                                Rescore::NewBest => self.best_step = last_finished(&self.steps),
                                Rescore::Crowned => self.best_step = state.at.step,
                                Rescore::NoScore | Rescore::BestStays | Rescore::OfBest => {}
                            }
                        }
                        EvalPurpose::RescoreBest => self.best_score = Some(score.gate),
                        _ => {}
                    }
                }
            }
            Event::GateDecided { at, decision } => {
                if decision.verdict.accepted()
                    && let Some(version) = self.skills.get_mut(&decision.candidate_hash)
                {
                    version.accepted = true;
                }
                let before = (self.current_hash.clone(), self.best_hash.clone());
                let step = self.step_mut(*at, now);
                step.gate = Some((**decision).clone());
                step.before = Some(before);
            }
            Event::StepFinished { record, current_hash, best_hash } => {
                self.current_hash.clone_from(current_hash);
                self.best_hash.clone_from(best_hash);
                self.current_score = Some(record.current_score);
                self.current_score_stale = record.current_score_stale;
                self.best_score = Some(record.best_score);
                self.best_step = record.best_step;
                let step = self.step_mut(record.at, now);
                // A budget that nobody named is not an answer, only a decision of the step.
                if record.lr_decision.is_some() {
                    step.lr_decision.clone_from(&record.lr_decision);
                }
                step.current_hash.clone_from(current_hash);
                step.record = Some((**record).clone());
                step.finished_at = Some(now);
            }
            Event::TestFinished { outcome } => self.test = Some(outcome.clone()),
            Event::RunFinished { status, reason, .. } => {
                self.status = RunStatus::Ended { status: *status, reason: reason.clone() };
            }
            Event::HostStarted { host, pid, resumed } => self.host_started(host, *pid, *resumed, now),
            Event::EditDecided { at, edit, decision, by, rev } => {
                self.rev = self.rev.max(*rev);
                if let Some(review) = &mut self.step_mut(*at, now).review
                    && let Some(slot) = review.edits.get_mut(*edit)
                {
                    slot.decision = decision.clone();
                    slot.by = Some(by.clone());
                    slot.rev = *rev;
                }
            }
            Event::ReviewSubmitted { at, by, rev } => {
                self.rev = self.rev.max(*rev);
                if let Some(review) = &mut self.step_mut(*at, now).review {
                    review.submitted = Some(by.clone());
                }
            }
            Event::Paused { by } => self.status = RunStatus::Paused { by: by.clone() },
            Event::Resumed { .. } => {
                self.status = RunStatus::Running;
                self.restart_review_clock(now);
            }
            Event::CancelRequested { by } => self.status = RunStatus::Cancelling { by: by.clone() },
            Event::ConfigChanged { keys, changes } => {
                self.settings.extend_from_slice(changes);
                self.log(now, LogLevel::Warn, None, format!("config changed: {}", keys.join(", ")));
            }
            Event::ReviewCommented { at, edit, text, by, rev } => {
                self.rev = self.rev.max(*rev);
                if let Some(review) = &mut self.step_mut(*at, now).review {
                    let comment = ReviewComment { edit: *edit, text: text.clone(), by: by.clone() };
                    review.comments.push(comment);
                }
            }
            Event::OverrideRequested { at, ruling, reason, by, rev } => {
                self.rev = self.rev.max(*rev);
                let asked = Overruling::asked(*ruling, reason, by, now, *rev);
                self.step_mut(*at, now).overruling = Some(asked);
            }
            Event::OverrideApplied {
                at,
                ruling,
                by,
                reason,
                current_hash,
                best_hash,
                current_score,
                best_score,
                best_step,
                current_origin,
                best_origin,
                skill,
            } => {
                if let Some(skill) = skill {
                    self.remember(skill, at.step, *ruling != Ruling::Reject);
                }
                let outcome = OverrulingOutcome::Applied {
                    at: now,
                    current_hash: current_hash.clone(),
                    best_hash: best_hash.clone(),
                    current_origin: current_origin.clone(),
                    best_origin: best_origin.clone(),
                    current_score: *current_score,
                    best_score: *best_score,
                    after_step: last_finished(&self.steps),
                    after_stages: self.stages.len(),
                };
                let step = self.step_mut(*at, now);
                let mut applied = Overruling::asked(*ruling, reason, by, now, 0);
                if let Some(asked) = &step.overruling {
                    (applied.requested_at, applied.rev) = (asked.requested_at, asked.rev);
                }
                applied.outcome = outcome;
                step.overruling = Some(applied);
                // A glance knows no candidate of an older step.
                let candidate = step.gate.as_ref().map(|decision| decision.candidate_hash.clone());
                if let Some(version) = candidate.and_then(|hash| self.skills.get_mut(&hash)) {
                    version.accepted = *ruling != Ruling::Reject;
                }
                self.current_hash.clone_from(current_hash);
                self.best_hash.clone_from(best_hash);
                self.current_score_stale = current_score.is_none();
                if current_score.is_some() {
                    self.current_score = *current_score;
                }
                self.best_score = Some(*best_score);
                self.best_step = *best_step;
            }
            Event::OverrideLapsed { at, why, .. } => {
                if let Some(asked) = &mut self.step_mut(*at, now).overruling {
                    asked.outcome = OverrulingOutcome::Lapsed { why: why.clone() };
                }
            }
            Event::RetuneRequested { changes, reason, by, rev } => {
                self.rev = self.rev.max(*rev);
                self.retune_requested(changes, reason, by, now);
            }
            Event::RetuneApplied { changes, .. } => self.retune_applied(changes),
            Event::RolloutCancelled { path, by, rev } => {
                self.rev = self.rev.max(*rev);
                self.cancelled_calls.insert(path.clone(), by.clone());
            }
            Event::RolloutRequeued { rev, .. } => self.rev = self.rev.max(*rev),
            Event::AttemptsSpent { stage, usage, .. } => {
                *self.unanswered.entry(stage.clone()).or_default() += *usage;
            }
            Event::MachineSampled { .. } | Event::Metric { .. } => {}
            Event::Alert { level, code, message } => {
                self.log(now, *level, Some(code.clone()), message.clone());
            }
            Event::Log { level, message } => self.log(now, *level, None, message.clone()),
            Event::Unknown(map) => {
                let kind = map.keys().next().map_or("?", String::as_str);
                self.log(now, LogLevel::Debug, None, format!("event of an unknown kind: {kind}"));
            }
        }
    }

    pub(super) fn remember(&mut self, skill: &Skill, step: u32, accepted: bool) {
        let version = SkillVersion { skill: skill.clone(), step, accepted };
        let known = self.skills.entry(skill.hash.clone()).or_insert(version);
        known.accepted |= accepted;
        if !known.has_text() {
            known.skill.text.clone_from(&skill.text);
        }
    }

    /// Answers whose shape the step shows; the others come again in the event of their stage.
    fn optimizer_answered(
        &mut self,
        at: StepRef,
        stage: &str,
        path: &str,
        answer: Option<&serde_json::Value>,
        now: u64,
    ) {
        let Some(answer) = answer else { return };
        match stage {
            "lr_autonomous" => {
                self.step_mut(at, now).lr_decision = serde_json::from_value(answer.clone()).ok();
            }
            "deep_probe" => {
                let step = self.step_mut(at, now);
                if let Ok(answer) = serde_json::from_value(answer.clone()) {
                    let batch = batch_segment(path).unwrap_or(step.probes.len());
                    step.probes.push(BatchProbe { batch, answer });
                }
            }
            _ => {}
        }
    }

    /// Scores and candidates of a gated stage.
    fn stage_finished(&mut self, at: StepRef, stage: &EpochStage) {
        let (candidate, decision) = stage.candidate();
        if let Some(candidate) = candidate {
            self.remember(candidate, at.step, decision.is_some_and(|decision| decision.verdict.accepted()));
        }
        if let Some(decision) = decision.filter(|decision| decision.verdict.accepted()) {
            self.current_score = Some(decision.candidate.gate);
            if decision.takes_best() {
                self.best_score = Some(decision.candidate.gate);
                self.best_step = at.step;
            }
        }
    }

    /// A new host lets a stopped run go on, and gives an open review its full time again.
    fn host_started(&mut self, host: &str, pid: u32, resumed: bool, now: u64) {
        self.host = Some((host.to_owned(), pid));
        if self.info.is_some() {
            self.status = RunStatus::Running;
        }
        self.restart_review_clock(now);
        if resumed {
            self.log(now, LogLevel::Info, None, format!("resumed by process {pid} on {host}"));
        }
    }

    /// Time in which nobody could decide does not count.
    fn restart_review_clock(&mut self, now: u64) {
        if let Some(review) = self.steps.last_mut().and_then(|step| step.review.as_mut())
            && review.closed.is_none()
        {
            review.deadline = review.timeout_s.map(|seconds| now + seconds * 1000);
        }
    }
}

/// The last step that has a record; 0 before the first.
fn last_finished(steps: &[StepState]) -> u32 {
    steps.iter().rev().find(|step| step.record.is_some()).map_or(0, |step| step.at.step)
}

/// The update mode of a resolved configuration; journals without one edit the text.
fn update_mode(config: &serde_json::Value) -> UpdateMode {
    // The config of an import is flat.
    let named = config.pointer("/optimizer/skill_update_mode").or_else(|| config.get("skill_update_mode"));
    named.and_then(|name| serde_json::from_value(name.clone()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_update_mode_is_that_of_the_configuration() {
        let config = serde_json::json!({ "optimizer": { "skill_update_mode": "full_rewrite_minibatch" } });
        assert_eq!(update_mode(&config), UpdateMode::FullRewriteMinibatch);
        assert_eq!(update_mode(&serde_json::Value::Null), UpdateMode::Patch);
    }
}
