//! Meta-reflection: after an epoch, one gated revision of the skill from the history of its edits and scores.

use super::Stop;
use super::calls::Consulted;
use super::reflection::Lesson;
use super::run::Run;
use crate::domain::{Brief, EpochStage, MetaReflect, Patch, Skill, StageAction, StepRef, UpdateMode, Usage};
use crate::event::EvalPurpose;
use crate::optim::{
    Applied, HistoryStep, Selected, epoch_history, meta_reflect_mode, meta_reflect_reply, with_regions_of,
};

impl Run {
    pub(super) async fn meta_reflect(&mut self, at: StepRef) -> Result<(), Stop> {
        let mut found = MetaReflect {
            action: StageAction::NoContent,
            meta_summary: String::new(),
            patch: Patch::default(),
            candidate: None,
            report: None,
            change_summary: Vec::new(),
            decision: None,
            note: String::new(),
        };
        let previous_summary = std::mem::take(&mut self.meta_summary);
        let mut usage = Usage::default();
        let config = self.shop.config();
        let optimizer = &config.optimizer;
        let (mode, budget) = (meta_reflect_mode(optimizer.skill_update_mode), optimizer.meta_learning_rate);
        let brief = Brief::MetaReflect {
            mode,
            skill: self.current.text.clone(),
            budget,
            previous_summary,
            history: self.history_text(mode),
        };
        let path = format!("e{:02}/meta_reflect/call", at.epoch);
        let read = |text: &str| meta_reflect_reply(text, mode, budget);
        let Consulted { answer, note, usage: asked } =
            self.shop.consult(at, "meta_reflect", path, brief, read).await?;
        usage += asked;
        found.note = note;
        if let Some((summary, patch)) = answer {
            self.meta_summary.clone_from(&summary);
            found.meta_summary = summary;
            found.patch = patch;
            usage += self.revise(at, mode, &mut found).await?;
        }
        self.stage_finished(at, EpochStage::MetaReflect(Box::new(found)), usage)
    }

    async fn revise(
        &mut self,
        at: StepRef,
        mode: UpdateMode,
        found: &mut MetaReflect,
    ) -> Result<Usage, Stop> {
        let mut usage = Usage::default();
        let text = match mode {
            _ if found.patch.edits.is_empty() => {
                found.action = match mode {
                    UpdateMode::RewriteFromSuggestions => StageAction::SkipNoSuggestions,
                    UpdateMode::Patch | UpdateMode::FullRewriteMinibatch => StageAction::SkipNoEdits,
                };
                return Ok(usage);
            }
            UpdateMode::RewriteFromSuggestions => {
                let current = self.current.clone();
                let lesson = Lesson { at, skill: &current, memory: &[], meta_skill: "" };
                let path = format!("e{:02}/meta_reflect/rewrite", at.epoch);
                let (rewrite, spent) = self.rewrite(at, path, &lesson, found.patch.edits.clone()).await?;
                usage += spent;
                let Some(rewrite) = rewrite else {
                    found.action = StageAction::SkipNoRewrite;
                    return Ok(usage);
                };
                found.change_summary = rewrite.change_summary;
                let (text, restored) = with_regions_of(&rewrite.new_skill, &self.current.text);
                if restored {
                    found.note = "the rewrite had lost a protected region, which was put back".into();
                }
                text
            }
            UpdateMode::Patch | UpdateMode::FullRewriteMinibatch => {
                let Applied { skill, report } = self.apply(&self.current.text, &found.patch.edits);
                found.report = Some(report);
                skill
            }
        };
        let candidate = Skill::new(text);
        found.candidate = Some(candidate.clone());
        let origin = format!("meta_reflect_epoch_{:02}", at.epoch);
        let purpose = EvalPurpose::MetaReflectCandidate;
        let (action, decision, spent) =
            self.gate_stage(at, "meta_reflect", purpose, &candidate, origin).await?;
        (found.action, found.decision) = (action, decision);
        usage += spent;
        Ok(usage)
    }

    fn history_text(&self, mode: UpdateMode) -> String {
        let steps: Vec<HistoryStep<'_>> = self
            .epoch_steps
            .iter()
            .map(|step| HistoryStep {
                step: step.memory.step,
                action: step.action.name(),
                selection_hard: step.selection_hard,
                current_score: Some(step.current_score),
                best_score: Some(step.best_score),
                selected: match &step.selected {
                    None => Selected::Skipped,
                    Some(edits) if edits.is_empty() => Selected::None,
                    Some(edits) => Selected::Edits(edits),
                },
                n_total: step.memory.n_total,
                n_fail: step.memory.n_fail,
                patterns: &step.memory.failure_patterns,
            })
            .collect();
        epoch_history(&steps, mode)
    }
}
