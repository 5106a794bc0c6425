//! A run at a glance: its state without the bulk that only looking closer needs (rollouts of finished steps and
//! evaluations, analyses of older steps, texts of skills that no recent step names). Small whatever the length of the run,
//! so that a screen can be drawn from it before the journal is read.

use std::collections::HashSet;

use super::{EvalState, Overruling, OverrulingOutcome, RunState, SkillVersion, StepState};
use crate::domain::Skill;

/// Newest steps that keep all but their rollouts.
const DETAILED: usize = 20;

impl RunState {
    /// This state without its bulk, which is not copied. Folding later records on it is sound; a second glance at the
    /// result is a glance at the whole fold.
    pub fn glance(&self) -> Self {
        let older = self.older();
        let named = self.named_skills();
        Self {
            seq: self.seq,
            updated_at: self.updated_at,
            progress_at: self.progress_at,
            rev: self.rev,
            info: self.info.clone(),
            status: self.status.clone(),
            at: self.at,
            phase: self.phase,
            phase_started_at: self.phase_started_at,
            steps: self.steps.iter().enumerate().map(|(index, step)| outline(step, index >= older)).collect(),
            stages: self.stages.clone(),
            evals: self.evals.iter().map(|(id, eval)| (id.clone(), scored(eval))).collect(),
            eval_order: self.eval_order.clone(),
            skills: self
                .skills
                .iter()
                .map(|(hash, version)| {
                    let kept = named.contains(hash.as_str());
                    (hash.clone(), if kept { version.clone() } else { version.without_text() })
                })
                .collect(),
            initial_hash: self.initial_hash.clone(),
            current_hash: self.current_hash.clone(),
            best_hash: self.best_hash.clone(),
            current_score: self.current_score,
            current_score_stale: self.current_score_stale,
            best_score: self.best_score,
            best_step: self.best_step,
            baseline_score: self.baseline_score,
            usage: self.usage.clone(),
            unanswered: self.unanswered.clone(),
            final_selection: self.final_selection.clone(),
            test: self.test.clone(),
            logs: self.logs.clone(),
            host: self.host.clone(),
            config: self.config.clone(),
            retunes: self.retunes.clone(),
            settings: self.settings.clone(),
            cancelled_calls: self.cancelled_calls.clone(),
        }
    }

    /// Becomes a glance at itself, in place.
    pub fn shed(&mut self) {
        let older = self.older();
        let named: HashSet<String> = self.named_skills().into_iter().map(str::to_owned).collect();
        for (index, step) in self.steps.iter_mut().enumerate().filter(|(_, step)| step.finished_at.is_some())
        {
            (step.rollouts, step.batch_starts) = Default::default();
            if index < older {
                (step.analyses, step.probes) = Default::default();
                (step.merged, step.ranked, step.ranking, step.candidate) = Default::default();
            }
        }
        for eval in self.evals.values_mut().filter(|eval| eval.score.is_some()) {
            eval.results = Vec::new();
        }
        for (_, version) in self.skills.iter_mut().filter(|(hash, _)| !named.contains(*hash)) {
            version.skill.text = String::new();
        }
    }

    fn older(&self) -> usize {
        self.steps.len().saturating_sub(DETAILED)
    }

    /// Skills whose texts a glance keeps: all that its newest steps name, and that an override could bring back.
    fn named_skills(&self) -> HashSet<&str> {
        let mut named: HashSet<&str> = HashSet::new();
        named.extend([self.initial_hash.as_str(), &self.current_hash, &self.best_hash]);
        let older = self.older();
        let last_verdict = self.steps.iter().rposition(|step| step.gate.is_some());
        for (index, step) in self.steps.iter().enumerate() {
            let pending = step.overruling.as_ref().is_some_and(Overruling::is_pending);
            if index >= older || Some(index) == last_verdict || pending {
                named_by(step, &mut named);
            }
        }
        let first = self.steps.get(older).map_or(0, |step| step.at.step);
        named.extend(self.stages.iter().filter(|one| one.at.step >= first).map(|one| &*one.current_hash));
        let recent = self.skills.iter().filter(|(_, version)| version.step >= first);
        named.extend(recent.map(|(hash, _)| hash.as_str()));
        named
    }
}

fn named_by<'a>(step: &'a StepState, named: &mut HashSet<&'a str>) {
    named.insert(&step.current_hash);
    named.extend(step.candidate.as_ref().map(|candidate| candidate.hash.as_str()));
    named.extend(step.gate.as_ref().map(|decision| decision.candidate_hash.as_str()));
    named.extend(step.review.as_ref().map(|review| review.current_hash.as_str()));
    for (current, best) in step.before.iter() {
        named.extend([current.as_str(), best]);
    }
    if let Some(OverrulingOutcome::Applied { current_hash, best_hash, .. }) =
        step.overruling.as_ref().map(|word| &word.outcome)
    {
        named.extend([current_hash.as_str(), best_hash]);
    }
}

