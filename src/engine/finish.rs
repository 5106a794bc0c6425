//! The end of a run: the last skill measured once more, the test split, the last event and the files.

use super::Stop;
use super::evaluation::{EvalItems, Evaluation, EvaluationSpec, Running, begin, evaluate};
use super::journal::{Journal, now_ms};
use super::run::Run;
use crate::domain::{GateMetric, GateScore, Phase, Score, Skill, StepRef};
use crate::event::{EndStatus, EvalPurpose, Event, ItemResult, LastOutcome, LogLevel, Record, TestOutcome};
use crate::gate::{paired_gain, summarize};
use crate::store::{RunDir, StoreError, write_run};

impl Run {
    /// Final selection, test, and the last event.
    pub(super) async fn finish(&mut self) -> Result<(), Stop> {
        let at = StepRef { epoch: self.plan.epochs, step: self.plan.total_steps, step_in_epoch: 0 };
        self.last_boundary(at).await?;
        if self.plan.test > 0 {
            self.select_finally(at).await?;
            self.phase(at, Phase::Test)?;
            let outcome = self.test(at).await?;
            self.shop.journal.emit(Event::TestFinished { outcome })?;
        }
        self.lapse()?;
        let baseline_score = self.shop.journal.with_state(|state| state.baseline_score);
        let end = Event::RunFinished {
            status: EndStatus::Completed,
            reason: "all steps done".into(),
            best_hash: self.best.hash.clone(),
            best_step: self.best_step,
            best_score: Some(self.best_score.gate),
            baseline_score,
        };
        self.shop.journal.settled().await?;
        write_end(&self.shop.journal, &self.run_dir, &end)
            .map_err(|error| Stop::Failed(format!("cannot write the run folder: {error}")))?;
        self.shop.journal.emit(end)?;
        Ok(self.shop.journal.settled().await?)
    }

    /// The last skill may be another text than the best and better: changes outside the gate were never compared.
    async fn select_finally(&mut self, at: StepRef) -> Result<(), Stop> {
        if self.current.hash == self.best.hash {
            return Ok(());
        }
        self.phase(at, Phase::FinalSelection)?;
        let id = "final_selection".to_owned();
        let current = self.current.clone();
        let purpose = EvalPurpose::FinalSelection;
        let evaluation = self.measure(at, purpose, id.clone(), id, &current, None).await?;
        let promoted = evaluation.score.beats(self.best_score.gate);
        if promoted {
            self.best = current;
            self.best_score = evaluation.score.clone();
            self.best_step = at.step;
            self.best_origin.clone_from(&self.current_origin);
        }
        self.shop.journal.emit(Event::FinalSelectionFinished { score: evaluation.score, promoted })?;
        Ok(())
    }

    /// Seed, best and last skill on the test split, all at once; equal texts are measured once.
    async fn test(&self, at: StepRef) -> Result<TestOutcome, Stop> {
        let (initial, best, last) = (&self.initial, &self.best, &self.current);
        let (base_id, best_id, last_id) = ("test_base", "test_best", "test_final");
        let begun = |skill: &'_ Skill, others: &[&Skill]| others.iter().all(|other| other.hash != skill.hash);
        let base = self.begin_test(at, base_id, EvalPurpose::TestBase, initial)?;
        let running_best = match begun(best, &[initial]) {
            true => Some(self.begin_test(at, best_id, EvalPurpose::TestBest, best)?),
            false => None,
        };
        let running_last = match begun(last, &[initial, best]) {
            true => Some(self.begin_test(at, last_id, EvalPurpose::TestFinal, last)?),
            false => None,
        };
        let base = base.finish().await?;
        let best_evaluation = match running_best {
            Some(running) => running.finish().await?,
            None => self.test_known(at, best_id, EvalPurpose::TestBest, best, &base).await?,
        };
        let last_evaluation = match running_last {
            Some(running) => running.finish().await?,
            None => {
                let known = if last.hash == best.hash { &best_evaluation } else { &base };
                self.test_known(at, last_id, EvalPurpose::TestFinal, last, known).await?
            }
        };
        Ok(self.outcome(&base, &best_evaluation, &last_evaluation))
    }

