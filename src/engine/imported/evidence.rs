//! Gate decisions of a foreign run: verdict and scores as recorded, the evidence from rows of both skills where they are
//! there. Owns the comparison; must not overrule what was decided.

use std::collections::HashMap;

use crate::domain::{GateDecision, GateMetric, GateScore, Score, Verdict};
use crate::event::ItemResult;
use crate::gate::{GateInput, GateItem, Measurement, gate_decision, gate_score};
use crate::store::foreign::ForeignRollouts;

/// Recorded means and those of the rows may differ by their rounding.
const ROUNDING: f64 = 2e-6;

/// A skill's selection score with the rows behind it.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    pub score: GateScore,
    pub rows: Option<&'a ForeignRollouts>,
}

/// How the foreign run compared.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub metric: GateMetric,
    pub mixed_weight: f64,
    pub use_gate: bool,
    /// Recorded gate scores hold a bonus that no row accounts for.
    pub density: bool,
}

impl Comparison {
    /// A score from recorded numbers, else from the rows; `None` without either.
    pub fn measured<'a>(
        &self,
        hard: Option<f64>,
        soft: Option<f64>,
        gate: Option<f64>,
        rows: Option<&'a ForeignRollouts>,
    ) -> Option<Measured<'a>> {
        let hard = hard.or(rows.map(|rows| rows.counted_hard)).or(gate)?;
        let soft = soft.or(rows.map(|rows| rows.counted_soft)).unwrap_or(hard);
        let gate = gate.unwrap_or_else(|| gate_score(self.metric, self.mixed_weight, hard, soft));
        // SkillOpt counts every row, so the score is over all of them.
        let n = rows.map_or(0, |rows| rows.results.len());
        Some(Measured { score: GateScore { hard, soft, gate, n, done: n }, rows })
    }

    /// What a recorded gate score has over its means.
    fn bonus(&self, score: &GateScore) -> f64 {
        match self.density {
            true => score.gate - gate_score(self.metric, self.mixed_weight, score.hard, score.soft),
            false => 0.0,
        }
    }

    /// The recorded verdict on `candidate` with its evidence.
    pub fn decision(
        &self,
        verdict: Verdict,
        candidate_hash: &str,
        candidate: &Measured<'_>,
        current: &Measured<'_>,
        best: &Measured<'_>,
    ) -> GateDecision {
        let rows = candidate.rows.map(|rows| rows.results.as_slice()).unwrap_or_default();
        let before = current.rows.map(|rows| rows.results.as_slice()).unwrap_or_default();
        let items = paired(before, rows);
        let mut decision = gate_decision(&GateInput {
            metric: self.metric,
            mixed_weight: self.mixed_weight,
            use_gate: self.use_gate,
            candidate_hash,
            candidate_bonus: self.bonus(&candidate.score),
            current_bonus: self.bonus(&current.score),
            items: &items,
            best: &best.score,
        });
        let recomputed = |one: f64, other: f64| (one - other).abs() <= ROUNDING;
        let agrees = !items.is_empty()
            && decision.verdict == verdict
            && recomputed(decision.candidate.gate, candidate.score.gate)
            && recomputed(decision.current.gate, current.score.gate);
        if !agrees {
            decision.why = recorded(verdict, candidate, current, items.len(), &decision);
        }
        decision.verdict = verdict;
        decision.candidate = candidate.score.clone();
        decision.current = current.score.clone();
        decision.curtailed = false;
        decision
    }
}

/// Whether rows are those that a recorded mean was taken over: rows of an earlier text may lie in the same place.
pub fn rows_fit(rows: &ForeignRollouts, recorded_hard: f64) -> bool {
    (rows.counted_hard - recorded_hard).abs() <= ROUNDING
}

/// The items that the current skill has a score for and that the candidate has a row of.
fn paired<'a>(before: &'a [ItemResult], after: &'a [ItemResult]) -> Vec<GateItem<'a>> {
    let scores: HashMap<&str, &Score> =
        before.iter().filter_map(|result| Some((result.item(), &result.rollout()?.score))).collect();
    let item = |result: &'a ItemResult| {
        Some(GateItem {
            id: result.item(),
            current: scores.get(result.item())?,
            candidate: result
                .rollout()
                .map_or(Measurement::Missing, |rollout| Measurement::Scored(&rollout.score)),
        })
    };
    after.iter().filter_map(item).collect()
}

/// One sentence for a decision that the rows do not repeat.
fn recorded(
    verdict: Verdict,
    candidate: &Measured<'_>,
    current: &Measured<'_>,
    pairs: usize,
    evidence: &GateDecision,
) -> String {
    let scores = format!("{:.3} against {:.3}", candidate.score.gate, current.score.gate);
    let evidence = match pairs {
        0 => "no item of both skills is recorded".to_owned(),
        n => format!(
            "{} gained, {} lost on {n} items with rows of both skills",
            evidence.gained.len(),
            evidence.lost.len()
        ),
    };
    format!("Recorded as {}: {scores}; {evidence}.", verdict.name())
}