/// A finished step without its rollouts; an older one also without what was thought about them.
fn outline(step: &StepState, detailed: bool) -> StepState {
    if step.finished_at.is_none() {
        return step.clone();
    }
    let mut outline = StepState {
        at: step.at,
        phase: step.phase,
        rollouts: Vec::new(),
        batch_starts: Vec::new(),
        analyses: Vec::new(),
        merged: None,
        lr_decision: step.lr_decision.clone(),
        ranked: None,
        ranking: None,
        budget: step.budget,
        review: step.review.clone(),
        candidate: None,
        report: step.report.clone(),
        rewrite: step.rewrite.clone(),
        regions_restored: step.regions_restored,
        probes: Vec::new(),
        appendix: step.appendix.clone(),
        eval: step.eval.clone(),
        gate: step.gate.clone(),
        before: step.before.clone(),
        overruling: step.overruling.clone(),
        record: step.record.clone(),
        current_hash: step.current_hash.clone(),
        started_at: step.started_at,
        finished_at: step.finished_at,
        phase_starts: step.phase_starts.clone(),
    };
    if detailed {
        outline.analyses.clone_from(&step.analyses);
        outline.probes.clone_from(&step.probes);
        outline.merged.clone_from(&step.merged);
        outline.ranked.clone_from(&step.ranked);
        outline.ranking.clone_from(&step.ranking);
        outline.candidate.clone_from(&step.candidate);
    }
    outline
}

/// An evaluation, without its results once it has a score.
fn scored(eval: &EvalState) -> EvalState {
    EvalState {
        purpose: eval.purpose,
        at: eval.at,
        skill_hash: eval.skill_hash.clone(),
        n: eval.n,
        results: if eval.score.is_some() { Vec::new() } else { eval.results.clone() },
        score: eval.score.clone(),
        curtailed: eval.curtailed,
        missing: eval.missing,
    }
}

impl SkillVersion {
    fn without_text(&self) -> Self {
        let skill = Skill { text: String::new(), hash: self.skill.hash.clone() };
        Self { skill, step: self.step, accepted: self.accepted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, Ruling, StepRef};
    use crate::event::{Event, Record, decode_line};

    /// A run of two steps with an evaluation each.
    fn records() -> Vec<Record> {
        let text = std::fs::read_to_string("assets/demo-run/events.jsonl").unwrap();
        text.lines().map(|line| decode_line(line.as_bytes()).unwrap()).collect()
    }

    /// The demo's beginning, then many steps with a text each, of which the third and the last but two become the best; the
    /// last verdict is old and is overruled in the end, which brings the third step's text back.
    fn long_run() -> Vec<Record> {
        let demo = records();
        let model = |wanted: fn(&Event) -> bool| {
            demo.iter().map(|record| &record.event).find(|event| wanted(event)).unwrap().clone()
        };
        let begun = model(|event| matches!(event, Event::RunStarted { .. }));
        let mut events = vec![begun];
        let (mut current, mut best) = (RunState::fold(&demo[..1]).initial_hash, String::new());
        for number in 1..=60 {
            let at = StepRef { epoch: 1, step: number, step_in_epoch: number };
            let text = Skill::new(format!("text {number}"));
            let accepted = [3, 30].contains(&number);
            if number <= 30 {
                let mut updated = model(|event| matches!(event, Event::SkillUpdated { .. }));
                if let Event::SkillUpdated { at: when, candidate, .. } = &mut updated {
                    (*when, *candidate) = (at, text.clone());
                }
                let mut decided = model(|event| matches!(event, Event::GateDecided { .. }));
                if let Event::GateDecided { at: when, decision } = &mut decided {
                    *when = at;
                    decision.candidate_hash.clone_from(&text.hash);
                }
                events.extend([updated, decided]);
            }
            if accepted {
                (current, best) = (text.hash.clone(), text.hash);
            }
            let mut finished = model(|event| matches!(event, Event::StepFinished { .. }));
            if let Event::StepFinished { record, current_hash, best_hash } = &mut finished {
                record.at = at;
                (*current_hash, *best_hash) = (current.clone(), best.clone());
            }
            events.push(finished);
        }
        let (at, by) = (StepRef { epoch: 1, step: 30, step_in_epoch: 30 }, Author("ann".into()));
        let third = Skill::new("text 3").hash;
        let reason = String::from("no");
        events.push(Event::OverrideRequested {
            at,
            ruling: Ruling::Reject,
            reason: reason.clone(),
            by: by.clone(),
            rev: 1,
        });
        events.push(Event::OverrideApplied {
            at,
            ruling: Ruling::Reject,
            by,
            reason,
            current_hash: third.clone(),
            best_hash: third,
            current_score: None,
            best_score: 0.5,
            best_step: 3,
            current_origin: String::new(),
            best_origin: String::new(),
            skill: None,
        });
        events.into_iter().zip(1..).map(|(event, seq)| Record { seq, at: seq, event }).collect()
    }

    #[test]
    fn a_glance_and_the_rest_of_the_journal_are_a_glance_at_the_whole() {
        for records in [records(), long_run()] {
            let state = RunState::fold(&records);
            let whole = state.glance();
            assert!(whole.steps.iter().all(|step| step.finished_at.is_none() || step.rollouts.is_empty()));
            let mut shed = state;
            shed.shed();
            assert_eq!(shed, whole);
            for cut in (0..records.len()).step_by((records.len() / 60).max(1)) {
                let mut state = RunState::fold(&records[..cut]).glance();
                for record in &records[cut..] {
                    state.apply(record);
                }
                assert_eq!(state.glance(), whole, "glance after record {cut}");
            }
        }
    }

    #[test]
    fn only_texts_that_something_recent_names_are_kept() {
        let records = long_run();
        let whole = RunState::fold(&records);
        let glance = whole.glance();
        assert_eq!(glance.skills.len(), whole.skills.len());
        let kept = |text: &str| glance.skill_text(&Skill::new(text).hash);
        assert_eq!((kept("text 3"), kept("text 30")), (Some("text 3"), Some("text 30")));
        assert_eq!((kept("text 4"), kept("text 29")), (None, None));
        assert_eq!(glance.skill_text(&glance.best_hash), Some("text 3"));
    }
}
