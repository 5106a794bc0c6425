//! The named series of one run, filled record by record and by live news. Names and numbers may come from any program:
//! both are bounded here.

use std::collections::{BTreeMap, HashMap, VecDeque};

use indexmap::IndexMap;

use super::series::{Moment, Series};
use crate::domain::{MachineSample, Origin, Rollout, StepRecord, Usage};
use crate::event::{EvalPurpose, Event, ItemResult, Live, LogLevel, Record, Rescore, RunState};

/// Points kept of all series together, 80 bytes each and up to twice that in reserve: some 170 MB at the very most. The
/// longest series is thinned out beyond that.
const MOST_POINTS: usize = 1 << 20;
/// Series kept; what comes under more names is counted only.
const MOST_SERIES: usize = 256;
const MOST_ALERTS: usize = 1000;
/// Characters of a name, and of an alert's message.
const LONGEST: usize = 160;
const MOST_GPUS: usize = 64;

/// Names of what every run has.
pub mod names {
    pub const TRAIN_HARD: &str = "train/hard";
    pub const TRAIN_SOFT: &str = "train/soft";
    pub const SELECT_CURRENT: &str = "select/current";
    pub const SELECT_BEST: &str = "select/best";
    pub const SELECT_CANDIDATE: &str = "select/candidate";
    pub const EDITS_KEPT: &str = "edits/kept";
    pub const EDITS_PROPOSED: &str = "edits/proposed";
    pub const TOKENS: &str = "tokens/step";
    pub const RATE: &str = "tokens/s";
    pub const LATENCY_MEAN: &str = "latency/mean";
    pub const LATENCY_P95: &str = "latency/p95";
    pub const FAILED: &str = "share/failed";
    pub const MISSING: &str = "share/missing";
    pub const CPU: &str = "machine/cpu";
    pub const MEMORY: &str = "machine/memory";
    pub const RSS: &str = "machine/host_rss";
    pub const CHILDREN_RSS: &str = "machine/children_rss";

    pub const ALL: [&str; 17] = [
        TRAIN_HARD,
        TRAIN_SOFT,
        SELECT_CURRENT,
        SELECT_BEST,
        SELECT_CANDIDATE,
        EDITS_KEPT,
        EDITS_PROPOSED,
        TOKENS,
        RATE,
        LATENCY_MEAN,
        LATENCY_P95,
        FAILED,
        MISSING,
        CPU,
        MEMORY,
        RSS,
        CHILDREN_RSS,
    ];
}

/// A place where an alert was raised.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub at: Moment,
    pub level: LogLevel,
    pub code: String,
    pub message: String,
}

/// Calls since the last point about calls.
#[derive(Clone, Debug, Default, PartialEq)]
struct Calls {
    ms: Vec<u64>,
    failed: usize,
    missing: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    /// Name of the run.
    pub run: String,
    /// Steps the run is planned to have.
    pub planned_steps: u32,
    /// The newest machine sample and its place.
    pub machine: Option<(Moment, MachineSample)>,
    pub in_flight: usize,
    series: IndexMap<String, Series>,
    alerts: VecDeque<Mark>,
    points: usize,
    /// Values under names beyond [`MOST_SERIES`].
    left_out: usize,
    /// Unix milliseconds of `run_started`.
    began: u64,
    now: Moment,
    /// Time of the newest live sample.
    sampled_until: f64,
    calls: Calls,
    /// Purpose, step and skill of the evaluations under way.
    evals: HashMap<String, (EvalPurpose, u32, String)>,
    best_hash: String,
    current: Option<f64>,
    best: Option<f64>,
    edits: (f64, f64),
}

impl Board {
    pub fn named(run: &str) -> Self {
        Self { run: shortened(run), ..Self::default() }
    }