    fn begin_test<'a>(
        &'a self,
        at: StepRef,
        id: &str,
        purpose: EvalPurpose,
        skill: &'a Skill,
    ) -> Result<Running<'a>, Stop> {
        begin(&self.shop, &self.metric, self.test_spec(at, id, purpose, skill, None))
    }

    async fn test_known(
        &self,
        at: StepRef,
        id: &str,
        purpose: EvalPurpose,
        skill: &Skill,
        known: &Evaluation,
    ) -> Result<Evaluation, Stop> {
        let known = Some(known.results.as_slice());
        evaluate(&self.shop, &self.metric, self.test_spec(at, id, purpose, skill, known)).await
    }

    fn test_spec<'a>(
        &'a self,
        at: StepRef,
        id: &str,
        purpose: EvalPurpose,
        skill: &'a Skill,
        known: Option<&'a [Option<ItemResult>]>,
    ) -> EvaluationSpec<'a> {
        EvaluationSpec {
            id: id.into(),
            path: id.into(),
            purpose,
            at,
            skill,
            items: EvalItems::HeldOut(&self.data.test[..self.plan.test]),
            against: None,
            known,
            readout: None,
            indispensable: None,
        }
    }

    /// Pairs only: an item that either skill did not answer says nothing about the difference.
    fn outcome(&self, base: &Evaluation, best: &Evaluation, last: &Evaluation) -> TestOutcome {
        let pairs = self.pairs(base, best);
        let hard: Vec<(f64, f64)> = pairs.iter().map(|(base, best)| (base.hard, best.hard)).collect();
        let paired = paired_gain(&hard);
        let (base_score, best_score) = self.means(&pairs);
        let pairs = self.pairs(base, last);
        let (base_of_last, last_score) = self.means(&pairs);
        TestOutcome {
            n: paired.n,
            base_hard: base_score.hard,
            base_soft: base_score.soft,
            best_hard: best_score.hard,
            best_soft: best_score.soft,
            gained: paired.gains,
            lost: paired.losses,
            delta: paired.mean,
            interval: paired.interval,
            last: Some(LastOutcome {
                n: pairs.len(),
                hard: last_score.hard,
                soft: last_score.soft,
                delta: last_score.hard - base_of_last.hard,
            }),
        }
    }

    fn pairs<'a>(&self, one: &'a Evaluation, other: &'a Evaluation) -> Vec<(&'a Score, &'a Score)> {
        (0..self.plan.test).filter_map(|index| Some((one.score_of(index)?, other.score_of(index)?))).collect()
    }

    fn means(&self, pairs: &[(&Score, &Score)]) -> (GateScore, GateScore) {
        let mean = |scores: Vec<&Score>| summarize(GateMetric::Hard, 0.0, scores.len(), scores);
        (mean(pairs.iter().map(|pair| pair.0).collect()), mean(pairs.iter().map(|pair| pair.1).collect()))
    }
}

/// Writes the files of a run as they are once `end` is journaled, so that whoever hears of the end finds them.
pub(super) fn write_end(journal: &Journal, run_dir: &RunDir, end: &Event) -> Result<(), StoreError> {
    let mut state = journal.with_state(Clone::clone);
    state.apply(&Record { seq: state.seq + 1, at: now_ms(), event: end.clone() });
    write_run(run_dir, &state)
}

/// Journals why a run stopped before its end. The journal stays resumable.
pub(super) async fn finish_early(journal: &Journal, run_dir: &RunDir, stop: &Stop) {
    let status = stop.status();
    let reason = stop.to_string();
    let level = if status == EndStatus::Failed { LogLevel::Error } else { LogLevel::Warn };
    let end = journal.with_state(|state| Event::RunFinished {
        status,
        reason: reason.clone(),
        best_hash: state.best_hash.clone(),
        best_step: state.best_step,
        best_score: state.best_score,
        baseline_score: state.baseline_score,
    });
    if let Err(error) = write_end(journal, run_dir, &end) {
        eprintln!("error: cannot write the run folder: {error}");
    }
    let alert = Event::Alert { level, code: "stopped".into(), message: reason.clone() };
    // When the journal itself cannot be written there is no place left to say so but the host's log.
    let recorded = journal.outside(|_| Ok(alert)).and_then(|_| journal.outside(|_| Ok(end)));
    if let Err(error) = recorded {
        eprintln!("error: {reason}; {error}");
    } else if let Err(error) = journal.settled().await {
        eprintln!("error: {error}");
    }
}
