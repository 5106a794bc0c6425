//! Task items, splits, and the type that keeps held-out content out of optimiser prompts.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The three splits. `Val` is the selection split that the gate measures on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    Train,
    Val,
    Test,
}

impl Split {
    pub const ALL: [Split; 3] = [Split::Train, Split::Val, Split::Test];

    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Val => "val",
            Split::Test => "test",
        }
    }
}

/// A name that no split has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no split is called {name:?}; use train, val (also valid_seen, selection) or test (also valid_unseen)"
)]
pub struct UnknownSplit {
    pub name: String,
}

impl FromStr for Split {
    type Err = UnknownSplit;

    /// Its own name or one of SkillOpt's. Case counts.
    fn from_str(name: &str) -> Result<Self, UnknownSplit> {
        match name {
            "train" => Ok(Split::Train),
            "val" | "valid_seen" | "selection" => Ok(Split::Val),
            "test" | "valid_unseen" => Ok(Split::Test),
            _ => Err(UnknownSplit { name: name.to_owned() }),
        }
    }
}

/// One task row: an id and the fields that templates and scorers read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub id: String,
    pub fields: Map<String, Value>,
}

/// Content of a held-out split. Only an [`Evaluator`] opens it, so optimiser prompts cannot contain it.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut<T>(T);

/// Proof that the holder evaluates: it runs and scores items, and hands out scores only.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator(());

impl Evaluator {
    /// To be called by the engine's evaluation stage and by `planish eval` only.
    pub fn for_evaluation_stage() -> Self {
        Self(())
    }
}

impl<T> HeldOut<T> {
    pub fn new(content: T) -> Self {
        Self(content)
    }

    pub fn open(&self, _: &Evaluator) -> &T {
        &self.0
    }
}

/// The three splits of one data set, in file order.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub train: Vec<Item>,
    pub val: Vec<HeldOut<Item>>,
    pub test: Vec<HeldOut<Item>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_have_their_own_names_and_skillopts() {
        for split in Split::ALL {
            assert_eq!(split.name().parse(), Ok(split));
        }
        assert_eq!(["valid_seen", "selection"].map(str::parse), [Ok(Split::Val), Ok(Split::Val)]);
        assert_eq!("valid_unseen".parse(), Ok(Split::Test));
        for unknown in ["", "VAL", "bogus", "valid"] {
            let error = unknown.parse::<Split>().unwrap_err().to_string();
            assert!(error.contains(&format!("{unknown:?}")) && error.contains("valid_unseen"), "{error}");
        }
    }
}
