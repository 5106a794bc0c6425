//! A run from its first event to its last: baseline, epochs of steps, the final test.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, broadcast, watch};

use super::Stop;
use super::calls::Workshop;
use super::evaluation::{Evaluation, EvaluationSpec, Metric, evaluate};
use super::journal::{Journal, now_ms};
use super::plan::run_plan;
use super::service::RunService;
use super::steering::Steering;
use super::throughput::metered;
use crate::config::Config;
use crate::domain::{Author, Dataset, GateScore, Phase, Score, Skill, StepMemory, StepRef};
use crate::env::Environment;
use crate::env::batches::epoch_plan;
use crate::event::{
    AckResult, Command, EndStatus, EvalPurpose, Event, FORMAT_VERSION, ItemResult, Live, LogLevel, Record,
    RunPlan, TestOutcome,
};
use crate::gate::{paired_gain, summarize};
use crate::model::ChatModel;
use crate::store::{RunDir, RunLock, StoreError, write_run, write_step};

/// Live lines a lagging subscriber may miss.
const LIVE_CHANNEL: usize = 4096;

/// What a run is made of. Built by the command line from a configuration.
pub struct EngineParts {
    pub name: String,
    pub config: Config,
    /// The resolved configuration as `run_started` records it.
    pub config_json: serde_json::Value,
    pub config_hash: String,
    pub skill: Skill,
    pub data: Dataset,
    pub env: Arc<dyn Environment>,
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    pub journal: Arc<Journal>,
    pub run_dir: RunDir,
    /// Where the models send their high-rate news.
    pub live: broadcast::Sender<Arc<Live>>,
    /// Held as long as the engine lives.
    pub lock: Arc<RunLock>,
}

/// The channel that models publish high-rate news on.
pub fn live_channel() -> broadcast::Sender<Arc<Live>> {
    broadcast::channel(LIVE_CHANNEL).0
}

/// A running engine.
pub struct Engine {
    name: String,
    journal: Arc<Journal>,
    steering: Arc<Steering>,
    live: broadcast::Sender<Arc<Live>>,
    ended: watch::Receiver<bool>,
    _lock: Arc<RunLock>,
}

/// The mutable state of the control flow; everything in it follows from the journal's engine events.
pub(super) struct Run {
    pub(super) shop: Arc<Workshop>,
    pub(super) data: Dataset,
    pub(super) plan: RunPlan,
    pub(super) metric: Metric,
    pub(super) val_ids: Vec<String>,
    pub(super) initial: Skill,
    pub(super) current: Skill,
    pub(super) current_evaluation: Evaluation,
    pub(super) current_origin: String,
    pub(super) best: Skill,
    pub(super) best_score: GateScore,
    pub(super) best_step: u32,
    pub(super) best_origin: String,
    /// How often the edit budget was taken from the schedule.
    pub(super) schedule_calls: usize,
    /// The step buffer: earlier steps of this epoch.
    pub(super) memory: Vec<StepMemory>,
    /// Selection results by skill hash, of every text measured so far.
    pub(super) measured: HashMap<String, Vec<Option<ItemResult>>>,
    run_dir: RunDir,
}

/// Starts the engine on tokio tasks and returns at once.
pub fn start(parts: EngineParts) -> Arc<Engine> {
    let journal = parts.journal.clone();
    let steering = Arc::new(Steering::new(journal.clone()));
    let (end, ended) = watch::channel(false);
    let engine = Arc::new(Engine {
        name: parts.name.clone(),
        journal: journal.clone(),
        steering: steering.clone(),
        live: parts.live.clone(),
        ended,
        _lock: parts.lock.clone(),
    });
    tokio::spawn(async move {
        let run_dir = parts.run_dir.clone();
        if let Err(stop) = conduct(parts, steering).await {
            finish_early(&journal, &run_dir, &stop).await;
        }
        end.send_replace(true);
    });
    engine
}

