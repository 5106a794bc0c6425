//! The strict gate: candidate above current, single run, stored incumbent scores; with its evidence and one sentence
//! for people. Owns the verdict; must not change what the run holds as current or best.

use super::curtailment::{Curtailment, Side};
use super::score::{best_case, item_score, summarize};
use super::statistics::{PairedGain, paired_gain, smallest_visible_gain};
use crate::domain::{GateDecision, GateMetric, GateScore, Score, Verdict};

/// The strict rule on gate scores: accept when above `current`, new best when above `best` too. Ties and anything that
/// is not a number reject.
pub fn decide_strict(candidate: f64, current: f64, best: f64) -> Verdict {
    if candidate > current {
        if candidate > best { Verdict::AcceptNewBest } else { Verdict::Accept }
    } else {
        Verdict::Reject
    }
}

/// What became of one selection item under the candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measurement<'a> {
    Scored(&'a Score),
    /// Its call failed for good.
    Missing,
    /// The evaluation was stopped before it.
    NotRun,
}

/// One selection item: its id, the current skill's stored score, the candidate's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateItem<'a> {
    pub id: &'a str,
    pub current: &'a Score,
    pub candidate: Measurement<'a>,
}

#[derive(Clone, Copy, Debug)]
pub struct GateInput<'a> {
    pub metric: GateMetric,
    pub mixed_weight: f64,
    /// `false`: every completely measured candidate is accepted (`force_accept`).
    pub use_gate: bool,
    pub candidate_hash: &'a str,
    /// What the texts add to the scores (semantic density).
    pub candidate_bonus: f64,
    pub current_bonus: f64,
    /// The whole selection set, in any order.
    pub items: &'a [GateItem<'a>],
    pub best: &'a GateScore,
}

/// The verdict with its evidence. A rejection may rest on part of the items when it is certain; an acceptance needs all
/// of them, because the score becomes the next bar. Otherwise missing items leave the verdict undecided.
pub fn gate_decision(input: &GateInput) -> GateDecision {
    let GateInput { metric, mixed_weight, items, .. } = *input;
    let n = items.len();
    let mut current = summarize(metric, mixed_weight, n, items.iter().map(|item| item.current));
    current.gate += input.current_bonus;
    let mut evaluation =
        Curtailment::new(metric, mixed_weight, current.gate, n).with_bonus(input.candidate_bonus);
    let mut measured: Vec<(&GateItem, &Score)> = Vec::new();
    let mut not_run = 0;
    for item in items {
        match item.candidate {
            Measurement::Scored(score) if !score.hard.is_nan() && !score.soft.is_nan() => {
                evaluation.record(Some(score));
                measured.push((item, score));
            }
            Measurement::Scored(_) | Measurement::Missing => evaluation.record(None),
            Measurement::NotRun => not_run += 1,
        }
    }
    let mut candidate = best_case(metric, mixed_weight, n, measured.iter().map(|(_, score)| *score));
    candidate.gate += input.candidate_bonus;
    let verdict = if measured.len() == n {
        match input.use_gate {
            true => decide_strict(candidate.gate, current.gate, input.best.gate),
            false => Verdict::ForceAccept,
        }
    } else if input.use_gate && evaluation.certain() == Some(Side::Reject) {
        Verdict::Reject
    } else {
        Verdict::Undecided
    };
    let pair = |(item, score): &(&GateItem, &Score)| {
        (item_score(metric, mixed_weight, item.current), item_score(metric, mixed_weight, score))
    };
    let pairs: Vec<(f64, f64)> = measured.iter().map(pair).collect();
    let gain = paired_gain(&pairs);
    let ids = |better: fn(f64, f64) -> bool| -> Vec<String> {
        let rows = measured.iter().zip(&pairs);
        rows.filter(|(_, pair)| better(pair.0, pair.1)).map(|((item, _), _)| item.id.to_owned()).collect()
    };
    let why = Evidence {
        verdict,
        candidate: &candidate,
        current: &current,
        best: input.best,
        gain: &gain,
        bonuses: (input.candidate_bonus, input.current_bonus),
    };
    GateDecision {
        verdict,
        metric,
        candidate_hash: input.candidate_hash.to_owned(),
        why: why.sentence(),
        gained: ids(|current, candidate| candidate > current),
        lost: ids(|current, candidate| candidate < current),
        mid_p: gain.mid_p,
        interval: gain.interval,
        smallest_visible_gain: smallest_visible_gain(gain.psi, n),
        curtailed: verdict == Verdict::Reject && not_run > 0,
        candidate,
        current,
        best: input.best.clone(),
    }
}

struct Evidence<'a> {
    verdict: Verdict,
    candidate: &'a GateScore,
    current: &'a GateScore,
    best: &'a GateScore,
    gain: &'a PairedGain,
    /// What the candidate's and the current text add.
    bonuses: (f64, f64),
}

