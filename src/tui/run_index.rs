//! What frames ask of the whole run: its stages in order, evaluations by owner and by text, decisions and counts. Kept up
//! as the run grows, so that a frame costs what it shows. Draws nothing, folds nothing.

use std::collections::HashMap;

use super::clock::working_time;
use super::stages::{Stage, short_label};
use crate::domain::{Decision, ReviewClose, StageKind, StepRef};
use crate::event::{EvalPurpose, Event, RunState, StepState};

#[derive(Clone, Debug, Default)]
pub struct RunIndex {
    evals_seen: usize,
    steps_seen: usize,
    stages_seen: usize,
    /// The last step seen: tells whether it is still the same run.
    last: Option<StepRef>,
    /// Steps and finished stages, oldest first.
    order: Vec<Stage>,
    places: HashMap<Stage, usize>,
    /// Places of finished stages in [`RunState::stages`].
    finished: HashMap<Stage, usize>,
    kinds: Vec<StageKind>,
    /// Places in [`RunState::eval_order`], ascending.
    evals: HashMap<Stage, Vec<usize>>,
    /// The same of what was measured on the selection split, by the hash of the text.
    measured: HashMap<String, Vec<usize>>,
    settled: Settled,
}

/// What steps that no longer change came to. The last step may still.
#[derive(Clone, Debug, Default)]
struct Settled {
    steps: usize,
    stages: usize,
    tally: StepTally,
    /// Oldest first.
    decided: Vec<Decided>,
    /// Decisions of the gate among them.
    decisions: usize,
    last_gated: Option<usize>,
    label: usize,
}

/// A decision of the gate or of a person over it, by its place in [`RunState::steps`] or [`RunState::stages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    Step(usize),
    Overruled(usize),
    Stage(usize),
}

/// Counts over steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTally {
    pub finished: usize,
    pub accepted: usize,
    /// With a decision of the gate.
    pub gated: usize,
    pub overruled: usize,
    /// Steps with a time of their end, and the milliseconds worked in them.
    pub timed: u64,
    pub worked_ms: u64,
    pub reviews: usize,
    /// How reviews ended, or that they did not.
    pub submitted: usize,
    pub timed_out: usize,
    pub automatic: usize,
    pub open: usize,
    /// Edits that the steps merged, as the curves count them, those of them that came to a review, and what reviews
    /// made of those.
    pub proposed: usize,
    pub reviewed: usize,
    pub kept: usize,
    pub amended: usize,
    pub rejected: usize,
}

impl StepTally {
    fn add(&mut self, step: &StepState) {
        self.gated += usize::from(step.gate.is_some());
        self.overruled += usize::from(step.overruling.is_some());
        if let Some(record) = &step.record {
            self.finished += 1;
            self.accepted += usize::from(record.action.accepted());
            self.proposed += record.n_edits_merged;
        }
        if let Some(finished) = step.finished_at {
            self.timed += 1;
            self.worked_ms += working_time(step, finished);
        }
        let Some(review) = &step.review else { return };
        self.reviews += 1;
        self.reviewed += review.edits.len();
        let decided =
            |wanted: fn(&Decision) -> bool| review.edits.iter().filter(|slot| wanted(&slot.decision)).count();
        let amended = decided(|decision| matches!(decision, Decision::Amend { .. }));
        self.amended += amended;
        if step.record.is_none() {
            self.proposed += step.ranked.as_ref().map_or(review.edits.len(), |patch| patch.edits.len());
        }
        let way = match &review.closed {
            Some(ReviewClose::Submitted { .. }) => &mut self.submitted,
            Some(ReviewClose::TimedOut { .. }) => &mut self.timed_out,
            Some(ReviewClose::Auto) => &mut self.automatic,
            None => &mut self.open,
        };
        *way += 1;
        if review.closed.is_some() {
            self.kept += review.kept.len();
            self.rejected += review.rejected.len();
        } else {
            self.kept += amended + decided(|decision| matches!(decision, Decision::Accept));
            self.rejected += decided(|decision| matches!(decision, Decision::Reject { .. }));
        }
    }
}

impl Settled {
    /// Takes steps before `steps` with the stages after each.
    fn take(&mut self, state: &RunState, steps: usize) {
        for place in self.steps..steps {
            let step = &state.steps[place];
            self.tally.add(step);
            if step.overruling.is_some() && step.gate.is_some() {
                self.decided.push(Decided::Overruled(place));
            }
            if step.gate.is_some() {
                self.decided.push(Decided::Step(place));
                self.decisions += 1;
                self.last_gated = Some(place);
            }
            self.take_stages(state, step.at.step);
        }
        self.steps = self.steps.max(steps);
    }

