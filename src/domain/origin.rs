//! Where a run's beginning came from when it is not a seed skill alone: the output folder of another program.

use serde::{Deserialize, Serialize};

use super::{
    EditReport, EpochStage, GateDecision, GateScore, Patch, Phase, Rollout, Skill, StepMemory, StepRecord,
    StepRef,
};

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
    pub baseline: Option<GateScore>,
    /// The last completed step.
    pub last: StepRef,
    pub current: HeldSkill,
    pub best: HeldSkill,
    pub best_step: u32,
    /// Steps and stages already done, in order, and the texts they left.
    pub steps: Vec<DoneStep>,
    pub stages: Vec<DoneStage>,
    pub skills: Vec<Skill>,
    /// How often the edit budget was taken from the schedule.
    pub schedule_calls: usize,
    /// What a person should know, as the oddities of the folder; for the log of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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
    /// The current skill as the step left it.
    pub current_hash: String,
    /// Seconds of each stage, and of all.
    pub timing: Vec<(Phase, f64)>,
    pub wall_time_s: f64,
    /// What was selected, what came of it, and how the gate decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranked: Option<Patch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Skill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<EditReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<GateDecision>,
    /// What the step buffer holds of it; in the last step's epoch only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<StepMemory>,
}

/// A completed stage between two epochs of the foreign run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoneStage {
    pub at: StepRef,
    pub stage: EpochStage,
    /// The current skill after it.
    pub current_hash: String,
    pub seconds: f64,
}

impl Continued {
    fn text(&self, hash: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.hash == hash)
    }

    /// The current skill between the last step and the stages behind it.
    pub fn before_stages(&self) -> Option<&Skill> {
        let step = self.steps.last().filter(|step| step.record.at == self.last)?;
        self.text(&step.current_hash)
    }

    /// The current skill at the end of the epoch before the last step's; `None` in the first epoch.
    pub fn previous_epoch(&self) -> Option<&Skill> {
        let step = self.steps.iter().rfind(|step| step.record.at.epoch < self.last.epoch)?;
        let stage = self.stages.iter().rfind(|stage| stage.at.step == step.record.at.step);
        self.text(stage.map_or(&step.current_hash, |stage| &stage.current_hash))
    }

    /// The finished stages behind the last step.
    pub fn stages_done(&self) -> impl DoubleEndedIterator<Item = &EpochStage> {
        let behind = self.stages.iter().filter(|stage| stage.at.epoch == self.last.epoch);
        behind.map(|stage| &stage.stage)
    }

    /// The memory that the next optimizer calls are given: of the last stage of its kind, if that is of this epoch or
    /// the one before.
    pub fn meta_skill(&self) -> &str {
        let recent = self.stages.iter().rev().filter(|stage| stage.at.epoch + 1 >= self.last.epoch);
        let memory = recent.filter_map(|stage| match &stage.stage {
            EpochStage::MetaSkill(found) => Some(found.content.as_str()),
            EpochStage::SlowUpdate(_) | EpochStage::MetaReflect(_) => None,
        });
        memory.into_iter().next().unwrap_or_default()
    }

    /// The summary that the next meta-reflection is given.
    pub fn meta_summary(&self) -> &str {
        let recent = self.stages.iter().rev().filter(|stage| stage.at.epoch + 1 >= self.last.epoch);
        let summary = recent.filter_map(|stage| match &stage.stage {
            EpochStage::MetaReflect(found) => Some(found.meta_summary.as_str()),
            EpochStage::SlowUpdate(_) | EpochStage::MetaSkill(_) => None,
        });
        summary.into_iter().next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{MetaSkill, StageAction};

    fn continued(last_epoch: u32, memories: &[(u32, &str)]) -> Continued {
        let held = |text: &str| HeldSkill {
            skill: Skill::new(text),
            score: None,
            origin: String::new(),
            measured: Vec::new(),
        };
        let stage = |(epoch, content): &(u32, &str)| DoneStage {
            at: StepRef { epoch: *epoch, step: 3 * epoch, step_in_epoch: 2 },
            stage: EpochStage::MetaSkill(MetaSkill {
                action: StageAction::WriteMetaSkill,
                reasoning: String::new(),
                content: (*content).to_owned(),
                note: String::new(),
            }),
            current_hash: String::new(),
            seconds: 0.0,
        };
        Continued {
            folder: String::new(),
            initial: Skill::new("seed"),
            baseline: None,
            last: StepRef { epoch: last_epoch, step: 3 * last_epoch, step_in_epoch: 2 },
            current: held("current"),
            best: held("best"),
            best_step: 0,
            steps: Vec::new(),
            stages: memories.iter().map(stage).collect(),
            skills: Vec::new(),
            schedule_calls: 0,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn only_the_memory_of_the_epoch_before_is_remembered() {
        assert_eq!(continued(2, &[(1, "one")]).meta_skill(), "one");
        assert_eq!(continued(2, &[(1, "one"), (2, "two")]).meta_skill(), "two");
        assert_eq!(
            continued(2, &[(1, "one"), (2, "")]).meta_skill(),
            "",
            "an epoch without one breaks the chain"
        );
        assert_eq!(continued(3, &[(1, "one")]).meta_skill(), "");
        assert_eq!(continued(2, &[(1, "one"), (2, "two")]).stages_done().count(), 1);
        assert_eq!(continued(3, &[(1, "one")]).stages_done().count(), 0);
    }

    #[test]
    fn texts_that_are_not_known_are_not_made_up() {
        let lost = continued(2, &[]);
        assert_eq!((lost.before_stages(), lost.previous_epoch()), (None, None));
    }
}