/// The whole control flow.
async fn conduct(parts: EngineParts, steering: Arc<Steering>) -> Result<(), Stop> {
    let EngineParts { name, config, config_json, config_hash, skill, data, .. } = parts;
    // The recorded beginning stands: keys that are safe to change on a resume may differ by now.
    let begun = parts.journal.recall(|event| match event {
        Event::RunStarted { skill, plan, .. } => Some((skill.clone(), plan.clone())),
        _ => None,
    });
    let mut plan = run_plan(&config, &data, parts.target.label(), parts.optimizer.label());
    match begun {
        Some((begun_with, planned)) => {
            plan.review = planned.review;
            if begun_with != skill || planned != plan {
                return Err(Stop::Failed(
                    "the seed skill, the data or a model changed since this run began; restore them or start a \
                     new run"
                        .into(),
                ));
            }
        }
        None => parts.journal.emit(Event::RunStarted {
            v: FORMAT_VERSION,
            run: name,
            seed: config.train.seed,
            config: config_json,
            config_hash,
            skill: skill.clone(),
            origin: None,
            plan: plan.clone(),
        })?,
    }
    let (live, _clock) = metered(parts.live);
    let shop = Arc::new(Workshop {
        rollout_slots: Arc::new(Semaphore::new(config.env.workers)),
        analyst_slots: Arc::new(Semaphore::new(config.gradient.analyst_workers)),
        env: parts.env,
        target: parts.target,
        optimizer: parts.optimizer,
        journal: parts.journal,
        steering,
        live,
        config,
    });
    let mut run = Run::begin(shop, data, plan, skill, parts.run_dir).await?;
    run.epochs().await?;
    run.finish().await
}

impl Run {
    /// Measures the baseline.
    async fn begin(
        shop: Arc<Workshop>,
        data: Dataset,
        plan: RunPlan,
        skill: Skill,
        run_dir: RunDir,
    ) -> Result<Self, Stop> {
        let metric = Metric {
            kind: shop.config.evaluation.gate_metric,
            mixed_weight: shop.config.evaluation.gate_mixed_weight,
        };
        let at = StepRef::default();
        shop.journal.emit(Event::PhaseStarted { at, phase: Phase::Baseline })?;
        let spec = EvaluationSpec {
            id: "baseline".into(),
            path: "baseline".into(),
            purpose: EvalPurpose::Baseline,
            at,
            skill: &skill,
            items: &data.val[..plan.val],
            against: None,
            known: None,
        };
        let baseline = evaluate(&shop, metric, spec).await?;
        if baseline.score.done < plan.val {
            let missing: Vec<_> = baseline.results.iter().flatten().cloned().collect();
            let first = super::calls::missing_message(&missing).unwrap_or_default();
            return Err(Stop::Failed(format!(
                "the baseline lacks {} of {} items, so nothing can be compared with it; {first}",
                plan.val - baseline.score.done,
                plan.val
            )));
        }
        let val_ids = baseline.results.iter().flatten().map(|result| result.item().to_owned()).collect();
        let mut measured = HashMap::new();
        measured.insert(skill.hash.clone(), baseline.results.clone());
        Ok(Self {
            metric,
            val_ids,
            initial: skill.clone(),
            current: skill.clone(),
            current_origin: "initial".into(),
            best: skill,
            best_score: baseline.score.clone(),
            best_step: 0,
            best_origin: "initial".into(),
            current_evaluation: baseline,
            schedule_calls: 0,
            memory: Vec::new(),
            measured,
            shop,
            data,
            plan,
            run_dir,
        })
    }

    async fn epochs(&mut self) -> Result<(), Stop> {
        let train = self.shop.config.train.clone();
        let mut step = 0;
        for epoch in 1..=self.plan.epochs {
            self.memory.clear();
            let batches = epoch_plan(
                self.data.train.len(),
                self.plan.steps_per_epoch as usize,
                train.accumulation,
                train.batch_size,
                train.seed,
                epoch,
            );
            for (step_in_epoch, group) in batches.chunks(train.accumulation).enumerate() {
                step += 1;
                let step_in_epoch = u32::try_from(step_in_epoch).unwrap_or(u32::MAX);
                let at = StepRef { epoch, step, step_in_epoch };
                self.step(at, group).await?;
                self.write_artifacts(at).await?;
            }
        }
        Ok(())
    }

