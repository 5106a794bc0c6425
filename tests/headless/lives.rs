//! Hosts that outlive their starter, clients that come and go, review by command, signals.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use planish::client::{ClientEvent, ClientOptions, Connection, Target, open};
use planish::domain::Author;
use planish::event::{HostLine, RunState, RunStatus, WatchRole};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::place::{Done, Place, kind, script};

/// Generous: only a hang gets there.
const DEADLINE: Duration = Duration::from_secs(60);

/// Follows a run until its state is as wanted.
pub struct Watcher {
    pub connection: Connection,
    pub state: RunState,
}

impl Watcher {
    pub async fn of(run: PathBuf) -> Self {
        let name = Author("watcher".into());
        let options =
            ClientOptions { role: WatchRole::Watch, name, live: false, glance: false, after_seq: 0 };
        Self { connection: open(Target::Folder(run), options).await.unwrap(), state: RunState::default() }
    }

    pub async fn until(&mut self, wanted: impl Fn(&RunState) -> bool) {
        let follow = async {
            while !wanted(&self.state) {
                if let ClientEvent::Line(HostLine::Event(record)) =
                    self.connection.events.recv().await.unwrap()
                {
                    self.state.apply(&record);
                }
            }
        };
        tokio::time::timeout(DEADLINE, follow).await.expect("the run did not get there");
    }
}

pub fn ended(state: &RunState) -> bool {
    matches!(state.status, RunStatus::Ended { .. })
}

