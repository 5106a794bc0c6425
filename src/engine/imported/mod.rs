//! The journal that a foreign run would have left: its records as events, in the order of the control flow, so that the
//! one fold shows it. Pure; what is not recorded is not made up, and what is odd becomes a log line.

mod ends;
mod epochs;
mod evidence;
mod steps;
mod tape;

use std::collections::HashMap;

use serde_json::Value;

use crate::domain::{Imported, Origin, Phase, ReviewMode, Skill, StepRef, fingerprint};
use crate::event::{EvalPurpose, Event, FORMAT_VERSION, ItemResult, Record, RunPlan};
use crate::store::foreign::{ForeignRollouts, ForeignRun};
use evidence::{Comparison, Measured};
use tape::{Tape, imported_key};

/// The journal of `run` under the name `name`.
pub fn imported_journal(run: &ForeignRun, name: &str) -> Vec<Record> {
    let mut story = Story::begin(run, name);
    story.baseline();
    for (place, step) in run.steps.iter().enumerate() {
        story.step(step);
        if run.steps[place + 1..].iter().all(|later| later.at.epoch != step.at.epoch) {
            story.stages(step.at);
        }
    }
    for epoch in run.epochs.keys().filter(|epoch| run.steps.iter().all(|step| step.at.epoch != **epoch)) {
        story.tape.warn(format!("the stages of epoch {epoch} follow no recorded step; left out"));
    }
    story.end()
}

/// What has been told so far.
struct Story<'a> {
    run: &'a ForeignRun,
    tape: Tape,
    comparison: Comparison,
    /// Places of selection and of test items, by id.
    selection: Places<'a>,
    test: Places<'a>,
    /// Selection scores by skill hash.
    known: HashMap<String, Measured<'a>>,
    current: Option<Skill>,
    /// The score the gate compares with, possibly of an earlier text.
    current_score: Option<Measured<'a>>,
    stale: bool,
    best_hash: String,
    best_score: Option<Measured<'a>>,
    baseline_score: Option<f64>,
    at: StepRef,
}

/// Items in the order they are first met: the folder does not tell the order of the split.
type Places<'a> = HashMap<&'a str, usize>;

impl<'a> Story<'a> {
    fn begin(run: &'a ForeignRun, name: &str) -> Self {
        let settings = &run.settings;
        let seconds: f64 =
            run.steps.iter().filter_map(|step| step.record.as_ref()).map(|record| record.wall_time_s).sum();
        let mut tape = Tape::starting_at(run.ended_at.saturating_sub((seconds * 1000.0) as u64));
        let of_steps = run.steps.iter().filter_map(|step| step.selection.as_ref());
        let of_stages = run.epochs.values().flat_map(|epoch| {
            let slow = epoch.slow_update.as_ref().and_then(|stage| stage.selection.as_ref());
            let reflect = epoch.meta_reflect.as_ref().and_then(|stage| stage.selection.as_ref());
            slow.into_iter().chain(reflect)
        });
        let selection =
            places(run.baseline.iter().chain(of_steps).chain(of_stages).chain(&run.final_selection));
        let test = places(run.test_initial.iter().chain(&run.test_best).chain(&run.test_final));
        let initial = run.initial().cloned();
        let mut config = Value::Object(settings.flat.clone());
        tape.redactor().redact_json(&mut config);
        let steps = run.steps.iter().filter(|step| step.record.is_some()).count() as u32;
        let skill = initial.clone().unwrap_or_else(|| Skill::new(""));
        let best_hash = skill.hash.clone();
        tape.push(Event::RunStarted {
            v: FORMAT_VERSION,
            run: name.to_owned(),
            seed: settings.seed.unwrap_or_default(),
            config_hash: fingerprint([config.to_string().as_str()]),
            config,
            skill,
            plan: plan(run, selection.len(), test.len()),
            origin: Some(Origin::Imported(Imported { folder: run.folder.display().to_string(), steps })),
            folder: None,
            origins: Default::default(),
        });
        for oddity in &run.oddities {
            tape.warn(oddity.to_string());
        }
        if initial.is_none() {
            tape.warn("skills/skill_v0000.md: is absent; the initial skill is not known and shown as empty");
        }
        let comparison = Comparison {
            metric: settings.metric,
            mixed_weight: settings.mixed_weight,
            use_gate: settings.use_gate,
            density: settings.density,
        };
        Self {
            run,
            tape,
            comparison,
            selection,
            test,
            known: HashMap::new(),
            current: initial,
            current_score: None,
            stale: false,
            best_hash,
            best_score: None,
            baseline_score: None,
            at: StepRef::default(),
        }
    }

