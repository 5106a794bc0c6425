//! The stages after an epoch as events: slow update, meta skill, meta-reflect.

use super::Story;
use super::evidence::{Comparison, rows_fit};
use crate::domain::{
    EpochStage, GateDecision, GateMetric, Phase, Skill, StageAction, StepRef, Usage, Verdict,
};
use crate::event::{EvalPurpose, Event};
use crate::store::foreign::{ForeignRollouts, ForeignStage};

impl<'a> Story<'a> {
    /// Everything recorded at the end of the epoch whose last step is `at`.
    pub(super) fn stages(&mut self, at: StepRef) {
        let Some(epoch) = self.run.epochs.get(&at.epoch) else { return };
        if let Some(stage) = &epoch.slow_update {
            self.phase(at, Phase::SlowUpdate);
            let previous = self.previous_epoch(at).map(|skill| skill.hash.clone()).unwrap_or_default();
            let current = self.current_hash();
            self.longitudinal(at, "prev", EvalPurpose::LongitudinalPrev, &previous, epoch.prev.as_ref());
            self.longitudinal(at, "curr", EvalPurpose::LongitudinalCurr, &current, epoch.curr.as_ref());
            let candidate = stage.found.candidate.clone();
            let decision = self.stage_decision(
                at,
                stage,
                candidate.as_ref(),
                stage.found.action,
                EvalPurpose::SlowCandidate,
            );
            let mut found = stage.found.clone();
            found.decision = decision.clone();
            self.tape.wait(stage.seconds);
            self.take_over(at, found.action, candidate, decision.as_ref());
            self.finish_stage(at, EpochStage::SlowUpdate(Box::new(found)));
        }
        if let Some(stage) = &epoch.meta_skill {
            self.phase(at, Phase::MetaSkill);
            self.tape.wait(stage.seconds);
            self.finish_stage(at, EpochStage::MetaSkill(stage.found.clone()));
        }
        if let Some(stage) = &epoch.meta_reflect {
            self.phase(at, Phase::MetaReflect);
            let candidate = stage.found.candidate.clone();
            let purpose = EvalPurpose::MetaReflectCandidate;
            let decision = self.stage_decision(at, stage, candidate.as_ref(), stage.found.action, purpose);
            let mut found = stage.found.clone();
            found.decision = decision.clone();
            self.tape.wait(stage.seconds);
            self.take_over(at, found.action, candidate, decision.as_ref());
            self.finish_stage(at, EpochStage::MetaReflect(Box::new(found)));
        }
        self.check_version(at);
    }

    /// The current skill at the end of the epoch before.
    fn previous_epoch(&self, at: StepRef) -> Option<&'a Skill> {
        let before = self.run.steps.iter().rfind(|step| step.at.epoch < at.epoch)?;
        self.run.skills.get(&before.at.step)
    }

    fn longitudinal(
        &mut self,
        at: StepRef,
        name: &str,
        purpose: EvalPurpose,
        hash: &str,
        rows: Option<&'a ForeignRollouts>,
    ) {
        if let Some(measured) = self.comparison.measured(None, None, None, rows) {
            self.evaluation(&format!("e{:02}/slow/{name}", at.epoch), purpose, at, hash, &measured);
        }
    }

    /// The gate's word on a stage's candidate, where it was asked.
    fn stage_decision<T>(
        &mut self,
        at: StepRef,
        stage: &'a ForeignStage<T>,
        candidate: Option<&Skill>,
        action: StageAction,
        purpose: EvalPurpose,
    ) -> Option<GateDecision> {
        let candidate = candidate?;
        let recorded = stage.selection_hard;
        if recorded.is_none() && stage.selection.is_none() {
            return None;
        }
        let verdict = verdict(action)?;
        let fits = |rows: &&ForeignRollouts| recorded.is_none_or(|recorded| rows_fit(rows, recorded));
        let rows = match &stage.selection {
            Some(rows) => Some(rows).filter(fits),
            None => self.known.get(&candidate.hash).and_then(|known| known.rows),
        };
        // Meta-reflect compares `hard`, whatever the run's metric is.
        let comparison = match purpose {
            EvalPurpose::MetaReflectCandidate => Comparison { metric: GateMetric::Hard, ..self.comparison },
            _ => self.comparison,
        };
        let measured = comparison.measured(recorded, stage.selection_soft, None, rows)?;
        let name = if purpose == EvalPurpose::SlowCandidate { "slow" } else { "meta_reflect" };
        self.evaluation(&format!("e{:02}/{name}/eval", at.epoch), purpose, at, &candidate.hash, &measured);
        let (current, best) = (self.current_score.as_ref()?, self.best_score.as_ref()?);
        let decision = comparison.decision(verdict, &candidate.hash, &measured, current, best);
        if verdict.accepted() {
            if decision.takes_best() {
                self.best_hash.clone_from(&candidate.hash);
                self.best_score = Some(measured.clone());
            }
            self.current_score = Some(measured);
            self.stale = false;
        }
        Some(decision)
    }

    /// The stage's candidate becomes current where its action says so.
    fn take_over(
        &mut self,
        at: StepRef,
        action: StageAction,
        candidate: Option<Skill>,
        decision: Option<&GateDecision>,
    ) {
        let changes = match action {
            StageAction::InjectPlaceholder => true,
            other => verdict(other).is_some_and(Verdict::accepted),
        };
        // A placeholder has no candidate file: it is what the step's version was saved as again.
        let after = candidate.or_else(|| self.run.skills.get(&at.step).cloned());
        if let Some(after) = after.filter(|_| changes)
            && self.current.as_ref().is_none_or(|current| current.hash != after.hash)
        {
            self.current = Some(after);
            self.stale |= decision.is_none();
        }
    }

    fn finish_stage(&mut self, at: StepRef, stage: EpochStage) {
        let current = self.current.clone().unwrap_or_else(|| Skill::new(""));
        self.tape.push(Event::EpochStageFinished {
            at,
            stage,
            current,
            best_hash: self.best_hash.clone(),
            stale: self.stale,
            usage: Usage::default(),
        });
    }

    fn check_version(&mut self, at: StepRef) {
        let Some(version) = self.run.skills.get(&at.step) else { return };
        if self.current.as_ref().is_none_or(|current| current.hash != version.hash) {
            self.tape.warn(format!(
                "skills/skill_v{:04}.md: is not the text that the recorded stages leave",
                at.step
            ));
            self.current = Some(version.clone());
        }
    }
}

fn verdict(action: StageAction) -> Option<Verdict> {
    match action {
        StageAction::ForceAccept => Some(Verdict::ForceAccept),
        StageAction::Accept => Some(Verdict::Accept),
        StageAction::AcceptNewBest => Some(Verdict::AcceptNewBest),
        StageAction::Reject => Some(Verdict::Reject),
        StageAction::Undecided => Some(Verdict::Undecided),
        StageAction::InjectPlaceholder
        | StageAction::SkipFirstEpoch
        | StageAction::NoContent
        | StageAction::WriteMetaSkill
        | StageAction::SkipNoEdits
        | StageAction::SkipNoSuggestions
        | StageAction::SkipNoRewrite
        | StageAction::SkipNoChange => None,
    }
}
