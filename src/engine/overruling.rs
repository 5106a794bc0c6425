//! What people change between two steps: verdicts of the gate overruled, settings that results depend on. Asked for at any
//! time, done here, and done again exactly so on a resume, which goes by the recording alone.

use super::Stop;
use super::evaluation::Evaluation;
use super::run::Run;
use super::step::Findings;
use crate::domain::{
    AppendixFlush, Author, Edit, GateScore, Retuned, Ruling, Skill, StepMemory, StepRef, Verdict,
};
use crate::event::{EvalPurpose, Event, LogLevel, RunState};
use crate::optim::{reviewer_note, reviewer_refusal, with_appendix};
use crate::store::project;

/// The skills of a run at one moment.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    current: Skill,
    evaluation: Evaluation,
    origin: String,
    stale: bool,
    best: Best,
}

#[derive(Clone, Debug)]
struct Best {
    skill: Skill,
    score: GateScore,
    step: u32,
    origin: String,
}

/// A verdict of the gate and what it takes to overrule it.
pub(super) struct Decided {
    at: StepRef,
    candidate: Skill,
    evaluation: Evaluation,
    kept: Vec<Edit>,
    memory: StepMemory,
    /// Notes that the step put into the appendix whatever the verdict was.
    notes: Option<Vec<String>>,
    /// Before the verdict.
    before: Standing,
    /// The current skill that the verdict left, notes included; and whether it is the candidate's.
    after: String,
    accepted: bool,
}

/// A change that is due.
enum Due {
    Override {
        at: StepRef,
        ruling: Ruling,
        by: Author,
        reason: String,
    },
    /// `at`: the boundary, where it is recorded.
    Retune {
        at: Option<StepRef>,
        changes: Vec<Retuned>,
    },
}

impl Due {
    fn recorded(event: &Event) -> Option<Self> {
        match event {
            Event::OverrideApplied { at, ruling, by, reason, .. } => {
                Some(Self::Override { at: *at, ruling: *ruling, by: by.clone(), reason: reason.clone() })
            }
            Event::OverrideLapsed { at, ruling, by, .. } => {
                Some(Self::Override { at: *at, ruling: *ruling, by: by.clone(), reason: String::new() })
            }
            Event::RetuneApplied { at, changes } => {
                Some(Self::Retune { at: Some(*at), changes: changes.clone() })
            }
            _ => None,
        }
    }

    fn asked(state: &RunState) -> Option<Self> {
        if let Some((at, word)) = state.pending_override() {
            let (ruling, by, reason) = (word.ruling, word.by.clone(), word.reason.clone());
            return Some(Self::Override { at, ruling, by, reason });
        }
        let changes = state.waiting_settings();
        (!changes.is_empty()).then_some(Self::Retune { at: None, changes })
    }
}

impl Run {
    /// Does what people asked for since the last boundary. A paused run waits here, open for more.
    pub(super) async fn boundary(&mut self, at: StepRef) -> Result<(), Stop> {
        let mut changed = false;
        loop {
            let due = match self.shop.journal.replaying() {
                true => self.shop.journal.peek(Due::recorded),
                false => {
                    self.shop.steering.may_dispatch().await.map_err(|_| Stop::Cancelled)?;
                    self.shop.journal.with_state(Due::asked)
                }
            };
            match due {
                None => break,
                Some(Due::Override { at, ruling, by, reason }) => {
                    self.overrule(at, ruling, by, reason).await?;
                }
                Some(Due::Retune { at: recorded, changes }) => {
                    // Of two boundaries with nothing in between, the recording tells which it was.
                    let at = recorded.unwrap_or(at);
                    self.shop.journal.emit(Event::RetuneApplied { at, changes: changes.clone() })?;
                    // The file must never be ahead of the journal.
                    self.shop.journal.settled().await?;
                    self.shop.settings.apply(&changes).map_err(Stop::Failed)?;
                }
            }
            changed = true;
        }
        if changed {
            self.write_artifacts(project).await?;
        }
        Ok(())
    }

