//! A run at a glance: its state without the bulk that only looking closer needs (rollouts of finished steps and
//! evaluations, analyses of older steps). Small whatever the length of the run, so that a screen can be drawn from it
//! before the journal is read.

use super::{RunState, StepState};

/// Newest steps that keep all but their rollouts.
const DETAILED: usize = 20;

impl RunState {
    /// This state without its bulk. Folding later records on it is sound; a second glance at the result is a glance at
    /// the whole fold.
    pub fn glance(&self) -> Self {
        let mut glance = self.clone();
        let older = glance.steps.len().saturating_sub(DETAILED);
        for (index, step) in glance.steps.iter_mut().enumerate() {
            if step.finished_at.is_some() {
                outline(step, index >= older);
            }
        }
        for eval in glance.evals.values_mut().filter(|eval| eval.score.is_some()) {
            eval.results = Vec::new();
        }
        glance
    }
}

/// Takes the rollouts off a finished step; off an older one also what was thought about them.
fn outline(step: &mut StepState, detailed: bool) {
    step.rollouts = Vec::new();
    step.batch_starts = Vec::new();
    if !detailed {
        step.analyses = Vec::new();
        (step.merged, step.ranked, step.ranking, step.candidate) = (None, None, None, None);
        step.probes = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Record, decode_line};

    /// A run of two steps with an evaluation each.
    fn records() -> Vec<Record> {
        let text = std::fs::read_to_string("assets/demo-run/events.jsonl").unwrap();
        text.lines().map(|line| decode_line(line.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn a_glance_and_the_rest_of_the_journal_are_a_glance_at_the_whole() {
        let records = records();
        let whole = RunState::fold(&records).glance();
        assert!(whole.steps.iter().all(|step| step.finished_at.is_none() || step.rollouts.is_empty()));
        for cut in (0..records.len()).step_by(records.len() / 12) {
            let mut state = RunState::fold(&records[..cut]).glance();
            for record in &records[cut..] {
                state.apply(record);
            }
            assert_eq!(state.glance(), whole, "glance after record {cut}");
        }
    }
}
