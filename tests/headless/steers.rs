//! A run that is steered by command: comments, overrides, settings; and a host that is killed around each.

use planish::event::{LogLevel, OverrulingOutcome, RunState, decode_line};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lives::{Watcher, detach, ended, signal};
use crate::place::{Done, Place};

/// Engine events, without the run's name and what a call took.
fn engine_events(place: &Place, name: &str) -> Vec<Value> {
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
    let text = std::fs::read_to_string(place.path("runs").join(name).join("events.jsonl")).unwrap();
    let records = text.lines().map(|line| decode_line(line.as_bytes()).unwrap());
    let events = records.map(|record| record.event).filter(|event| !event.is_outside());
    events
        .map(|event| {
            let mut value = serde_json::to_value(event).unwrap();
            strip(&mut value);
            if let Some(begun) = value.get_mut("run_started") {
                begun["run"] = Value::Null;
            }
            value
        })
        .collect()
}

struct Steered<'a> {
    place: &'a Place,
    name: &'a str,
    host: i32,
    kills: bool,
}

impl Steered<'_> {
    fn ctl(&self, verb: &[&str]) -> Done {
        self.place.planish(&[&["ctl", self.name], verb].concat())
    }

    fn applied(&self, verb: &[&str]) {
        let done = self.ctl(verb);
        assert_eq!((done.code, done.out.as_str()), (Some(0), "applied\n"), "{verb:?}: {done:?}");
    }

    fn refused(&self, verb: &[&str], code: i32, why: &str) {
        let done = self.ctl(verb);
        assert_eq!((done.code, done.out.as_str()), (Some(code), ""), "{verb:?}: {done:?}");
        assert!(done.err.contains(why), "{verb:?}: {}", done.err);
    }

    fn shown(&self) -> Value {
        self.ctl(&["show", "--json"]).json().remove(0)
    }

    async fn until_review(&self, step: u32) -> Watcher {
        let mut watcher = Watcher::of(self.place.path("runs").join(self.name)).await;
        watcher.until(|state| state.open_review().is_some_and(|(at, _)| at.step == step)).await;
        watcher
    }

    /// Kills the host and continues the run under another, if this one is to be killed.
    async fn kill(&mut self) {
        if !self.kills {
            return;
        }
        signal(self.host, Signal::KILL);
        while self.shown()["status"] != "interrupted" {
            tokio::task::yield_now().await;
        }
        self.host = detach(self.place, &["resume", self.name]);
    }
}

