//! The stages of one optimisation step, in order.

use super::Role;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Baseline,
    Rollout,
    Reflect,
    DeepReflect,
    Aggregate,
    Select,
    Review,
    Update,
    Evaluate,
    Gate,
    SlowUpdate,
    MetaSkill,
    MetaReflect,
    FinalSelection,
    Test,
}

impl Phase {
    /// The phases of a step as the header shows them.
    pub const STEP: [Phase; 8] = [
        Phase::Rollout,
        Phase::Reflect,
        Phase::Aggregate,
        Phase::Select,
        Phase::Review,
        Phase::Update,
        Phase::Evaluate,
        Phase::Gate,
    ];

    /// Whose calls it makes.
    pub fn asks(self) -> Option<Role> {
        match self {
            Phase::Baseline | Phase::Rollout | Phase::Evaluate | Phase::FinalSelection | Phase::Test => {
                Some(Role::Target)
            }
            Phase::Reflect
            | Phase::DeepReflect
            | Phase::Aggregate
            | Phase::Select
            | Phase::Update
            | Phase::SlowUpdate
            | Phase::MetaSkill
            | Phase::MetaReflect => Some(Role::Optimizer),
            Phase::Review | Phase::Gate => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Rollout => "rollout",
            Self::Reflect => "reflect",
            Self::DeepReflect => "deep reflect",
            Self::Aggregate => "aggregate",
            Self::Select => "select",
            Self::Review => "review",
            Self::Update => "update",
            Self::Evaluate => "evaluate",
            Self::Gate => "gate",
            Self::SlowUpdate => "slow update",
            Self::MetaSkill => "meta skill",
            Self::MetaReflect => "meta-reflect",
            Self::FinalSelection => "final selection",
            Self::Test => "test",
        }
    }

    /// Belongs to one step; the others lie before, between or after the steps.
    pub fn of_step(self) -> bool {
        Self::STEP.contains(&self) || self == Self::DeepReflect
    }
}
