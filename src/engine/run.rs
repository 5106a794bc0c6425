//! A run from its first event to its last: baseline, epochs of steps, the final test.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::broadcast;
use tokio::sync::watch as signal;

use super::Stop;
use super::calls::Workshop;
use super::evaluation::{EvalItems, Evaluation, EvaluationSpec, Metric, evaluate};
use super::finish::finish_early;
use super::in_flight::InFlight;
use super::journal::Journal;
use super::outage::attend;
use super::overruling::Decided;
use super::plan::run_plan;
use super::service::RunService;
use super::settings::Settings;
use super::steering::Steering;
use super::takeover::TakenOver;
use super::throughput::metered;
use super::watch::watch;
use crate::config::Config;
use crate::domain::{
    AppendixFlush, Author, Dataset, Edit, GateScore, Origin, Phase, Skill, SkillFolder, StepMemory, StepRef,
    Verdict,
};
use crate::env::Environment;
use crate::env::batches::epoch_plan;
use crate::event::{
    AckResult, Command, EvalPurpose, Event, FORMAT_VERSION, ItemResult, Live, Record, RunPlan, RunState,
};
use crate::model::{Breakers, Budget, ChatModel, Dials};
use crate::optim::{Prompts, with_empty_appendix};
use crate::store::{RunDir, RunLock, StoreError, project, write_epoch, write_run, write_step};

/// Live lines a lagging subscriber may miss.
const LIVE_CHANNEL: usize = 4096;

/// What a run is made of. Built by the command line from a configuration.
pub struct EngineParts {
    pub name: String,
    pub config: Config,
    /// The resolved configuration as `run_started` records it.
    pub config_json: serde_json::Value,
    pub config_hash: String,
    /// Where each setting came from, by key.
    pub config_origins: BTreeMap<String, String>,
    pub skill: Skill,
    /// Set when the run does not begin with that skill alone.
    pub origin: Option<Origin>,
    /// What came with the skill when it was read from a folder.
    pub folder: Option<SkillFolder>,
    pub data: Dataset,
    pub env: Arc<dyn Environment>,
    pub target: Arc<dyn ChatModel>,
    pub optimizer: Arc<dyn ChatModel>,
    /// Set where the environment asks one.
    pub judge: Option<Arc<dyn ChatModel>>,
    pub prompts: Prompts,
    /// What the models were built with and that may change under way.
    pub dials: Arc<Dials>,
    pub breakers: Arc<Breakers>,
    pub budget: Arc<Budget>,
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
    ended: signal::Receiver<bool>,
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
    /// The current skill was changed outside the gate: its evaluation is of an earlier text.
    pub(super) stale: bool,
    /// The current skill at the end of the previous epoch, after its stages.
    pub(super) epoch_end_skill: Skill,
    /// The optimizer's memory of the previous epoch; "" without one.
    pub(super) meta_skill: String,
    /// The summary of the previous epoch's meta-reflection.
    pub(super) meta_summary: String,
    /// Steps of this epoch, for meta-reflection.
    pub(super) epoch_steps: Vec<EpochStep>,
    /// How often the edit budget was taken from the schedule.
    pub(super) schedule_calls: usize,
    /// The step buffer: earlier steps of this epoch.
    pub(super) memory: Vec<StepMemory>,
    /// The last verdicts of the gate, newest last, as long as a person may overrule them.
    pub(super) decided: Vec<Decided>,
    /// Selection results by skill hash, of every text measured so far.
    pub(super) measured: HashMap<String, Vec<Option<ItemResult>>>,
    /// Steps and stages of a foreign run that this one continues.
    pub(super) taken_over: Option<TakenOver>,
    pub(super) run_dir: RunDir,
}

/// A finished step as meta-reflection sees it.
pub(super) struct EpochStep {
    pub action: Verdict,
    pub selection_hard: Option<f64>,
    pub current_score: f64,
    pub best_score: f64,
    /// `None`: nothing was proposed.
    pub selected: Option<Vec<Edit>>,
    pub memory: StepMemory,
}

