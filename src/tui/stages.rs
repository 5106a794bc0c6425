//! What the rows of the Steps pane stand for, in the order of the run, and what belongs to each. Owns the selection of
//! one; draws nothing.

use std::cell::Ref;

use super::app::App;
use super::run_index::{RunIndex, StepTally};
use crate::domain::{EpochStage, Phase, StageKind};
use crate::event::{EvalOwner, EvalPurpose, EvalState, RunState, StageState, StepState};

/// What a row of the Steps pane stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    Baseline,
    Step(u32),
    /// A stage after the steps of an epoch, finished or under way.
    Between {
        epoch: u32,
        kind: StageKind,
    },
    /// The last skill measured once more before the test.
    FinalSelection,
    Test,
}

impl Stage {
    /// Whose an evaluation is.
    pub fn of_eval(id: &str, eval: &EvalState) -> Option<Self> {
        match eval.owner(id) {
            EvalOwner::Step(step) => Some(Stage::Step(step)),
            EvalOwner::Stage(epoch, kind) => Some(Stage::Between { epoch, kind }),
            EvalOwner::Run => match eval.purpose {
                EvalPurpose::Baseline | EvalPurpose::Rescore | EvalPurpose::RescoreBest => {
                    Some(Stage::Baseline)
                }
                EvalPurpose::FinalSelection => Some(Stage::FinalSelection),
                EvalPurpose::TestBase | EvalPurpose::TestBest | EvalPurpose::TestFinal => Some(Stage::Test),
                EvalPurpose::Candidate
                | EvalPurpose::LongitudinalPrev
                | EvalPurpose::LongitudinalCurr
                | EvalPurpose::DeepProbe
                | EvalPurpose::SlowCandidate
                | EvalPurpose::MetaReflectCandidate => None,
            },
        }
    }
}

/// Place of a step by its number: in order, but for what a foreign journal may hold.
pub fn step_place(state: &RunState, number: u32) -> Option<usize> {
    let found = state.steps.binary_search_by_key(&number, |step| step.at.step).ok();
    found.or_else(|| state.steps.iter().position(|step| step.at.step == number))
}

/// `e2 slow`.
pub fn short_label(done: &StageState) -> String {
    let name = done.stage.name().split([' ', '-']).next().unwrap_or_default();
    format!("e{} {name}", done.at.epoch)
}

/// The stage between epochs that a phase is.
pub fn between(phase: Phase) -> Option<StageKind> {
    StageKind::ALL.into_iter().find(|kind| kind.phase() == phase)
}

/// The rows of the Steps pane, newest first.
pub struct Stages<'a> {
    index: Ref<'a, RunIndex>,
    /// Newer than what is finished, oldest first.
    ahead: Vec<Stage>,
    baseline: bool,
}

impl Stages<'_> {
    pub fn len(&self) -> usize {
        self.ahead.len() + self.index.order().len() + usize::from(self.baseline)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, place: usize) -> Option<Stage> {
        let at = self.len().checked_sub(place + 1)?;
        match at.checked_sub(usize::from(self.baseline)) {
            None => Some(Stage::Baseline),
            Some(at) => {
                let order = self.index.order();
                order.get(at).or_else(|| self.ahead.get(at - order.len())).copied()
            }
        }
    }

    pub fn place(&self, stage: Stage) -> Option<usize> {
        let last = self.len().checked_sub(1)?;
        if stage == Stage::Baseline {
            return self.baseline.then_some(last);
        }
        let ahead =
            || self.ahead.iter().position(|one| *one == stage).map(|at| at + self.index.order().len());
        let at = self.index.place(stage).or_else(ahead)? + usize::from(self.baseline);
        Some(last - at)
    }

    pub fn iter(&self) -> impl Iterator<Item = Stage> {
        (0..self.len()).filter_map(|place| self.get(place))
    }
}