    /// The numbers that a state has kept: what to show while the journal is still being read.
    pub fn at_a_glance(state: &RunState) -> Self {
        let mut board = Self::default();
        let Some(info) = &state.info else { return board };
        (board.began, board.run, board.planned_steps) =
            (info.started_at, shortened(&info.name), info.plan.total_steps);
        board.best_hash.clone_from(&state.best_hash);
        if let Some(baseline) = state.baseline_score {
            board.scores(Some(baseline), Some(baseline));
        }
        for step in &state.steps {
            let Some(record) = &step.record else { continue };
            board.now.time = step.finished_at.unwrap_or_default().saturating_sub(info.started_at) as f64;
            board.now.tokens += tokens_of(record);
            board.step_finished(record);
        }
        board
    }

    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.get(name)
    }

    /// All series in the order in which they began.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Series)> {
        self.series.iter().map(|(name, series)| (name.as_str(), series))
    }

    pub fn alerts(&self) -> impl DoubleEndedIterator<Item = &Mark> {
        self.alerts.iter()
    }

    /// How far the run has come; its time is that of the newest number.
    pub fn end(&self) -> Moment {
        Moment { time: self.now.time.max(self.sampled_until), ..self.now }
    }

    pub fn left_out(&self) -> usize {
        self.left_out
    }

    pub fn hear_live(&mut self, live: &Live, now_ms: u64) {
        if self.began == 0 {
            return;
        }
        let at = Moment { time: now_ms.saturating_sub(self.began) as f64, ..self.now };
        match live {
            Live::Throughput { tokens_per_s, in_flight } => {
                self.in_flight = *in_flight;
                self.sampled_until = at.time;
                self.push_at(names::RATE, at, *tokens_per_s);
            }
            Live::Machine(sample) => {
                self.sampled_until = at.time;
                self.machine(at, sample);
            }
            Live::CallStarted { .. }
            | Live::CallDelta { .. }
            | Live::CallRetrying { .. }
            | Live::CallFinished { .. } => {}
        }
    }

    pub fn hear(&mut self, record: &Record) {
        self.now.time = self.now.time.max(record.at.saturating_sub(self.began) as f64);
        match &record.event {
            Event::RunStarted { run, plan, skill, origin, .. } => {
                (self.began, self.now.time) = (record.at, 0.0);
                (self.run, self.planned_steps) = (shortened(run), plan.total_steps);
                self.best_hash.clone_from(&skill.hash);
                if let Some(Origin::Continued(continued)) = origin {
                    self.best_hash.clone_from(&continued.best.skill.hash);
                    continued.steps.iter().for_each(|done| self.step_finished(&done.record));
                    self.scores(continued.current.score, continued.best.score);
                }
            }
            Event::PhaseStarted { at, .. } => {
                self.flush_calls();
                self.step(at.step);
            }
            Event::RolloutFinished { at, result, .. } => {
                self.step(at.step);
                self.call(result);
            }
            Event::EvaluationStarted { eval, purpose, at, skill_hash, .. } => {
                self.flush_calls();
                if self.evals.len() < MOST_SERIES {
                    self.evals.insert(eval.clone(), (*purpose, at.step, skill_hash.clone()));
                }
            }
            Event::EvaluationItemFinished { result, .. } => self.call(result),
            Event::EvaluationFinished { eval, score, .. } => {
                self.flush_calls();
                let Some((purpose, step, skill)) = self.evals.remove(eval) else { return };
                match purpose {
                    EvalPurpose::Baseline => self.scores(Some(score.gate), Some(score.gate)),
                    EvalPurpose::Rescore => {
                        let rescore = Rescore::of(eval, step, score, skill == self.best_hash, self.best);
                        if rescore.is_best() {
                            self.best_hash = skill;
                        }
                        if rescore != Rescore::NoScore {
                            let best = if rescore.is_best() { Some(score.gate) } else { self.best };
                            self.scores(Some(score.gate), best);
                        }
                    }
                    EvalPurpose::RescoreBest => self.scores(self.current, Some(score.gate)),
                    EvalPurpose::Candidate
                    | EvalPurpose::LongitudinalPrev
                    | EvalPurpose::LongitudinalCurr
                    | EvalPurpose::DeepProbe
                    | EvalPurpose::SlowCandidate
                    | EvalPurpose::MetaReflectCandidate
                    | EvalPurpose::FinalSelection
                    | EvalPurpose::TestBase
                    | EvalPurpose::TestBest
                    | EvalPurpose::TestFinal => {}
                }
            }
            Event::AnalysisFinished { usage, .. }
            | Event::OptimizerAnswered { usage, .. }
            | Event::MergeFinished { usage, .. }
            | Event::EditsSelected { usage, .. } => self.spend(*usage),
            Event::StepFinished { record, best_hash, .. } => {
                self.flush_calls();
                self.best_hash.clone_from(best_hash);
                self.step_finished(record);
            }
            Event::EpochStageFinished { stage, best_hash, .. } => {
                self.best_hash.clone_from(best_hash);
                if let Some(decision) = stage.candidate().1.filter(|decision| decision.verdict.accepted()) {
                    let score = Some(decision.candidate.gate);
                    self.scores(score, if decision.takes_best() { score } else { self.best });
                }
            }
            Event::OverrideApplied { current_score, best_score, best_hash, .. } => {
                self.best_hash.clone_from(best_hash);
                self.scores(current_score.or(self.current), Some(*best_score));
            }
            Event::FinalSelectionFinished { score, promoted } => {
                let current = if score.done == score.n { Some(score.gate) } else { self.current };
                self.scores(current, if *promoted { Some(score.gate) } else { self.best });
            }
            Event::MachineSampled { sample, tokens_per_s, in_flight } => {
                self.in_flight = *in_flight;
                self.push(names::RATE, *tokens_per_s);
                self.machine(self.now, sample);
            }
            Event::Metric { step, values } => self.metric(*step, values),
            Event::Alert { level, code, message } => {
                if self.alerts.len() == MOST_ALERTS {
                    self.alerts.pop_front();
                }
                let (code, message) = (shortened(code), shortened(message));
                self.alerts.push_back(Mark { at: self.now, level: *level, code, message });
            }
            Event::RunFinished { .. } => self.flush_calls(),
            Event::ReviewOpened { .. }
            | Event::ReviewClosed { .. }
            | Event::SkillUpdated { .. }
            | Event::AppendixUpdated { .. }
            | Event::GateDecided { .. }
            | Event::OverrideLapsed { .. }
            | Event::RetuneApplied { .. }
            | Event::TestFinished { .. }
            | Event::HostStarted { .. }
            | Event::EditDecided { .. }
            | Event::ReviewSubmitted { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::CancelRequested { .. }
            | Event::ConfigChanged { .. }
            | Event::ReviewCommented { .. }
            | Event::OverrideRequested { .. }
            | Event::RetuneRequested { .. }
            | Event::RolloutCancelled { .. }
            | Event::RolloutRequeued { .. }
            | Event::AttemptsSpent { .. }
            | Event::Log { .. }
            | Event::Unknown(_) => {}
        }
    }

    fn step(&mut self, step: u32) {
        self.now.step = self.now.step.max(f64::from(step));
    }

    fn spend(&mut self, usage: Usage) {
        self.now.tokens += (usage.prompt_tokens + usage.completion_tokens) as f64;
    }

    fn call(&mut self, result: &ItemResult) {
        match result {
            ItemResult::Scored(rollout) => {
                let Rollout { usage, ms, score, .. } = &**rollout;
                self.spend(*usage);
                self.calls.ms.push(*ms);
                self.calls.failed += usize::from(score.failed());
            }
            ItemResult::Missing { .. } => self.calls.missing += 1,
        }
    }

    /// One point for the calls of a phase or an evaluation. A share of nothing is no number.
    fn flush_calls(&mut self) {
        let Calls { mut ms, failed, missing } = std::mem::take(&mut self.calls);
        let answered = ms.len();
        if answered + missing == 0 {
            return;
        }
        self.push(names::MISSING, missing as f64 / (answered + missing) as f64);
        if answered == 0 {
            return;
        }
        ms.sort_unstable();
        self.push(names::FAILED, failed as f64 / answered as f64);
        self.push(names::LATENCY_MEAN, ms.iter().sum::<u64>() as f64 / answered as f64 / 1e3);
        // Nearest rank.
        let rank = (answered * 95).div_ceil(100).max(1);
        self.push(names::LATENCY_P95, ms[rank - 1] as f64 / 1e3);
    }

    fn step_finished(&mut self, record: &StepRecord) {
        self.step(record.at.step);
        self.push(names::TRAIN_HARD, record.rollout_hard);
        self.push(names::TRAIN_SOFT, record.rollout_soft);
        // What a candidate could at most have come to is no score.
        if let Some(score) = record.candidate_gate_score.filter(|_| !record.candidate_at_most) {
            self.push(names::SELECT_CANDIDATE, score);
        }
        self.scores(Some(record.current_score), Some(record.best_score));
        let applied = record.edit_apply_summary.map_or(0, |summary| summary.applied);
        self.edits.0 += record.n_edits_merged as f64;
        self.edits.1 += if record.action.accepted() { applied as f64 } else { 0.0 };
        self.push(names::EDITS_PROPOSED, self.edits.0);
        self.push(names::EDITS_KEPT, self.edits.1);
        self.push(names::TOKENS, tokens_of(record));
    }

    fn scores(&mut self, current: Option<f64>, best: Option<f64>) {
        for (name, score) in [(names::SELECT_CURRENT, current), (names::SELECT_BEST, best)] {
            if let Some(score) = score {
                self.push(name, score);
            }
        }
        (self.current, self.best) = (current, best);
    }

    fn metric(&mut self, step: Option<u64>, values: &BTreeMap<String, f64>) {
        if let Some(step) = step {
            self.now.step = self.now.step.max(step as f64);
        }
        let at = Moment { step: step.map_or(self.now.step, |step| step as f64), ..self.now };
        for (name, value) in values {
            let name = shortened(name);
            // A program's own numbers never mix with the run's.
            let taken = names::ALL.contains(&name.as_str()) || name.starts_with("gpu");
            let name = if taken { format!("metric/{name}") } else { name };
            self.push_at(&name, at, *value);
        }
    }

    fn machine(&mut self, at: Moment, sample: &MachineSample) {
        self.push_at(names::CPU, at, sample.cpu);
        self.push_at(names::MEMORY, at, sample.memory_used as f64);
        self.push_at(names::RSS, at, sample.rss as f64);
        self.push_at(names::CHILDREN_RSS, at, sample.children_rss as f64);
        for gpu in sample.gpus.iter().take(MOST_GPUS) {
            let index = gpu.index;
            self.push_at(&format!("gpu{index}/memory"), at, gpu.memory_used as f64);
            let told = [("utilisation", gpu.utilisation), ("watts", gpu.watts), ("celsius", gpu.celsius)];
            for (what, value) in told {
                if let Some(value) = value {
                    self.push_at(&format!("gpu{index}/{what}"), at, value);
                }
            }
        }
        self.machine = Some((at, sample.clone()));
    }

    fn push(&mut self, name: &str, value: f64) {
        self.push_at(name, self.now, value);
    }

    fn push_at(&mut self, name: &str, at: Moment, value: f64) {
        if let Some(series) = self.series.get_mut(name) {
            series.push(at, value);
        } else if self.series.len() < MOST_SERIES {
            self.series.entry(name.to_owned()).or_default().push(at, value);
        } else {
            self.left_out += 1;
            return;
        }
        self.points += 1;
        if self.points > MOST_POINTS {
            if let Some(longest) = self.series.values_mut().max_by_key(|series| series.len()) {
                longest.thin_out();
            }
            self.points = self.series.values().map(Series::len).sum();
        }
    }
}

