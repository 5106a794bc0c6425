//! Environments: items per split, one rollout of an item under a skill, its score. Owns data reading, prompts, answer
//! rules, scorers and the demo tasks; must not know the optimiser, the gate or the run.

pub mod batches;
pub mod mersenne;

mod answer;
mod choice;
mod demo;
mod error;
mod judge;
mod leaks;
mod passages;
mod qa;
mod rows;
mod scorer;
mod split;
mod task;

use futures_util::future::BoxFuture;

use crate::domain::{Item, Rollout, Sampling};
use crate::model::{ChatModel, LiveSink, ModelError};

pub use answer::Extraction;
pub use error::{DataError, Place};
pub use judge::Judge;
pub use leaks::{HeldOutTexts, Leak};
pub use passages::leading_passages;
pub use qa::QaEnv;
pub use rows::read_rows;
pub use scorer::{References, Rule, Scorer, normalize};
pub use split::{parse_ratio, split_counts};
pub use task::{Task, train_size};

/// What a rollout needs besides item and skill.
pub struct RolloutContext<'a> {
    pub target: &'a dyn ChatModel,
    /// Effect path, also of the model call (`…/ITEM#0`; further turns append `/t1` …).
    pub path: &'a str,
    /// Stage for usage accounting: `rollout` or `evaluation`.
    pub stage: &'a str,
    pub sampling: Sampling,
    /// A diagnostic instruction that the prompt ends with (deep reflection).
    pub readout: Option<&'a str>,
    pub live: &'a LiveSink,
    /// Set where [`Environment::needs_judge`].
    pub judge: Option<Judge<'a>>,
}

pub trait Environment: Send + Sync {
    /// Kind and version of templates, extraction and scorer; part of evaluation fingerprints.
    fn version(&self) -> &str;

    /// Whether a model judges the answers.
    fn needs_judge(&self) -> bool {
        false
    }

    /// Reference material of a training item for the optimizer's second look, which it must not reveal; "" without any.
    fn reference(&self, item: &Item) -> String;

    /// Runs the target on one item and scores the reply. An unanswered call is an error, never a score.
    fn rollout<'a>(
        &'a self,
        item: &'a Item,
        skill: &'a str,
        context: RolloutContext<'a>,
    ) -> BoxFuture<'a, Result<Rollout, ModelError>>;
}
