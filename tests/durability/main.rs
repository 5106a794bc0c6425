//! Kill -9 at any instant: the resumed run ends in the same bytes, and no recorded call is made twice.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/scenario.rs"]
#[allow(dead_code)]
mod scenario;

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use planish::domain::EffectKey;
use planish::model::CallStore;
use scenario::{Scenario, engine_events};
use serde_json::Value;

/// Hosts killed in all, spread evenly over all journal positions in groups of `CHAINS` runs.
const KILLS: usize = 100;
const CHAINS: usize = 10;

/// Starts, or resumes, a run in the foreground of a child process.
fn start(scenario: &Scenario, name: &str) -> Child {
    let run = scenario.path("runs").join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_planish"));
    if run.join("events.jsonl").exists() {
        command.arg("resume").arg(&run);
    } else {
        // A host that was killed before its first event left a folder with a configuration: the run is continued.
        command.arg("run").arg(scenario.path("run.toml")).args(["--name", name]);
        command.arg("--root").arg(scenario.path("runs"));
    }
    command
        .args(["--foreground", "--json", "--events", "all"])
        .env("XDG_RUNTIME_DIR", scenario.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the child once its output names an event with `seq >= at`; `None` lets it run to its end. Says whether the
/// run completed: on a busy machine a kill near the end may come too late.
fn drive(mut child: Child, kill_at: Option<u64>) -> bool {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut completed = false;
    for line in stdout.lines() {
        let line = line.unwrap();
        let value: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON on stdout: {line}"));
        completed |= value.get("done").is_some();
        let seq = value["event"]["seq"].as_u64().unwrap_or(0);
        if kill_at.is_some_and(|at| seq >= at) {
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

/// Journal length in whole lines.
fn journal_len(run: &Path) -> u64 {
    let bytes = std::fs::read(run.join("events.jsonl")).unwrap_or_default();
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Engine events among them.
fn engine_len(run: &Path) -> u64 {
    let text = std::fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    let whole = text.lines().filter_map(|line| planish::event::decode_line(line.as_bytes()).ok());
    whole.filter(|record| !record.event.is_outside()).count() as u64
}

/// What must be equal: final skill, projections (without times) and engine events (without times).
fn outcome(run: &Path) -> BTreeMap<String, String> {
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

/// Drives a run with `kill_at` and checks that no call recorded before was asked for again.
fn drive_checked(scenario: &Scenario, name: &str, kill_at: Option<u64>) -> bool {
    let recorded = recorded_seeds(&scenario.path("runs").join(name));
    let servers = [&scenario.target, &scenario.optimizer];
    let before = servers.map(|server| server.requests().len());
    let completed = drive(start(scenario, name), kill_at);
    for (server, before) in servers.into_iter().zip(before) {
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

#[test]
fn a_hundred_kills_change_nothing_and_repeat_no_recorded_call() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let scenario = runtime.block_on(Scenario::new(""));
    drive(start(&scenario, "undisturbed"), None);
    let undisturbed = scenario.path("runs").join("undisturbed");
    let expected = outcome(&undisturbed);
    let events = engine_len(&undisturbed);
    assert!(events >= KILLS as u64, "the scenario has only {events} events");

    let mut kills = 0;
    for chain in 0.. {
        let name = format!("chain{chain}");
        let run = scenario.path("runs").join(&name);
        let mut completed = false;
        for nth in 0..KILLS / CHAINS {
            // Every host start adds events of its own, so the place is counted in engine events.
            let wanted = 1 + (nth * CHAINS + chain % CHAINS) as u64 * events / KILLS as u64;
            let at = journal_len(&run) + wanted.saturating_sub(engine_len(&run)).max(1);
            completed = drive_checked(&scenario, &name, Some(at));
            if completed {
                break;
            }
            kills += 1;
        }
        if !completed {
            drive_checked(&scenario, &name, None);
        }
        for (file, text) in outcome(&run) {
            assert_eq!(text, expected[&file], "{file} of {name} differs from the undisturbed run");
        }
        if kills >= KILLS {
            break;
        }
        assert!(chain < 3 * CHAINS, "only {kills} kills came in time");
    }
}
