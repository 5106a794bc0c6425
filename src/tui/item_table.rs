//! Two measurements item by item: which were gained, lost, the same, or not known on one side. Pairs what the run
//! recorded; must not judge.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use super::app::App;
use super::row_index::{ResultRef, Source, natural};
use super::stages::{Stage, step_place};
use crate::domain::{GateMetric, Score};
use crate::event::{EvalPurpose, EvalState, ItemResult, StepState};

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Lost,
    Gained,
    /// Asked on both sides, without an answer on one.
    Missing,
    Same,
    /// Not measured on one side.
    OneSided,
}

impl Change {
    pub fn mark(self) -> &'static str {
        match self {
            Change::Lost => "−",
            Change::Gained => "+",
            Change::Missing => "?",
            Change::Same => "=",
            Change::OneSided => "·",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemSort {
    /// Lost, gained, missing, then the rest.
    #[default]
    Change,
    /// The greatest loss first.
    Delta,
    Name,
}

impl ItemSort {
    pub fn next(self) -> Self {
        match self {
            ItemSort::Change => ItemSort::Delta,
            ItemSort::Delta => ItemSort::Name,
            ItemSort::Name => ItemSort::Change,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ItemSort::Change => "change",
            ItemSort::Delta => "Δ",
            ItemSort::Name => "name",
        }
    }
}

/// One side of an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Absent,
    Missing(ResultRef),
    Scored { at: ResultRef, value: f64, passed: bool },
}

impl Side {
    pub fn words(self) -> String {
        match self {
            Side::Absent => "·".to_owned(),
            Side::Missing(_) => "missing".to_owned(),
            Side::Scored { value, .. } => format!("{value:.2}"),
        }
    }

