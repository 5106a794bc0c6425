//! One foreign step as events: rollouts, proposals, candidate, measurement, decision, record.

use std::collections::BTreeMap;

use super::Story;
use super::evidence::{Measured, rows_fit};
use super::tape::imported_key;
use crate::domain::{
    AppendixFlush, Patch, Phase, ReviewClose, ReviewMode, Skill, SourceType, StepRecord, StepRef,
    TimeoutPolicy, Usage, Verdict,
};
use crate::event::{EvalPurpose, Event};
use crate::store::foreign::{ForeignAnalysis, ForeignRecord, ForeignRollouts, ForeignStep};

/// Tokens and seconds of a step that no event has taken up yet.
struct Costs {
    tokens: BTreeMap<String, Usage>,
    timing: Vec<(Phase, f64)>,
}

impl Costs {
    fn of(record: Option<&ForeignRecord>) -> Self {
        match record {
            Some(record) => Self { tokens: record.record.tokens.clone(), timing: record.timing.clone() },
            None => Self { tokens: BTreeMap::new(), timing: Vec::new() },
        }
    }

    fn tokens(&mut self, stage: &str) -> Usage {
        self.tokens.remove(stage).unwrap_or_default()
    }

    fn seconds(&self, phase: Phase) -> f64 {
        self.timing.iter().find(|(stage, _)| *stage == phase).map_or(0.0, |(_, seconds)| *seconds)
    }
}

impl<'a> Story<'a> {
    pub(super) fn step(&mut self, step: &'a ForeignStep) {
        let at = step.at;
        self.at = at;
        let began = self.tape.now();
        let mut costs = Costs::of(step.record.as_ref());
        self.rollouts(at, step, &costs);
        self.analyses(at, step, &mut costs);
        if let Some(merged) = &step.merged {
            self.phase(at, Phase::Aggregate);
            let usage = costs.tokens("merge");
            self.tape.wait(costs.seconds(Phase::Aggregate));
            self.tape.push(Event::MergeFinished {
                at,
                patch: merged.clone(),
                model_merges: usize::try_from(usage.calls).unwrap_or_default(),
                fallbacks: 0,
                usage,
            });
        }
        if let Some(ranked) = &step.ranked {
            self.selection(step, ranked, &mut costs);
        }
        let record = step.record.as_ref().map(|record| &record.record);
        self.candidate(step, record, &costs);
        // What no event of its own carries: the target's tokens and those of rewrites.
        for (stage, usage) in std::mem::take(&mut costs.tokens) {
            if usage != Usage::default() {
                let answer = Some(serde_json::json!({ "calls": usage.calls }));
                let path = format!("{}/{stage}", at.path());
                let note = String::new();
                self.tape.push(Event::OptimizerAnswered { path, at, stage, answer, note, usage });
            }
        }
        let Some(done) = &step.record else { return };
        self.tape.wait_until(began + (done.wall_time_s * 1000.0).round() as u64);
        self.finish(step, &done.record);
    }

    fn rollouts(&mut self, at: StepRef, step: &ForeignStep, costs: &Costs) {
        self.phase(at, Phase::Rollout);
        let mut index = 0;
        for (batch, rollouts) in step.batches.iter().map(|batch| &batch.rollouts).enumerate() {
            for result in rollouts.iter().flat_map(|rollouts| &rollouts.results) {
                let prefix = if step.batches.len() > 1 { format!("b{batch}/") } else { String::new() };
                let event = Event::RolloutFinished {
                    key: imported_key(format!("{}/rollout/{prefix}{}#0", at.path(), result.item())),
                    at,
                    index,
                    result: self.tape.clean(result),
                };
                self.tape.push(event);
                index += 1;
            }
        }
        self.tape.wait(costs.seconds(Phase::Rollout));
    }

    fn analyses(&mut self, at: StepRef, step: &'a ForeignStep, costs: &mut Costs) {
        if step.batches.iter().any(|batch| !batch.analyses.is_empty()) {
            self.phase(at, Phase::Reflect);
            self.tape.wait(costs.seconds(Phase::Reflect));
        }
        let mut usage = costs.tokens("analyst");
        for (batch, found) in step.batches.iter().enumerate() {
            for analysis in &found.analyses {
                // The tokens are known of all analysts together.
                self.analysis(at, batch, analysis, false, std::mem::take(&mut usage));
            }
        }
        for (batch, deep) in
            step.batches.iter().enumerate().filter_map(|(batch, found)| Some((batch, found.deep.as_ref()?)))
        {
            self.phase(at, Phase::DeepReflect);
            self.tape.push(Event::OptimizerAnswered {
                path: format!("{}/deep/probe/b{batch}", at.path()),
                at,
                stage: "deep_probe".into(),
                answer: serde_json::to_value(&deep.probe).ok(),
                note: String::new(),
                usage: costs.tokens("deep_probe"),
            });
            if let Some(measured) = self.comparison.measured(None, None, None, deep.rollouts.as_ref()) {
                let hash = self.current_hash();
                let id = format!("s{:03}/deep/b{batch}", at.step);
                self.evaluation(&id, EvalPurpose::DeepProbe, at, &hash, &measured);
            }
            for analysis in &deep.analyses {
                self.analysis(at, batch, analysis, true, Usage::default());
            }
            self.tape.wait(costs.seconds(Phase::DeepReflect));
        }
    }

