//! Where a foreign run stands after its last completed step: which skill is current, which is best, with which scores.
//! Paths in the state belong to another machine, so files are found inside the folder. Must not measure anything.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::folder::Folder;
use super::patches::object;
use super::steps::{self, ForeignStep};
use crate::domain::{Skill, StepRecord};

const STATE: &str = "runtime_state.json";
const BEST: &str = "best_skill.md";
const INITIAL: &str = "initial";

/// The state after the last completed step.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// 0: none is completed.
    pub last_step: u32,
    /// `None`: its text is not in the folder.
    pub current: Option<Skill>,
    /// `None`: it was not measured. 0 is a score.
    pub current_score: Option<f64>,
    pub current_origin: String,
    pub best: Option<Skill>,
    pub best_score: Option<f64>,
    pub best_step: u32,
    pub best_origin: String,
}

/// `runtime_state.json` as it is.
struct State {
    last_step: u32,
    current_path: String,
    scores: Scores,
}

/// Scores and origins, from the state or from a record.
struct Scores {
    current_score: Option<f64>,
    current_origin: String,
    best_score: Option<f64>,
    best_step: u32,
    best_origin: String,
}

/// Combines the state, the records and the skill files. What contradicts is noted, and the newer is taken.
pub fn read(
    folder: &mut Folder,
    steps: &[ForeignStep],
    skills: &BTreeMap<u32, Skill>,
    out_root: &str,
) -> Standing {
    let records: Vec<&StepRecord> =
        steps.iter().filter_map(|step| step.record.as_ref()).map(|record| &record.record).collect();
    let recorded = records.last().map_or(0, |record| record.at.step);
    let state = state(folder);
    if state.is_none() && !records.is_empty() {
        folder.note(STATE, None, "is not usable; the last record of history.json stands for it");
    }
    let (last_step, scores) = match &state {
        Some(state) if state.last_step >= recorded => {
            if state.last_step > recorded {
                let what = format!(
                    "says that step {} is done, but no record is later than {recorded}",
                    state.last_step
                );
                folder.note(STATE, None, what);
            }
            (state.last_step, Scores::of_state(state))
        }
        Some(state) => {
            let what = format!(
                "says that step {} is the last, but step {recorded} has its record: the records stand",
                state.last_step
            );
            folder.note(STATE, None, what);
            (recorded, Scores::of_records(&records))
        }
        None => (recorded, Scores::of_records(&records)),
    };
    let current = current(folder, last_step, skills, state.as_ref(), out_root);
    let best = best(folder, steps, skills, &scores);
    let Scores { current_score, current_origin, best_score, best_step, best_origin } = scores;
    Standing { last_step, current, current_score, current_origin, best, best_score, best_step, best_origin }
}

impl Scores {
    fn of_state(state: &State) -> Self {
        let Self { current_score, current_origin, best_score, best_step, best_origin } = &state.scores;
        Self {
            current_score: *current_score,
            current_origin: current_origin.clone(),
            best_score: *best_score,
            best_step: *best_step,
            best_origin: best_origin.clone(),
        }
    }

    /// The last record's current skill, and the best of all records.
    fn of_records(records: &[&StepRecord]) -> Self {
        let last = records.last();
        let mut best: Option<&&StepRecord> = None;
        for record in records {
            if best.is_none_or(|best| record.best_score > best.best_score) {
                best = Some(record);
            }
        }
        let initial = || INITIAL.to_owned();
        Self {
            current_score: last.map(|record| record.current_score),
            current_origin: last.map_or_else(initial, |record| record.current_origin.clone()),
            best_score: best.map(|record| record.best_score),
            best_step: best.map_or(0, |record| record.best_step),
            best_origin: best.map_or_else(initial, |record| record.best_origin.clone()),
        }
    }
}

