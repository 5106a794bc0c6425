//! A host as a child process that is killed at chosen places of its journal, and what a run leaves behind.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use planish::domain::EffectKey;
use planish::model::CallStore;
use planish::model::mock::MockServer;
use serde_json::Value;

use crate::scenario::engine_events;

/// What is run: a configuration and the servers that answer it.
pub struct Task<'a> {
    pub config: PathBuf,
    pub overrides: Vec<String>,
    /// Holds `runs/` and the hosts' sockets.
    pub folder: PathBuf,
    pub servers: [&'a MockServer; 2],
}

impl Task<'_> {
    pub fn run(&self, name: &str) -> PathBuf {
        self.folder.join("runs").join(name)
    }

    /// Starts, or resumes, a run in the foreground of a child process.
    fn command(&self, name: &str) -> Command {
        let run = self.run(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_planish"));
        if run.join("events.jsonl").exists() {
            command.arg("resume").arg(&run);
        } else {
            // A host that was killed before its first event left a folder with a configuration: the run is continued.
            command.arg("run").arg(&self.config).args(["--name", name]);
            command.arg("--root").arg(self.folder.join("runs"));
            for setting in &self.overrides {
                command.args(["-o", setting]);
            }
        }
        command.args(["--foreground", "--json", "--events", "all"]);
        command.env("XDG_RUNTIME_DIR", &self.folder).stdin(Stdio::null());
        command
    }

    /// Runs to the end under changed settings; what the program said by its exit code.
    pub fn exit_code(&self, name: &str, settings: &[&str]) -> Option<i32> {
        let mut command = self.command(name);
        for setting in settings {
            command.args(["-o", setting]);
        }
        let mut host = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        host.wait().unwrap().code()
    }

    /// Starts a run and kills it once `reached` has come to its end.
    pub fn interrupt(&self, name: &str, reached: impl FnOnce()) {
        let mut host = self.command(name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        reached();
        host.kill().unwrap();
        host.wait().unwrap();
    }

    /// Runs a host until the journal has `engine_events` of those; `None` lets it run to its end. Says whether the run
    /// completed: on a busy machine a kill near the end may come too late. No call that was recorded before may be
    /// asked for again.
    pub fn drive(&self, name: &str, kill_at: Option<u64>) -> bool {
        let run = self.run(name);
        let recorded = recorded_seeds(&run);
        let before = self.servers.map(|server| server.requests().len());
        // Every start of a host adds events of its own, which do not count.
        let host = self.command(name).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let completed = watch(host, kill_at, engine_len(&run));
        for (server, before) in self.servers.into_iter().zip(before) {
            for request in &server.requests()[before..] {
                let seed = request.body["seed"].as_u64().unwrap();
                assert!(
                    !recorded.contains(&seed),
                    "{name}: a recorded call was made again (kill at {kill_at:?})"
                );
            }
        }
        completed
    }
}

fn watch(mut child: Child, kill_at: Option<u64>, mut engine_events: u64) -> bool {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut completed = false;
    for line in stdout.lines() {
        let line = line.unwrap();
        let value: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON on stdout: {line}"));
        completed |= value.get("done").is_some();
        if let Ok(record) = planish::event::decode_line(value["event"].to_string().as_bytes()) {
            engine_events += u64::from(!record.event.is_outside());
        }
        if kill_at.is_some_and(|at| engine_events >= at) {
            child.kill().unwrap();
            break;
        }
    }
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The journal may say so although the child was killed before it could.
    completed |= stderr.contains("has completed");
    assert!(kill_at.is_some() || completed, "the run failed: {stderr}");
    completed
}

/// Engine events in the journal, a torn last line not counted.
pub fn engine_len(run: &Path) -> u64 {
    let text = std::fs::read(run.join("events.jsonl")).unwrap_or_default();
    let whole = text.split(|byte| *byte == b'\n').filter_map(|line| planish::event::decode_line(line).ok());
    whole.filter(|record| !record.event.is_outside()).count() as u64
}

/// Cuts the journal after `engine_events`, as if the kill had come right there. What later events stand for may be
/// in `calls/` already: a reply is stored before it is journaled.
pub fn cut(run: &Path, engine_events: u64) {
    let (mut kept, mut bytes) = (0, 0);
    let journal = std::fs::read(run.join("events.jsonl")).unwrap();
    for line in journal.split_inclusive(|byte| *byte == b'\n') {
        // The kill may have torn the last line.
        let Ok(record) = planish::event::decode_line(line.trim_ascii_end()) else { break };
        if kept == engine_events && !record.event.is_outside() {
            break;
        }
        kept += u64::from(!record.event.is_outside());
        bytes += line.len() as u64;
    }
    std::fs::OpenOptions::new().write(true).open(run.join("events.jsonl")).unwrap().set_len(bytes).unwrap();
}

/// What must be equal: final skill, projections (without times) and engine events (without times).
pub fn outcome(run: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for name in ["best_skill.md", "history.json", "runtime_state.json", "summary.json"] {
        let text = std::fs::read_to_string(run.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = match serde_json::from_str::<Value>(&text) {
            Ok(mut value) => {
                strip_times(&mut value);
                serde_json::to_string_pretty(&value).unwrap()
            }
            Err(_) => text,
        };
        found.insert(name.to_owned(), text);
    }
    let events: Vec<String> = engine_events(run).iter().map(Value::to_string).collect();
    found.insert("events".to_owned(), events.join("\n"));
    found
}

fn strip_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["timing", "wall_time_s", "total_wall_time_s"] {
                map.remove(key);
            }
            map.values_mut().for_each(strip_times);
        }
        Value::Array(list) => list.iter_mut().for_each(strip_times),
        _ => {}
    }
}

/// Seeds of the calls stored in `calls/`. A seed is drawn from the call's path, so within a run it names one call.
fn recorded_seeds(run: &Path) -> HashSet<u64> {
    let store = CallStore::new(run.join("calls"));
    let mut seeds = HashSet::new();
    for folder in std::fs::read_dir(run.join("calls")).into_iter().flatten() {
        let folder = folder.unwrap().path();
        for file in std::fs::read_dir(&folder).into_iter().flatten() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if let Some(fingerprint) = name.strip_suffix(".json.zst") {
                let key = EffectKey { path: String::new(), fingerprint: fingerprint.to_owned() };
                let record = store.get(&key).unwrap_or_else(|| panic!("{name} does not read back"));
                seeds.insert(record.request.sampling.seed.unwrap());
            }
        }
    }
    seeds
}
