//! Which results the Rollouts pane lists and in what order, kept up as results come, so that a frame or a key costs what
//! is shown and not what the run has. Knows no row's look.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::row_filter::{Facts, RowFilter, Status};
use super::stages::{Stage, step_place};
use crate::event::{EvalPurpose, ItemResult, RunState};

/// Groups of attempts, in the order they are counted: why the target was asked, or what the optimizer is at.
pub const GROUPS: [&str; 16] = [
    "train", "deep", "prev", "curr", "current", "select", "base", "best", "last", "analyst", "merge", "rank",
    "budget", "rewrite", "notes", "optim",
];
/// More new results at once than this are sorted in together.
const FEW: usize = 32;
/// No column is wider.
pub const WIDEST_ITEM: usize = 24;

/// Where a list of results lies in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Place in [`RunState::steps`].
    Step(usize),
    /// Place in [`RunState::eval_order`].
    Eval(usize),
}

/// One result of the run; stays the same as long as the run is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResultRef {
    pub source: Source,
    pub place: usize,
}

/// The results of one source.
#[derive(Clone, Copy)]
pub enum Results<'a> {
    Step(&'a [ItemResult]),
    Eval(&'a [(usize, ItemResult)]),
}

impl<'a> Results<'a> {
    pub fn of(state: &'a RunState, source: Source) -> Self {
        match source {
            Source::Step(index) => Self::Step(state.steps.get(index).map_or(&[], |step| &step.rollouts)),
            Source::Eval(index) => {
                let eval = state.eval_order.get(index).and_then(|id| state.evals.get(id));
                Self::Eval(eval.map_or(&[], |eval| &eval.results))
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Step(results) => results.len(),
            Self::Eval(results) => results.len(),
        }
    }

    pub fn get(&self, place: usize) -> Option<&'a ItemResult> {
        match self {
            Self::Step(results) => results.get(place),
            Self::Eval(results) => results.get(place).map(|(_, result)| result),
        }
    }
}

/// The group of a source.
pub fn group_of(state: &RunState, source: Source) -> &'static str {
    match source {
        Source::Step(_) => "train",
        Source::Eval(index) => {
            let eval = state.eval_order.get(index).and_then(|id| state.evals.get(id));
            eval.map_or("select", |eval| purpose_group(eval.purpose))
        }
    }
}

pub fn purpose_group(purpose: EvalPurpose) -> &'static str {
    match purpose {
        EvalPurpose::Rescore => "current",
        EvalPurpose::Baseline
        | EvalPurpose::Candidate
        | EvalPurpose::RescoreBest
        | EvalPurpose::SlowCandidate
        | EvalPurpose::MetaReflectCandidate
        | EvalPurpose::FinalSelection => "select",
        EvalPurpose::LongitudinalPrev => "prev",
        EvalPurpose::LongitudinalCurr => "curr",
        EvalPurpose::DeepProbe => "deep",
        EvalPurpose::TestBase => "base",
        EvalPurpose::TestBest => "best",
        EvalPurpose::TestFinal => "last",
    }
}