    /// The test split, base against best, and the last event.
    async fn finish(&mut self) -> Result<(), Stop> {
        let at = StepRef { epoch: self.plan.epochs, step: self.plan.total_steps, step_in_epoch: 0 };
        if self.plan.test > 0 {
            self.phase(at, Phase::Test)?;
            let base = self.test(at, "test_base", EvalPurpose::TestBase, &self.initial.clone(), None).await?;
            let known = (self.best.hash == self.initial.hash).then_some(base.results.as_slice());
            let best = self.test(at, "test_best", EvalPurpose::TestBest, &self.best.clone(), known).await?;
            // Pairs only: an item that either skill did not answer says nothing about the difference.
            let pairs: Vec<(&Score, &Score)> = (0..self.plan.test)
                .filter_map(|index| Some((base.score_of(index)?, best.score_of(index)?)))
                .collect();
            let hard: Vec<(f64, f64)> = pairs.iter().map(|(base, best)| (base.hard, best.hard)).collect();
            let paired = paired_gain(&hard);
            let Metric { kind, mixed_weight } = self.metric;
            let base = summarize(kind, mixed_weight, pairs.len(), pairs.iter().map(|pair| pair.0));
            let best = summarize(kind, mixed_weight, pairs.len(), pairs.iter().map(|pair| pair.1));
            let outcome = TestOutcome {
                n: paired.n,
                base_hard: base.hard,
                base_soft: base.soft,
                best_hard: best.hard,
                best_soft: best.soft,
                gained: paired.gains,
                lost: paired.losses,
                delta: paired.mean,
                interval: paired.interval,
                last: None,
            };
            self.shop.journal.emit(Event::TestFinished { outcome })?;
        }
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

    async fn test(
        &self,
        at: StepRef,
        id: &str,
        purpose: EvalPurpose,
        skill: &Skill,
        known: Option<&[Option<ItemResult>]>,
    ) -> Result<Evaluation, Stop> {
        let items = &self.data.test[..self.plan.test];
        let spec = EvaluationSpec {
            id: id.into(),
            path: id.into(),
            purpose,
            at,
            skill,
            items,
            against: None,
            known,
        };
        evaluate(&self.shop, self.metric, spec).await
    }

    /// Projects the journal onto SkillOpt-shaped files, once everything is on disk.
    async fn write_artifacts(&self, at: StepRef) -> Result<(), Stop> {
        self.shop.journal.settled().await?;
        // A copy, so that nobody waits for the journal while thousands of small files are written.
        let state = self.shop.journal.with_state(Clone::clone);
        let run_dir = self.run_dir.clone();
        let project =
            move || write_step(&run_dir, &state, at.step).and_then(|()| write_run(&run_dir, &state));
        tokio::task::spawn_blocking(project)
            .await
            .map_err(|error| Stop::Failed(format!("writing the run folder ended abnormally: {error}")))?
            .and_then(|()| self.shop.journal.write_snapshot(&self.run_dir))
            .map_err(|error| Stop::Failed(format!("cannot write the run folder: {error}")))
    }
}

/// Writes the files of a run as they are once `end` is journaled, so that whoever hears of the end finds them.
fn write_end(journal: &Journal, run_dir: &RunDir, end: &Event) -> Result<(), StoreError> {
    let mut state = journal.with_state(Clone::clone);
    state.apply(&Record { seq: state.seq + 1, at: now_ms(), event: end.clone() });
    write_run(run_dir, &state)
}

/// Journals why a run stopped before its end. The journal stays resumable.
async fn finish_early(journal: &Journal, run_dir: &RunDir, stop: &Stop) {
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

impl RunService for Engine {
    fn run_name(&self) -> String {
        self.name.clone()
    }

    fn records(&self, after: u64) -> (Vec<Arc<Record>>, broadcast::Receiver<Arc<Record>>) {
        self.journal.records(after)
    }

    fn live(&self) -> broadcast::Receiver<Arc<Live>> {
        self.live.subscribe()
    }

    fn steer(
        &self,
        command: Command,
        by: Author,
        expect_rev: Option<u64>,
    ) -> BoxFuture<'_, (AckResult, u64)> {
        Box::pin(async move {
            match self.steering.steer(command, by, expect_rev).await {
                Ok(answer) => answer,
                Err(error) => (AckResult::Denied { reason: error.to_string() }, 0),
            }
        })
    }

    fn ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }
}