    /// The boundary behind the last step, before the final measurements: what is asked for later is refused.
    pub(super) async fn last_boundary(&mut self, at: StepRef) -> Result<(), Stop> {
        loop {
            self.boundary(at).await?;
            let replaying = self.shop.journal.replaying();
            let nothing_due = |state: &RunState| replaying || Due::asked(state).is_none();
            if self.shop.steering.pass_last_boundary(nothing_due) {
                return Ok(());
            }
        }
    }

    /// Says of what still waits at the end that it comes to nothing.
    pub(super) fn lapse(&self) -> Result<(), Stop> {
        let journal = &self.shop.journal;
        let recorded = |event: &Event| match event {
            Event::OverrideLapsed { at, ruling, by, .. } => Some((*at, *ruling, by.clone())),
            _ => None,
        };
        let asked =
            |state: &RunState| state.pending_override().map(|(at, word)| (at, word.ruling, word.by.clone()));
        loop {
            let due = if journal.replaying() { journal.peek(recorded) } else { journal.with_state(asked) };
            let Some((at, ruling, by)) = due else { break };
            let why = "all steps were done before it could take effect".into();
            journal.emit(Event::OverrideLapsed { at, ruling, by, why })?;
        }
        for Retuned { key, new, .. } in journal.with_state(RunState::waiting_settings) {
            let message = format!("{key} = {new} was asked for after the last step and comes to nothing");
            let code = "retune_lapsed".into();
            journal.outside(|_| Ok(Event::Alert { level: LogLevel::Warn, code, message }))?;
        }
        Ok(())
    }

    pub(super) fn standing(&self) -> Standing {
        Standing {
            current: self.current.clone(),
            evaluation: self.current_evaluation.clone(),
            origin: self.current_origin.clone(),
            stale: self.stale,
            best: self.best_standing(),
        }
    }

    fn best_standing(&self) -> Best {
        Best {
            skill: self.best.clone(),
            score: self.best_score.clone(),
            step: self.best_step,
            origin: self.best_origin.clone(),
        }
    }

    /// Keeps what an override of this step needs. Two verdicts are enough: an override is due at the next boundary.
    pub(super) fn remember_decision(&mut self, at: StepRef, found: &Findings, memory: &StepMemory) {
        let (Some(decision), Some((before, evaluation)), Some(candidate)) =
            (&found.decision, &found.overrulable, &found.candidate)
        else {
            return;
        };
        let noted = |flush: &AppendixFlush| {
            (flush.added > 0)
                .then(|| flush.consolidated.clone().unwrap_or_else(|| flush.appendix_after.clone()))
        };
        if self.decided.len() > 1 {
            self.decided.remove(0);
        }
        self.decided.push(Decided {
            at,
            candidate: candidate.clone(),
            evaluation: evaluation.clone(),
            kept: found.reviewed.kept.clone(),
            memory: memory.clone(),
            notes: found.appendix.as_ref().and_then(noted),
            before: before.clone(),
            after: self.current.hash.clone(),
            accepted: decision.verdict.accepted(),
        });
    }

    async fn overrule(
        &mut self,
        at: StepRef,
        ruling: Ruling,
        by: Author,
        reason: String,
    ) -> Result<(), Stop> {
        let place = self.decided.iter().position(|decided| decided.at == at);
        let place = place.filter(|place| self.decided[*place].after == self.current.hash);
        let Some(place) = place else {
            let why = format!("the current skill has since been changed ({})", self.current_origin);
            return Ok(self.shop.journal.emit(Event::OverrideLapsed { at, ruling, by, why })?);
        };
        let mut decided = self.decided.remove(place);
        let skill = self.take_ruling(&decided, ruling);
        decided.after.clone_from(&self.current.hash);
        decided.accepted = ruling != Ruling::Reject;
        self.retell(&decided, ruling, &by, &reason);
        let crowned = ruling == Ruling::AcceptAsBest && !decided.evaluation.complete();
        self.decided.insert(place, decided);
        self.shop.journal.emit(Event::OverrideApplied {
            at,
            ruling,
            by,
            reason,
            current_hash: self.current.hash.clone(),
            best_hash: self.best.hash.clone(),
            current_score: (!self.stale).then_some(self.current_evaluation.score.gate),
            best_score: self.best_score.gate,
            best_step: self.best_step,
            current_origin: self.current_origin.clone(),
            best_origin: self.best_origin.clone(),
            skill,
        })?;
        if crowned { self.crown(at).await } else { Ok(()) }
    }

