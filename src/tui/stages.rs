//! What the rows of the Steps pane stand for, in the order of the run, and what belongs to each. Owns the selection of
//! one; draws nothing.

use std::rc::Rc;

use super::app::App;
use crate::domain::{EpochStage, Phase, StageKind};
use crate::event::{EvalOwner, EvalPurpose, EvalState, StageState, StepState};

/// What a row of the Steps pane stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub fn owns(self, id: &str, eval: &EvalState) -> bool {
        match eval.owner(id) {
            EvalOwner::Step(step) => self == Stage::Step(step),
            EvalOwner::Stage(epoch, kind) => self == Stage::Between { epoch, kind },
            EvalOwner::Run => match eval.purpose {
                EvalPurpose::Baseline | EvalPurpose::Rescore | EvalPurpose::RescoreBest => {
                    self == Stage::Baseline
                }
                EvalPurpose::FinalSelection => self == Stage::FinalSelection,
                EvalPurpose::TestBase | EvalPurpose::TestBest | EvalPurpose::TestFinal => self == Stage::Test,
                EvalPurpose::Candidate
                | EvalPurpose::LongitudinalPrev
                | EvalPurpose::LongitudinalCurr
                | EvalPurpose::DeepProbe
                | EvalPurpose::SlowCandidate
                | EvalPurpose::MetaReflectCandidate => false,
            },
        }
    }
}

/// The stage between epochs that a phase is.
pub fn between(phase: Phase) -> Option<StageKind> {
    StageKind::ALL.into_iter().find(|kind| kind.phase() == phase)
}

/// The list of stages and what it was made of: it is made anew only when one of these has changed.
#[derive(Clone, Debug, Default)]
pub struct StageList {
    made_of: Option<(usize, usize, usize, Option<Phase>, u32)>,
    list: Rc<Vec<Stage>>,
}

impl App {
    /// Newest first.
    pub fn stages(&self) -> Rc<Vec<Stage>> {
        let state = &self.state;
        let (steps, stages, evals) = (state.steps.len(), state.stages.len(), state.eval_order.len());
        let made_of = Some((steps, stages, evals, state.phase, state.at.epoch));
        if self.stage_list.borrow().made_of != made_of
            && let Ok(mut cached) = self.stage_list.try_borrow_mut()
        {
            *cached = StageList { made_of, list: Rc::new(self.listed_stages()) };
        }
        Rc::clone(&self.stage_list.borrow().list)
    }

    fn listed_stages(&self) -> Vec<Stage> {
        let state = &self.state;
        let has = |stage: Stage| state.evals.iter().any(|(id, eval)| stage.owns(id, eval));
        let mut out = Vec::new();
        if state.phase == Some(Phase::Baseline) || has(Stage::Baseline) {
            out.push(Stage::Baseline);
        }
        let mut finished = state.stages.iter().peekable();
        for step in &state.steps {
            out.push(Stage::Step(step.at.step));
            while let Some(done) = finished.next_if(|done| done.at.step <= step.at.step) {
                out.push(Stage::Between { epoch: done.at.epoch, kind: done.stage.kind() });
            }
        }
        out.extend(self.between_now().filter(|stage| !out.contains(stage)));
        if state.phase == Some(Phase::FinalSelection) || has(Stage::FinalSelection) {
            out.push(Stage::FinalSelection);
        }
        if state.phase == Some(Phase::Test) || has(Stage::Test) {
            out.push(Stage::Test);
        }
        out.reverse();
        out
    }

    fn between_now(&self) -> Option<Stage> {
        Some(Stage::Between { epoch: self.state.at.epoch, kind: between(self.state.phase?)? })
    }

    /// The selected stage, or the newest.
    pub fn shown_stage(&self) -> Option<Stage> {
        let stages = self.stages();
        self.stage.filter(|stage| stages.contains(stage)).or_else(|| stages.first().copied())
    }

    pub fn step(&self, number: u32) -> Option<&StepState> {
        let steps = &self.state.steps;
        // In order, but for what a foreign journal may hold.
        let found = steps.binary_search_by_key(&number, |step| step.at.step).ok();
        found.map(|index| &steps[index]).or_else(|| steps.iter().find(|step| step.at.step == number))
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
        let is = |(_, done): &(usize, &StageState)| done.at.epoch == epoch && done.stage.kind() == kind;
        self.state.stages.iter().enumerate().rev().find(is)
    }

    /// The finished stage at `index` made the current skill, whose stored score is that of an earlier text.
    pub fn left_stale(&self, index: usize) -> bool {
        let changed = |done: &StageState| done.stage.action().changes_skill();
        let last = self.state.stages.iter().rposition(changed);
        self.state.current_score_stale && last == Some(index)
    }

    /// The evaluations that belong to a stage, in the order they began.
    pub fn evals_of(&self, stage: Stage) -> impl DoubleEndedIterator<Item = &EvalState> {
        let evals = self.state.eval_order.iter().filter_map(|id| Some((id, self.state.evals.get(id)?)));
        evals.filter(move |(id, eval)| stage.owns(id, eval)).map(|(_, eval)| eval)
    }

    /// Items done and to do in the evaluations of a stage that are under way.
    pub fn progress(&self, stage: Stage) -> Option<(usize, usize)> {
        let running = self.evals_of(stage).filter(|eval| eval.score.is_none());
        running.map(|eval| (eval.results.len(), eval.n)).reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
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