impl Evidence<'_> {
    fn sentence(&self) -> String {
        let Self { candidate, current, best, gain, .. } = self;
        let mut scores =
            format!("{:.3} against {:.3} on {} items", candidate.gate, current.gate, candidate.n);
        if self.bonuses != (0.0, 0.0) {
            let (candidate, current) = self.bonuses;
            scores += &format!(" (with {candidate:.3} and {current:.3} for leading words)");
        }
        let evidence = match gain.mid_p {
            Some(p) => format!(
                "{} gained, {} lost, {:.0} % sure that it helps",
                gain.gains,
                gain.losses,
                100.0 * (1.0 - p)
            ),
            None => "no item changed".to_owned(),
        };
        match self.verdict {
            Verdict::AcceptNewBest => format!("Accepted as the new best: {scores}; {evidence}."),
            Verdict::Accept => {
                format!("Accepted: {scores}, but not above the best ({:.3}); {evidence}.", best.gate)
            }
            Verdict::ForceAccept => format!("Accepted because the gate is off: {scores}; {evidence}."),
            Verdict::Reject if candidate.done == 0 && candidate.n > 0 => format!(
                "Rejected without a measurement: no result could lift the candidate above {:.3}.",
                current.gate
            ),
            Verdict::Reject if candidate.done < candidate.n => format!(
                "Rejected after {} of {} items: no result of the others could lift it above {:.3}; {evidence}.",
                candidate.done, candidate.n, current.gate
            ),
            Verdict::Reject => format!("Rejected: {scores}, not above it; {evidence}."),
            Verdict::Undecided => format!(
                "Undecided: {} of {} items have no score and could change the verdict; the current skill stays.",
                candidate.n - candidate.done,
                candidate.n
            ),
            Verdict::SkipNoPatches => "Skipped: no patch to measure.".to_owned(),
            Verdict::SkipNoRewrite => "Skipped: no usable rewrite to measure.".to_owned(),
            Verdict::SkipNoChange => "Skipped: the candidate equals the current skill.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(hard: f64) -> Score {
        Score { hard, soft: hard, reason: String::new() }
    }

    fn decide(current: &[f64], candidate: &[Option<f64>], use_gate: bool, best: f64) -> GateDecision {
        let current: Vec<Score> = current.iter().map(|hard| score(*hard)).collect();
        let candidate: Vec<Option<Score>> = candidate.iter().map(|hard| hard.map(score)).collect();
        let ids: Vec<String> = (0..current.len()).map(|i| format!("i{i}")).collect();
        let rows = ids.iter().zip(&current).zip(&candidate);
        let items: Vec<GateItem> = rows
            .map(|((id, current), candidate)| GateItem {
                id,
                current,
                candidate: candidate.as_ref().map_or(Measurement::Missing, Measurement::Scored),
            })
            .collect();
        let best = GateScore { hard: best, soft: best, gate: best, n: current.len(), done: current.len() };
        gate_decision(&GateInput {
            candidate_bonus: 0.0,
            current_bonus: 0.0,
            metric: GateMetric::Hard,
            mixed_weight: 0.5,
            use_gate,
            candidate_hash: "c0ffee",
            items: &items,
            best: &best,
        })
    }

    #[test]
    fn evidence_names_gained_and_lost_items() {
        let decision =
            decide(&[0.0, 1.0, 0.0, 1.0], &[Some(1.0), Some(0.0), Some(1.0), Some(1.0)], true, 0.5);
        assert_eq!(decision.verdict, Verdict::AcceptNewBest);
        assert_eq!((decision.gained, decision.lost), (vec!["i0".to_owned(), "i2".into()], vec!["i1".into()]));
        assert!(decision.mid_p.is_some_and(|p| (p - 0.3125).abs() < 1e-12));
        assert_eq!((decision.current.gate, decision.candidate.gate), (0.5, 0.75));
        let n = decision.candidate.n as f64;
        assert!((decision.smallest_visible_gain - 2.124 * (0.75 / n).sqrt()).abs() < 1e-12);
        assert_eq!(
            decision.why,
            "Accepted as the new best: 0.750 against 0.500 on 4 items; 2 gained, 1 lost, 69 % sure that it helps."
        );
    }

    #[test]
    fn a_missing_item_is_no_zero() {
        let undecided = decide(&[0.0, 1.0, 1.0], &[Some(1.0), Some(1.0), None], true, 1.0);
        assert_eq!(undecided.verdict, Verdict::Undecided, "as a zero it would have been rejected");
        assert!(undecided.why.contains("1 of 3 items"), "{}", undecided.why);
        let no_bar = decide(&[0.0, 0.0, 1.0], &[Some(1.0), Some(1.0), None], true, 0.5);
        assert_eq!(no_bar.verdict, Verdict::Undecided, "above the bar, but the score would be no bar");
        let rejected = decide(&[1.0, 1.0, 1.0], &[Some(1.0), Some(1.0), None], true, 1.0);
        assert_eq!((rejected.verdict, rejected.curtailed), (Verdict::Reject, false));
        let nan = decide(&[0.0, 1.0], &[Some(f64::NAN), Some(1.0)], true, 0.5);
        assert_eq!(nan.verdict, Verdict::Undecided);
        assert_eq!(nan.candidate.done, 1);
    }

    #[test]
    fn with_the_gate_off_only_completeness_counts() {
        let lower = decide(&[1.0, 1.0], &[Some(0.0), Some(0.0)], false, 1.0);
        assert_eq!((lower.verdict, lower.takes_best()), (Verdict::ForceAccept, false));
        let higher = decide(&[0.0, 1.0], &[Some(1.0), Some(1.0)], false, 0.5);
        assert!(higher.takes_best());
        assert_eq!(decide(&[1.0, 1.0], &[Some(0.0), None], false, 1.0).verdict, Verdict::Undecided);
    }

    #[test]
    fn an_identical_candidate_is_a_tie() {
        let decision = decide(&[1.0, 0.0], &[Some(1.0), Some(0.0)], true, 0.5);
        assert_eq!((decision.verdict, decision.mid_p), (Verdict::Reject, None));
        assert!(decision.why.contains("no item changed"), "{}", decision.why);
        assert!(decision.smallest_visible_gain > 0.5, "no difference seen is no promise of precision");
    }

    #[test]
    fn an_empty_selection_set_rejects_without_a_number_going_wrong() {
        let decision = decide(&[], &[], true, 0.0);
        assert_eq!((decision.verdict, decision.interval), (Verdict::Reject, (-1.0, 1.0)));
        assert_eq!(decision.smallest_visible_gain, 1.0);
    }
}