    fn analysis(&mut self, at: StepRef, batch: usize, found: &ForeignAnalysis, deep: bool, usage: Usage) {
        let stage = if deep { "deep/analyst" } else { "analyst" };
        let ForeignAnalysis { source, minibatch, .. } = *found;
        let kind = match source {
            SourceType::Failure => "fail",
            SourceType::Success => "succ",
        };
        let key = imported_key(format!("{}/{stage}/b{batch}/{kind}{minibatch:03}", at.path()));
        self.tape.push(Event::AnalysisFinished {
            key,
            at,
            source,
            minibatch,
            items: found.items.clone(),
            patch: Some(found.patch.clone()),
            failures: found.failures.clone(),
            success_patterns: found.success_patterns.clone(),
            appendix_notes: found.appendix_notes.clone(),
            deep,
            note: found.note.clone(),
            usage,
        });
    }

    fn selection(&mut self, step: &ForeignStep, ranked: &Patch, costs: &mut Costs) {
        let at = step.at;
        self.phase(at, Phase::Select);
        let record = step.record.as_ref().map(|record| &record.record);
        if let Some(decision) = record.and_then(|record| record.lr_decision.as_ref()) {
            self.tape.push(Event::OptimizerAnswered {
                path: format!("{}/lr", at.path()),
                at,
                stage: "lr_autonomous".into(),
                answer: serde_json::to_value(decision).ok(),
                note: String::new(),
                usage: costs.tokens("lr_autonomous"),
            });
        }
        self.tape.wait(costs.seconds(Phase::Select));
        self.tape.push(Event::EditsSelected {
            at,
            budget: record.and_then(|record| record.edit_budget),
            patch: ranked.clone(),
            ranking: step.ranking.clone(),
            note: String::new(),
            usage: costs.tokens("ranking"),
        });
        // Nobody reviews a foreign run: all that was selected went on.
        let preview = step.candidate.as_ref().or(self.current.as_ref()).map(|skill| skill.text.clone());
        self.tape.push(Event::ReviewOpened {
            at,
            mode: ReviewMode::Auto,
            edits: ranked.edits.clone(),
            current_hash: self.current_hash(),
            preview: preview.unwrap_or_default(),
            timeout_s: None,
            on_timeout: TimeoutPolicy::Accept,
        });
        self.tape.push(Event::ReviewClosed {
            at,
            close: ReviewClose::Auto,
            kept: ranked.edits.clone(),
            rejected: Vec::new(),
            comments: Vec::new(),
        });
    }

    /// The candidate, its measurement and the decision, as far as the step got.
    fn candidate(&mut self, step: &'a ForeignStep, record: Option<&StepRecord>, costs: &Costs) {
        let at = step.at;
        let Some(candidate) = self.candidate_text(step, record) else { return };
        self.phase(at, Phase::Update);
        self.tape.wait(costs.seconds(Phase::Update));
        self.tape.push(Event::SkillUpdated {
            at,
            candidate: candidate.clone(),
            report: step.report.clone().unwrap_or_default(),
            rewrite: step.rewrite.clone(),
            regions_restored: false,
        });
        let recorded = record.and_then(|record| record.selection_hard);
        let rows = self.selection_rows(step, recorded, &candidate);
        let measured = match record {
            Some(record) => self.comparison.measured(
                record.selection_hard,
                record.selection_soft,
                record.candidate_gate_score,
                rows,
            ),
            None => self.comparison.measured(None, None, None, rows),
        };
        let Some(measured) = measured else { return };
        self.phase(at, Phase::Evaluate);
        self.evaluation(&format!("s{:03}", at.step), EvalPurpose::Candidate, at, &candidate.hash, &measured);
        self.tape.wait(costs.seconds(Phase::Evaluate));
        if let Some(record) = record {
            self.decision(at, record, &candidate, measured);
        }
    }