fn state(folder: &mut Folder) -> Option<State> {
    let map = object(folder, STATE)?;
    let fields = Fields { map: &map, file: STATE, line: None, place: "" };
    let small = |count: Option<usize>| count.and_then(|count| u32::try_from(count).ok());
    let last_step = small(fields.count(folder, "last_completed_step"))?;
    // SkillOpt writes -1 for a skill that was not measured.
    let mut score = |key: &str| fields.number(folder, key).filter(|score| *score >= 0.0);
    let (current_score, best_score) = (score("current_score"), score("best_score"));
    let mut text = |key: &str| fields.text(folder, key).unwrap_or_default();
    let current_path = text("current_skill_path");
    let mut origin = |key: &str| match text(key) {
        name if name.is_empty() => INITIAL.to_owned(),
        name => name,
    };
    let (current_origin, best_origin) = (origin("current_origin"), origin("best_origin"));
    let best_step = small(fields.count(folder, "best_step")).unwrap_or(0);
    let scores = Scores { current_score, current_origin, best_score, best_step, best_origin };
    Some(State { last_step, current_path, scores })
}

/// `skill_vNNNN.md` of the last step, else the file that the state names.
fn current(
    folder: &mut Folder,
    last_step: u32,
    skills: &BTreeMap<u32, Skill>,
    state: Option<&State>,
    out_root: &str,
) -> Option<Skill> {
    let named = state.map(|state| inside(folder, &state.current_path, out_root));
    let version = format!("skills/skill_v{last_step:04}.md");
    if let Some(skill) = skills.get(&last_step) {
        if let Some(Some(named)) = named.filter(|named| named.as_ref().is_some_and(|named| *named != version))
        {
            folder.note(STATE, None, format!("names {named} as the current skill; {version} is taken"));
        }
        return Some(skill.clone());
    }
    let found = named.flatten().and_then(|named| Some((steps::skill(folder, &named)?, named)));
    match found {
        Some((skill, named)) => {
            folder.note(&version, None, format!("is absent; {named} is taken"));
            Some(skill)
        }
        None => {
            folder.note(&version, None, "is absent: the text of the current skill is not known");
            None
        }
    }
}

/// Where a path of another machine lies in this folder: below its output root, else by its last parts.
fn inside(folder: &Folder, path: &str, out_root: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let root = out_root.replace('\\', "/");
    let below = path.strip_prefix(root.trim_end_matches('/')).filter(|_| !root.is_empty());
    if let Some(name) = below.map(|below| below.trim_start_matches('/'))
        && folder.has(name)
    {
        return Some(name.to_owned());
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    (0..parts.len()).map(|from| parts[from..].join("/")).find(|name| folder.has(name))
}

/// `best_skill.md` where it is the text that was scored, else that text from the step that made it.
fn best(
    folder: &mut Folder,
    steps: &[ForeignStep],
    skills: &BTreeMap<u32, Skill>,
    scores: &Scores,
) -> Option<Skill> {
    let file = steps::skill(folder, BEST);
    let step = steps.iter().find(|step| step.at.step == scores.best_step);
    let by_step = scores.best_origin == format!("step_{:04}", scores.best_step);
    let scored =
        step.filter(|_| by_step).and_then(|step| step.record.as_ref()?.record.candidate_hash.clone());
    let is_scored = |skill: &&Skill| scored.as_ref().is_none_or(|hash| *hash == skill.hash);
    if let Some(skill) = file.as_ref().filter(is_scored) {
        return Some(skill.clone());
    }
    let of_step = [step.and_then(|step| step.candidate.as_ref()), skills.get(&scores.best_step)];
    let found = of_step.into_iter().flatten().find(is_scored).cloned();
    let what = match (&file, &found) {
        (Some(_), Some(_)) => "is not the text that got the best score; that of its step is taken",
        (Some(_), None) => "is not the text whose hash is recorded with the best score",
        (None, Some(_)) => "is absent; the text of its step is taken",
        (None, None) => "is absent: the text of the best skill is not known",
    };
    folder.note(BEST, None, what);
    found.or(file)
}