/// Starts the engine on tokio tasks and returns at once.
pub fn start(parts: EngineParts) -> Arc<Engine> {
    let journal = parts.journal.clone();
    let settings = Arc::new(Settings::new(
        parts.config.clone(),
        parts.dials.clone(),
        parts.budget.clone(),
        parts.run_dir.config_toml(),
    ));
    let in_flight = Arc::new(InFlight::default());
    let steering = Arc::new(Steering::new(journal.clone(), settings.clone(), in_flight.clone()));
    let (end, ended) = signal::channel(false);
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
        if let Err(stop) = conduct(parts, steering, settings, in_flight).await {
            finish_early(&journal, &run_dir, &stop).await;
        }
        end.send_replace(true);
    });
    engine
}

/// The whole control flow.
async fn conduct(
    parts: EngineParts,
    steering: Arc<Steering>,
    settings: Arc<Settings>,
    in_flight: Arc<InFlight>,
) -> Result<(), Stop> {
    let EngineParts { name, config, config_json, config_hash, skill, origin, folder, data, .. } = parts;
    // The recorded beginning stands: keys that are safe to change on a resume may differ by now.
    let begun = parts.journal.recall(|event| match event {
        Event::RunStarted { skill, plan, origin, folder, .. } => {
            Some((skill.clone(), plan.clone(), origin.clone(), folder.clone()))
        }
        _ => None,
    });
    let judge = parts.judge.as_ref().map_or("", |judge| judge.label());
    let mut plan = run_plan(&config, &data, [parts.target.label(), parts.optimizer.label(), judge]);
    let fresh = begun.is_none();
    match begun {
        Some((begun_with, planned, from, carried)) => {
            plan.review = planned.review;
            if begun_with != skill || planned != plan || from != origin || carried != folder {
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
            origin: origin.clone(),
            folder,
            origins: parts.config_origins,
            plan: plan.clone(),
        })?,
    }
    let (live, meter, _clock) = metered(parts.live.clone());
    let _outages = attend(parts.breakers, steering.clone(), parts.journal.clone());
    let _watch = watch(parts.journal.clone(), meter, parts.live);
    let shop = Arc::new(Workshop {
        settings,
        in_flight,
        env: parts.env,
        target: parts.target,
        optimizer: parts.optimizer,
        judge: parts.judge,
        prompts: parts.prompts,
        journal: parts.journal,
        steering,
        live,
    });
    let mut run = match &origin {
        None => Run::begin(shop, data, plan, skill, parts.run_dir).await?,
        Some(Origin::Continued(continued)) => {
            Run::take_over(shop, data, plan, continued, parts.run_dir, fresh).await?
        }
        Some(Origin::Imported(imported)) => {
            return Err(Stop::Failed(format!(
                "this run was imported from {} and cannot go on",
                imported.folder
            )));
        }
    };
    match origin {
        None => run.write_artifacts(write_run).await?,
        Some(_) => run.write_artifacts(project).await?,
    }
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
        let metric = Metric::new(&shop.config().evaluation);
        let at = StepRef::default();
        shop.journal.emit(Event::PhaseStarted { at, phase: Phase::Baseline })?;
        let spec = EvaluationSpec {
            id: "baseline".into(),
            path: "baseline".into(),
            purpose: EvalPurpose::Baseline,
            at,
            skill: &skill,
            items: EvalItems::HeldOut(&data.val[..plan.val]),
            against: None,
            known: None,
            readout: None,
            indispensable: Some("the baseline"),
        };
        let baseline = evaluate(&shop, &metric, spec).await?;
        let val_ids = baseline.results.iter().flatten().map(|result| result.item().to_owned()).collect();
        let mut measured = HashMap::new();
        measured.insert(skill.hash.clone(), baseline.results.clone());
        // The appendix is where notes will go; the seed is measured as it is.
        let current = with_appendix_region(&shop, &skill)?;
        Ok(Self {
            metric,
            val_ids,
            initial: skill.clone(),
            stale: current.hash != skill.hash,
            epoch_end_skill: current.clone(),
            current,
            meta_skill: String::new(),
            meta_summary: String::new(),
            epoch_steps: Vec::new(),
            current_origin: "initial".into(),
            best: skill,
            best_score: baseline.score.clone(),
            best_step: 0,
            best_origin: "initial".into(),
            current_evaluation: baseline,
            schedule_calls: 0,
            memory: Vec::new(),
            decided: Vec::new(),
            measured,
            taken_over: None,
            shop,
            data,
            plan,
            run_dir,
        })
    }

    async fn epochs(&mut self) -> Result<(), Stop> {
        let train = self.shop.config().train.clone();
        let mut step = 0;
        let done = self.taken_over.as_ref().map(|taken_over| taken_over.last).unwrap_or_default();
        for epoch in 1..=self.plan.epochs {
            if epoch < done.epoch {
                step += self.plan.steps_per_epoch;
                continue;
            }
            if epoch != done.epoch {
                self.memory.clear();
                self.epoch_steps.clear();
            }
            let batches = epoch_plan(
                self.data.train.len(),
                self.plan.steps_per_epoch as usize,
                train.accumulation,
                train.batch_size,
                train.seed,
                epoch,
            );
            let mut last = None;
            for (step_in_epoch, group) in batches.chunks(train.accumulation).enumerate() {
                step += 1;
                let step_in_epoch = u32::try_from(step_in_epoch).unwrap_or(u32::MAX);
                let at = StepRef { epoch, step, step_in_epoch };
                last = Some(at);
                if step <= done.step {
                    continue;
                }
                self.step(at, group).await?;
                self.write_artifacts(move |run, state| write_step(run, state, at.step)).await?;
                self.boundary(at).await?;
            }
            if let Some(at) = last {
                self.between_epochs(at).await?;
                self.write_artifacts(move |run, state| write_epoch(run, state, at.epoch)).await?;
                self.boundary(at).await?;
                self.epoch_end_skill = self.current.clone();
            }
        }
        Ok(())
    }

    /// Projects what changed in the journal onto SkillOpt-shaped files, once everything is on disk.
    pub(super) async fn write_artifacts(
        &self,
        write: impl FnOnce(&RunDir, &RunState) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), Stop> {
        self.shop.journal.settled().await?;
        // A copy, so that nobody waits for the journal while thousands of small files are written.
        let state = self.shop.journal.with_state(Clone::clone);
        let run_dir = self.run_dir.clone();
        let project = move || write(&run_dir, &state);
        tokio::task::spawn_blocking(project)
            .await
            .map_err(|error| Stop::Failed(format!("writing the run folder ended abnormally: {error}")))?
            .and_then(|()| self.shop.journal.write_snapshot(&self.run_dir))
            .map_err(|error| Stop::Failed(format!("cannot write the run folder: {error}")))
    }
}

