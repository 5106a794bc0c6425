use proptest::prelude::*;

use super::super::decide_strict;
use super::super::score::{item_score, summarize};
use super::*;
use crate::domain::Verdict;
use crate::env::mersenne::Random;

const METRICS: [GateMetric; 3] = [GateMetric::Hard, GateMetric::Soft, GateMetric::Mixed];

fn score(hard: f64, soft: f64) -> Score {
    Score { hard, soft, reason: String::new() }
}

fn passes(results: &[f64]) -> Vec<Score> {
    results.iter().map(|hard| score(*hard, *hard)).collect()
}

/// Runs an evaluation one item after the other and returns the recorded number and the side.
fn serial(evaluation: &mut Curtailment, results: &[Score]) -> (usize, Option<Side>) {
    for result in results {
        if evaluation.certain().is_some() {
            break;
        }
        evaluation.record(Some(result));
    }
    (evaluation.recorded(), evaluation.certain())
}

#[test]
fn incumbent_failures_come_first_and_ties_keep_their_order() {
    assert_eq!(evaluation_order(&[1.0, 0.0, 0.5, 0.0, 1.0]), [1, 3, 2, 0, 4]);
    assert_eq!(evaluation_order(&[]), [0usize; 0]);
}

#[test]
fn a_perfect_incumbent_needs_no_run() {
    let evaluation = Curtailment::new(GateMetric::Hard, 0.5, 1.0, 40);
    assert_eq!((evaluation.certain(), evaluation.next_flight()), (Some(Side::Reject), 0));
    assert!(evaluation.finished());
}

#[test]
fn a_single_failure_to_fix_decides() {
    // The incumbent passes 9 of 10; its one failure runs first.
    let mut evaluation = Curtailment::new(GateMetric::Hard, 0.5, 0.9, 10);
    assert_eq!(evaluation.next_flight(), 1);
    evaluation.record(Some(&score(0.0, 0.0)));
    assert_eq!(evaluation.certain(), Some(Side::Reject));
    let mut evaluation = Curtailment::new(GateMetric::Hard, 0.5, 0.9, 10);
    evaluation.record(Some(&score(1.0, 1.0)));
    assert_eq!((evaluation.certain(), evaluation.next_flight()), (None, 1), "one loss and it is a tie");
}

#[test]
fn after_a_certain_acceptance_the_rest_is_finished() {
    let mut evaluation = Curtailment::new(GateMetric::Hard, 0.5, 0.1, 10);
    assert_eq!(evaluation.next_flight(), 2);
    evaluation.record(Some(&score(1.0, 1.0)));
    evaluation.record(Some(&score(1.0, 1.0)));
    assert_eq!((evaluation.certain(), evaluation.next_flight()), (Some(Side::Accept), 8));
    assert!(!evaluation.finished());
}

#[test]
fn missing_items_may_still_be_anything() {
    let mut evaluation = Curtailment::new(GateMetric::Hard, 0.5, 0.5, 2);
    evaluation.record(None);
    evaluation.record(Some(&score(1.0, 1.0)));
    assert_eq!((evaluation.bounds(), evaluation.certain()), ((0.5, 1.0), None));
    assert_eq!(evaluation.next_flight(), 0, "nothing is left to run");
    let mut evaluation = Curtailment::new(GateMetric::Hard, 0.5, 0.5, 2);
    evaluation.record(Some(&score(f64::NAN, 0.0)));
    evaluation.record(Some(&score(0.0, 0.0)));
    assert_eq!(evaluation.certain(), Some(Side::Reject));
}

#[test]
fn a_bar_that_is_no_number_rejects() {
    assert_eq!(Curtailment::new(GateMetric::Hard, 0.5, f64::NAN, 5).certain(), Some(Side::Reject));
}

/// Sums of tenths differ from their exact value when added step by step; here they would tip the verdict.
#[test]
fn a_tie_of_tenths_is_a_tie() {
    let current = passes(&[0.1; 10]);
    let bar = summarize(GateMetric::Hard, 0.5, 10, &current).gate;
    let results = passes(&[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]);
    let mut evaluation = Curtailment::new(GateMetric::Hard, 0.5, bar, 10);
    assert_eq!(serial(&mut evaluation, &results), (10, Some(Side::Reject)));
}

