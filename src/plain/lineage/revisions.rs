//! The changes of a run's current skill, one after the other: edit by edit where the record lets them be told apart.

use super::{EditOrigin, Origin, OriginStage};
use crate::domain::{
    Decision, Edit, EditReport, EditStatus, EpochStage, GateDecision, ReviewClose, Ruling, Skill, StepRef,
};
use crate::event::{Analysis, ReviewState, RunState, StageState, StepState};
use crate::optim::{MissingAnchor, apply_edits, with_empty_appendix};
use crate::text::{Mark, diff, lines};

/// The verdict on a candidate that a person accepted over the gate.
const OVERRULED: &str = "accepted_by_override";

/// The text after a change and what made it.
pub struct Revision {
    pub text: String,
    pub origin: Origin,
    /// The text was the current skill, not one between two edits of a step.
    pub whole: bool,
}

/// Every change of the current skill, in order.
pub fn revisions(state: &RunState) -> Vec<Revision> {
    let mut chain = Chain {
        state,
        text: state.skill_text(&state.initial_hash).unwrap_or_default().to_owned(),
        revisions: Vec::new(),
    };
    for (place, step) in state.steps.iter().enumerate() {
        chain.step(step);
        // Stages follow the last step of their epoch; verdicts are overruled between any two of them.
        let next = state.steps.get(place + 1).map(|next| next.at.step);
        let here = |at: StepRef| at.step >= step.at.step && next.is_none_or(|next| at.step < next);
        let before = state.stages.iter().take_while(|stage| stage.at.step < step.at.step).count();
        chain.overrides(step, before);
        for (number, stage) in state.stages.iter().enumerate().filter(|(_, stage)| here(stage.at)) {
            chain.stage(stage);
            chain.overrides(step, number + 1);
        }
    }
    chain.revisions
}

struct Chain<'a> {
    state: &'a RunState,
    text: String,
    revisions: Vec<Revision>,
}

