//! The part of the fold that a continued run begins with: what a foreign run had reached.

use super::{ReviewEdit, ReviewState, RunState, StageState, StepState};
use crate::domain::{Continued, DoneStage, DoneStep, Patch, ReviewClose, ReviewMode, TimeoutPolicy};

impl RunState {
    /// What a foreign run had reached. Its steps took the time before `now`.
    pub(super) fn take_over(&mut self, continued: &Continued, now: u64) {
        let ms = |seconds: f64| (seconds.max(0.0) * 1000.0).round() as u64;
        let spent: u64 = continued.steps.iter().map(|step| ms(step.wall_time_s)).sum();
        let mut before = continued.initial.hash.clone();
        let mut clock = now.saturating_sub(spent);
        for done in &continued.steps {
            let at = done.record.at;
            let mut step = StepState {
                at,
                record: Some(done.record.clone()),
                current_hash: done.current_hash.clone(),
                ranked: done.ranked.clone(),
                budget: done.record.edit_budget,
                review: done.ranked.as_ref().map(|ranked| accepted_as_it_was(ranked, done, &before)),
                candidate: done.candidate.clone(),
                report: done.report.clone(),
                gate: done.decision.clone(),
                started_at: clock,
                finished_at: Some(clock + ms(done.wall_time_s)),
                ..StepState::default()
            };
            for (phase, seconds) in &done.timing {
                step.phase_starts.push((*phase, clock));
                clock += ms(*seconds);
            }
            clock = step.started_at + ms(done.wall_time_s);
            self.steps.push(step);
            if let Some(candidate) = &done.candidate {
                self.remember(candidate, at.step, done.record.action.accepted());
            }
            if let Some(skill) = continued.skills.iter().find(|skill| skill.hash == done.current_hash) {
                self.remember(skill, at.step, true);
            }
            let staged = continued.stages.iter().rfind(|stage| stage.at.step == at.step);
            before.clone_from(staged.map_or(&done.current_hash, |stage| &stage.current_hash));
        }
        for DoneStage { at, stage, current_hash, seconds } in &continued.stages {
            if let Some(skill) = continued.skills.iter().find(|skill| skill.hash == *current_hash) {
                self.remember(skill, at.step, true);
            }
            self.stages.push(StageState {
                at: *at,
                stage: stage.clone(),
                current_hash: current_hash.clone(),
                started_at: now.saturating_sub(ms(*seconds)),
                finished_at: now,
            });
        }
        self.remember(&continued.best.skill, continued.best_step, true);
        self.remember(&continued.current.skill, continued.last.step, true);
        self.best_hash.clone_from(&continued.best.skill.hash);
        self.current_hash.clone_from(&continued.current.skill.hash);
        (self.current_score, self.best_score) = (continued.current.score, continued.best.score);
        self.current_score_stale = continued.current.measured.is_empty();
        self.best_step = continued.best_step;
        self.baseline_score = continued.baseline.as_ref().map(|score| score.gate);
        self.at = continued.last;
    }
}

/// Nobody reviewed a foreign step: all that was selected went on.
fn accepted_as_it_was(ranked: &Patch, done: &DoneStep, before: &str) -> ReviewState {
    ReviewState {
        mode: ReviewMode::Auto,
        edits: ranked.edits.iter().map(ReviewEdit::undecided).collect(),
        current_hash: before.to_owned(),
        preview: done.candidate.as_ref().map(|skill| skill.text.clone()).unwrap_or_default(),
        deadline: None,
        timeout_s: None,
        submitted: None,
        on_timeout: TimeoutPolicy::Accept,
        closed: Some(ReviewClose::Auto),
        kept: ranked.edits.clone(),
        rejected: Vec::new(),
        comments: Vec::new(),
    }
}