async fn steer(place: &Place, name: &str, kills: bool) {
    let host = detach(place, &["run", "run.toml", "--name", name, "-o", "review.mode=manual"]);
    let mut run = Steered { place, name, host, kills };
    run.until_review(1).await;
    run.refused(&["comment", "3", "--text", "x"], 2, "no edit 3");
    run.refused(&["comment", "--text", " "], 1, "the comment is empty");
    run.refused(&["override", "--reject", "--reason", "x"], 2, "the gate has decided no step yet");
    run.refused(&["rollout", "cancel", "e01/s001/rollout/none#0"], 1, "no call is under way");
    run.refused(&["set", "env.worker", "2"], 1, "did you mean env.workers?");
    run.refused(&["set", "train.batch_size", "2"], 1, "start a new run with -o train.batch_size=2");
    let dry = run.ctl(&["comment", "1", "--text", "x", "--dry-run"]).json().remove(0);
    assert_eq!(dry["command"]["body"]["comment"]["edit"], 0);
    run.applied(&["comment", "1", "--text", "say it in one rule"]);
    assert!(run.ctl(&["comment", "1", "--text", "say it in one rule"]).out.contains("it is so already"));
    assert_eq!(run.shown()["review"]["comments"][0]["edit"], 1);
    run.kill().await;
    run.until_review(1).await;
    run.applied(&["decide", "1", "--reject", "--reason", "too plain"]);
    run.applied(&["submit"]);

    run.until_review(2).await;
    let dry = run.ctl(&["override", "--best", "--reason", "x", "--dry-run"]).json().remove(0);
    assert_eq!(dry["command"]["body"]["override"]["at"]["step"], 1);
    run.applied(&["override", "--best", "--reason", "brief is good"]);
    assert_eq!(run.shown()["overrides"][0]["outcome"], "pending");
    run.kill().await;
    run.applied(&["set", "optimizer.min_learning_rate", "1", "--reason", "one at a time"]);
    run.applied(&["set", "env.workers", "2"]);
    assert!(run.ctl(&["set", "env.workers", "2"]).out.contains("it is so already"));
    let retunes = run.shown()["retunes"].clone();
    assert_eq!(
        (&retunes[0]["new"], &retunes[0]["waiting"], &retunes[1]["waiting"]),
        (&json!(1), &json!(true), &Value::Null)
    );
    run.kill().await;
    run.until_review(2).await;
    for edit in ["1", "2"] {
        run.applied(&["decide", edit, "--reject", "--reason", "later"]);
    }
    run.applied(&["submit"]);

    let watcher = run.until_review(3).await;
    let word = watcher.state.steps[0].overruling.clone().unwrap();
    assert!(matches!(word.outcome, OverrulingOutcome::Applied { after_step: 2, .. }), "{word:?}");
    assert_eq!(word.by.0, "tester@ctl");
    let candidate = watcher.state.steps[0].candidate.as_ref().unwrap();
    assert!(candidate.text.contains("Be brief."));
    assert_eq!((&watcher.state.current_hash, &watcher.state.best_hash), (&candidate.hash, &candidate.hash));
    assert_eq!(watcher.state.steps[2].budget, Some(1));
    let workers = watcher.state.effective_config()["env"]["workers"].clone();
    assert_eq!(workers, 2);
    run.kill().await;
    run.applied(&["submit"]);
    let mut watcher = Watcher::of(place.path("runs").join(name)).await;
    watcher.until(ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_steered_run_ends_the_same_whatever_happens_to_its_hosts() {
    let place = Place::new().await;
    steer(&place, "whole", false).await;
    let calls = |name: &str| {
        let mut files: Vec<_> = walk(&place.path("runs").join(name).join("calls"));
        files.sort();
        files
    };
    let asked = place.server.requests().len();
    steer(&place, "killed", true).await;
    assert_eq!(engine_events(&place, "whole"), engine_events(&place, "killed"));
    assert_eq!(calls("whole"), calls("killed"));
    assert_eq!(place.server.requests().len(), 2 * asked, "no recorded call is asked again");
    let best = |name: &str| std::fs::read(place.path("runs").join(name).join("best_skill.md")).unwrap();
    assert_eq!(best("whole"), best("killed"));
    let prompts: Vec<String> =
        place.server.requests().iter().map(|request| request.body.to_string()).collect();
    for words in ["say it in one rule", "overruled the gate: accept as best, because brief is good"] {
        assert!(prompts.iter().any(|prompt| prompt.contains(words)), "no prompt says {words}");
    }
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(walk(&entry.path())),
            false => names.push(entry.file_name().to_string_lossy().into_owned()),
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_stalls_says_so_once_and_goes_on_when_the_call_is_asked_anew() {
    let mut script = crate::place::script();
    let hangs = json!({"answers": [{"fault": "hang"}, "I do not know"], "pick": "sequence"});
    script["rules"].as_array_mut().unwrap().insert(0, hangs);
    let place = Place::with(script).await;
    detach(
        &place,
        &["run", "run.toml", "--name", "one", "-o", "engine.stall_alert_s=1", "-o", "env.workers=1"],
    );
    let mut watcher = Watcher::of(place.path("runs/one")).await;
    let alerts = |state: &planish::event::RunState| {
        state.logs.iter().filter(|line| line.code.as_deref() == Some("stalled")).count()
    };
    watcher.until(|state| alerts(state) == 1).await;
    assert!(
        watcher.state.logs.iter().any(|line| line.level == LogLevel::Warn && line.message.contains("1 call"))
    );
    let told = place.planish(&["ctl", "one", "alerts", "--json"]).json().remove(0);
    assert_eq!(told["code"], "stalled");
    assert!(place.planish(&["ctl", "one", "alerts"]).out.contains("stalled: nothing has happened for 1 s"));
    let items = place.server.requests();
    let asked = items[0].body.to_string();
    let item = (0..26).map(|n| (n, format!("card {n}?"))).find(|(_, words)| asked.contains(words)).unwrap().0;
    let path = format!("baseline/card {item:02}#0");
    let needed = place.planish(&["ctl", "one", "rollout", "cancel", &path]);
    assert_eq!(
        (needed.code, needed.err.contains("the run needs the baseline")),
        (Some(1), true),
        "{needed:?}"
    );
    let again = place.planish(&["ctl", "one", "rollout", "requeue", &path]);
    assert_eq!(again.code, Some(0), "{again:?}");
    watcher.until(ended).await;
    assert_eq!(alerts(&watcher.state), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_value_is_a_wish_on_the_command_line_and_only_old_in_the_file() {
    let place = Place::new().await;
    let host = detach(&place, &["run", "run.toml", "--name", "one", "-o", "review.mode=manual"]);
    let mut run = Steered { place: &place, name: "one", host, kills: true };
    run.until_review(1).await;
    run.applied(&["set", "env.workers", "2"]);
    let file = place.path("runs/one/config.toml");
    let written = || std::fs::read_to_string(&file).unwrap();
    let workers = || {
        let text = std::fs::read_to_string(place.path("runs/one/events.jsonl")).unwrap();
        let records: Vec<_> = text.lines().map(|line| decode_line(line.as_bytes()).unwrap()).collect();
        RunState::fold(&records).effective_config()["env"]["workers"].clone()
    };
    // As if the host had been killed before it wrote the file.
    assert!(written().contains("\nworkers = 2\n"));
    std::fs::write(&file, written().replace("\nworkers = 2\n", "\nworkers = 4\n")).unwrap();
    run.kill().await;
    assert!(written().contains("\nworkers = 2\n"), "{}", written());
    assert_eq!(workers(), 2);
    signal(run.host, Signal::KILL);
    while run.shown()["status"] != "interrupted" {
        tokio::task::yield_now().await;
    }
    run.host = detach(&place, &["resume", "one", "-o", "env.workers=4"]);
    assert_eq!(workers(), 4);
    assert!(written().contains("\nworkers = 4\n"), "{}", written());
    run.kill().await;
    assert_eq!(workers(), 4);
    run.applied(&["cancel"]);
    Watcher::of(place.path("runs/one")).await.until(ended).await;
}