pub fn status_of(result: &ItemResult) -> Status {
    match result {
        ItemResult::Missing { .. } => Status::Missing,
        ItemResult::Scored(rollout) if rollout.score.failed() => Status::Failed,
        ItemResult::Scored(_) => Status::Passed,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Newest,
    /// Worst first.
    Score,
    Item,
    /// Slowest first.
    Time,
    /// Most first.
    Tokens,
}

impl Sort {
    pub fn next(self) -> Self {
        match self {
            Sort::Newest => Sort::Score,
            Sort::Score => Sort::Item,
            Sort::Item => Sort::Time,
            Sort::Time => Sort::Tokens,
            Sort::Tokens => Sort::Newest,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Sort::Newest => "newest",
            Sort::Score => "score",
            Sort::Item => "item",
            Sort::Time => "time",
            Sort::Tokens => "tokens",
        }
    }

    /// Results without a number come last.
    fn compare(self, a: &ItemResult, b: &ItemResult) -> Ordering {
        let most = |number: fn(&crate::domain::Rollout) -> u64| {
            b.rollout().map(number).cmp(&a.rollout().map(number))
        };
        match self {
            Sort::Newest => Ordering::Equal,
            Sort::Item => natural(a.item(), b.item()),
            Sort::Time => most(|rollout| rollout.ms),
            Sort::Tokens => most(|rollout| rollout.usage.completion_tokens),
            Sort::Score => match (a.rollout(), b.rollout()) {
                (Some(a), Some(b)) => {
                    let by_hard = a.score.hard.total_cmp(&b.score.hard);
                    by_hard.then(a.score.soft.total_cmp(&b.score.soft))
                }
                (a, b) => b.is_some().cmp(&a.is_some()),
            },
        }
    }
}

/// Numbers inside the texts by their value: `city-9` before `city-10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let number = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (one, other) = (number(left), number(right));
        if one > 0 && other > 0 {
            let (x, y) = (left[..one].trim_start_matches('0'), right[..other].trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (&left[one..], &right[other..]);
            continue;
        }
        let (mut x, mut y) = (left.chars(), right.chars());
        match (x.next(), y.next()) {
            (None, None) => return a.cmp(b),
            (x, y) if x != y => return x.cmp(&y),
            _ => (left, right) = (x.as_str(), y.as_str()),
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub stage: Stage,
    pub sort: Sort,
    pub failures_only: bool,
    pub filter: RowFilter,
    /// Only these items.
    pub only: Option<HashSet<String>>,
}

impl Wanted {
    pub fn passes(&self, facts: &Facts<'_>) -> bool {
        (!self.failures_only || facts.status != Status::Passed)
            && self.only.as_ref().is_none_or(|only| only.contains(facts.item))
            && self.filter.passes(facts)
    }

    fn takes(&self, group: &str, result: &ItemResult) -> bool {
        let (task_type, reason) = match result {
            ItemResult::Scored(rollout) => (rollout.task_type.as_str(), rollout.score.reason.as_str()),
            ItemResult::Missing { error, .. } => ("", error.as_str()),
        };
        self.passes(&Facts { item: result.item(), task_type, reason, group, status: status_of(result) })
    }
}

/// How many attempts stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub running: usize,
    pub passed: usize,
    pub failed: usize,
    pub missing: usize,
}

impl Tally {
    pub fn add(&mut self, status: Status) {
        match status {
            Status::Running => self.running += 1,
            Status::Passed => self.passed += 1,
            Status::Failed => self.failed += 1,
            Status::Missing => self.missing += 1,
        }
    }
}

/// Place of a listed result: of its source among the index's, and in the source.
type Entry = (usize, usize);

#[derive(Clone, Debug)]
struct SourceState {
    source: Source,
    group: &'static str,
    seen: usize,
}

#[derive(Clone, Debug, Default)]
pub struct RowIndex {
    wanted: Option<Wanted>,
    evals_seen: usize,
    sources: Vec<SourceState>,
    order: Vec<Entry>,
    tallies: Vec<(&'static str, Tally)>,
    widest: usize,
}

impl RowIndex {
    /// Whether [`refresh`](Self::refresh) would change anything.
    pub fn is_fresh(&self, state: &RunState, wanted: &Wanted, evals: &[usize]) -> bool {
        self.wanted.as_ref() == Some(wanted)
            && self.evals_seen == evals.len()
            && self.sources.iter().all(|one| Results::of(state, one.source).len() == one.seen)
            // A step begins with its first event, which may come after the step was asked for.
            && (!self.sources.is_empty() || state.seq == 0)
    }

    /// `evals`: places of the stage's evaluations, ascending.
    pub fn refresh(&mut self, state: &RunState, wanted: &Wanted, evals: &[usize]) {
        let shrunk = |one: &SourceState| Results::of(state, one.source).len() < one.seen;
        if self.wanted.as_ref() != Some(wanted)
            || self.evals_seen > evals.len()
            || self.sources.iter().any(shrunk)
        {
            *self = Self { wanted: Some(wanted.clone()), ..Self::default() };
        }
        self.find_sources(state, wanted.stage, evals);
        let mut new: Vec<Entry> = Vec::new();
        for (index, one) in self.sources.iter_mut().enumerate() {
            let results = Results::of(state, one.source);
            for place in one.seen..results.len() {
                let Some(result) = results.get(place).filter(|result| wanted.takes(one.group, result)) else {
                    continue;
                };
                new.push((index, place));
                self.widest = self.widest.max(shown_width(result.item()));
                match self.tallies.iter_mut().find(|(group, _)| *group == one.group) {
                    Some((_, tally)) => tally.add(status_of(result)),
                    None => {
                        let mut tally = Tally::default();
                        tally.add(status_of(result));
                        self.tallies.push((one.group, tally));
                    }
                }
            }
            one.seen = results.len();
        }
        self.insert(state, wanted.sort, new);
    }

    /// Rollouts of a step first, then its evaluations as they began: later sources are newer.
    fn find_sources(&mut self, state: &RunState, stage: Stage, evals: &[usize]) {
        if self.sources.is_empty()
            && let Stage::Step(number) = stage
            && let Some(index) = step_place(state, number)
        {
            self.sources.push(SourceState { source: Source::Step(index), group: "train", seen: 0 });
        }
        for place in &evals[self.evals_seen..] {
            let source = Source::Eval(*place);
            self.sources.push(SourceState { source, group: group_of(state, source), seen: 0 });
        }
        self.evals_seen = evals.len();
    }

    fn insert(&mut self, state: &RunState, sort: Sort, new: Vec<Entry>) {
        let results: Vec<Results<'_>> = self.results(state);
        let compare = |a: &Entry, b: &Entry| compare(&results, sort, *a, *b);
        if new.len() > FEW {
            self.order.extend(new);
            self.order.sort_by(compare);
            return;
        }
        for entry in new {
            let place = self.order.partition_point(|other| compare(other, &entry) == Ordering::Less);
            self.order.insert(place, entry);
        }
    }

    /// The results of each source, as [`get`](Self::get) and [`place`](Self::place) want them.
    pub fn results<'a>(&self, state: &'a RunState) -> Vec<Results<'a>> {
        self.sources.iter().map(|one| Results::of(state, one.source)).collect()
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The result at a place of the list, with its group.
    pub fn get<'a>(
        &self,
        results: &[Results<'a>],
        place: usize,
    ) -> Option<(ResultRef, &'static str, &'a ItemResult)> {
        let (source, place) = *self.order.get(place)?;
        let one = self.sources.get(source)?;
        Some((ResultRef { source: one.source, place }, one.group, results.get(source)?.get(place)?))
    }

    /// Where a result is listed, if it is.
    pub fn place(&self, results: &[Results<'_>], wanted: ResultRef) -> Option<usize> {
        let source = self.sources.iter().position(|one| one.source == wanted.source)?;
        let entry = (source, wanted.place);
        results.get(source)?.get(wanted.place)?;
        let sort = self.wanted.as_ref()?.sort;
        self.order.binary_search_by(|other| compare(results, sort, *other, entry)).ok()
    }

    pub fn tallies(&self) -> &[(&'static str, Tally)] {
        &self.tallies
    }

    /// Columns of the widest item listed so far.
    pub fn widest(&self) -> usize {
        self.widest
    }
}

pub fn shown_width(item: &str) -> usize {
    let head: String = item.chars().take(WIDEST_ITEM).collect();
    crate::text::width(&crate::text::sanitize_line(&head))
}

/// Newest first where `sort` does not tell two apart.
fn compare(results: &[Results<'_>], sort: Sort, a: Entry, b: Entry) -> Ordering {
    let of = |entry: Entry| results.get(entry.0).and_then(|source| source.get(entry.1));
    let by_sort = match (sort, of(a), of(b)) {
        (Sort::Newest, ..) | (_, None, _) | (_, _, None) => Ordering::Equal,
        (sort, Some(a), Some(b)) => sort.compare(a, b),
    };
    by_sort.then_with(|| b.cmp(&a))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{FinishReason, Rollout, Score, StepRef, Usage};
    use crate::event::StepState;

    #[test]
    fn numbers_in_names_count_by_value() {
        let mut items = ["c-10", "c-9", "c-09", "b", "c-9a", "", "c-100"];
        items.sort_by(|a, b| natural(a, b));
        assert_eq!(items, ["", "b", "c-09", "c-9", "c-9a", "c-10", "c-100"]);
    }

    fn result(item: &str, hard: f64, ms: u64, tokens: u64) -> ItemResult {
        if ms == 0 {
            return ItemResult::Missing { item: item.into(), error: "timeout".into() };
        }
        ItemResult::Scored(std::sync::Arc::new(Rollout {
            item: item.into(),
            task_type: "t".into(),
            task: String::new(),
            gold: String::new(),
            system_prompt: Default::default(),
            user_prompt: String::new(),
            reply: String::new(),
            answer: String::new(),
            turns: Vec::new(),
            score: Score { hard, soft: hard, reason: String::new() },
            finish: FinishReason::Stop,
            usage: Usage { completion_tokens: tokens, ..Usage::default() },
            ms,
            judging: None,
        }))
    }

    fn results() -> impl Strategy<Value = Vec<ItemResult>> {
        let one = ("[ab]-?[0-9]{1,3}", prop_oneof![Just(0.0), Just(0.5), Just(1.0)], 0u64..4, 0u64..4);
        let one = one.prop_map(|(item, hard, ms, tokens)| result(&item, hard, ms, tokens));
        prop::collection::vec(one, 0..120)
    }

    fn wanted(sort: Sort, failures_only: bool, filter: &str) -> Wanted {
        let filter = RowFilter::parse(filter, &GROUPS).unwrap();
        Wanted { stage: Stage::Step(1), sort, failures_only, filter, only: None }
    }

    fn listed(index: &RowIndex, state: &RunState) -> Vec<ResultRef> {
        let results = index.results(state);
        let all: Vec<_> = (0..index.len()).map(|place| index.get(&results, place).unwrap().0).collect();
        for (place, at) in all.iter().enumerate() {
            assert_eq!(index.place(&results, *at), Some(place), "a listed result is found again");
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However the results came, the list is the same set in one order, and equal ones keep theirs.
        #[test]
        fn a_list_kept_up_equals_one_made_anew(
            results in results(),
            chunks in prop::collection::vec(0usize..50, 0..6),
            sort in prop_oneof![Just(Sort::Newest), Just(Sort::Score), Just(Sort::Item), Just(Sort::Time), Just(Sort::Tokens)],
            failures: bool,
            filter in prop_oneof![Just(""), Just("a"), Just("-b fail"), Just("missing")],
        ) {
            let mut state = RunState { seq: 1, ..RunState::default() };
            let at = StepRef { epoch: 1, step: 1, step_in_epoch: 0 };
            state.steps.push(StepState { at, ..StepState::default() });
            let wanted = wanted(sort, failures, filter);
            let mut kept = RowIndex::default();
            let mut rest = results.clone();
            for chunk in chunks.into_iter().chain([usize::MAX]) {
                let later = rest.split_off(chunk.min(rest.len()));
                state.steps[0].rollouts.append(&mut rest);
                rest = later;
                kept.refresh(&state, &wanted, &[]);
                prop_assert!(kept.is_fresh(&state, &wanted, &[]));
            }
            let mut fresh = RowIndex::default();
            fresh.refresh(&state, &wanted, &[]);
            let order = listed(&kept, &state);
            prop_assert_eq!(&order, &listed(&fresh, &state));
            let mut set: Vec<usize> = order.iter().map(|at| at.place).collect();
            set.sort_unstable();
            let all: Vec<usize> = (0..results.len()).filter(|place| wanted.takes("train", &results[*place])).collect();
            prop_assert_eq!(set, all);
            for pair in order.windows(2) {
                let [a, b] = [&results[pair[0].place], &results[pair[1].place]];
                let by_sort = wanted.sort.compare(a, b);
                prop_assert!(by_sort == Ordering::Less || (by_sort == Ordering::Equal && pair[0].place > pair[1].place));
            }
            prop_assert_eq!(kept.tallies(), fresh.tallies());
        }
    }
}