/// Whether the step buffer keeps what a step tells: a skipped one only tells what a reviewer refused or said.
pub(super) fn remembers(action: Verdict, memory: &StepMemory) -> bool {
    let skipped = matches!(action, Verdict::SkipNoPatches | Verdict::SkipNoRewrite);
    !skipped || !memory.failed_attempts.is_empty() || !memory.reviewer_notes.is_empty()
}

/// The skill with room for notes, where the run takes any; journaled when that is another text.
pub(super) fn with_appendix_region(shop: &Workshop, skill: &Skill) -> Result<Skill, Stop> {
    if !shop.config().optimizer.use_skill_aware_reflection {
        return Ok(skill.clone());
    }
    let roomy = Skill::new(with_empty_appendix(&skill.text));
    if roomy.hash != skill.hash {
        let (at, flush) = (StepRef::default(), AppendixFlush::default());
        shop.journal.emit(Event::AppendixUpdated { at, flush, skill: roomy.clone() })?;
    }
    Ok(roomy)
}

impl RunService for Engine {
    fn run_name(&self) -> String {
        self.name.clone()
    }

    fn glance(&self) -> RunState {
        self.journal.with_state(RunState::glance)
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

    fn ended(&self) -> signal::Receiver<bool> {
        self.ended.clone()
    }
}
