//! The small configurations of `configs/tests`, each run against scripted servers of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use planish::cli::run_setup::start_run;
use planish::config::Config;
use planish::engine::{Engine, RunService};
use planish::event::{EndStatus, Event, Record, RunState, RunStatus};
use planish::model::mock::{MockServer, Rule, Script};
use planish::store::RunDir;
use serde_json::Value;

use crate::scenario::records;

/// Calls `$make!` with the names of all configurations. A test compares them with the folder.
macro_rules! every_configuration {
    ($make:ident) => {
        $make! {
            accumulation
            deep_reflect
            failure_only
            full_rewrite_minibatch
            gate_mixed
            gate_off
            gate_soft
            insert_after_append
            lr_autonomous
            lr_none
            meta_reflect
            meta_reflect_suggestions
            meta_skill
            meta_skill_after_slow_update
            pairs_changed
            pairs_unchanged
            patch
            review_timeout
            rewrite_from_suggestions
            schedule_autonomous
            schedule_constant
            schedule_linear
            semantic_density
            skill_aware
            skill_aware_failure_only
            slow_update_forced
            slow_update_gated
        }
    };
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/tests")
}

/// Names of the configurations, without the one they all inherit.
pub fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let configs = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<String> =
        configs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.retain(|name| name != "base");
    names.sort();
    names
}

/// The scripted optimizer with `rules` before its own.
pub fn optimizer(rules: Vec<Rule>) -> Script {
    let mut script = Script::load(&folder().join("replies/optimizer.toml")).unwrap();
    script.rules.splice(0..0, rules);
    script
}

/// One configuration with its servers and a folder for runs.
pub struct Lanterns {
    dir: tempfile::TempDir,
    config: String,
    pub target: MockServer,
    pub optimizer: MockServer,
}

impl Lanterns {
    pub async fn new(config: &str) -> Self {
        Self::with(config, optimizer(Vec::new())).await
    }

    pub async fn with(config: &str, optimizer: Script) -> Self {
        let target = Self::target_replies();
        Self {
            dir: tempfile::tempdir().unwrap(),
            config: config.to_owned(),
            target: MockServer::start(0, target).await.unwrap(),
            optimizer: MockServer::start(0, optimizer).await.unwrap(),
        }
    }

    /// What the target answers.
    pub fn target_replies() -> Script {
        Script::load(&folder().join("replies/target.toml")).unwrap()
    }

    /// The optimizer's server is replaced by another one at the same place.
    pub async fn replace_optimizer(&mut self, script: Script) {
        let port = self.optimizer.port();
        let idle = MockServer::start(0, Script::default()).await.unwrap();
        std::mem::replace(&mut self.optimizer, idle).stop().await;
        self.optimizer = MockServer::start(port, script).await.unwrap();
    }

    pub fn config(&self) -> PathBuf {
        folder().join(format!("{}.toml", self.config))
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn run(&self, name: &str) -> PathBuf {
        self.dir.path().join("runs").join(name)
    }

    /// Where the servers of this instance are.
    pub fn overrides(&self) -> Vec<String> {
        let servers = [("target", &self.target), ("optimizer", &self.optimizer)];
        servers.map(|(role, server)| format!("model.{role}.base_url={}", server.base_url())).to_vec()
    }

    pub async fn start(&self, name: &str, extra: &[&str]) -> Arc<Engine> {
        let mut overrides = self.overrides();
        overrides.extend(extra.iter().map(|text| (*text).to_owned()));
        let config = Config::load(&self.config(), &overrides).unwrap().config;
        let run = RunDir::create(&self.dir.path().join("runs"), name).unwrap();
        std::fs::write(run.config_toml(), config.resolved_toml().unwrap()).unwrap();
        start_run(&run).await.unwrap()
    }

    /// Runs to the end, which must be a completion.
    pub async fn complete(&self, name: &str, extra: &[&str]) -> Finished {
        let engine = self.start(name, extra).await;
        engine.ended().wait_for(|ended| *ended).await.unwrap();
        let finished = Finished::open(&self.run(name));
        let completed =
            matches!(finished.state.status, RunStatus::Ended { status: EndStatus::Completed, .. });
        assert!(completed, "{}: {:?} {:?}", self.config, finished.state.status, finished.state.logs);
        finished
    }
}

/// A run that has ended.
pub struct Finished {
    pub path: PathBuf,
    pub records: Vec<Record>,
    pub state: RunState,
}

impl Finished {
    pub fn open(run: &Path) -> Self {
        let records = records(run);
        Self { path: run.to_owned(), state: RunState::fold(&records), records }
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.records.iter().map(|record| &record.event)
    }

    pub fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    pub fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// The skill that was the best at the end.
    pub fn best(&self) -> &str {
        self.state.skill_text(&self.state.best_hash).unwrap()
    }

    /// The skill that was current at the end.
    pub fn last(&self) -> &str {
        self.state.skill_text(&self.state.current_hash).unwrap()
    }

    /// Answers of the optimizer in a stage of one question, `None` where its reply could not be used.
    pub fn answers(&self, wanted: &str) -> Vec<(Option<Value>, String)> {
        let answers = self.events().filter_map(|event| match event {
            Event::OptimizerAnswered { stage, answer, note, .. } if stage == wanted => {
                Some((answer.clone(), note.clone()))
            }
            _ => None,
        });
        answers.collect()
    }
}