impl App {
    /// What is known of the whole run, kept up with the state.
    pub(super) fn run_index(&self) -> Ref<'_, RunIndex> {
        let stale = !self.index.borrow().is_fresh(&self.state);
        if stale && let Ok(mut index) = self.index.try_borrow_mut() {
            index.refresh(&self.state);
        }
        self.index.borrow()
    }

    /// Newest first.
    pub fn stages(&self) -> Stages<'_> {
        let index = self.run_index();
        let phase = self.state.phase;
        let at_phase =
            |wanted: Phase, stage: Stage| phase == Some(wanted) || !index.evals_of(stage).is_empty();
        let baseline = at_phase(Phase::Baseline, Stage::Baseline);
        let mut ahead: Vec<Stage> =
            self.between_now().filter(|stage| index.place(*stage).is_none()).into_iter().collect();
        let last = [(Phase::FinalSelection, Stage::FinalSelection), (Phase::Test, Stage::Test)];
        ahead.extend(
            last.into_iter().filter(|(phase, stage)| at_phase(*phase, *stage)).map(|(_, stage)| stage),
        );
        Stages { index, ahead, baseline }
    }

    fn between_now(&self) -> Option<Stage> {
        Some(Stage::Between { epoch: self.state.at.epoch, kind: between(self.state.phase?)? })
    }

    /// The selected stage, or the newest.
    pub fn shown_stage(&self) -> Option<Stage> {
        let stages = self.stages();
        self.stage.filter(|stage| stages.place(*stage).is_some()).or_else(|| stages.get(0))
    }

    /// Counts over all steps.
    pub fn tally(&self) -> StepTally {
        self.run_index().tally(&self.state)
    }

    pub fn step(&self, number: u32) -> Option<&StepState> {
        step_place(&self.state, number).map(|place| &self.state.steps[place])
    }

    /// The step whose patch and gate are shown; for baseline and test the nearest step.
    pub fn shown_step(&self) -> Option<&StepState> {
        match self.shown_stage()? {
            Stage::Step(number) => self.step(number),
            Stage::FinalSelection | Stage::Test => self.state.steps.last(),
            Stage::Baseline => self.state.steps.first(),
            Stage::Between { .. } => None,
        }
    }

    /// A finished stage between epochs and its place among them.
    pub fn found(&self, epoch: u32, kind: StageKind) -> Option<(usize, &StageState)> {
        let place = self.run_index().finished(Stage::Between { epoch, kind })?;
        Some((place, self.state.stages.get(place)?))
    }

    /// The finished stage at `index` made the current skill, whose stored score is that of an earlier text.
    pub fn left_stale(&self, index: usize) -> bool {
        let changed = |done: &StageState| done.stage.action().changes_skill();
        let is_last = || self.state.stages.iter().rposition(changed) == Some(index);
        self.state.current_score_stale && is_last()
    }

    /// The evaluations that belong to a stage, in the order they began.
    pub fn evals_of(&self, stage: Stage) -> impl DoubleEndedIterator<Item = &EvalState> {
        let places = self.run_index().evals_of(stage).to_vec();
        places.into_iter().filter_map(|place| self.eval(place))
    }

    /// The evaluation at a place in the order of evaluations.
    pub(super) fn eval(&self, place: usize) -> Option<&EvalState> {
        self.state.evals.get(self.state.eval_order.get(place)?)
    }

    /// Items done and to do in the evaluations of a stage that are under way.
    pub fn progress(&self, stage: Stage) -> Option<(usize, usize)> {
        let running = self.evals_of(stage).filter(|eval| eval.score.is_none());
        running.map(|eval| (eval.results.len(), eval.n)).reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Items without a result where the run ended before a stage was measured: what lacked is not in the journal, as a
    /// resume asks for it again.
    pub fn lacking(&self, stage: Stage) -> Option<usize> {
        let scored =
            |eval: &EvalState| eval.results.iter().filter(|(_, one)| one.rollout().is_some()).count();
        let (done, n) = self
            .evals_of(stage)
            .filter(|eval| self.ended() && eval.score.is_none())
            .map(|eval| (scored(eval), eval.n))
            .reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))?;
        n.checked_sub(done).filter(|lacking| *lacking > 0)
    }

    /// There is a diff in pane 4.
    pub fn has_diff(&self) -> bool {
        match self.shown_stage() {
            Some(Stage::Between { epoch, kind }) => self.found(epoch, kind).is_some(),
            Some(_) | None => self.has_edits(),
        }
    }

    /// What a stage wrote, for the clipboard.
    pub fn stage_text(&self, epoch: u32, kind: StageKind) -> String {
        match self.found(epoch, kind).map(|(_, done)| &done.stage) {
            Some(EpochStage::SlowUpdate(found)) => found.content.clone(),
            Some(EpochStage::MetaSkill(found)) => found.content.clone(),
            Some(EpochStage::MetaReflect(found)) => found.meta_summary.clone(),
            None => String::new(),
        }
    }

    /// The name of a stage in a title.
    pub fn stage_name(&self) -> String {
        match self.shown_stage() {
            None => String::new(),
            Some(Stage::Baseline) => "baseline".to_owned(),
            Some(Stage::FinalSelection) => "final selection".to_owned(),
            Some(Stage::Test) => "test".to_owned(),
            Some(Stage::Step(number)) => format!("step {number}"),
            Some(Stage::Between { epoch, kind }) => format!("epoch {epoch} {}", kind.name()),
        }
    }
}