    pub fn result(self) -> Option<ResultRef> {
        match self {
            Side::Absent => None,
            Side::Missing(at) | Side::Scored { at, .. } => Some(at),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ItemLine {
    pub item: String,
    pub current: Side,
    pub candidate: Side,
}

impl ItemLine {
    pub fn delta(&self) -> Option<f64> {
        match (self.current, self.candidate) {
            (Side::Scored { value: old, .. }, Side::Scored { value: new, .. }) => Some(new - old),
            _ => None,
        }
    }

    pub fn change(&self) -> Change {
        match (self.current, self.candidate) {
            (Side::Absent, _) | (_, Side::Absent) => Change::OneSided,
            (Side::Missing(_), _) | (_, Side::Missing(_)) => Change::Missing,
            (Side::Scored { passed: old, .. }, Side::Scored { passed: new, .. }) => match (old, new) {
                (false, true) => Change::Gained,
                (true, false) => Change::Lost,
                _ => Change::Same,
            },
        }
    }
}

/// The two evaluations that a stage compares, by their places in the order of evaluations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    pub current: Option<usize>,
    pub candidate: usize,
    pub names: (&'static str, &'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ItemTable {
    pub sides: Sides,
    pub soft: bool,
    pub lines: Vec<ItemLine>,
}

impl ItemTable {
    pub fn count(&self, change: Change) -> usize {
        self.lines.iter().filter(|line| line.change() == change).count()
    }
}

/// What a table was made of.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    sides: Sides,
    results: (usize, usize),
    sort: ItemSort,
    soft: bool,
}

#[derive(Clone, Debug, Default)]
pub struct ItemTableCache {
    table: RefCell<Option<(Key, Rc<ItemTable>)>>,
    sides: Cell<Option<FoundSides>>,
}

/// The sides of a stage, as found among so many evaluations and stages.
#[derive(Clone, Copy, Debug)]
struct FoundSides {
    among: (Stage, usize, usize),
    sides: Option<Sides>,
}

impl App {
    /// The items of the shown stage's measurement, kept until a result comes.
    pub(super) fn item_table(&self) -> Option<Rc<ItemTable>> {
        let sides = self.sides()?;
        let results =
            |place: Option<usize>| place.and_then(|at| self.eval(at)).map_or(0, |eval| eval.results.len());
        let key = Key {
            sides,
            results: (results(sides.current), results(Some(sides.candidate))),
            sort: self.gate.sort,
            soft: self.shown_decision().is_some_and(|gate| gate.metric == GateMetric::Soft),
        };
        let cache = &self.gate.items.table;
        if let Some((made_of, table)) = &*cache.borrow()
            && *made_of == key
        {
            return Some(Rc::clone(table));
        }
        let table = Rc::new(self.paired(&key));
        if let Ok(mut cached) = cache.try_borrow_mut() {
            *cached = Some((key, Rc::clone(&table)));
        }
        Some(table)
    }

    fn paired(&self, key: &Key) -> ItemTable {
        let mut lines: Vec<ItemLine> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (side, place) in [(0, key.sides.current), (1, Some(key.sides.candidate))] {
            let Some((index, eval)) = place.and_then(|index| Some((index, self.eval(index)?))) else {
                continue;
            };
            for (place, (_, result)) in eval.results.iter().enumerate() {
                let at = ResultRef { source: Source::Eval(index), place };
                let line = *places.entry(result.item()).or_insert_with(|| {
                    let item = result.item().to_owned();
                    lines.push(ItemLine { item, current: Side::Absent, candidate: Side::Absent });
                    lines.len() - 1
                });
                let cell = match result {
                    ItemResult::Missing { .. } => Side::Missing(at),
                    ItemResult::Scored(rollout) => {
                        let value = |score: &Score| if key.soft { score.soft } else { score.hard };
                        let passed = !rollout.score.failed();
                        Side::Scored { at, value: value(&rollout.score), passed }
                    }
                };
                match side {
                    0 => lines[line].current = cell,
                    _ => lines[line].candidate = cell,
                }
            }
        }
        lines.sort_by(|a, b| compare(key.sort, a, b));
        ItemTable { sides: key.sides, soft: key.soft, lines }
    }

    /// What the shown stage compares.
    fn sides(&self) -> Option<Sides> {
        let stage = self.shown_stage()?;
        let among = (stage, self.state.eval_order.len(), self.state.stages.len());
        if let Some(found) = self.gate.items.sides.get().filter(|found| found.among == among) {
            return found.sides;
        }
        let sides = self.find_sides(stage);
        self.gate.items.sides.set(Some(FoundSides { among, sides }));
        sides
    }

    fn find_sides(&self, stage: Stage) -> Option<Sides> {
        let of = |wanted: fn(EvalPurpose) -> bool| self.newest_eval(stage, wanted);
        let named = |current, candidate, names| Some(Sides { current, candidate: candidate?, names });
        match stage {
            Stage::Baseline => named(None, of(|_| true), ("", "baseline")),
            Stage::Test => named(
                of(|purpose| purpose == EvalPurpose::TestBase),
                of(|purpose| purpose == EvalPurpose::TestBest),
                ("seed", "best"),
            ),
            Stage::FinalSelection => {
                let last = of(|_| true);
                let best = last.and_then(|last| self.measured_before(last, &self.state.best_hash));
                named(best, last, ("best", "last"))
            }
            Stage::Step(number) => {
                let candidate = of(EvalPurpose::is_candidate)?;
                let hash = self.step(number).map_or("", |step| self.skill_before(step));
                named(self.incumbent(stage, candidate, hash), Some(candidate), ("current", "candidate"))
            }
            Stage::Between { epoch, kind } => match of(EvalPurpose::is_candidate) {
                Some(candidate) => {
                    let earlier = match self.found(epoch, kind) {
                        Some((index, _)) => self.state.stages[..index].last(),
                        None => self.state.stages.last(),
                    };
                    let step = self.state.steps.iter().rfind(|step| step.at.epoch == epoch);
                    let hash = earlier
                        .filter(|stage| step.is_some_and(|step| stage.at.step == step.at.step))
                        .map(|stage| &stage.current_hash)
                        .or(step.map(|step| &step.current_hash));
                    let current = self.incumbent(stage, candidate, hash.map_or("", String::as_str));
                    named(current, Some(candidate), ("current", "candidate"))
                }
                None => named(
                    of(|purpose| purpose == EvalPurpose::LongitudinalPrev),
                    of(|purpose| purpose == EvalPurpose::LongitudinalCurr),
                    ("before", "now"),
                ),
            },
        }
    }

    fn newest_eval(&self, stage: Stage, wanted: fn(EvalPurpose) -> bool) -> Option<usize> {
        let index = self.run_index();
        let wanted = |place: &&usize| self.eval(**place).is_some_and(|eval| wanted(eval.purpose));
        index.evals_of(stage).iter().rfind(wanted).copied()
    }

    /// The current skill's measurement that a candidate is compared with: made again in its own stage, or earlier.
    fn incumbent(&self, stage: Stage, candidate: usize, hash: &str) -> Option<usize> {
        self.newest_eval(stage, |purpose| purpose == EvalPurpose::Rescore)
            .or_else(|| self.measured_before(candidate, hash))
    }

    /// The last measurement of a skill on the selection split before another one.
    fn measured_before(&self, place: usize, hash: &str) -> Option<usize> {
        self.run_index().measurements_of(hash).iter().rfind(|at| **at < place).copied()
    }

    /// The current skill that a step began with.
    fn skill_before<'a>(&'a self, step: &'a StepState) -> &'a str {
        if let Some(review) = &step.review {
            return &review.current_hash;
        }
        let number = step.at.step;
        let before = step_place(&self.state, number).unwrap_or(self.state.steps.len());
        let step = self.state.steps[..before].iter().rfind(|one| !one.current_hash.is_empty());
        let stage = self.state.stages.iter().rfind(|one| one.at.step < number);
        match (step, stage) {
            (Some(step), Some(stage)) if stage.at.step < step.at.step => &step.current_hash,
            (_, Some(stage)) => &stage.current_hash,
            (Some(step), None) => &step.current_hash,
            (None, None) => &self.state.initial_hash,
        }
    }

    /// Scores of every complete measurement of the same skill as `sides.current`, oldest first.
    pub(super) fn measurements_of_current(&self, sides: Sides) -> Vec<f64> {
        let Some(current) = sides.current.and_then(|place| self.eval(place)) else { return Vec::new() };
        let index = self.run_index();
        let places = index.measurements_of(&current.skill_hash).iter().filter(|at| **at < sides.candidate);
        let evals = places.filter_map(|at| self.eval(*at));
        let complete = |eval: &&EvalState| eval.results.len() == eval.n;
        evals.filter(complete).filter_map(|eval| Some(eval.score.as_ref()?.gate)).collect()
    }
}

fn compare(sort: ItemSort, a: &ItemLine, b: &ItemLine) -> Ordering {
    let by_delta = || match (a.delta(), b.delta()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    let first = match sort {
        ItemSort::Change => a.change().cmp(&b.change()).then_with(by_delta),
        ItemSort::Delta => by_delta(),
        ItemSort::Name => Ordering::Equal,
    };
    first.then_with(|| natural(&a.item, &b.item))
}
