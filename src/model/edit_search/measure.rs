//! How much better a changed skill makes the reference answers, by mean log-probability. Must not propose anything.

use std::fmt;

use super::document::document_prompt;
use crate::domain::{Edit, Trajectory};
use crate::model::{Likelihood, ModelError};

/// Mean over items of the mean log-probability (nats) per answer token, before and after an edit, on the same items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub before: f64,
    pub after: f64,
    /// Items measured on; the edit's own item is never one of them.
    pub items: usize,
    /// Of these, items whose answer became likelier.
    pub better: u32,
}

const PREFIX: &str = "log p(answer) per token ";

impl Measured {
    pub fn gain(&self) -> f64 {
        self.after - self.before
    }

    /// Reads a gain back from the rationale of an edit; edits of another origin have none.
    pub fn gain_of(edit: &Edit) -> f64 {
        let numbers = || {
            let (_, rest) = edit.rationale.split_once(PREFIX)?;
            let (before, rest) = rest.split_once(" -> ")?;
            let after = rest.split_whitespace().next()?;
            Some(after.parse::<f64>().ok()? - before.parse::<f64>().ok()?)
        };
        numbers().filter(|gain| gain.is_finite()).unwrap_or(0.0)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, after, items, better } = self;
        write!(f, "{PREFIX}{before:.3} -> {after:.3} on {items} other training items ({better} better)")
    }
}

/// A skill text and the items (by index) its answers are scored on.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub skill: String,
    pub items: Vec<usize>,
}

/// Scores every trial's answers in one request to the model: for each trial, one number per item.
///
/// # Errors
/// Those of the model, and a reply of the wrong length.
pub async fn score(
    likelihood: &dyn Likelihood,
    trajectories: &[Trajectory],
    trials: &[Trial],
) -> Result<Vec<Vec<f64>>, ModelError> {
    let mut pairs = Vec::new();
    for trial in trials {
        for item in &trial.items {
            let trajectory = &trajectories[*item];
            pairs.push((document_prompt(&trial.skill, &trajectory.task), trajectory.gold.clone()));
        }
    }
    if pairs.is_empty() {
        return Ok(trials.iter().map(|_| Vec::new()).collect());
    }
    let scores = likelihood.score(&pairs).await?;
    if scores.len() != pairs.len() {
        let message = format!("{} scores for {} continuations", scores.len(), pairs.len());
        return Err(ModelError::Worker { message });
    }
    let mut means = scores.into_iter().map(|(sum, tokens)| sum / tokens.max(1) as f64);
    Ok(trials.iter().map(|trial| means.by_ref().take(trial.items.len()).collect()).collect())
}

/// Compares two scorings of the same items; `None` without items or with a score that is no number.
pub fn compare(before: &[f64], after: &[f64]) -> Option<Measured> {
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let better = before.iter().zip(after).filter(|(before, after)| after > before).count();
    let measured = Measured {
        before: mean(before),
        after: mean(after),
        items: before.len(),
        better: u32::try_from(better).unwrap_or(u32::MAX),
    };
    measured.gain().is_finite().then_some(measured)
}

#[cfg(test)]
mod tests {
    use super::super::document::append;
    use super::*;

    #[test]
    fn gains_survive_the_rationale() {
        let measured = compare(&[-4.0, -2.0], &[-1.0, -2.5]).unwrap();
        assert_eq!((measured.before, measured.after, measured.items, measured.better), (-3.0, -1.75, 2, 1));
        let mut edit = append("x");
        assert_eq!(Measured::gain_of(&edit), 0.0);
        edit.rationale = format!("worked example of item a: {measured}");
        assert_eq!(Measured::gain_of(&edit), 1.25);
        edit.rationale = format!("{PREFIX}NaN -> 3");
        assert_eq!(Measured::gain_of(&edit), 0.0);
    }

    #[test]
    fn nothing_is_measured_on_nothing_or_on_nan() {
        assert_eq!(compare(&[], &[]), None);
        assert_eq!(compare(&[f64::NAN], &[1.0]), None);
        assert_eq!(compare(&[f64::NEG_INFINITY], &[1.0]), None);
    }
}