/// Starts a run with a host of its own and returns the host's pid.
pub fn detach(place: &Place, arguments: &[&str]) -> i32 {
    let done = place.planish(&[arguments, &["--detach"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = done.json();
    assert_eq!(lines.iter().map(kind).collect::<Vec<_>>(), ["launch"]);
    i32::try_from(lines[0]["launch"]["pid"].as_i64().unwrap()).unwrap()
}

pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn slow() -> Value {
    let mut script = script();
    script["latency_ms"] = json!(20);
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn a_detached_run_goes_on_and_can_be_attached() {
    let place = Place::with(slow()).await;
    let host = detach(&place, &["run", "run.toml", "--name", "one"]);
    // The terminal's hangup does not reach it, and one sent on purpose does not end it.
    signal(host, Signal::HUP);
    let attached = place.planish(&["attach", "one", "--read-only"]);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    let again = place.planish(&["ctl", "one", "show", "--json"]).json();
    assert_eq!(again[0]["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_of_a_living_run_attaches_to_its_host() {
    let place = Place::with(slow()).await;
    let host = detach(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"]);
    let again = detach(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"]);
    assert_eq!(host, again);
    for (change, told) in [
        ("train.batch_size=5", "train.batch_size: 4 -> 5"),
        // Even where no result depends on it: the host would go on without it.
        ("env.workers=2", "env.workers: 4 -> 2"),
        ("review.mode=auto", "review.mode"),
    ] {
        for command in
            [&["run", "run.toml", "--name", "one", "-o", "review.mode=manual"][..], &["resume", "one"]]
        {
            let done = place.planish(&[command, &["--detach", "-o", change]].concat());
            assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{done:?}");
            assert!(done.err.contains(told), "{}", done.err);
        }
    }
    assert_eq!(detach(&place, &["resume", "one"]), host);
    let refused = place.planish(&["resume", "one", "--foreground"]);
    assert_eq!(
        (refused.code, refused.err.contains(&format!("in use by process {host} on "))),
        (Some(2), true),
        "{refused:?}"
    );
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
    Watcher::of(place.path("runs/one")).await.until(ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_decided_by_command() {
    let place = Place::new().await;
    detach(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"]);
    let mut watcher = Watcher::of(place.path("runs/one")).await;
    watcher.until(|state| state.open_review().is_some()).await;

    let shown = place.planish(&["ctl", "one", "show", "--json"]).json().remove(0);
    assert_eq!(shown["review"]["edits"].as_array().unwrap().len(), 2, "{shown}");
    assert_eq!((&shown["status"], &shown["review"]["undecided"]), (&json!("review"), &json!(2)));
    assert!(place.planish(&["ctl", "one", "show"]).out.contains("status: review 2\n"));
    assert!(place.planish(&["ls"]).out.contains("review 2"));
    let listed = place.planish(&["ls", "--json"]).json().remove(0);
    for path in [&shown["run_dir"], &listed["path"]] {
        assert!(path.as_str().unwrap().starts_with('/'), "{path}");
    }
    let dry = place.planish(&["ctl", "one", "decide", "1", "--accept", "--dry-run"]);
    assert_eq!((dry.code, dry.json()[0]["command"]["body"]["decide"]["edit"].as_u64()), (Some(0), Some(0)));
    let unknown = place.planish(&["ctl", "one", "decide", "3", "--accept"]);
    assert_eq!((unknown.code, unknown.err.contains("no edit 3")), (Some(2), true));

    let rejected =
        place.planish(&["ctl", "one", "decide", "2", "--reject", "--reason", "too vague", "--json"]);
    assert_eq!((rejected.code, &rejected.json()[0]["result"]), (Some(0), &json!("applied")), "{rejected:?}");
    assert!(place.planish(&["ls"]).out.contains("review 1"));
    let mut nameless = place.command(&["ctl", "one", "decide", "1", "--accept"]);
    let accepted = Done::of(nameless.env_remove("USER").env_remove("LOGNAME").output().unwrap());
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    watcher.until(|state| state.open_review().is_some_and(|(_, review)| review.edits[0].by.is_some())).await;
    let by = watcher.state.open_review().unwrap().1.edits[0].by.clone().unwrap();
    assert!(by.0.ends_with("@ctl"), "{by:?}");
    let late = place.planish(&["ctl", "one", "decide", "2", "--accept", "--expect-rev", "0"]);
    assert_eq!(late.code, Some(1));
    assert!(late.err.contains("conflict: tester@ctl"), "{}", late.err);
    assert_eq!(place.planish(&["ctl", "one", "submit", "--step", "9"]).code, Some(2));
    assert_eq!(place.planish(&["ctl", "one", "submit"]).code, Some(0));

    watcher.until(|state| state.steps.first().is_some_and(|step| step.candidate.is_some())).await;
    let candidate = watcher.state.steps[0].candidate.clone().unwrap().text;
    assert!(candidate.contains("All cards are red.") && !candidate.contains("Be brief."), "{candidate}");
    assert_eq!(place.planish(&["ctl", "one", "cancel"]).code, Some(0));
    watcher.until(ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_of_a_model_reaches_no_terminal() {
    let hostile = "All cards are red.\u{1b}[2J\u{9b}2J\u{202e}evil\u{2028}next\u{85}line\u{7f}";
    let patch = json!({"batch_size": 2, "failure_summary": [], "patch": {"reasoning": hostile, "edits": [
        {"op": "append", "content": hostile}]}});
    let mut script = script();
    script["rules"][0]["answers"] = json!([patch.to_string()]);
    let place = Place::with(script).await;
    detach(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"]);
    let mut watcher = Watcher::of(place.path("runs/one")).await;
    watcher.until(|state| state.open_review().is_some()).await;
    assert!(watcher.state.open_review().unwrap().1.edits[0].edit.content.contains('\u{202e}'));
    let inert = |done: &Done| {
        let odd = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{202e}');
        assert!(done.out.contains("All cards are red.") && !done.out.contains(odd), "{:?}", done.out);
    };
    let shown = place.planish(&["ctl", "one", "show", "--content", "--json"]);
    inert(&shown);
    assert!(shown.json()[0]["review"]["edits"][0]["content"].as_str().unwrap().contains('\u{202e}'));
    inert(&place.planish(&["ctl", "one", "show", "--content"]));
    inert(&place.planish(&["ctl", "one", "events", "--content"]));
    assert_eq!(place.planish(&["ctl", "one", "submit"]).code, Some(0));
    watcher.until(ended).await;
    let journal = place.planish(&["ctl", "one", "events", "--content", "--json"]);
    inert(&journal);
    assert!(journal.json().iter().any(|record| record.to_string().contains('\u{202e}')));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_asks_for_a_decision() {
    let place = Place::new().await;
    let timeout = ["-o", "review.mode=manual", "-o", "review.timeout_s=1", "-o", "review.on_timeout=accept"];
    let done = place
        .planish(&[&["run", "run.toml", "--name", "one", "--json", "--foreground"], &timeout[..]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let needed = done.json().into_iter().find(|line| kind(line) == "decision_needed").unwrap();
    assert_eq!(
        (&needed["decision_needed"]["edits"], &needed["decision_needed"]["timeout_s"]),
        (&json!(2), &json!(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_is_seen_as_interrupted_and_resumed_to_the_same_end() {
    let place = Place::with(slow()).await;
    let whole = place
        .planish(&["run", "run.toml", "--name", "whole", "--json", "--foreground"])
        .json()
        .pop()
        .unwrap();
    for how in [Signal::KILL, Signal::TERM] {
        let name = format!("cut-{}", how.as_raw());
        let host = detach(&place, &["run", "run.toml", "--name", &name]);
        let mut watcher = Watcher::of(place.path("runs").join(&name)).await;
        watcher.until(|state| state.seq > 15).await;
        signal(host, how);
        let status = || place.planish(&["ctl", &name, "show", "--json"]).json()[0]["status"].clone();
        let gone = async {
            while status() == "running" {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, gone).await.expect("the host lives on");
        assert_eq!(status(), "interrupted");

        let resumed = place.planish(&["resume", &name, "--json"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        let lines = resumed.json();
        assert_eq!(kind(&lines[0]), "launch");
        assert_eq!(lines.iter().filter(|line| line["event"].get("run_started").is_some()).count(), 0);
        for key in ["status", "best_score", "baseline", "best_step", "test"] {
            assert_eq!(lines[lines.len() - 1]["done"][key], whole["done"][key], "{key}");
        }
        let best = |name: &str| std::fs::read(place.path("runs").join(name).join("best_skill.md")).unwrap();
        assert_eq!(best(&name), best("whole"));
    }
}

fn foreground(place: &Place, name: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let arguments = ["run", "run.toml", "--name", name, "--json", "--foreground", "--events", "all"];
    let mut child = place.command(&arguments).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_in_the_foreground_cancels_and_the_run_can_be_resumed() {
    let place = Place::with(slow()).await;
    for (name, how) in [("int", Signal::INT), ("term", Signal::TERM)] {
        let (child, out) = foreground(&place, name);
        let mut lines = out.lines();
        while !lines.next().unwrap().unwrap().contains("evaluation_item_finished") {}
        signal(i32::try_from(child.id()).unwrap(), how);
        let last = lines.map(Result::unwrap).last().unwrap();
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(130), "{done:?}");
        let last: Value = serde_json::from_str(&last).unwrap();
        assert_eq!(last["done"]["status"], "cancelled");
        assert!(!place.path("runs").join(name).join("host.json").exists());
        let resumed = place.planish(&["resume", name, "--json", "--foreground"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        assert_eq!(resumed.json().pop().unwrap()["done"]["status"], "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_or_reader_that_goes_away_does_not_stop_a_foreground_run() {
    let place = Place::with(slow()).await;
    let (child, out) = foreground(&place, "one");
    let mut lines = out.lines();
    while !lines.next().unwrap().unwrap().contains("evaluation_item_finished") {}
    drop(lines);
    signal(i32::try_from(child.id()).unwrap(), Signal::HUP);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let listed = place.planish(&["ls", "--json"]).json();
    assert_eq!(listed[0]["status"], "completed");
    assert!(!place.path("runs/one/host.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_reader_the_exit_code_is_still_that_of_the_run() {
    let refused = json!({"rules": [{"answers": [{"fault": "status", "status": 401}]}]});
    let place = Place::with(refused).await;
    for mode in ["--json", "--plain"] {
        let mut child =
            place.command(&["run", "run.toml", "--name", &mode[2..], "--foreground", mode]).spawn().unwrap();
        drop(child.stdout.take());
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(!place.path("runs").join(&mode[2..]).join("host.json").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_leaves_at_once() {
    let mut stuck = script();
    stuck["latency_ms"] = json!(60_000);
    let place = Place::with(stuck).await;
    let (mut child, out) = foreground(&place, "one");
    let mut lines = out.lines();
    while !lines.next().unwrap().unwrap().contains("evaluation_started") {}
    let pid = i32::try_from(child.id()).unwrap();
    signal(pid, Signal::TERM);
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(notes.next().unwrap().unwrap().contains("again"));
    signal(pid, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!place.path("runs/one/host.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_left_is_cleared_by_the_next() {
    let place = Place::with(slow()).await;
    let sockets = || std::fs::read_dir(place.runtime()).unwrap().count();
    let host = detach(&place, &["run", "run.toml", "--name", "one"]);
    let mut watcher = Watcher::of(place.path("runs/one")).await;
    watcher.until(|state| state.seq > 15).await;
    signal(host, Signal::KILL);
    let dead = async {
        while place.planish(&["ctl", "one", "show", "--json"]).json()[0]["status"] == "running" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, dead).await.expect("the host lives on");
    assert_eq!((sockets(), place.path("runs/one/host.json").exists()), (1, true));
    assert_eq!(place.planish(&["run", "run.toml", "--name", "two", "--foreground", "--json"]).code, Some(0));
    assert_eq!(sockets(), 0);
    assert_eq!(place.planish(&["resume", "one", "--json"]).code, Some(0));
    assert!(!place.path("runs/one/host.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_a_killed_run_whose_folder_is_gone_ends_with_1() {
    let place = Place::with(slow()).await;
    let host = detach(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"]);
    let mut child = place.command(&["attach", "one", "--plain"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("REVIEW") {}
    std::fs::rename(place.path("runs/one"), place.path("runs/two")).unwrap();
    signal(host, Signal::KILL);
    lines.for_each(drop);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.err.contains("runs/one is gone")), (Some(1), true), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_done_is_told_the_files_are_written() {
    let place = Place::new().await;
    for round in 0..5 {
        let name = format!("run-{round}");
        let mut child = place.command(&["run", "run.toml", "--name", &name, "--json"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let done = lines.find_map(|line| line.ok().filter(|line| line.starts_with("{\"done\""))).unwrap();
        let run = place.path("runs").join(&name);
        assert!(run.join("summary.json").exists() && !run.join("host.json").exists(), "{done}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