    fn baseline(&mut self) {
        let run = self.run;
        let recorded = run.summary.baseline_selection_hard;
        let Some(measured) = self.comparison.measured(recorded, None, None, run.baseline.as_ref()) else {
            self.tape.warn("selection_eval_baseline: is absent; the score of the initial skill is not known");
            return;
        };
        let at = StepRef::default();
        self.tape.push(Event::PhaseStarted { at, phase: Phase::Baseline });
        let hash = self.current_hash();
        self.evaluation("baseline", EvalPurpose::Baseline, at, &hash, &measured);
        self.baseline_score = Some(measured.score.gate);
        self.current_score = Some(measured.clone());
        self.best_score = Some(measured);
    }

    fn current_hash(&self) -> String {
        self.current.as_ref().map(|skill| skill.hash.clone()).unwrap_or_default()
    }

    /// A whole evaluation, its items in a fixed order. Without rows only the score is told.
    fn evaluation(
        &mut self,
        id: &str,
        purpose: EvalPurpose,
        at: StepRef,
        skill_hash: &str,
        measured: &Measured<'a>,
    ) {
        let results = measured.rows.map(|rows| rows.results.as_slice()).unwrap_or_default();
        let (eval, n) = (id.to_owned(), results.len());
        self.tape.push(Event::EvaluationStarted {
            eval: eval.clone(),
            purpose,
            at,
            skill_hash: skill_hash.to_owned(),
            n,
        });
        let places = match purpose {
            EvalPurpose::TestBase | EvalPurpose::TestBest | EvalPurpose::TestFinal => &self.test,
            _ => &self.selection,
        };
        let mut rows: Vec<(usize, &ItemResult)> = results
            .iter()
            .enumerate()
            .map(|(row, result)| (places.get(result.item()).copied().unwrap_or(row), result))
            .collect();
        rows.sort_by_key(|(place, _)| *place);
        for (index, result) in rows {
            let event = Event::EvaluationItemFinished {
                key: imported_key(format!("{id}/{}#0", result.item())),
                eval: eval.clone(),
                index,
                result: self.tape.clean(result),
            };
            self.tape.push(event);
        }
        let missing = results.iter().filter(|result| result.rollout().is_none()).count();
        let score = measured.score.clone();
        self.tape.push(Event::EvaluationFinished { eval, score, curtailed: false, missing });
        if purpose == EvalPurpose::Baseline || purpose.is_candidate() {
            self.known.insert(skill_hash.to_owned(), measured.clone());
        }
    }

    fn phase(&mut self, at: StepRef, phase: Phase) {
        self.tape.push(Event::PhaseStarted { at, phase });
    }
}

fn places<'a>(evaluations: impl Iterator<Item = &'a ForeignRollouts>) -> Places<'a> {
    let mut places = Places::new();
    for result in evaluations.flat_map(|rows| &rows.results) {
        let next = places.len();
        places.entry(result.item()).or_insert(next);
    }
    places
}

fn plan(run: &ForeignRun, val: usize, test: usize) -> RunPlan {
    let settings = &run.settings;
    let last = run.steps.last().map(|step| step.at).unwrap_or_default();
    let epochs = settings.epochs.unwrap_or(last.epoch);
    let steps_per_epoch = settings.steps_per_epoch.unwrap_or_else(|| {
        run.steps.iter().map(|step| step.at.step_in_epoch.saturating_add(1)).max().unwrap_or(0)
    });
    RunPlan {
        epochs,
        steps_per_epoch,
        total_steps: epochs.saturating_mul(steps_per_epoch).max(last.step),
        batch_size: settings.batch_size.unwrap_or_default(),
        train: settings.train_size.unwrap_or_default(),
        val,
        test,
        target: settings.target.clone(),
        optimizer: settings.optimizer.clone(),
        judge: String::new(),
        env: settings.env.clone(),
        review: ReviewMode::Auto,
    }
}

#[cfg(test)]
#[path = "imported_tests.rs"]
mod tests;
