//! What measuring is for and what it comes to: purposes of evaluations, results of items, the final test.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::Rollout;

/// Why an evaluation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalPurpose {
    Baseline,
    Candidate,
    /// The current skill again, after a change outside the gate.
    Rescore,
    /// The best skill again, where a run goes on that measured it under other conditions.
    RescoreBest,
    /// The skill of the previous epoch on a sample of training items, and the current one on the same.
    LongitudinalPrev,
    LongitudinalCurr,
    /// Training items again, with a diagnostic instruction.
    DeepProbe,
    SlowCandidate,
    MetaReflectCandidate,
    /// The last skill, when it is not the best, before the test.
    FinalSelection,
    TestBase,
    TestBest,
    TestFinal,
}

impl EvalPurpose {
    /// Rolls out training items: nothing of it decides a verdict.
    pub fn on_training_items(self) -> bool {
        matches!(self, Self::LongitudinalPrev | Self::LongitudinalCurr | Self::DeepProbe)
    }

    /// Measures on the selection split.
    pub fn on_selection_items(self) -> bool {
        match self {
            Self::Baseline
            | Self::Candidate
            | Self::Rescore
            | Self::RescoreBest
            | Self::SlowCandidate
            | Self::MetaReflectCandidate
            | Self::FinalSelection => true,
            Self::LongitudinalPrev
            | Self::LongitudinalCurr
            | Self::DeepProbe
            | Self::TestBase
            | Self::TestBest
            | Self::TestFinal => false,
        }
    }

    /// Measures a candidate for a verdict.
    pub fn is_candidate(self) -> bool {
        matches!(self, Self::Candidate | Self::SlowCandidate | Self::MetaReflectCandidate)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Candidate => "candidate",
            Self::Rescore => "current again",
            Self::RescoreBest => "best again",
            Self::LongitudinalPrev => "previous epoch's skill",
            Self::LongitudinalCurr => "this epoch's skill",
            Self::DeepProbe => "deep probe",
            Self::SlowCandidate => "slow-update candidate",
            Self::MetaReflectCandidate => "meta-reflect candidate",
            Self::FinalSelection => "final selection",
            Self::TestBase => "test of the seed",
            Self::TestBest => "test of the best",
            Self::TestFinal => "test of the last",
        }
    }
}

/// A result that may be missing: an infrastructure failure is never a score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemResult {
    Scored(Arc<Rollout>),
    /// Not answered after all retries: error text, redacted.
    Missing {
        item: String,
        error: String,
    },
}

impl ItemResult {
    pub fn item(&self) -> &str {
        match self {
            ItemResult::Scored(rollout) => &rollout.item,
            ItemResult::Missing { item, .. } => item,
        }
    }

    pub fn rollout(&self) -> Option<&Rollout> {
        match self {
            ItemResult::Scored(rollout) => Some(rollout),
            ItemResult::Missing { .. } => None,
        }
    }
}

/// Test-split comparison of the base and the best skill, paired by item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestOutcome {
    pub n: usize,
    pub base_hard: f64,
    pub base_soft: f64,
    pub best_hard: f64,
    pub best_soft: f64,
    pub gained: usize,
    pub lost: usize,
    /// best_hard - base_hard and its 95 % interval.
    pub delta: f64,
    pub interval: (f64, f64),
    /// The last skill on the items that it and the seed answered; `None` in journals that did not test it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastOutcome>,
}

/// The last skill's test; equal to the best's when both are one text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastOutcome {
    pub n: usize,
    pub hard: f64,
    pub soft: f64,
    /// hard - the seed's, on the same items.
    pub delta: f64,
}
