//! What a new run takes over from a foreign one, so that it goes on behind the last completed step. Pure; refuses what
//! would make the done steps something they were not.

use super::imported::imported_journal;
use crate::domain::{
    Continued, DoneStage, DoneStep, HeldSkill, LrControlMode, Rollout, Skill, StepRef, Verdict,
};
use crate::event::{EvalPurpose, ItemResult, RunState};
use crate::store::foreign::{ForeignRun, ForeignSettings, ForeignStep, Standing};

/// How the new run divides its training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub epochs: u32,
    pub steps_per_epoch: u32,
}

/// What the new run is, as far as it must fit the old one.
#[derive(Clone, Debug)]
pub struct Successor<'a> {
    pub shape: Shape,
    pub seed: u64,
    /// Training items, and how many of them a step draws, in how many batches.
    pub train: usize,
    pub batch_size: usize,
    pub accumulation: usize,
    /// Name of the target model.
    pub target: &'a str,
    /// Stands in when the folder lacks the skill the run began with.
    pub seed_skill: Option<&'a Skill>,
    /// Take no recorded selection result, even of the same text and model.
    pub keep_scores: bool,
}

/// The takeover, and why skills are measured again.
#[derive(Clone, Debug)]
pub struct Continuation {
    pub continued: Continued,
    pub remarks: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinuationError {
    #[error("{folder} has no completed step; start a new run with `planish run CONFIG`")]
    NothingDone { folder: String },
    #[error("{folder} lacks the text of the {what} skill ({file}); restore that file")]
    SkillLost { folder: String, what: &'static str, file: String },
    #[error(
        "{folder} has {done} steps done, but this configuration plans {planned}: raise train.num_epochs to {epochs} or \
         more"
    )]
    TooShort { folder: String, done: u32, planned: u32, epochs: u32 },
    #[error(
        "{folder} has {recorded} steps per epoch, but this configuration gives {planned}: its steps would be others; use \
         the same training data, train.batch_size and train.accumulation"
    )]
    OtherSteps { folder: String, recorded: u32, planned: u32 },
}

/// Takes over what `foreign` has reached.
///
/// # Errors
/// See [`ContinuationError`].
pub fn continuation(
    foreign: &ForeignRun,
    successor: &Successor<'_>,
) -> Result<Continuation, ContinuationError> {
    let folder = foreign.folder.display().to_string();
    let standing = &foreign.standing;
    let last = check_shape(foreign, successor.shape, &folder)?;
    let lost = |what, file: String| ContinuationError::SkillLost { folder: folder.clone(), what, file };
    let current = standing
        .current
        .clone()
        .ok_or_else(|| lost("current", format!("skills/skill_v{:04}.md", standing.last_step)))?;
    let best = standing.best.clone().ok_or_else(|| lost("best", "best_skill.md".into()))?;
    let mut warnings: Vec<String> = foreign.oddities.iter().map(ToString::to_string).collect();
    let initial = match (foreign.initial(), successor.seed_skill) {
        (Some(initial), _) => initial.clone(),
        (None, Some(seed)) => {
            warnings
                .push("skills/skill_v0000.md is absent; the seed of the configuration stands for it".into());
            seed.clone()
        }
        (None, None) => {
            return Err(lost("first", "skills/skill_v0000.md, or name it as env.skill_init".into()));
        }
    };
    warnings.extend(other_batches(foreign, successor));
    let state = RunState::fold(&imported_journal(foreign, ""));
    let rows_count = successor.keep_scores && foreign.settings.target == successor.target;
    let mut remarks = Vec::new();
    let mut held = |skill: Skill, score: Option<f64>, origin: &str, name: &str| {
        let rows = measured(&state, &skill.hash);
        let measured = if rows_count { rows.clone() } else { Vec::new() };
        remarks.extend(told(name, &rows, &measured, successor));
        HeldSkill { skill, score, origin: origin.to_owned(), measured }
    };
    let Standing { current_score, current_origin, best_score, best_step, best_origin, .. } = standing;
    let same = current.hash == best.hash;
    let current = held(current, *current_score, current_origin, "current");
    let best = match same {
        true => HeldSkill { score: *best_score, origin: best_origin.clone(), ..current.clone() },
        false => held(best, *best_score, best_origin, "best"),
    };
    let steps = done_steps(foreign, &state, last);
    let stages: Vec<DoneStage> = state
        .stages
        .iter()
        .filter(|stage| stage.at.step <= last.step)
        .map(|stage| DoneStage {
            at: stage.at,
            stage: stage.stage.clone(),
            current_hash: stage.current_hash.clone(),
            seconds: stage.finished_at.saturating_sub(stage.started_at) as f64 / 1000.0,
        })
        .collect();
    let mut skills: Vec<Skill> = Vec::new();
    let hashes = steps.iter().map(|step| &step.current_hash);
    for hash in hashes.chain(stages.iter().map(|stage| &stage.current_hash)) {
        let version = state.skills.get(hash).filter(|_| skills.iter().all(|skill| skill.hash != *hash));
        skills.extend(version.map(|version| version.skill.clone()));
    }
    let baseline = state.evals.get("baseline").and_then(|eval| eval.score.clone());
    let continued = Continued {
        initial,
        baseline,
        last,
        current,
        best,
        best_step: *best_step,
        schedule_calls: schedule_calls(&steps),
        steps,
        stages,
        skills,
        warnings,
        folder,
    };
    Ok(Continuation { continued, remarks })
}

