//! Measuring a candidate against the current skill, the gate's verdict, and what changes by it; also the one change
//! that steps make without the gate, the appendix.

use super::Stop;
use super::calls::Consulted;
use super::evaluation::{EvalItems, Evaluation, EvaluationSpec, evaluate};
use super::run::Run;
use super::step::Findings;
use crate::domain::{AppendixFlush, AppendixSource, Brief, GateDecision, Skill, SourceType, StepRef, Usage};
use crate::event::{EvalPurpose, Event};
use crate::gate::{GateInput, GateItem, Measurement, gate_decision};
use crate::optim::{appendix_notes, consolidated_notes, shorter, union_notes, with_appendix};

impl Run {
    /// Measures the current skill again if it was changed outside the gate, so that no verdict rests on a score of
    /// another text. A text that turns out better than the best is the best: it was current since step `since`.
    pub(super) async fn rescore_if_stale(
        &mut self,
        at: StepRef,
        id: String,
        since: u32,
    ) -> Result<Usage, Stop> {
        if !self.stale {
            return Ok(Usage::default());
        }
        let current = self.current.clone();
        let evaluation = self.measure(at, EvalPurpose::Rescore, id.clone(), id, &current, None).await?;
        let usage = evaluation.spent();
        if evaluation.score.beats(self.best_score.gate) {
            self.best = current;
            self.best_score = evaluation.score.clone();
            self.best_step = since;
            self.best_origin.clone_from(&self.current_origin);
        }
        // A mean over some of the items is no score to hold a candidate against.
        if evaluation.complete() {
            self.current_evaluation = evaluation;
            self.stale = false;
        }
        Ok(usage)
    }

    /// No verdict is possible: the gate would compare with a score of another text.
    pub(super) fn incomparable(&self) -> bool {
        self.stale && self.shop.config().evaluation.use_gate
    }

    /// Runs a candidate on the selection split until the verdict is certain.
    pub(super) async fn evaluate_candidate(
        &mut self,
        at: StepRef,
        purpose: EvalPurpose,
        id: String,
        path: String,
        candidate: &Skill,
    ) -> Result<Evaluation, Stop> {
        let curtailed = self.shop.config().evaluation.use_gate && self.current_evaluation.complete();
        let against = curtailed.then(|| self.current_evaluation.clone());
        self.measure(at, purpose, id, path, candidate, against.as_ref()).await
    }

    /// One evaluation on the selection split; results of the same text from earlier in the run are used again.
    pub(super) async fn measure(
        &mut self,
        at: StepRef,
        purpose: EvalPurpose,
        id: String,
        path: String,
        skill: &Skill,
        against: Option<&Evaluation>,
    ) -> Result<Evaluation, Stop> {
        let spec = EvaluationSpec {
            id,
            path,
            purpose,
            at,
            skill,
            items: EvalItems::HeldOut(&self.data.val[..self.plan.val]),
            against,
            known: self.measured.get(&skill.hash).map(Vec::as_slice),
            readout: None,
            indispensable: None,
        };
        let evaluation = evaluate(&self.shop, &self.metric, spec).await?;
        self.measured.insert(skill.hash.clone(), evaluation.results.clone());
        Ok(evaluation)
    }

    /// The gate's verdict on a measured candidate.
    pub(super) fn judge(&self, candidate: &Skill, evaluation: &Evaluation) -> GateDecision {
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
        gate_decision(&GateInput {
            metric: self.metric.kind,
            mixed_weight: self.metric.mixed_weight,
            use_gate: self.shop.config().evaluation.use_gate,
            candidate_hash: &candidate.hash,
            candidate_bonus: self.metric.bonus(candidate),
            current_bonus: self.metric.bonus(&self.current),
            items: &items,
            best: &self.best_score,
        })
    }

    /// Makes an accepted candidate the current skill, and the best when it is.
    pub(super) fn adopt(
        &mut self,
        candidate: &Skill,
        evaluation: Evaluation,
        decision: &GateDecision,
        origin: String,
        step: u32,
    ) {
        if !decision.verdict.accepted() {
            return;
        }
        self.current = candidate.clone();
        self.current_origin = origin;
        self.stale = false;
        if decision.takes_best() {
            self.best = candidate.clone();
            self.best_score = evaluation.score.clone();
            self.best_step = step;
            self.best_origin.clone_from(&self.current_origin);
        }
        self.current_evaluation = evaluation;
    }

    /// Changes the current skill outside the gate: its stored score no longer is its own.
    pub(super) fn replace_ungated(&mut self, skill: Skill) {
        if skill.hash != self.current.hash {
            self.current = skill;
            self.stale = true;
        }
    }

    /// Puts the step's notes on execution lapses into the appendix, whatever the verdict was.
    pub(super) async fn flush_appendix(&mut self, at: StepRef, found: &mut Findings) -> Result<(), Stop> {
        let config = self.shop.config();
        let optimizer = &config.optimizer;
        if !optimizer.use_skill_aware_reflection {
            return Ok(());
        }
        let heard = |source: SourceType| {
            source == SourceType::Failure || optimizer.skill_aware_appendix_source == AppendixSource::Both
        };
        let analyses = found.analyses.iter().chain(found.deep_analyses.iter().flatten());
        let step_notes: Vec<String> = analyses
            .filter(|analysis| heard(analysis.source))
            .flat_map(|analysis| analysis.appendix_notes.iter().cloned())
            .collect();
        if step_notes.is_empty() {
            return Ok(());
        }
        let union = union_notes(&appendix_notes(&self.current.text), &step_notes);
        let threshold = optimizer.skill_aware_consolidate_threshold;
        let mut consolidated = None;
        // Notes that are all there already change nothing, not even where the region stands.
        let news = union.added > 0;
        if news && threshold > 0 && union.all.len() > threshold {
            let (before, notes) = (union.all.len(), union.all.clone());
            let path = format!("{}/appendix", at.path());
            let read = |text: &str| consolidated_notes(text, before);
            let brief = Brief::Consolidate { notes };
            let Consulted { answer, usage, .. } =
                self.shop.consult(at, "appendix_consolidate", path, brief, read).await?;
            found.spend("appendix_consolidate", usage);
            consolidated = shorter(answer, before);
        }
        let notes = consolidated.as_ref().unwrap_or(&union.all);
        let skill = match news {
            true => Skill::new(with_appendix(&self.current.text, notes)),
            false => self.current.clone(),
        };
        let flush =
            AppendixFlush { step_notes, added: union.added, appendix_after: union.all.clone(), consolidated };
        self.shop.journal.emit(Event::AppendixUpdated { at, flush: flush.clone(), skill: skill.clone() })?;
        self.replace_ungated(skill);
        found.appendix = Some(flush);
        Ok(())
    }
}
