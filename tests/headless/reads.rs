//! Commands that only look: ls, show, events, replay, doctor, schema, eval; and readers that go away.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::place::{Done, Place};

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_run_is_listed_shown_read_and_played() {
    let place = Place::new().await;
    assert_eq!(place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]).code, Some(0));

    let listed = place.planish(&["ls", "--json"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["status"]), (&json!("one"), &json!("completed")));
    assert!(place.planish(&["ls"]).out.lines().nth(1).unwrap().starts_with("one"));

    let shown = place.planish(&["ctl", "one", "show", "--json"]).json();
    assert_eq!((&shown[0]["status"], &shown[0]["best"]), (&json!("completed"), &json!(1.0)));
    assert_eq!(shown[0]["host"], Value::Null);

    let brief = place.planish(&["ctl", "one", "events", "--after", "3", "--limit", "2", "--json"]);
    let seqs: Vec<u64> = brief.json().iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [4, 5]);
    let all = place.planish(&["ctl", "one", "events", "--json"]);
    assert!(!all.out.contains("cards are red"), "model text without being asked for");
    assert!(place.planish(&["ctl", "one", "events", "--content"]).out.contains("cards are red"));

    for command in [&["attach", "one"][..], &["attach"], &["replay", "one", "--speed", "inf"]] {
        let done = place.planish(command);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.contains("run completed") || done.out.contains("completed"), "{}", done.out);
    }
    let denied = place.planish(&["ctl", "one", "pause"]);
    assert_eq!((denied.code, denied.err.as_str()), (Some(1), "error: denied: the run has ended\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_recording_plays_to_its_end_without_anything() {
    let place = Place::new().await;
    let mut command = place.command(&["replay", "--demo", "--speed", "inf"]);
    let done = Done::of(command.env_clear().output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert!(done.out.lines().count() > 10);
    assert_eq!(place.server.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_scored_on_the_asked_split_without_a_run() {
    let place = Place::new().await;
    place.write("good.md", "All cards are red.\n");
    let score = |skill: &str| {
        let done = place.planish(&["eval", "run.toml", "--skill", skill, "--split", "test", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json().pop().unwrap()
    };
    assert_eq!((&score("seed.md")["hard"], &score("good.md")["hard"]), (&json!(0.0), &json!(1.0)));
    assert_eq!(score("good.md")["n"], 8);
    assert!(!place.path("runs").exists());
    let missing = place.planish(&["eval", "run.toml", "--skill", "none.md", "--split", "test"]);
    assert_eq!((missing.code, missing.err.contains("none.md")), (Some(2), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_gives_every_finding_that_is_not_good_a_remedy() {
    let place = Place::new().await;
    let mut command = place.command(&["doctor", "--json"]);
    let done =
        Done::of(command.env("PLANISH_HOME", place.path("home")).env("TERM", "dumb").output().unwrap());
    let checks = done.json();
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    for name in [
        "runs root",
        "runtime directory",
        "worker",
        "model file",
        "libtorch",
        "terminal colours",
        "UTF-8",
        "tmux",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    for check in &checks {
        assert_eq!(check["verdict"] != "ok", check["remedy"].is_string(), "{check}");
    }
    assert_eq!(checks[3]["verdict"], "warn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new().await;
    let mut child = place.command(&["schema"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
}