/// What makes the batches to come others than those the foreign run would have drawn.
fn other_batches(foreign: &ForeignRun, successor: &Successor<'_>) -> Option<String> {
    let ForeignSettings { seed, train_size, batch_size, accumulation, .. } = foreign.settings;
    let now = |size: usize| size as u64;
    let was = |size: Option<usize>| size.map(|size| size as u64);
    let changed: Vec<String> = [
        ("train.seed", seed, successor.seed),
        // 0 stands for all items.
        ("the number of training items", was(train_size).filter(|size| *size > 0), now(successor.train)),
        ("train.batch_size", was(batch_size), now(successor.batch_size)),
        ("train.accumulation", was(accumulation), now(successor.accumulation)),
    ]
    .into_iter()
    .filter_map(|(name, was, now)| {
        was.filter(|was| *was != now).map(|was| format!("{name} is {now}, not {was}"))
    })
    .collect();
    let changed = (!changed.is_empty()).then(|| changed.join(", "))?;
    Some(format!("{changed}: the batches to come are not those that run would have had"))
}

/// Where the last completed step lies, if it lies there in the new run too.
fn check_shape(foreign: &ForeignRun, shape: Shape, folder: &str) -> Result<StepRef, ContinuationError> {
    let done = foreign.standing.last_step;
    let folder = folder.to_owned();
    if done == 0 {
        return Err(ContinuationError::NothingDone { folder });
    }
    let per_epoch = shape.steps_per_epoch.max(1);
    let step_in_epoch = (done - 1) % per_epoch;
    let last = StepRef { epoch: (done - 1) / per_epoch + 1, step: done, step_in_epoch };
    let recorded = foreign.settings.steps_per_epoch.filter(|recorded| *recorded != shape.steps_per_epoch);
    if let Some(recorded) = recorded {
        return Err(ContinuationError::OtherSteps { folder, recorded, planned: shape.steps_per_epoch });
    }
    let place = foreign.steps.iter().find(|step| step.at.step == done && step.record.is_some());
    if let Some(at) = place.map(|step| step.at).filter(|at| *at != last) {
        // Without its settings, the place of the last step tells how long an epoch was.
        let recorded = match at.epoch {
            0 | 1 => at.step_in_epoch.saturating_add(1),
            epoch => done.saturating_sub(at.step_in_epoch.saturating_add(1)) / (epoch - 1),
        };
        return Err(ContinuationError::OtherSteps { folder, recorded, planned: shape.steps_per_epoch });
    }
    let planned = shape.epochs.saturating_mul(per_epoch);
    if planned < done {
        let epochs = done.div_ceil(per_epoch);
        return Err(ContinuationError::TooShort { folder, done, planned, epochs });
    }
    Ok(last)
}

fn done_steps(foreign: &ForeignRun, state: &RunState, last: StepRef) -> Vec<DoneStep> {
    let done = |(step, told): (&ForeignStep, &crate::event::StepState)| {
        let record = step.record.as_ref().filter(|_| step.at.step <= last.step)?;
        let recent = step.at.epoch == last.epoch;
        Some(DoneStep {
            record: record.record.clone(),
            current_hash: told.current_hash.clone(),
            timing: record.timing.clone(),
            wall_time_s: record.wall_time_s,
            ranked: told.ranked.clone(),
            candidate: told.candidate.clone(),
            report: told.report.clone(),
            decision: told.gate.clone(),
            memory: step.digest.clone().filter(|_| recent),
        })
    };
    foreign.steps.iter().zip(&state.steps).filter_map(done).collect()
}

/// The results of the last complete measurement of a text on the selection split.
fn measured(state: &RunState, hash: &str) -> Vec<Rollout> {
    let on_selection = |purpose: EvalPurpose| {
        purpose.is_candidate() || matches!(purpose, EvalPurpose::Baseline | EvalPurpose::FinalSelection)
    };
    let evals = state.eval_order.iter().rev().filter_map(|id| state.evals.get(id));
    let mut of_text =
        evals.filter(|eval| on_selection(eval.purpose) && eval.skill_hash == hash && eval.n > 0);
    let complete = of_text.find_map(|eval| {
        let rows: Option<Vec<Rollout>> =
            eval.results.iter().map(|(_, result)| ItemResult::rollout(result).cloned()).collect();
        rows.filter(|rows| rows.len() == eval.n)
    });
    complete.unwrap_or_default()
}

/// Why a skill is measured again, if it is.
fn told(name: &str, rows: &[Rollout], taken: &[Rollout], successor: &Successor<'_>) -> Option<String> {
    if !taken.is_empty() {
        return None;
    }
    let why = if rows.is_empty() {
        "no result of exactly its text is recorded"
    } else if !successor.keep_scores {
        "recorded results are of other prompts and maybe another scorer (--keep-scores lets them stand)"
    } else {
        "the target model is another"
    };
    Some(format!("the {name} skill is measured again on the selection split: {why}"))
}

/// SkillOpt takes a value for every step that had something to select from.
fn schedule_calls(steps: &[DoneStep]) -> usize {
    let took = |step: &&DoneStep| {
        let record = &step.record;
        record.action != Verdict::SkipNoPatches
            && record.lr_control_mode != LrControlMode::Autonomous
            && record.edit_budget.is_some()
    };
    steps.iter().filter(took).count()
}
