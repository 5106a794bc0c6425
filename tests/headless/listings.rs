//! A folder of runs in every condition that a disk can show: what `planish ls` says and which runs a filter chooses.

use std::path::Path;

use serde_json::{Value, json};

use crate::place::Place;

/// A run of its own whose journal is the first part of another's.
fn cut(place: &Place, name: &str, journal: &str) {
    let folder = place.path("runs").join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(place.path("runs/one/config.toml"), folder.join("config.toml")).unwrap();
    std::fs::write(folder.join("events.jsonl"), journal).unwrap();
}

fn statuses(listed: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut told: Vec<_> = listed.iter().map(|run| (text(&run["name"]), text(&run["status"]))).collect();
    told.sort();
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_every_kind_are_listed_and_filtered() {
    let place = Place::new().await;
    assert_eq!(place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]).code, Some(0));
    let journal = std::fs::read_to_string(place.path("runs/one/events.jsonl")).unwrap();
    let half: String = journal.split_inclusive('\n').take(journal.lines().count() / 2).collect();
    // The writer was killed in the middle of a line.
    let torn = format!("{half}{}", &journal[half.len()..half.len() + 20]);
    cut(&place, "torn", &torn);
    cut(&place, "far", &half);
    cut(&place, "bad", "{\"seq\":1}\n{\"seq\":2}\n");
    let far = json!({"host": "gpu7", "pid": 1, "start_time": 1, "socket": "/x.sock", "protocol": 1, "version": "0"});
    place.write("runs/far/host.json", &far.to_string());
    std::fs::create_dir(place.path("runs/fresh")).unwrap();
    place.write("runs/fresh/config.toml", "");
    std::fs::create_dir(place.path("runs/no-run")).unwrap();

    let listed = place.planish(&["ls", "--json"]).json();
    let expected = [
        ("bad", "damaged"),
        ("far", "elsewhere"),
        ("fresh", "new"),
        ("one", "completed"),
        ("torn", "interrupted"),
    ];
    assert_eq!(statuses(&listed), expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
    let find = |name: &str| listed.iter().find(|run| run["name"] == name).unwrap();
    assert_eq!(find("far")["host"], "gpu7");
    assert!(find("bad")["problem"].as_str().unwrap().contains("line 1"));
    let one = find("one");
    assert_eq!((&one["env"], &one["seed"], &one["best_score"]), (&json!("qa"), &json!(7), &json!(1.0)));
    assert!(one["usage"]["rollout"]["calls"].as_u64().unwrap() > 0);

    for (filter, names) in [
        ("status:crashed or status:elsewhere", &["far", "torn"][..]),
        ("best>0.5 env:qa not torn", &["far", "one"]),
        ("host:gpu7 age<1h", &["far"]),
        ("seed:8", &[]),
    ] {
        let found = place.planish(&["ls", "--json", filter]).json();
        let found: Vec<String> = statuses(&found).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, names, "{filter}");
    }
    let none = place.planish(&["ls", "seed:8"]);
    assert!(none.err.contains("none of the 5 runs"), "{none:?}");
    let wrong = place.planish(&["ls", "stauts:done"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("did you mean `status`?") && wrong.err.contains("and, or, not"), "{wrong:?}");
    assert!(!Path::new(&place.path("runs/torn/snapshot.json")).exists(), "looking writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_no_command_is_bad_usage() {
    let place = Place::new().await;
    let done = place.planish(&[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.out.contains("Usage:") && done.out.contains("resume"), "{done:?}");
}
