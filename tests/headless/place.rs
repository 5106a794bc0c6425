//! A folder with a small task, a scripted model server, and the program run in it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use planish::model::mock::{MockServer, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const PLANISH: &str = env!("CARGO_BIN_EXE_planish");

pub struct Place {
    dir: TempDir,
    runtime: TempDir,
    pub server: MockServer,
}

/// The analyst proposes two edits; the target answers right once the skill says that cards are red.
pub fn script() -> Value {
    let patch = json!({
        "batch_size": 2,
        "failure_summary": [{"failure_type": "mismatch", "count": 2, "description": "colour unknown"}],
        "patch": {"reasoning": "the colour is missing", "edits": [
            {"op": "append", "content": "All cards are red."},
            {"op": "append", "content": "Be brief."},
        ]},
    });
    let none = json!({"batch_size": 1, "patch": {"reasoning": "fine", "edits": []}});
    json!({"rules": [
        {"system": "scored as\\s+failures", "answers": [patch.to_string()]},
        {"system": "scored as\\s+successes", "answers": [none.to_string()]},
        {"system": "cards are red", "answers": ["red"]},
        {"answers": ["I do not know"]},
    ]})
}

impl Place {
    pub async fn new() -> Self {
        Self::with(script()).await
    }

    pub async fn with(script: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let private = Permissions::from_mode(0o700);
        let runtime = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let server = MockServer::start(0, serde_json::from_value::<Script>(script).unwrap()).await.unwrap();
        let items: Vec<Value> = (0..26)
            .map(|n| json!({"id": format!("card {n:02}"), "question": format!("Colour of card {n}?"), "answers": ["red"]}))
            .collect();
        let place = Self { dir, runtime, server };
        place.write("data.json", &json!(items).to_string());
        place.write("seed.md", "Answer with one word.\n");
        place.write("run.toml", &place.config());
        place
    }

    pub fn config(&self) -> String {
        let url = self.server.base_url();
        format!(
            r#"[model.target]
model = "mock"
base_url = "{url}"
[model.optimizer]
model = "mock"
base_url = "{url}"
[train]
num_epochs = 1
batch_size = 4
seed = 7
[gradient]
minibatch_size = 4
[env]
data_path = "data.json"
split_ratio = "6:3:4"
skill_init = "seed.md"
scorer = "normalized_exact"
workers = 4
"#
        )
    }

    /// Where the hosts' sockets lie.
    pub fn runtime(&self) -> PathBuf {
        self.runtime.path().join("planish")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(PLANISH.into(), arguments)
    }

    pub fn command_of(&self, program: PathBuf, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("USER", "tester")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn planish(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().unwrap())
    }
}

/// What a finished program said.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Every line of stdout as JSON; anything else there is a fault.
    pub fn json(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}")))
            .collect()
    }
}

/// The first key of a line: its kind.
pub fn kind(line: &Value) -> &str {
    line.as_object().and_then(|map| map.keys().next()).map_or("", String::as_str)
}
