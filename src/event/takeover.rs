//! The part of the fold that a continued run begins with: what a foreign run had reached.

use super::{RunState, StageState, StepState};
use crate::domain::{Continued, DoneStage};

impl RunState {
    /// What a foreign run had reached. Its steps took the time before `now`.
    pub(super) fn take_over(&mut self, continued: &Continued, now: u64) {
        let ms = |seconds: f64| (seconds.max(0.0) * 1000.0).round() as u64;
        let spent: u64 = continued.steps.iter().map(|step| ms(step.wall_time_s)).sum();
        let mut clock = now.saturating_sub(spent);
        for done in &continued.steps {
            let at = done.record.at;
            let mut step = StepState {
                at,
                record: Some(done.record.clone()),
                current_hash: done.current_hash.clone(),
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
            if let Some(skill) = continued.skills.iter().find(|skill| skill.hash == done.current_hash) {
                self.remember(skill, at.step, true);
            }
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
