//! The recorded SkillOpt run of `tests/fixtures/skillopt_run` played again by planish: the same data, settings and replies
//! over HTTP. Reads only the repository; the run's folder is temporary.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use planish::cli::run_setup::start_run;
use planish::config::Config;
use planish::engine::RunService;
use planish::event::{EndStatus, RunState, RunStatus};
use planish::model::mock::{MockServer, Script, SeenRequest};
use planish::store::RunDir;
use serde_json::Value;

/// The run as it lies on disk, and what the server was asked.
pub struct Replay {
    root: tempfile::TempDir,
    pub requests: Vec<SeenRequest>,
}

/// Played once per test program.
pub static REPLAY: LazyLock<Replay> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(Replay::play())
});

impl Replay {
    async fn play() -> Self {
        let script = Script::load(&fixture("e2e/script.toml")).unwrap();
        let server = MockServer::start(0, script).await.unwrap();
        let address = |role| format!("model.{role}.base_url={}", server.base_url());
        let overrides = [address("target"), address("optimizer")];
        let config = Config::load(&fixture("e2e/run.toml"), &overrides).unwrap().config;
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "run1").unwrap();
        std::fs::write(run.config_toml(), config.resolved_toml().unwrap()).unwrap();
        let engine = start_run(&run).await.unwrap();
        engine.ended().wait_for(|ended| *ended).await.unwrap();
        let (records, _) = engine.records(0);
        let state = RunState::fold(records.iter().map(AsRef::as_ref));
        let completed = matches!(state.status, RunStatus::Ended { status: EndStatus::Completed, .. });
        assert!(completed, "{:?} {:?}", state.status, state.logs);
        Self { root, requests: server.requests() }
    }

    pub fn folder(&self) -> PathBuf {
        self.root.path().join("run1")
    }

    pub fn json(&self, name: &str) -> Value {
        read_json(&self.folder().join(name))
    }
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// JSON, or the rows of JSON lines.
pub fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parse =
        |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        Value::Array(text.lines().map(parse).collect())
    } else {
        parse(&text)
    }
}

/// Every file below a folder, by its relative name, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, names);
            } else {
                names.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut names = Vec::new();
    walk(folder, folder, &mut names);
    names.sort();
    names
}
