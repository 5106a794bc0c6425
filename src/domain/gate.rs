//! Scores the gate compares and what it decided.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateMetric {
    #[default]
    Hard,
    Soft,
    Mixed,
}

/// Means over an evaluation of `n` items, of which `done` have a score. A candidate's evaluation with `done < n` holds
/// the best case instead: what it would have if every other item were right ("at most").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateScore {
    pub hard: f64,
    pub soft: f64,
    /// The compared number: hard, soft or (1 - w) * hard + w * soft.
    pub gate: f64,
    pub n: usize,
    pub done: usize,
}

impl GateScore {
    /// Higher than `best`, with a score for every item.
    pub fn beats(&self, best: f64) -> bool {
        self.done == self.n && self.gate > best
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    AcceptNewBest,
    Accept,
    ForceAccept,
    Reject,
    /// Not decidable: items are missing. Nothing changes.
    Undecided,
    SkipNoPatches,
    /// No usable new document came of the step's proposals.
    SkipNoRewrite,
    /// The candidate equals the current skill: nothing was measured.
    SkipNoChange,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::AcceptNewBest => "accept_new_best",
            Self::Accept => "accept",
            Self::ForceAccept => "force_accept",
            Self::Reject => "reject",
            Self::Undecided => "undecided",
            Self::SkipNoPatches => "skip_no_patches",
            Self::SkipNoRewrite => "skip_no_rewrite",
            Self::SkipNoChange => "skip_no_change",
        }
    }

    pub fn accepted(self) -> bool {
        matches!(self, Self::AcceptNewBest | Self::Accept | Self::ForceAccept)
    }
}

/// One gate decision with its evidence. Item ids only: held-out content stays out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateDecision {
    pub verdict: Verdict,
    pub metric: GateMetric,
    pub candidate_hash: String,
    pub candidate: GateScore,
    pub current: GateScore,
    pub best: GateScore,
    /// Items the candidate passes and the current skill fails, and the reverse (measured items only).
    pub gained: Vec<String>,
    pub lost: Vec<String>,
    /// mid-p of the exact one-sided McNemar test on gains and losses; `None` without discordant items.
    pub mid_p: Option<f64>,
    /// Interval of (candidate - current), 95 %, on the measured items.
    pub interval: (f64, f64),
    /// Smallest gain visible on n items at one-sided alpha 0.1 and power 0.8.
    pub smallest_visible_gain: f64,
    /// The evaluation stopped early because the verdict was certain.
    pub curtailed: bool,
    /// One sentence for people.
    pub why: String,
}

impl GateDecision {
    /// Whether the decision makes the candidate the best skill so far (`force_accept` does not say).
    pub fn takes_best(&self) -> bool {
        self.verdict.accepted() && self.candidate.gate > self.best.gate
    }
}