    /// Takes the stages up to a step's.
    fn take_stages(&mut self, state: &RunState, step: u32) {
        while let Some(done) = state.stages.get(self.stages).filter(|done| done.at.step <= step) {
            if done.stage.candidate().1.is_some() {
                self.decisions += 1;
                self.decided.push(Decided::Stage(self.stages));
                self.label = self.label.max(short_label(done).len());
            }
            self.stages += 1;
        }
    }

    /// What came since, made anew: little.
    fn tail(&self, state: &RunState) -> Self {
        let mut tail = Self { steps: self.steps, stages: self.stages, ..Self::default() };
        tail.take(state, state.steps.len());
        tail.take_stages(state, u32::MAX);
        tail
    }
}

impl RunIndex {
    /// Whether [`refresh`](Self::refresh) would change anything.
    pub fn is_fresh(&self, state: &RunState) -> bool {
        self.steps_seen == state.steps.len()
            && self.stages_seen == state.stages.len()
            && self.evals_seen == state.eval_order.len()
            && self.settled.steps == state.steps.len().saturating_sub(1)
            && self.last == state.steps.last().map(|step| step.at)
    }

    pub fn refresh(&mut self, state: &RunState) {
        let last =
            self.steps_seen.checked_sub(1).and_then(|place| state.steps.get(place)).map(|step| step.at);
        if last != self.last
            || self.stages_seen > state.stages.len()
            || self.evals_seen > state.eval_order.len()
        {
            *self = Self::default();
        }
        for step in &state.steps[self.steps_seen..] {
            self.list_stages(state, step.at.step.saturating_sub(1));
            self.list(Stage::Step(step.at.step));
        }
        self.list_stages(state, u32::MAX);
        self.steps_seen = state.steps.len();
        self.last = state.steps.last().map(|step| step.at);
        self.settled.take(state, state.steps.len().saturating_sub(1));
        for place in self.evals_seen..state.eval_order.len() {
            let Some((id, eval)) = state.evals.get_key_value(&state.eval_order[place]) else { continue };
            if let Some(stage) = Stage::of_eval(id, eval) {
                self.evals.entry(stage).or_default().push(place);
            }
            if on_selection(eval.purpose) {
                self.measured.entry(eval.skill_hash.clone()).or_default().push(place);
            }
        }
        self.evals_seen = state.eval_order.len();
    }

    fn list_stages(&mut self, state: &RunState, step: u32) {
        while let Some(done) = state.stages.get(self.stages_seen).filter(|done| done.at.step <= step) {
            let kind = done.stage.kind();
            let stage = Stage::Between { epoch: done.at.epoch, kind };
            self.list(stage);
            self.finished.insert(stage, self.stages_seen);
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
            self.stages_seen += 1;
        }
    }

    fn list(&mut self, stage: Stage) {
        self.places.insert(stage, self.order.len());
        self.order.push(stage);
    }

    /// After an event: people overrule steps that were over.
    pub fn hear(&mut self, event: &Event) {
        let overruled = matches!(
            event,
            Event::OverrideRequested { .. } | Event::OverrideApplied { .. } | Event::OverrideLapsed { .. }
        );
        if overruled {
            self.settled = Settled::default();
        }
    }

    /// Steps and finished stages, oldest first.
    pub fn order(&self) -> &[Stage] {
        &self.order
    }

    /// Place in [`order`](Self::order).
    pub fn place(&self, stage: Stage) -> Option<usize> {
        self.places.get(&stage).copied()
    }

    /// Place of a finished stage in [`RunState::stages`].
    pub fn finished(&self, stage: Stage) -> Option<usize> {
        self.finished.get(&stage).copied()
    }

