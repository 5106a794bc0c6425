//! Whole runs in the foreground: what they print and how they exit.

use serde_json::{Value, json};

use crate::place::{Place, kind, script};

fn without_times(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for key in ["at", "ms", "pid", "run", "name"] {
                    if map.get(key).is_some_and(|value| !value.is_object()) {
                        map.remove(key);
                    }
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn json_lines_only_launch_first_and_done_last() {
    let place = Place::new().await;
    let done =
        place.planish(&["run", "run.toml", "--name", "one", "--json", "--foreground", "--events", "all"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = done.json();
    let kinds: Vec<&str> = lines.iter().map(kind).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("launch", "done"));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == "event"), "{kinds:?}");
    for (index, line) in lines[1..lines.len() - 1].iter().enumerate() {
        assert_eq!(line["event"]["seq"], index as u64 + 1);
    }
    let end = &lines[lines.len() - 1]["done"];
    assert_eq!(
        (&end["status"], &end["best_score"], &end["baseline"]),
        (&json!("completed"), &json!(1.0), &json!(0.0))
    );
    let best = std::fs::read_to_string(end["artefacts"]["best_skill"].as_str().unwrap()).unwrap();
    assert!(best.contains("cards are red"));
    assert!(!place.path("runs/one/host.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_gives_the_same_events_apart_from_times() {
    let place = Place::new().await;
    let events = |name: &str| -> Vec<Value> {
        let done =
            place.planish(&["run", "run.toml", "--name", name, "--json", "--foreground", "--events", "all"]);
        done.json().into_iter().filter(|line| kind(line) == "event").map(without_times).collect()
    };
    let (one, two) = (events("one"), events("two"));
    assert!(one.len() > 20);
    assert_eq!(one, two);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_limits_the_events_and_plain_prints_lines() {
    let place = Place::new().await;
    let lines = |level: &str| {
        place
            .planish(&["run", "run.toml", "--name", level, "--json", "--foreground", "--events", level])
            .json()
    };
    let (none, milestones, all) = (lines("none"), lines("milestones"), lines("all"));
    assert_eq!(none.iter().map(kind).collect::<Vec<_>>(), ["launch", "done"]);
    assert!(milestones.len() > 5 && milestones.len() < all.len());
    assert!(!milestones.iter().any(|line| line.to_string().contains("rollout_finished")));

    let plain = place.planish(&["run", "run.toml", "--name", "plain", "--foreground"]);
    assert_eq!(plain.code, Some(0));
    assert!(plain.out.lines().count() > 20 && !plain.out.contains('\u{1b}'), "{}", plain.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_improvement_the_exit_code_is_3_on_request() {
    let mut useless = script();
    useless["rules"].as_array_mut().unwrap().remove(2);
    let place = Place::with(useless).await;
    let run = |name: &str, extra: &[&str]| {
        place.planish(&[&["run", "run.toml", "--name", name, "--json", "--foreground"], extra].concat()).code
    };
    assert_eq!(run("free", &[]), Some(0));
    assert_eq!(run("strict", &["--require-improvement"]), Some(3));
    // The same for a host of its own.
    let attached = place.planish(&["run", "run.toml", "--name", "own", "--json", "--require-improvement"]);
    assert_eq!(attached.code, Some(3), "{attached:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_and_budgets_have_their_own_exit_codes() {
    let refused = json!({"rules": [{"answers": [{"fault": "status", "status": 401}]}]});
    let place = Place::with(refused).await;
    let done = place.planish(&["run", "run.toml", "--name", "one", "--json", "--foreground"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let end = done.json().pop().unwrap();
    assert_eq!((&end["done"]["status"], &end["done"]["best_score"]), (&json!("failed"), &Value::Null));
    assert!(end["done"]["reason"].as_str().unwrap().contains("authentication"), "{end}");

    let place = Place::new().await;
    let done = place.planish(&[
        "run",
        "run.toml",
        "--name",
        "one",
        "--json",
        "--foreground",
        "-o",
        "budget.max_tokens=500",
    ]);
    assert_eq!(done.code, Some(4), "{done:?}");
    assert_eq!(done.json().pop().unwrap()["done"]["status"], "budget_exhausted");
}
