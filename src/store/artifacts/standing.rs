//! Where the current and the best skill came from and what they score, after each epoch. Derived from records, stages
//! and the final selection; decides nothing.

use crate::domain::{GateDecision, StageAction, StageKind, StepRecord};
use crate::event::{EvalOwner, EvalPurpose, OverrulingOutcome, RunState, StageState, StepState};

/// Origin of a skill that no step produced.
const INITIAL: &str = "initial";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    pub current_origin: String,
    pub best_origin: String,
    pub current_score: Option<f64>,
    pub best_score: Option<f64>,
}

impl Standing {
    /// At the end of `epoch`, its stages included; `None` before its first step has finished.
    pub fn after(state: &RunState, epoch: u32) -> Option<Self> {
        let last = records(state).rfind(|record| record.at.epoch == epoch)?;
        let mut standing = Self {
            current_origin: last.current_origin.clone(),
            best_origin: last.best_origin.clone(),
            current_score: Some(last.current_score),
            best_score: Some(last.best_score),
        };
        let step = state.steps.iter().rfind(|step| step.at.step == last.at.step);
        let mut hash = step.map(|step| step.current_hash.as_str()).unwrap_or_default();
        for (place, stage) in state.stages.iter().enumerate().filter(|(_, stage)| stage.at.epoch == epoch) {
            if let Some(now) = standing.overrule(state, last, place) {
                hash = now;
            }
            standing.rescore(state, stage);
            // An action may leave the text as it was: a region that is there already is not put in again.
            if stage.current_hash != hash {
                standing.pass(stage);
            }
            hash = &stage.current_hash;
        }
        let stages = state.stages.iter().take_while(|stage| stage.at.epoch <= epoch).count();
        standing.overrule(state, last, stages);
        Some(standing)
    }

    /// As things stand now.
    pub fn now(state: &RunState) -> Self {
        let last = records(state).next_back().and_then(|record| Self::after(state, record.at.epoch));
        let mut standing = last.unwrap_or_else(|| Self {
            current_origin: INITIAL.to_owned(),
            best_origin: INITIAL.to_owned(),
            current_score: state.current_score,
            best_score: state.best_score,
        });
        if let Some((_, true)) = &state.final_selection {
            standing.best_origin.clone_from(&standing.current_origin);
        }
        standing
    }

    /// Verdicts that people overruled between the last step, or the stage before the `place`-th, and that stage. Returns the
    /// current skill after them.
    fn overrule<'a>(&mut self, state: &'a RunState, last: &StepRecord, place: usize) -> Option<&'a str> {
        let mut hash = None;
        for (_, word) in state.overrides_at(last.at.step, place) {
            if let OverrulingOutcome::Applied {
                current_hash,
                current_origin,
                best_origin,
                current_score,
                best_score,
                ..
            } = &word.outcome
            {
                self.current_origin.clone_from(current_origin);
                self.best_origin.clone_from(best_origin);
                self.current_score = current_score.or(self.current_score);
                self.best_score = Some(*best_score);
                hash = Some(current_hash.as_str());
            }
        }
        hash
    }

    /// The current skill as it was measured again before the stage's verdict.
    fn rescore(&mut self, state: &RunState, stage: &StageState) {
        let owner = EvalOwner::Stage(stage.at.epoch, stage.stage.kind());
        let rescored = state
            .evals
            .iter()
            .find(|(id, eval)| eval.purpose == EvalPurpose::Rescore && eval.owner(id) == owner);
        let score = rescored.and_then(|(_, eval)| eval.score.as_ref());
        let Some(score) = score.filter(|score| score.done == score.n) else { return };
        self.current_score = Some(score.gate);
        if score.beats(self.best_score.unwrap_or(f64::NEG_INFINITY)) {
            self.best_origin.clone_from(&self.current_origin);
            self.best_score = Some(score.gate);
        }
    }

    fn pass(&mut self, stage: &StageState) {
        let epoch = stage.at.epoch;
        let action = stage.stage.action();
        if !action.changes_skill() {
            return;
        }
        let origin = match (stage.stage.kind(), action) {
            (StageKind::SlowUpdate, StageAction::InjectPlaceholder) => "slow_update_placeholder",
            (StageKind::SlowUpdate, _) => "slow_update",
            (StageKind::MetaReflect, _) => "meta_reflect",
            (StageKind::MetaSkill, _) => return,
        };
        let (_, decision) = stage.stage.candidate();
        self.current_origin = format!("{origin}_epoch_{epoch:02}");
        if let Some(decision) = decision {
            self.current_score = Some(decision.candidate.gate);
        }
        if let Some(decision) = decision.filter(|decision| GateDecision::takes_best(decision)) {
            self.best_origin.clone_from(&self.current_origin);
            self.best_score = Some(decision.candidate.gate);
        }
    }
}

pub(super) fn records(state: &RunState) -> impl DoubleEndedIterator<Item = &StepRecord> {
    state.steps.iter().filter_map(|step| step.record.as_ref())
}

/// The current skill after a finished step and the stages that follow it; `None` while the step is under way.
pub(super) fn skill_after<'a>(state: &'a RunState, step: &'a StepState) -> Option<&'a str> {
    step.record.as_ref()?;
    let staged = state.stages.iter().enumerate().rfind(|(_, stage)| stage.at.step == step.at.step);
    // After the last of these stages, or where there is none after all that came before the step.
    let stages = match staged {
        Some((place, _)) => place + 1,
        None => state.stages.iter().filter(|stage| stage.at.step < step.at.step).count(),
    };
    let overruled = state.overrides_at(step.at.step, stages).next_back();
    if let Some(hash) = overruled.and_then(|(_, word)| word.current_hash()) {
        return Some(hash);
    }
    let staged = staged.map(|(_, stage)| stage);
    Some(staged.map_or(step.current_hash.as_str(), |stage| stage.current_hash.as_str()))
}