fn tokens_of(record: &StepRecord) -> f64 {
    record.tokens.values().map(|usage| usage.prompt_tokens + usage.completion_tokens).sum::<u64>() as f64
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{GateScore, StepRef};
    use crate::telemetry::Smoothing;

    fn metric(board: &mut Board, seq: u64, step: Option<u64>, name: &str, value: f64) {
        let event = Event::Metric { step, values: [(name.to_owned(), value)].into() };
        board.hear(&Record { seq, at: seq, event });
    }

    #[test]
    fn memory_is_bounded_in_points_and_in_names() {
        let mut board = Board::default();
        for step in 0..MOST_POINTS as u64 + 10 {
            metric(&mut board, step, Some(step), "loss", if step == 777 { 9.0 } else { 1.0 });
        }
        let loss = board.series("loss").unwrap();
        assert!(loss.len() <= MOST_POINTS && loss.heard() == MOST_POINTS + 10);
        assert_eq!(loss.extent(Smoothing::Off).limits(), Some((1.0, 9.0)));
        for name in 0..MOST_SERIES + 5 {
            metric(&mut board, 1, None, &format!("m{name}"), 0.0);
        }
        assert_eq!((board.all().count(), board.left_out()), (MOST_SERIES, 6));
        assert!(board.all().all(|(name, _)| name.chars().count() <= LONGEST));
    }

    #[test]
    fn a_programs_names_do_not_mix_with_the_runs_own() {
        let mut board = Board::default();
        for name in ["train/hard", "gpu0/memory", "reward"] {
            metric(&mut board, 1, Some(1), name, 0.5);
        }
        let names: Vec<&str> = board.all().map(|(name, _)| name).collect();
        assert_eq!(names, ["metric/train/hard", "metric/gpu0/memory", "reward"]);
        assert_eq!(board.charts()[0].title, "metric/train/hard");
    }

    #[test]
    fn a_person_makes_the_best_of_a_skill_that_scores_less() {
        let at = StepRef { epoch: 1, step: 4, step_in_epoch: 3 };
        let evaluated = |eval: &str, purpose, at: StepRef, skill: &str, gate, done| {
            let score = GateScore { hard: gate, soft: gate, gate, done, n: 4 };
            let (eval, skill_hash) = (eval.to_owned(), skill.to_owned());
            [
                Event::EvaluationStarted { eval: eval.clone(), purpose, at, skill_hash, n: 4 },
                Event::EvaluationFinished { eval, score, curtailed: false, missing: 4 - done },
            ]
        };
        let rescored = |eval, skill, gate, done| evaluated(eval, EvalPurpose::Rescore, at, skill, gate, done);
        let events = [
            evaluated("baseline", EvalPurpose::Baseline, StepRef::default(), "", 0.5, 4),
            rescored("s004/rescore", "less", 0.25, 4),
            rescored("s004/override", "half measured", 0.25, 3),
            rescored("s004/override", "crowned", 0.25, 4),
            rescored("e01/slow/rescore", "more", 0.375, 4),
        ];
        let (mut board, mut state) = (Board::default(), RunState::default());
        let bests = [Some(0.5), Some(0.5), Some(0.5), Some(0.25), Some(0.375)];
        for ((events, best), seq) in events.into_iter().zip(bests).zip((1..).step_by(2)) {
            for (event, seq) in events.into_iter().zip(seq..) {
                let record = Record { seq, at: seq, event };
                board.hear(&record);
                state.apply(&record);
            }
            assert_eq!((board.best, &board.best_hash), (best, &state.best_hash));
            assert_eq!((board.current, state.best_score), (state.current_score, best));
        }
        assert_eq!(board.best_hash, "more");
    }

    #[test]
    fn live_news_of_a_run_that_has_not_begun_has_no_place() {
        let mut board = Board::default();
        board.hear_live(&Live::Throughput { tokens_per_s: 1.0, in_flight: 1 }, 5);
        assert_eq!(board.all().count(), 0);
    }
}
