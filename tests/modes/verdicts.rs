//! Whatever the mode: no verdict rests on the score of another text, and no text is measured twice on an item.

use std::collections::{BTreeMap, HashSet};

use planish::domain::{EpochStage, GateDecision};
use planish::event::{EvalPurpose, Event, RunState};

use crate::lanterns::{Finished, Lanterns};

/// Follows the run and compares what each verdict takes for the current score with the last score of the current text.
pub fn rest_on_measured_texts(run: &Finished) {
    let mut state = RunState::default();
    let mut scores: BTreeMap<String, f64> = BTreeMap::new();
    // The current text, where a measurement names it before the step says so (an appendix that was put in).
    let mut rescored: Option<String> = None;
    for record in &run.records {
        let current = rescored.clone().unwrap_or_else(|| state.current_hash.clone());
        let judged = |decision: &GateDecision, what: &str| {
            let score =
                scores.get(&current).unwrap_or_else(|| panic!("{what}: the current text has no score"));
            assert_eq!(*score, decision.current.gate, "{what}: the score of another text");
        };
        match &record.event {
            Event::EvaluationFinished { eval, score, .. } => {
                let eval = &state.evals[eval];
                let on_selection = matches!(
                    eval.purpose,
                    EvalPurpose::Baseline
                        | EvalPurpose::Candidate
                        | EvalPurpose::Rescore
                        | EvalPurpose::SlowCandidate
                        | EvalPurpose::MetaReflectCandidate
                );
                if on_selection && score.done == score.n {
                    scores.insert(eval.skill_hash.clone(), score.gate);
                }
                if eval.purpose == EvalPurpose::Rescore {
                    rescored = Some(eval.skill_hash.clone());
                }
            }
            Event::GateDecided { at, decision } => judged(decision, &format!("step {}", at.step)),
            Event::StepFinished { .. } => rescored = None,
            Event::EpochStageFinished { stage, at, .. } => {
                let decision = match stage {
                    EpochStage::SlowUpdate(found) => found.decision.as_ref(),
                    EpochStage::MetaReflect(found) => found.decision.as_ref(),
                    EpochStage::MetaSkill(_) => None,
                };
                if let Some(decision) = decision {
                    judged(decision, &format!("{} of epoch {}", stage.name(), at.epoch));
                }
                rescored = None;
            }
            _ => {}
        }
        state.apply(record);
    }
}

/// Items of the selection and test split meet each text at most once.
pub fn cost_no_call_twice(lanterns: &Lanterns) {
    let held_out = regex::Regex::new(r"lantern (2\d|4\d) of row").unwrap();
    let mut seen = HashSet::new();
    for request in lanterns.target.requests() {
        let messages = &request.body["messages"];
        if held_out.is_match(messages[1]["content"].as_str().unwrap()) {
            assert!(seen.insert(messages.to_string()), "measured twice: {messages}");
        }
    }
    assert!(!seen.is_empty());
}
