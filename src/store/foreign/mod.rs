//! Reads the output folder of a SkillOpt or ReflACT run into typed records. Read-only and tolerant: every file may be
//! absent, torn or odd, and each oddity becomes one note. Must not decide what a record means for a planish run.

mod epochs;
mod fields;
mod folder;
mod history;
mod patches;
mod python_json;
mod rollouts;
mod settings;
mod standing;
mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::{Skill, StepRef};
use fields::Fields;
use folder::Folder;

pub use epochs::{ForeignEpoch, ForeignStage};
pub use folder::Oddity;
pub use history::ForeignRecord;
pub use patches::ForeignAnalysis;
pub use rollouts::ForeignRollouts;
pub use settings::ForeignSettings;
pub use standing::Standing;
pub use steps::{ForeignBatch, ForeignDeepReflection, ForeignStep};

#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error("cannot open {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "{} is no SkillOpt output folder: it holds none of history.json, runtime_state.json, skills/ and steps/; give \
         the folder that SkillOpt wrote (its `out_root`)",
        path.display()
    )]
    NotARun { path: PathBuf },
    #[error("{} is a planish run; look at it with `planish attach`, continue it with `planish resume`", path.display())]
    OwnRun { path: PathBuf },
}

/// A foreign run as its folder tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignRun {
    /// Where it lies, absolute.
    pub folder: PathBuf,
    pub settings: ForeignSettings,
    /// `skills/skill_vNNNN.md` by step: the current skill after it (as re-saved at the end of its epoch); 0 is the start.
    pub skills: BTreeMap<u32, Skill>,
    pub steps: Vec<ForeignStep>,
    /// Stages after the steps of each epoch.
    pub epochs: BTreeMap<u32, ForeignEpoch>,
    pub standing: Standing,
    pub baseline: Option<ForeignRollouts>,
    pub final_selection: Option<ForeignRollouts>,
    pub test_initial: Option<ForeignRollouts>,
    pub test_best: Option<ForeignRollouts>,
    pub test_final: Option<ForeignRollouts>,
    pub summary: ForeignSummary,
    /// Unix milliseconds of its last sign of life.
    pub ended_at: u64,
    pub oddities: Vec<Oddity>,
}

/// Scores that only `summary.json` holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignSummary {
    /// The run came to its end.
    pub present: bool,
    pub baseline_selection_hard: Option<f64>,
    pub baseline_test_hard: Option<f64>,
    pub baseline_test_soft: Option<f64>,
    pub test_hard: Option<f64>,
    pub test_soft: Option<f64>,
}

impl ForeignRun {
    /// # Errors
    /// The folder cannot be opened, is no such run, or is one of planish's own.
    pub fn open(path: &Path) -> Result<Self, ForeignError> {
        let mut folder =
            Folder::open(path).map_err(|source| ForeignError::Io { path: path.to_owned(), source })?;
        if folder.has("events.jsonl") {
            return Err(ForeignError::OwnRun { path: path.to_owned() });
        }
        let told = ["history.json", "runtime_state.json"].iter().any(|name| folder.has(name));
        if !told && folder.names("skills").is_empty() && folder.names("steps").is_empty() {
            return Err(ForeignError::NotARun { path: path.to_owned() });
        }
        let settings = settings::read(&mut folder);
        let frame = history::Frame {
            steps_per_epoch: settings.steps_per_epoch.unwrap_or(u32::MAX),
            metric: settings.metric,
        };
        let skills = skills(&mut folder);
        let steps = steps(&mut folder, frame);
        let lost = |step: &&ForeignStep| step.record.is_some() && !skills.contains_key(&step.at.step);
        for step in steps.iter().filter(lost) {
            let file = format!("skills/skill_v{:04}.md", step.at.step);
            folder.note(
                &file,
                None,
                "is absent: what became of the skill after that step is taken from its record",
            );
        }
        let epochs = epochs::read(&mut folder);
        let standing = standing::read(&mut folder, &steps, &skills, &settings.out_root);
        let mut rollouts = |name: &str| rollouts::read(&mut folder, name);
        let baseline = rollouts("selection_eval_baseline");
        let final_selection = rollouts("final_selection_eval");
        let test_initial = rollouts("test_eval_baseline");
        let test_best = rollouts("test_eval");
        let test_final = rollouts("test_eval_final");
        let summary = summary(&mut folder);
        let ended_at = ["summary.json", "runtime_state.json", "history.json", "config.json"]
            .iter()
            .find_map(|name| folder.changed_at(name))
            .unwrap_or_default();
        Ok(Self {
            folder: folder.root().to_owned(),
            settings,
            skills,
            steps,
            epochs,
            standing,
            baseline,
            final_selection,
            test_initial,
            test_best,
            test_final,
            summary,
            ended_at,
            oddities: folder.into_oddities(),
        })
    }

    /// The skill the run began with.
    pub fn initial(&self) -> Option<&Skill> {
        self.skills.get(&0)
    }
}

fn skills(folder: &mut Folder) -> BTreeMap<u32, Skill> {
    let number = |name: &str| name.strip_prefix("skill_v")?.strip_suffix(".md")?.parse().ok();
    let names = folder.names("skills");
    let versions = names.iter().filter_map(|name| Some((number(name)?, format!("skills/{name}"))));
    versions.filter_map(|(step, file)| Some((step, steps::skill(folder, &file)?))).collect()
}

/// Every step that has a record or a folder.
fn steps(folder: &mut Folder, frame: history::Frame) -> Vec<ForeignStep> {
    let mut records = history::records(folder, frame);
    let mut numbers: Vec<u32> = history::step_numbers(folder);
    numbers.extend(records.keys());
    numbers.sort_unstable();
    numbers.dedup();
    let mut steps = Vec::with_capacity(numbers.len());
    for step in numbers {
        let record = records.remove(&step);
        let per_epoch = frame.steps_per_epoch.max(1);
        let place =
            StepRef { epoch: (step - 1) / per_epoch + 1, step, step_in_epoch: (step - 1) % per_epoch };
        let at = record.as_ref().map_or(place, |record| record.record.at);
        steps.push(steps::read(folder, at, record));
    }
    steps
}

fn summary(folder: &mut Folder) -> ForeignSummary {
    const FILE: &str = "summary.json";
    let Some(map) = patches::object(folder, FILE) else { return ForeignSummary::default() };
    let fields = Fields { map: &map, file: FILE, line: None, place: "" };
    let mut number = |key: &str| fields.number(folder, key);
    ForeignSummary {
        present: true,
        baseline_selection_hard: number("baseline_selection_hard"),
        baseline_test_hard: number("baseline_test_hard"),
        baseline_test_soft: number("baseline_test_soft"),
        test_hard: number("test_hard"),
        test_soft: number("test_soft"),
    }
}

#[cfg(test)]
#[path = "foreign_tests.rs"]
mod tests;
