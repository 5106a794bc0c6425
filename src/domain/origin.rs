//! Where a run's beginning came from when it is not a seed skill alone: the output folder of another program.

use serde::{Deserialize, Serialize};

use super::{Phase, Skill, StepMemory, StepRecord, StepRef};

/// How a foreign run became this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The whole journal was made from the folder. It tells what was and cannot go on.
    Imported(Imported),
    /// The run goes on behind the folder's last completed step.
    Continued(Box<Continued>),
}

impl Origin {
    /// The foreign folder, as it was called then.
    pub fn folder(&self) -> &str {
        match self {
            Self::Imported(imported) => &imported.folder,
            Self::Continued(continued) => &continued.folder,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    pub folder: String,
    /// Completed steps.
    pub steps: u32,
}

/// What a continued run takes over. Its seed skill is the foreign run's, in `run_started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continued {
    pub folder: String,
    /// The last completed step.
    pub last: StepRef,
    pub current: HeldSkill,
    pub best: HeldSkill,
    pub best_step: u32,
    /// Selection score of the seed; `None`: not known.
    pub baseline_score: Option<f64>,
    /// Steps already done, in order.
    pub steps: Vec<DoneStep>,
    /// How often the edit budget was taken from the schedule.
    pub schedule_calls: usize,
    /// The step buffer of the epoch under way.
    pub memory: Vec<StepMemory>,
    /// The current skill at the end of the epoch before; `None` in the first.
    pub previous_epoch: Option<Skill>,
    /// What the optimizer remembers for the epoch under way; "" for nothing.
    pub meta_skill: String,
    /// Stages after the last completed step that are done already.
    pub stages_done: Vec<Phase>,
}

/// A skill with the score and origin it is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldSkill {
    pub skill: Skill,
    /// As recorded, possibly of an earlier text; `None`: it was not measured.
    pub score: Option<f64>,
    pub origin: String,
}

/// A completed step of the foreign run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoneStep {
    pub record: StepRecord,
    /// The current skill after it and after the stages behind it; `None`: its text is not known.
    pub skill: Option<Skill>,
    /// Seconds of each stage, and of all.
    pub timing: Vec<(Phase, f64)>,
    pub wall_time_s: f64,
}