fn graded() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), Just(0.1), Just(1.0 / 3.0), Just(0.7), 0.0..=1.0f64]
}

fn pair() -> impl Strategy<Value = (Score, Score)> {
    let pass = prop_oneof![Just(0.0), Just(1.0)];
    let binary = (pass.clone(), pass.clone()).prop_map(|(a, c)| (score(a, a), score(c, c)));
    let graded = (graded(), graded(), graded(), graded()).prop_map(|(a, b, c, d)| (score(a, b), score(c, d)));
    prop_oneof![binary, graded]
}

fn pass_fail_pairs() -> impl Strategy<Value = Vec<(Score, Score)>> {
    let pass = prop_oneof![Just(0.0), Just(1.0)];
    prop::collection::vec((pass.clone(), pass).prop_map(|(a, c)| (score(a, a), score(c, c))), 1..60)
}

fn check(pairs: &[(Score, Score)], metric: GateMetric, weight: f64, in_flight: usize, seed: u64) {
    let current: Vec<f64> = pairs.iter().map(|(a, _)| item_score(metric, weight, a)).collect();
    let order = evaluation_order(&current);
    let results: Vec<Score> = order.iter().map(|&i| pairs[i].1.clone()).collect();
    let n = pairs.len();
    let bar = summarize(metric, weight, n, pairs.iter().map(|(a, _)| a)).gate;
    let full = summarize(metric, weight, n, &results).gate;
    let accepted = decide_strict(full, bar, bar) != Verdict::Reject;

    let mut one_by_one = Curtailment::new(metric, weight, bar, n);
    let (needed, side) = serial(&mut one_by_one, &results);
    assert_eq!(side, Some(if accepted { Side::Accept } else { Side::Reject }), "curtailed is not full");

    // The same with up to `in_flight` items at once that finish in random order.
    let mut evaluation = Curtailment::new(metric, weight, bar, n);
    let mut random = Random::new(seed);
    let (mut launched, mut running, mut done) = (0, Vec::new(), vec![false; n]);
    while !evaluation.finished() {
        let allowed = evaluation.recorded() + evaluation.next_flight();
        while launched < allowed && running.len() < in_flight {
            running.push(launched);
            launched += 1;
        }
        random.shuffle(&mut running);
        done[running.pop().unwrap()] = true;
        while evaluation.recorded() < n && done[evaluation.recorded()] {
            evaluation.record(Some(&results[evaluation.recorded()]));
        }
    }
    assert_eq!(evaluation.certain(), side);
    assert_eq!(
        launched,
        if accepted { n } else { needed },
        "an item ran that a serial run would not have run"
    );
}

proptest! {
    #[test]
    fn pass_fail_verdicts_are_those_of_the_full_run(
        pairs in pass_fail_pairs(), in_flight in 1..9usize, seed in any::<u64>(),
    ) {
        check(&pairs, GateMetric::Hard, 0.5, in_flight, seed);
    }

    #[test]
    fn graded_verdicts_are_those_of_the_full_run(
        pairs in prop::collection::vec(pair(), 1..40),
        metric in prop::sample::select(METRICS.to_vec()),
        weight in 0.0..=1.0f64,
        in_flight in 1..9usize,
        seed in any::<u64>(),
    ) {
        check(&pairs, metric, weight, in_flight, seed);
    }

    /// Near-ties in random order: the cases where a rounding error would show.
    #[test]
    fn equal_scores_in_another_order_are_a_tie(
        scores in prop::collection::vec((graded(), graded()), 1..40), seed in any::<u64>(),
    ) {
        let current: Vec<Score> = scores.iter().map(|(hard, soft)| score(*hard, *soft)).collect();
        let mut candidate = current.clone();
        Random::new(seed).shuffle(&mut candidate);
        for metric in METRICS {
            let bar = summarize(metric, 0.3, current.len(), &current).gate;
            let mut evaluation = Curtailment::new(metric, 0.3, bar, current.len());
            prop_assert_eq!(serial(&mut evaluation, &candidate).1, Some(Side::Reject));
        }
    }
}
