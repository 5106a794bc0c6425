//! The end of a foreign run as events: final selection, tests, and the word that it is an import.

use std::collections::HashMap;

use super::Story;
use super::evidence::Measured;
use crate::domain::{Phase, Score};
use crate::event::{EndStatus, EvalPurpose, Event, LastOutcome, Record, TestOutcome};
use crate::gate::paired_gain;
use crate::store::foreign::{ForeignRollouts, ForeignSummary};

impl<'a> Story<'a> {
    /// The last events, and with them the whole journal.
    pub(super) fn end(mut self) -> Vec<Record> {
        self.final_selection();
        self.test();
        let done = self.run.steps.iter().filter(|step| step.record.is_some()).count();
        let standing = &self.run.standing;
        if let Some(known) = standing.current.as_ref().filter(|known| known.hash != self.current_hash()) {
            let hash = known.hash.clone();
            self.tape
                .warn(format!("the current skill is recorded as {hash}, which the steps do not lead to"));
        }
        let ended = if self.run.summary.present { "" } else { ", not at its end" };
        let reason = format!("imported from {}, {done} steps done{ended}", self.run.folder.display());
        self.tape.wait_until(self.run.ended_at);
        self.tape.push(Event::RunFinished {
            status: EndStatus::Imported,
            reason,
            best_hash: self.best_hash,
            best_step: standing.best_step,
            best_score: standing.best_score,
            baseline_score: self.baseline_score,
        });
        self.tape.into_records()
    }

    fn final_selection(&mut self) {
        let Some(measured) = self.comparison.measured(None, None, None, self.run.final_selection.as_ref())
        else {
            return;
        };
        let at = self.at;
        self.phase(at, Phase::FinalSelection);
        let hash = self.current_hash();
        self.evaluation("final_selection", EvalPurpose::FinalSelection, at, &hash, &measured);
        let promoted =
            self.run.standing.best.as_ref().is_some_and(|best| best.hash == hash) && self.best_hash != hash;
        if promoted {
            self.best_hash = hash;
            self.best_score = Some(measured.clone());
        }
        self.tape.push(Event::FinalSelectionFinished { score: measured.score, promoted });
    }

    fn test(&mut self) {
        let run = self.run;
        let ForeignSummary { baseline_test_hard, baseline_test_soft, test_hard, test_soft, .. } = run.summary;
        let compare = self.comparison;
        let base = compare.measured(baseline_test_hard, baseline_test_soft, None, run.test_initial.as_ref());
        let best = compare.measured(test_hard, test_soft, None, run.test_best.as_ref());
        let last = compare.measured(None, None, None, run.test_final.as_ref());
        if base.is_none() && best.is_none() && last.is_none() {
            return;
        }
        let at = self.at;
        self.phase(at, Phase::Test);
        let initial = run.initial().map(|skill| skill.hash.clone()).unwrap_or_default();
        let (of_best, of_last) = (self.best_hash.clone(), self.current_hash());
        for (id, purpose, hash, measured) in [
            ("test_base", EvalPurpose::TestBase, initial, &base),
            ("test_best", EvalPurpose::TestBest, of_best, &best),
            ("test_final", EvalPurpose::TestFinal, of_last, &last),
        ] {
            if let Some(measured) = measured {
                self.evaluation(id, purpose, at, &hash, measured);
            }
        }
        if let (Some(base), Some(best)) = (base, best) {
            let outcome = outcome(&base, &best, last.as_ref());
            self.tape.push(Event::TestFinished { outcome });
        }
    }
}

/// The comparison on the items that both skills answered; without rows the recorded means stand alone.
fn outcome(base: &Measured<'_>, best: &Measured<'_>, last: Option<&Measured<'_>>) -> TestOutcome {
    let pairs = pairs(base.rows, best.rows);
    let hard: Vec<(f64, f64)> = pairs.iter().map(|(base, best)| (base.hard, best.hard)).collect();
    let gain = paired_gain(&hard);
    let mean = |value: &dyn Fn(&(&Score, &Score)) -> f64, recorded: f64| match pairs.len() {
        0 => recorded,
        n => pairs.iter().map(value).sum::<f64>() / n as f64,
    };
    let base_hard = mean(&|pair| pair.0.hard, base.score.hard);
    let best_hard = mean(&|pair| pair.1.hard, best.score.hard);
    TestOutcome {
        n: gain.n,
        base_hard,
        base_soft: mean(&|pair| pair.0.soft, base.score.soft),
        best_hard,
        best_soft: mean(&|pair| pair.1.soft, best.score.soft),
        gained: gain.gains,
        lost: gain.losses,
        delta: best_hard - base_hard,
        interval: gain.interval,
        last: last.map(|last| last_outcome(base, last)),
    }
}

fn last_outcome(base: &Measured<'_>, last: &Measured<'_>) -> LastOutcome {
    let pairs = pairs(base.rows, last.rows);
    if pairs.is_empty() {
        let (hard, soft) = (last.score.hard, last.score.soft);
        return LastOutcome { n: 0, hard, soft, delta: hard - base.score.hard };
    }
    let mean =
        |value: fn(&(&Score, &Score)) -> f64| pairs.iter().map(value).sum::<f64>() / pairs.len() as f64;
    let (before, hard) = (mean(|pair| pair.0.hard), mean(|pair| pair.1.hard));
    LastOutcome { n: pairs.len(), hard, soft: mean(|pair| pair.1.soft), delta: hard - before }
}

fn pairs<'r>(
    first: Option<&'r ForeignRollouts>,
    second: Option<&'r ForeignRollouts>,
) -> Vec<(&'r Score, &'r Score)> {
    let (Some(first), Some(second)) = (first, second) else { return Vec::new() };
    let scores: HashMap<&str, &Score> =
        first.results.iter().filter_map(|result| Some((result.item(), &result.rollout()?.score))).collect();
    let scored = second.results.iter().filter_map(|result| result.rollout());
    scored.filter_map(|rollout| Some((*scores.get(rollout.item.as_str())?, &rollout.score))).collect()
}
