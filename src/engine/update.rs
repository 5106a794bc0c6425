//! The middle of a step: how many proposals, which ones, what people say, and the candidate that comes of them.

use super::Stop;
use super::calls::Consulted;
use super::reflection::{Lesson, select};
use super::review::review;
use super::run::Run;
use super::step::{Findings, mean_of, round6};
use crate::config::InsertAfterFallback;
use crate::domain::{
    Brief, Edit, LrControlMode, LrDecision, Patch, Phase, Rewrite, Skill, StepRef, UpdateMode, Usage,
};
use crate::event::Event;
use crate::optim::{
    Applied, MissingAnchor, apply_edits, edit_budget, full_rewrite, lr_decision, lr_fallback, rewrite_reply,
    with_regions_of,
};

impl Run {
    /// The edit budget, the ranking and the review.
    pub(super) async fn choose(&mut self, lesson: &Lesson<'_>, found: &mut Findings) -> Result<(), Stop> {
        let at = lesson.at;
        self.phase(at, Phase::Select)?;
        found.budget = self.budget(lesson, found).await?;
        let (ranked, usage) = select(&self.shop, lesson, &found.merged, found.budget).await?;
        found.ranked = ranked;
        found.spend("ranking", usage);
        self.phase(at, Phase::Review)?;
        let preview = self.preview(&lesson.skill.text, &found.ranked);
        found.reviewed = review(&self.shop, at, &found.ranked.edits, lesson.skill, preview).await?;
        Ok(())
    }

    /// Most proposals of this step; `None`: whole rewrites are not selected from.
    async fn budget(&mut self, lesson: &Lesson<'_>, found: &mut Findings) -> Result<Option<usize>, Stop> {
        let optimizer = self.shop.config().optimizer.clone();
        if optimizer.skill_update_mode == UpdateMode::FullRewriteMinibatch {
            return Ok(None);
        }
        if optimizer.lr_control_mode == LrControlMode::Autonomous {
            let (decision, usage) = self.learned_budget(lesson, found).await?;
            found.spend("lr_autonomous", usage);
            let budget = decision.learning_rate;
            found.lr_decision = Some(decision);
            return Ok(Some(budget));
        }
        self.schedule_calls += 1;
        Ok(Some(edit_budget(
            optimizer.lr_scheduler,
            optimizer.learning_rate,
            optimizer.min_learning_rate,
            self.schedule_calls,
            self.plan.total_steps as usize,
        )))
    }

    async fn learned_budget(
        &self,
        lesson: &Lesson<'_>,
        found: &Findings,
    ) -> Result<(LrDecision, Usage), Stop> {
        let available = found.merged.edits.len();
        let brief = Brief::LearningRate {
            mode: self.shop.config().optimizer.skill_update_mode,
            skill: lesson.skill.text.clone(),
            patch: found.merged.clone(),
            rollout_n: found.rollouts.len(),
            rollout_hard: round6(mean_of(&found.rollouts, |rollout| rollout.score.hard)),
            rollout_soft: round6(mean_of(&found.rollouts, |rollout| rollout.score.soft)),
            memory: lesson.memory.to_vec(),
            meta_skill: lesson.meta_skill.to_owned(),
        };
        let path = format!("{}/lr", lesson.at.path());
        let read = |text: &str| lr_decision(text, available);
        let Consulted { answer, note, usage } =
            self.shop.consult(lesson.at, "lr_autonomous", path, brief, read).await?;
        Ok((answer.unwrap_or_else(|| lr_fallback(available, "", Some(note))), usage))
    }

    /// The skill as it would be with every proposal accepted; of suggestions only the rewrite call knows that.
    fn preview(&self, skill: &str, ranked: &Patch) -> String {
        match self.shop.config().optimizer.skill_update_mode {
            UpdateMode::Patch => self.apply(skill, &ranked.edits).skill,
            UpdateMode::RewriteFromSuggestions => skill.to_owned(),
            UpdateMode::FullRewriteMinibatch => match full_rewrite(&ranked.edits) {
                Some(rewrite) => with_regions_of(&rewrite.new_skill, skill).0,
                None => skill.to_owned(),
            },
        }
    }

    pub(super) fn apply(&self, skill: &str, edits: &[Edit]) -> Applied {
        let missing_anchor = match self.shop.config().optimizer.insert_after_fallback {
            InsertAfterFallback::Report => MissingAnchor::Skip,
            InsertAfterFallback::Append => MissingAnchor::Append,
        };
        apply_edits(skill, edits, missing_anchor)
    }

    /// The candidate; `None`: the proposals gave no usable document.
    pub(super) async fn update(
        &mut self,
        lesson: &Lesson<'_>,
        found: &mut Findings,
    ) -> Result<Option<Skill>, Stop> {
        let at = lesson.at;
        self.phase(at, Phase::Update)?;
        let kept = found.reviewed.kept.clone();
        let rewrite = match self.shop.config().optimizer.skill_update_mode {
            UpdateMode::Patch => {
                let Applied { skill, report } = self.apply(&lesson.skill.text, &kept);
                let candidate = Skill::new(skill);
                self.shop.journal.emit(Event::SkillUpdated {
                    at,
                    candidate: candidate.clone(),
                    report: report.clone(),
                    rewrite: None,
                    regions_restored: false,
                })?;
                found.report = Some(report);
                found.candidate = Some(candidate.clone());
                return Ok(Some(candidate));
            }
            UpdateMode::RewriteFromSuggestions => {
                let path = format!("{}/rewrite", at.path());
                let (rewrite, usage) = self.rewrite(at, path, lesson, kept).await?;
                found.spend("rewrite", usage);
                rewrite
            }
            UpdateMode::FullRewriteMinibatch => full_rewrite(&kept),
        };
        let Some(rewrite) = rewrite else { return Ok(None) };
        let (text, regions_restored) = with_regions_of(&rewrite.new_skill, &lesson.skill.text);
        let candidate = Skill::new(text);
        self.shop.journal.emit(Event::SkillUpdated {
            at,
            candidate: candidate.clone(),
            report: Default::default(),
            rewrite: Some(rewrite.clone()),
            regions_restored,
        })?;
        found.rewrite = Some(rewrite);
        found.candidate = Some(candidate.clone());
        Ok(Some(candidate))
    }

    /// One document from suggestions; none without any.
    pub(super) async fn rewrite(
        &self,
        at: StepRef,
        path: String,
        lesson: &Lesson<'_>,
        suggestions: Vec<Edit>,
    ) -> Result<(Option<Rewrite>, Usage), Stop> {
        if suggestions.is_empty() {
            return Ok((None, Usage::default()));
        }
        let brief = Brief::Rewrite {
            skill: lesson.skill.text.clone(),
            suggestions: Patch { reasoning: String::new(), edits: suggestions },
            memory: lesson.memory.to_vec(),
        };
        let Consulted { answer, usage, .. } =
            self.shop.consult(at, "rewrite", path, brief, rewrite_reply).await?;
        Ok((answer, usage))
    }
}