impl Chain<'_> {
    fn step(&mut self, step: &StepState) {
        if let Some(review) = &step.review {
            self.unrecorded(&review.current_hash, step.at);
        }
        if let (Some(candidate), Some(decision)) = (&step.candidate, &step.gate)
            && decision.verdict.accepted()
        {
            self.candidate(step, &candidate.text, decision, decision.verdict.name());
        }
        if step.appendix.is_some() {
            let mut origin = Origin::plain(OriginStage::Appendix, step.at);
            origin.reason = "notes on rules that were there and were not followed".to_owned();
            self.reach(&step.current_hash, origin);
        }
        // A step that another program did may have left its verdict only.
        let mut origin = Origin::plain(OriginStage::Unrecorded, step.at);
        let record = step.record.as_ref().filter(|record| record.action.accepted());
        origin.verdict = record.map(|record| record.action.name());
        self.reach(&step.current_hash, origin);
    }

    /// What people made of verdicts of the gate after `last` and so many stages.
    fn overrides(&mut self, last: &StepState, stages: usize) {
        for (step, word) in self.state.overrides_at(last.at.step, stages) {
            if let (Some(candidate), Some(decision), Ruling::Accept | Ruling::AcceptAsBest) =
                (&step.candidate, &step.gate, word.ruling)
            {
                self.candidate(step, &candidate.text, decision, OVERRULED);
            }
            let mut origin = Origin::plain(OriginStage::Override, step.at);
            origin.reason = format!("{} by {}: {}", word.ruling.name(), word.by.0, word.reason);
            self.reach(word.current_hash().unwrap_or_default(), origin);
        }
    }

    fn candidate(
        &mut self,
        step: &StepState,
        candidate: &str,
        decision: &GateDecision,
        verdict: &'static str,
    ) {
        let judged = |mut origin: Origin| {
            origin.verdict = Some(verdict);
            origin.scores = Some((decision.candidate.gate, decision.current.gate));
            origin
        };
        if let Some(rewrite) = &step.rewrite {
            let mut origin = Origin::plain(OriginStage::Rewrite, step.at);
            origin.reason = match rewrite.change_summary.as_slice() {
                [] => rewrite.reasoning.clone(),
                changes => changes.join("; "),
            };
            if let Some(carried_out) = carried_out(step) {
                origin.reason =
                    format!("{}; {carried_out}", origin.reason).trim_start_matches("; ").to_owned();
            }
            return self.push(candidate, judged(origin), true);
        }
        let proposed = step.ranked.as_ref().or(step.merged.as_ref());
        let edits = match &step.review {
            Some(review) => review.kept.as_slice(),
            None => proposed.map_or(&[][..], |patch| patch.edits.as_slice()),
        };
        let reasoning = |patch: &crate::domain::Patch| patch.reasoning.clone();
        let why = proposed.map(reasoning).filter(|why| !why.is_empty());
        let why = why.or_else(|| step.merged.as_ref().map(reasoning)).unwrap_or_default();
        let told = Proposals {
            stage: OriginStage::Edit,
            at: step.at,
            edits,
            analyses: &step.analyses,
            review: step.review.as_ref(),
            why,
        };
        let report = step.report.as_ref();
        self.edits(&told, report, candidate, &judged);
    }

    fn stage(&mut self, found: &StageState) {
        match &found.stage {
            EpochStage::SlowUpdate(slow) => {
                let mut origin = Origin::plain(OriginStage::SlowUpdate, found.at);
                origin.reason.clone_from(&slow.reasoning);
                origin.verdict = Some(slow.action.name());
                origin.scores = slow.decision.as_ref().map(|made| (made.candidate.gate, made.current.gate));
                self.reach(&found.current_hash, origin);
            }
            EpochStage::MetaReflect(meta) => {
                let judged = |mut origin: Origin| {
                    origin.verdict = Some(meta.action.name());
                    origin.scores =
                        meta.decision.as_ref().map(|made| (made.candidate.gate, made.current.gate));
                    origin
                };
                let reason = match meta.change_summary.as_slice() {
                    [] => meta.patch.reasoning.clone(),
                    changes => changes.join("; "),
                };
                if let Some(candidate) =
                    meta.candidate.as_ref().filter(|candidate| candidate.hash == found.current_hash)
                {
                    let told = Proposals {
                        stage: OriginStage::MetaReflect,
                        at: found.at,
                        edits: &meta.patch.edits,
                        analyses: &[],
                        review: None,
                        why: reason,
                    };
                    self.edits(&told, meta.report.as_ref(), &candidate.text, &judged);
                }
            }
            // Never changes the skill.
            EpochStage::MetaSkill(_) => {}
        }
        self.unrecorded(&found.current_hash, found.at);
    }

    /// The edits of a candidate, one revision each when applying them again gives the candidate; else all in one, and
    /// each line is the work of the edit that contains it.
    fn edits(
        &mut self,
        told: &Proposals<'_>,
        report: Option<&EditReport>,
        candidate: &str,
        judged: &dyn Fn(Origin) -> Origin,
    ) {
        if let Some(stages) = report.and_then(|report| replayed(&self.text, told.edits, report, candidate)) {
            let last = stages.len();
            for (place, (edit, text)) in stages.into_iter().enumerate() {
                self.push(&text, judged(told.origin(edit)), place + 1 == last);
            }
            return;
        }
        let applied = |edit: &usize| {
            let row = report.and_then(|report| report.rows.get(*edit));
            row.is_none_or(|row| row.status.applied())
        };
        let applied: Vec<usize> = (0..told.edits.len()).filter(applied).collect();
        for (owner, text) in by_content(&self.text, candidate, told.edits, &applied) {
            let origin = owner.map_or_else(|| told.nameless(), |edit| told.origin(edit));
            self.push(&text, judged(origin), false);
        }
        if let Some(last) = self.revisions.last_mut().filter(|last| last.text == candidate) {
            last.whole = true;
        }
    }

    /// The current skill is another one than the record explains.
    fn unrecorded(&mut self, hash: &str, at: StepRef) {
        let prepared = Skill::new(with_empty_appendix(&self.text));
        if prepared.hash == hash {
            let mut origin = Origin::plain(OriginStage::Appendix, at);
            "room for notes".clone_into(&mut origin.reason);
            return self.push(&prepared.text, origin, true);
        }
        self.reach(hash, Origin::plain(OriginStage::Unrecorded, at));
    }

    fn reach(&mut self, hash: &str, origin: Origin) {
        if let Some(text) = self.state.skill_text(hash) {
            self.push(text, origin, true);
        }
    }

    fn push(&mut self, text: &str, origin: Origin, whole: bool) {
        if self.text != text {
            text.clone_into(&mut self.text);
            self.revisions.push(Revision { text: text.to_owned(), origin, whole });
        } else if let Some(last) = self.revisions.last_mut() {
            last.whole |= whole;
        }
    }
}

/// The proposals of a step or a stage, with what was said about all of them.
struct Proposals<'a> {
    stage: OriginStage,
    at: StepRef,
    edits: &'a [Edit],
    /// Where unmerged proposals come from.
    analyses: &'a [Analysis],
    review: Option<&'a ReviewState>,
    why: String,
}

impl Proposals<'_> {
    fn origin(&self, place: usize) -> Origin {
        let edit = &self.edits[place];
        let (reviewer, amended) = self.review.map_or((None, false), |review| reviewed(review, place));
        Origin {
            edit: Some(EditOrigin {
                number: place + 1,
                op: edit.op,
                source_type: edit.source_type,
                support_count: edit.support_count,
                motivated_by: edit.motivated_by.clone(),
                reviewer,
                amended,
            }),
            reason: self.reason(edit),
            ..Origin::plain(self.stage, self.at)
        }
    }

    /// The proposal's own rationale; else what its analyst said, where it was taken over as it was; else what was said of
    /// all.
    fn reason(&self, edit: &Edit) -> String {
        let same = |other: &Edit| {
            (other.op, &other.target, &other.content) == (edit.op, &edit.target, &edit.content)
        };
        let patches = self.analyses.iter().filter_map(|analysis| analysis.patch.as_ref());
        let analyst = patches
            .filter(|patch| !patch.reasoning.is_empty())
            .find(|patch| patch.edits.iter().any(same))
            .map(|patch| patch.reasoning.clone());
        match edit.rationale.as_str() {
            "" => analyst.unwrap_or_else(|| self.why.clone()),
            rationale => rationale.to_owned(),
        }
    }

    fn nameless(&self) -> Origin {
        Origin { reason: self.why.clone(), ..Origin::plain(self.stage, self.at) }
    }
}