    /// The skills as they would be had the gate ruled so. Returns the current skill where it is a new text.
    fn take_ruling(&mut self, decided: &Decided, ruling: Ruling) -> Option<Skill> {
        let Decided { before, candidate, evaluation, .. } = decided;
        let made_best =
            self.best.hash == candidate.hash || (decided.accepted && self.best.hash == decided.after);
        let best = if made_best { before.best.clone() } else { self.best_standing() };
        let complete = evaluation.complete();
        let origin = format!("step_{:04}", decided.at.step);
        let own_best = match ruling {
            Ruling::Reject => false,
            Ruling::Accept => evaluation.score.beats(best.score.gate),
            Ruling::AcceptAsBest => complete,
        };
        let best = if own_best {
            let (score, origin) = (evaluation.score.clone(), origin.clone());
            Best { skill: candidate.clone(), score, step: decided.at.step, origin }
        } else {
            best
        };
        (self.best, self.best_score) = (best.skill, best.score);
        (self.best_step, self.best_origin) = (best.step, best.origin);
        if ruling == Ruling::Reject {
            self.current = before.current.clone();
            self.current_evaluation = before.evaluation.clone();
            (self.current_origin, self.stale) = (before.origin.clone(), before.stale);
        } else {
            self.current = candidate.clone();
            (self.current_origin, self.stale) = (origin, !complete);
            if complete {
                self.current_evaluation = evaluation.clone();
            }
        }
        let notes = decided.notes.as_ref()?;
        let noted = Skill::new(with_appendix(&self.current.text, notes));
        let changed = noted.hash != self.current.hash;
        self.replace_ungated(noted.clone());
        changed.then_some(noted)
    }

    /// Measures a candidate that a person made the best before every item of it was measured.
    async fn crown(&mut self, at: StepRef) -> Result<(), Stop> {
        let id = format!("s{:03}/override", at.step);
        let current = self.current.clone();
        let evaluation = self.measure(at, EvalPurpose::Rescore, id.clone(), id, &current, None).await?;
        if evaluation.complete() {
            self.best = current;
            self.best_score = evaluation.score.clone();
            self.best_step = at.step;
            self.best_origin.clone_from(&self.current_origin);
            self.current_evaluation = evaluation;
            self.stale = false;
        } else if !self.shop.journal.replaying() {
            let message = format!(
                "the candidate of step {} is the current skill, but its measurement lacks items, so the best stays",
                at.step
            );
            let code = "override_unmeasured".into();
            self.shop.journal.outside(|_| Ok(Event::Alert { level: LogLevel::Warn, code, message }))?;
        }
        Ok(())
    }

    /// Later prompts of this epoch are told the verdict that stands.
    fn retell(&mut self, decided: &Decided, ruling: Ruling, by: &Author, reason: &str) {
        let mut told = decided.memory.clone();
        let verdict = match ruling {
            Ruling::Accept => Verdict::Accept,
            Ruling::AcceptAsBest => Verdict::AcceptNewBest,
            Ruling::Reject => Verdict::Reject,
        };
        told.action = verdict.name().into();
        (told.scores, told.at_most) = (None, false);
        told.failed_attempts.retain(|attempt| attempt.why != "gate");
        if ruling == Ruling::Reject {
            told.failed_attempts.extend(decided.kept.iter().map(|edit| reviewer_refusal(edit, reason)));
        }
        let words = format!("{} overruled the gate: {}, because {reason}", by.0, ruling.name());
        told.reviewer_notes.push(reviewer_note(None, &words));
        for memory in self.memory.iter_mut().filter(|memory| memory.step == decided.at.step) {
            memory.clone_from(&told);
        }
        let (current_score, best_score) = (self.current_evaluation.score.gate, self.best_score.gate);
        for step in self.epoch_steps.iter_mut().filter(|step| step.memory.step == decided.at.step) {
            step.action = verdict;
            step.memory.clone_from(&told);
            (step.current_score, step.best_score) = (current_score, best_score);
        }
    }
}
