//! A whole task on disk with two mock servers, for tests that run the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use planish::cli::run_setup::start_run;
use planish::config::Config;
use planish::engine::{Engine, RunService};
use planish::event::{Record, RunState, decode_line, encode_line};
use planish::model::mock::{MockServer, Script};
use planish::store::RunDir;
use serde_json::{Value, json};

/// A scenario on disk with its two mock servers: the target knows a colour once the skill names it, the optimiser
/// proposes the colours that failed.
pub struct Scenario {
    dir: tempfile::TempDir,
    pub target: MockServer,
    pub optimizer: MockServer,
}

pub const COLOURS: [(&str, &str); 3] = [("A", "red"), ("B", "green"), ("C", "blue")];

pub fn target_script() -> Value {
    let mut rules: Vec<Value> = COLOURS
        .iter()
        .map(|(kind, colour)| {
            json!({"system": format!("kind {kind} is {colour}"), "matches": format!("of kind {kind}"), "answers": [colour]})
        })
        .collect();
    rules.push(json!({"answers": ["I do not know"]}));
    json!({"rules": rules})
}

pub fn optimizer_script() -> Value {
    let edit = |kind: &str, colour: &str| json!({"op": "append", "content": format!("A card of kind {kind} is {colour}.")});
    let analyst: Vec<Value> = COLOURS
        .iter()
        .map(|(kind, colour)| {
            let reply = json!({
                "batch_size": 2,
                "failure_summary": [{"failure_type": "mismatch", "count": 2, "description": format!("kind {kind} unknown")}],
                "patch": {"reasoning": "the colour is missing", "edits": [edit(kind, colour)]}
            });
            json!({"system": "scored as\\s+failures", "matches": format!("(?s)<task>\\s*What colour is card \\d+ of kind {kind}"),
                   "answers": [reply.to_string()]})
        })
        .collect();
    let mut rules = analyst;
    rules.push(json!({"system": "scored as\\s+successes", "answers": [json!({"batch_size": 1, "patch": {"reasoning": "fine", "edits": []}}).to_string()]}));
    rules.push(json!({"system": "More edits", "answers": [json!({"reasoning": "first ones", "selected_indices": [0, 1]}).to_string()]}));
    // Merges are refused with prose, so the patches are concatenated.
    rules.push(json!({"answers": ["no JSON here"]}));
    json!({"rules": rules})
}

impl Scenario {
    pub async fn new(extra: &str) -> Self {
        Self::with(target_script(), optimizer_script(), extra).await
    }

    pub async fn with(target: Value, optimizer: Value, extra: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = |value| serde_json::from_value::<Script>(value).unwrap();
        let target = MockServer::start(0, script(target)).await.unwrap();
        let optimizer = MockServer::start(0, script(optimizer)).await.unwrap();
        let items: Vec<Value> = (0..26)
            .map(|n| {
                let (kind, colour) = COLOURS[n % 3];
                json!({"id": format!("card {n:02}"), "question": format!("What colour is card {n} of kind {kind}?"), "answers": [colour]})
            })
            .collect();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("data.json", &json!(items).to_string());
        write("seed.md", "Answer with one word.\n");
        let config = format!(
            r#"
[model]
max_retries = 5
[model.target]
model = "mock"
base_url = "{}"
[model.optimizer]
model = "mock"
base_url = "{}"
[train]
num_epochs = 2
batch_size = 4
seed = 7
[gradient]
minibatch_size = 2
merge_batch_size = 2
[optimizer]
learning_rate = 3
min_learning_rate = 1
[env]
data_path = "data.json"
split_ratio = "6:3:4"
skill_init = "seed.md"
scorer = "normalized_exact"
workers = 4
{extra}
"#,
            target.base_url(),
            optimizer.base_url()
        );
        write("run.toml", &config);
        Self { dir, target, optimizer }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub async fn start(&self, name: &str, overrides: &[&str]) -> Arc<Engine> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let config = Config::load(&self.path("run.toml"), &overrides).unwrap().config;
        let run = RunDir::create(&self.path("runs"), name).unwrap();
        std::fs::write(run.config_toml(), config.resolved_toml().unwrap()).unwrap();
        start_run(&run).await.unwrap()
    }

    /// Puts other records in place of a run's journal, numbered anew, beside the settings it began with.
    pub fn rewrite(&self, name: &str, records: Vec<Record>) {
        let mut bytes = Vec::new();
        for (mut record, seq) in records.into_iter().zip(1..) {
            record.seq = seq;
            bytes.extend(encode_line(&record).unwrap());
        }
        let run = self.path("runs").join(name);
        std::fs::write(run.join("events.jsonl"), bytes).unwrap();
        let _ = std::fs::remove_file(run.join("snapshot.json"));
        let config = Config::load(&self.path("run.toml"), &[]).unwrap().config;
        std::fs::write(run.join("config.toml"), config.resolved_toml().unwrap()).unwrap();
    }

    pub async fn complete(&self, name: &str, overrides: &[&str]) -> RunState {
        let engine = self.start(name, overrides).await;
        engine.ended().wait_for(|ended| *ended).await.unwrap();
        fold(&self.path("runs").join(name))
    }
}

pub fn records(run: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    text.lines().map(|line| decode_line(line.as_bytes()).unwrap()).collect()
}

pub fn fold(run: &Path) -> RunState {
    RunState::fold(&records(run))
}

/// Engine events without times, sequence numbers and the run's name.
pub fn engine_events(run: &Path) -> Vec<Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("ms");
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let events = records(run).into_iter().map(|record| record.event).filter(|event| !event.is_outside());
    events
        .map(|event| {
            let mut value = serde_json::to_value(event).unwrap();
            strip(&mut value);
            if let Some(started) = value.get_mut("run_started") {
                started["run"] = Value::Null;
                started["config"]["env"]["workers"] = Value::Null;
                started["config_hash"] = Value::Null;
            }
            value
        })
        .collect()
}
