//! Times of a run: how long so far, how long to go. Pure arithmetic over what the app holds; reads no clock.

use super::app::App;
use crate::domain::{Phase, ReviewMode, TimeoutPolicy};
use crate::event::{ReviewState, StepState};

impl App {
    /// The present as the run knows it: of a recording, and of a run that does not go on, when it was last heard of.
    pub fn run_now(&self) -> u64 {
        if self.clock_runs() { self.now } else { self.state.updated_at }
    }

    /// Milliseconds of the run so far; stands still once it is paused or over.
    pub fn elapsed(&self) -> u64 {
        let Some(info) = &self.state.info else { return 0 };
        self.run_now().saturating_sub(info.started_at)
    }

    /// Milliseconds to go, from the mean working time of finished steps: people's time in reviews is not foretold.
    /// `None` before the first or after the last step, and while a review waits without a limit.
    pub fn eta(&self) -> Option<u64> {
        let total = self.state.info.as_ref()?.plan.total_steps as u64;
        let tally = self.tally();
        let (n, ms) = (tally.timed, tally.worked_ms);
        let unlimited =
            |review: &ReviewState| review.deadline.is_none() || review.on_timeout == TimeoutPolicy::Wait;
        let waits_for_ever = self
            .state
            .open_review()
            .is_some_and(|(_, review)| review.mode == ReviewMode::Manual && unlimited(review));
        if n == 0 || self.ended() || n >= total || waits_for_ever {
            return None;
        }
        let under_way = self.state.steps.last().filter(|step| step.finished_at.is_none());
        let spent = under_way.map_or(0, |step| working_time(step, self.run_now()));
        Some((ms / n * (total - n)).saturating_sub(spent))
    }
}

/// Milliseconds of a step up to `until`, without its review.
pub(super) fn working_time(step: &StepState, until: u64) -> u64 {
    let phases = &step.phase_starts;
    let reviewed: u64 = phases
        .iter()
        .enumerate()
        .filter(|(_, (phase, _))| *phase == Phase::Review)
        .map(|(index, (_, from))| phases.get(index + 1).map_or(until, |next| next.1).saturating_sub(*from))
        .sum();
    until.saturating_sub(step.started_at).saturating_sub(reviewed)
}
