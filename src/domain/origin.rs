//! Where a run's beginning came from when it is not a seed skill alone: the output folder of another program.

use serde::{Deserialize, Serialize};

use super::{Edit, Phase, Rollout, Skill, StepMemory, StepRecord, StepRef};

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

/// What a continued run takes over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continued {
    pub folder: String,
    /// The seed of the foreign run, which the test compares with.
    pub initial: Skill,
    /// Selection score of the seed; `None`: not known.
    pub baseline_score: Option<f64>,
    /// The last completed step.
    pub last: StepRef,
    pub current: HeldSkill,
    pub best: HeldSkill,
    pub best_step: u32,
    /// Steps already done, in order, and the texts they left.
    pub steps: Vec<DoneStep>,
    pub skills: Vec<Skill>,
    /// How often the edit budget was taken from the schedule.
    pub schedule_calls: usize,
    /// The current skill at the end of the epoch before the last step's; `None` in the first epoch.
    pub previous_epoch: Option<Skill>,
    /// The current skill between the last step and the stages behind it, where it is known.
    pub before_stages: Option<Skill>,
    /// Stages behind the last step that are done.
    pub stages_done: Vec<Phase>,
    /// What the optimizer remembers of the epoch before, "" for nothing.
    pub meta_skill: String,
    pub meta_summary: String,
}

/// A skill with the score and the origin it is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldSkill {
    pub skill: Skill,
    /// As recorded, possibly of an earlier text; `None`: it was not measured.
    pub score: Option<f64>,
    pub origin: String,
    /// Selection results of exactly this text, one per item; empty: there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Rollout>,
}

/// A completed step of the foreign run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoneStep {
    pub record: StepRecord,
    /// Hash of the current skill after it and the stages behind it.
    pub skill_hash: Option<String>,
    /// Seconds of each stage, and of all.
    pub timing: Vec<(Phase, f64)>,
    pub wall_time_s: f64,
    /// What the step buffer holds of it, and the proposals selected; in the last step's epoch only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<StepMemory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<Vec<Edit>>,
}