    /// Whether a stage of this kind has finished in any epoch.
    pub fn knows(&self, kind: StageKind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Places of a stage's evaluations, as they began.
    pub fn evals_of(&self, stage: Stage) -> &[usize] {
        self.evals.get(&stage).map_or(&[], Vec::as_slice)
    }

    /// Places of the measurements of a text on the selection split, as they began.
    pub fn measurements_of(&self, hash: &str) -> &[usize] {
        self.measured.get(hash).map_or(&[], Vec::as_slice)
    }

    pub fn tally(&self, state: &RunState) -> StepTally {
        let mut tally = self.settled.tally;
        state.steps[self.settled.steps.min(state.steps.len())..].iter().for_each(|step| tally.add(step));
        tally
    }

    /// Place of the last step that the gate decided.
    pub fn last_gated(&self, state: &RunState) -> Option<usize> {
        self.settled.tail(state).last_gated.or(self.settled.last_gated)
    }

    /// All decisions, newest first.
    pub fn decisions(&self, state: &RunState) -> Decisions {
        let tail = self.settled.tail(state);
        let label = self.settled.label.max(tail.label);
        let count = self.settled.decisions + tail.decisions;
        Decisions { newest: tail.decided, settled: self.settled.decided.len(), count, label }
    }

    /// The place among the settled ones is counted from the newest.
    pub fn settled_decision(&self, place: usize) -> Option<Decided> {
        self.settled.decided.iter().rev().nth(place).copied()
    }
}

/// How many decisions there are, and the newest few.
#[derive(Clone, Debug)]
pub struct Decisions {
    /// Oldest first.
    pub newest: Vec<Decided>,
    pub settled: usize,
    /// Of the gate alone.
    pub count: usize,
    /// Columns of the widest name of a stage.
    pub label: usize,
}

pub fn on_selection(purpose: EvalPurpose) -> bool {
    let tests = matches!(purpose, EvalPurpose::TestBase | EvalPurpose::TestBest | EvalPurpose::TestFinal);
    !tests && !purpose.on_training_items()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Record, decode_line};

    fn records() -> Vec<Record> {
        let text = std::fs::read_to_string("assets/demo-run/events.jsonl").unwrap();
        text.lines().map(|line| decode_line(line.as_bytes()).unwrap()).collect()
    }

    fn made_anew(state: &RunState) -> RunIndex {
        let mut index = RunIndex::default();
        index.refresh(state);
        index
    }

    fn all_decisions(index: &RunIndex, state: &RunState) -> Vec<Decided> {
        let decisions = index.decisions(state);
        let newest = decisions.newest.iter().rev().copied();
        newest.chain((0..).map_while(|place| index.settled_decision(place))).collect()
    }

    #[test]
    fn an_index_kept_up_equals_one_made_anew() {
        let (mut state, mut kept) = (RunState::default(), RunIndex::default());
        for (place, record) in records().iter().enumerate() {
            state.apply(record);
            kept.hear(&record.event);
            // Frames come between events as they like.
            if place % 7 > 2 && !kept.is_fresh(&state) {
                kept.refresh(&state);
            }
            if place % 50 > 0 {
                continue;
            }
            kept.refresh(&state);
            assert!(kept.is_fresh(&state));
            let anew = made_anew(&state);
            assert_eq!(kept.tally(&state), anew.tally(&state), "after record {place}");
            assert_eq!((&kept.order, &kept.places), (&anew.order, &anew.places));
            assert_eq!((&kept.evals, &kept.measured), (&anew.evals, &anew.measured));
            assert_eq!(all_decisions(&kept, &state), all_decisions(&anew, &state));
            let mut counted = StepTally::default();
            state.steps.iter().for_each(|step| counted.add(step));
            assert_eq!(kept.tally(&state), counted);
            let gated = state.steps.iter().rposition(|step| step.gate.is_some());
            assert_eq!(kept.last_gated(&state), gated);
        }
        assert!(state.steps.len() > 1 && kept.tally(&state).gated > 1, "the recording has several steps");
    }

    #[test]
    fn another_state_and_a_verdict_overruled_later_are_noticed() {
        let records = records();
        let mut state = RunState::fold(&records);
        let mut index = made_anew(&state);
        assert_eq!(index.tally(&state).overruled, 0);
        let first = state.steps[0].at;
        let event = Event::OverrideRequested {
            at: first,
            ruling: crate::domain::Ruling::Accept,
            reason: "seen worse".into(),
            by: crate::domain::Author("ann".into()),
            rev: 9,
        };
        let record = Record { seq: state.seq + 1, at: 0, event };
        state.apply(&record);
        index.hear(&record.event);
        assert!(!index.is_fresh(&state));
        index.refresh(&state);
        assert_eq!(index.tally(&state).overruled, 1);
        assert!(all_decisions(&index, &state).contains(&Decided::Overruled(0)));
        let earlier = RunState::fold(&records[..records.len() / 2]);
        index.refresh(&earlier);
        assert_eq!(index.tally(&earlier), made_anew(&earlier).tally(&earlier));
    }
}