/// Who decided on the kept edit at `place`, and whether they amended it. The kept edits are the reviewed ones in their
/// order, less the rejected.
fn reviewed(review: &ReviewState, place: usize) -> (Option<crate::domain::Author>, bool) {
    let mut slots = review.edits.iter();
    let mut found = None;
    for kept in &review.kept[..=place.min(review.kept.len().saturating_sub(1))] {
        found = slots.find(|slot| match &slot.decision {
            Decision::Amend { content, .. } => {
                let applied = slot.edit.amended(content);
                (applied.op, &applied.target, &applied.content) == (kept.op, &kept.target, &kept.content)
            }
            Decision::Accept | Decision::Undecided => slot.edit == *kept,
            Decision::Reject { .. } => false,
        });
    }
    found.map_or((None, false), |slot| match slot.decision {
        Decision::Undecided | Decision::Reject { .. } => (None, false),
        Decision::Accept => (slot.by.clone(), false),
        Decision::Amend { .. } => (slot.by.clone(), true),
    })
}

/// The applied edits with the text after each; `None` when applying them again does not give the candidate.
fn replayed(
    text: &str,
    edits: &[Edit],
    report: &EditReport,
    candidate: &str,
) -> Option<Vec<(usize, String)>> {
    let fell_back = |status: EditStatus| {
        matches!(
            status,
            EditStatus::AppliedInsertAfterFallbackAppend
                | EditStatus::AppliedInsertAfterFallbackBeforeProtectedRegion
        )
    };
    let anchor = match report.rows.iter().any(|row| fell_back(row.status)) {
        true => MissingAnchor::Append,
        false => MissingAnchor::Skip,
    };
    let mut text = text.to_owned();
    let mut stages = Vec::new();
    for (place, edit) in edits.iter().enumerate() {
        let after = apply_edits(&text, std::slice::from_ref(edit), anchor).skill;
        if after != text {
            stages.push((place, after.clone()));
            text = after;
        }
    }
    (text == candidate).then_some(stages)
}

/// Texts from `text` to `candidate`, each with the edit whose content holds the lines that it adds; `None`: nobody's.
/// Removed lines go with the first text.
fn by_content(
    text: &str,
    candidate: &str,
    edits: &[Edit],
    applied: &[usize],
) -> Vec<(Option<usize>, String)> {
    let compared = diff(text, candidate);
    let new_lines = lines(candidate);
    let holds = |edit: &usize, line: &str| edits[*edit].content.lines().any(|part| part.trim() == line);
    let owner = |line: &str| match line.trim() {
        "" => None,
        line => applied.iter().copied().find(|edit| holds(edit, line)),
    };
    let owners: Vec<Option<Option<usize>>> = compared
        .lines
        .iter()
        .filter(|line| line.mark != Mark::Removed)
        .map(|line| match (line.mark, line.new) {
            (Mark::Added, Some(new)) => Some(owner(new_lines[new - 1])),
            (Mark::Added | Mark::Same | Mark::Removed, _) => None,
        })
        .collect();
    let mut order: Vec<Option<usize>> = owners.iter().flatten().copied().collect();
    order.sort_unstable();
    order.dedup();
    if order.is_empty() {
        order.push(None);
    }
    (0..order.len())
        .map(|last| {
            let shown =
                |owner: &Option<Option<usize>>| owner.is_none_or(|owner| order[..=last].contains(&owner));
            let kept = new_lines.iter().zip(&owners).filter(|(_, owner)| shown(owner));
            (order[last], kept.map(|(line, _)| *line).collect())
        })
        .collect()
}

/// The suggestions or the candidate that a rewrite came from, and who let them pass.
fn carried_out(step: &StepState) -> Option<String> {
    let review = step.review.as_ref()?;
    let titles: Vec<String> =
        review.kept.iter().map(|edit| format!("{} {:?}", edit.op.name(), edit.target)).collect();
    if titles.is_empty() {
        return None;
    }
    let by = match &review.closed {
        Some(ReviewClose::Submitted { by }) => format!(", reviewed by {}", by.0),
        Some(ReviewClose::Auto | ReviewClose::TimedOut { .. }) | None => String::new(),
    };
    Some(format!("from {}{by}", titles.join(", ")))
}
