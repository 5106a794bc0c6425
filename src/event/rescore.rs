//! What it does to the best when the current skill is measured once more. The one rule of the fold and of whoever draws its
//! numbers; changes nothing itself.

use crate::domain::GateScore;

/// What a measurement of the current skill means for the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rescore {
    /// A mean over some of the items is no score.
    NoScore,
    /// Another skill stays the best.
    BestStays,
    /// The best skill itself has this score now.
    OfBest,
    /// It is the best from now on.
    NewBest,
    /// It is the best from now on: a person made it so before it was measured as a whole.
    Crowned,
}

impl Rescore {
    /// `eval`: name of the evaluation after step `step`; `of_best`: what it measured is the best skill, which has `best`.
    pub fn of(eval: &str, step: u32, score: &GateScore, of_best: bool, best: Option<f64>) -> Self {
        if score.done < score.n {
            return Self::NoScore;
        }
        // What a continued run measures before its first step decides nothing.
        let after_a_verdict = step > 0;
        if after_a_verdict && eval.ends_with("/override") {
            Self::Crowned
        } else if of_best {
            Self::OfBest
        } else if after_a_verdict && score.beats(best.unwrap_or(f64::NEG_INFINITY)) {
            Self::NewBest
        } else {
            Self::BestStays
        }
    }

    /// Whether the best has the score that was measured.
    pub fn is_best(self) -> bool {
        match self {
            Self::NoScore | Self::BestStays => false,
            Self::OfBest | Self::NewBest | Self::Crowned => true,
        }
    }
}