    /// The text that was measured. Where its file is lost, the version that an accepting step left is it, if the hash
    /// says so.
    fn candidate_text(&mut self, step: &ForeignStep, record: Option<&StepRecord>) -> Option<Skill> {
        let hash = record.and_then(|record| record.candidate_hash.as_deref());
        let version = self.run.skills.get(&step.at.step).filter(|skill| hash == Some(skill.hash.as_str()));
        let file = format!("steps/step_{:04}/candidate_skill.md", step.at.step);
        match (&step.candidate, hash) {
            (Some(found), Some(hash)) if found.hash != hash => {
                let told = version.map_or("", |_| ", which skills/ has");
                self.tape.warn(format!("{file}: is not the text whose hash is recorded{told}"));
                Some(version.unwrap_or(found).clone())
            }
            (Some(found), _) => Some(found.clone()),
            (None, Some(_)) => {
                if version.is_none() {
                    self.tape.warn(format!("{file}: is absent; the candidate is not known"));
                }
                version.cloned()
            }
            (None, None) => None,
        }
    }

    /// The rows behind the recorded score: the step's own, or those of the same text measured earlier.
    fn selection_rows(
        &mut self,
        step: &'a ForeignStep,
        recorded: Option<f64>,
        candidate: &Skill,
    ) -> Option<&'a ForeignRollouts> {
        let Some(rows) = &step.selection else {
            return self.known.get(&candidate.hash).and_then(|known| known.rows);
        };
        match recorded {
            Some(recorded) if !rows_fit(rows, recorded) => {
                self.tape.warn(format!(
                    "steps/step_{:04}/selection_eval: its rows give {:.3}, but {recorded:.3} is recorded: they are of \
                     another text and are left out",
                    step.at.step, rows.counted_hard
                ));
                None
            }
            _ => Some(rows),
        }
    }

    fn decision(&mut self, at: StepRef, record: &StepRecord, candidate: &Skill, measured: Measured<'a>) {
        if matches!(record.action, Verdict::SkipNoPatches | Verdict::SkipNoRewrite | Verdict::SkipNoChange) {
            return;
        }
        self.phase(at, Phase::Gate);
        match (&self.current_score, &self.best_score) {
            (Some(current), Some(best)) => {
                let mut decision =
                    self.comparison.decision(record.action, &candidate.hash, &measured, current, best);
                if self.stale {
                    decision.why.push_str(
                        " The current skill was changed outside the gate after its score was measured.",
                    );
                }
                self.tape.push(Event::GateDecided { at, decision: Box::new(decision) });
            }
            _ => self.tape.warn(format!(
                "step {}: the score that the gate compared with is not known, so its decision cannot be shown",
                at.step
            )),
        }
        if record.action.accepted() {
            self.current = Some(candidate.clone());
            self.current_score = Some(measured.clone());
            self.stale = false;
        }
        if record.action.accepted() && record.best_step == at.step {
            self.best_hash.clone_from(&candidate.hash);
            self.best_score = Some(measured);
        }
    }

    /// Notes that went into the skill after the gate, and the record.
    fn finish(&mut self, step: &ForeignStep, record: &StepRecord) {
        let at = step.at;
        let version = self.run.skills.get(&at.step);
        let stage_follows = self.run.epochs.contains_key(&at.epoch)
            && !self.run.steps.iter().any(|other| other.at.epoch == at.epoch && other.at.step > at.step);
        if let (Some(version), Some(flush)) = (version, &step.appendix)
            && !stage_follows
            && self.current.as_ref() != Some(version)
        {
            self.tape.push(Event::AppendixUpdated {
                at,
                flush: AppendixFlush {
                    added: record.n_appendix_notes_added.unwrap_or_default(),
                    ..flush.clone()
                },
                skill: version.clone(),
            });
            self.current = Some(version.clone());
            self.stale = true;
        } else if let Some(version) = version.filter(|version| {
            !stage_follows && self.current.as_ref().is_none_or(|current| current.hash != version.hash)
        }) {
            self.tape.warn(format!(
                "skills/skill_v{:04}.md: is not the text that the recorded decisions leave",
                at.step
            ));
            self.current = Some(version.clone());
        }
        // The scores that later decisions are compared with are the recorded ones.
        adopt(&mut self.current_score, record.current_score);
        adopt(&mut self.best_score, record.best_score);
        self.tape.push(Event::StepFinished {
            record: Box::new(record.clone()),
            current_hash: self.current_hash(),
            best_hash: self.best_hash.clone(),
        });
    }
}

/// Takes a recorded gate score over one that it contradicts; rows of something else are no evidence for it.
fn adopt(held: &mut Option<Measured<'_>>, recorded: f64) {
    if held.as_ref().is_none_or(|held| held.score.gate != recorded) {
        let score =
            crate::domain::GateScore { hard: recorded, soft: recorded, gate: recorded, n: 0, done: 0 };
        *held = Some(Measured { score, rows: None });
    }
}
