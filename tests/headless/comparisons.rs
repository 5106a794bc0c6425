//! `planish compare`: two finished runs side by side, their curves as files.

use serde_json::json;

use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_are_compared_with_intervals_and_the_settings_that_differ() {
    let place = Place::new().await;
    for (name, seed) in [("one", "train.seed=1"), ("two", "train.seed=2")] {
        let ran = place.planish(&["run", "run.toml", "--name", name, "-o", seed, "--foreground", "--plain"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let done = place.planish(&["compare", "one", "two", "--csv", "curves.csv", "--svg", "curves.svg"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let row = |name: &str| done.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("RUN").contains("BEST - SEED"), "{}", done.out);
    assert!(row("one").contains("1.00") && row("two").contains(" n "), "{}", done.out);
    let differing = row("train.seed");
    assert!(differing.contains('1') && differing.contains('2'), "{differing}");
    assert!(!done.out.contains("gate.metric"), "equal settings are not told:\n{}", done.out);

    let data = place.planish(&["compare", "one", "two", "--json"]).json().remove(0);
    assert_eq!(data["settings_that_differ"]["train.seed"], json!([1, 2]));
    assert_eq!(data["runs"][0]["best"], json!(1.0));
    assert_eq!(data["runs"][0]["best_minus_first"], json!(null));
    assert!(data["runs"][1]["best_minus_first"]["interval"].is_array(), "{data}");

    let csv = std::fs::read_to_string(place.path("curves.csv")).unwrap();
    assert!(csv.starts_with("run,series,step,time_s,tokens,value\n"));
    for start in ["one,select/best,", "two,train/hard,1,"] {
        assert!(csv.lines().any(|line| line.starts_with(start)), "{start} is not in:\n{csv}");
    }
    let svg = std::fs::read_to_string(place.path("curves.svg")).unwrap();
    assert!(svg.contains("select by step") && svg.trim_end().ends_with("</svg>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_not_there_is_named() {
    let place = Place::new().await;
    let none = place.planish(&["compare", "nowhere"]);
    assert_eq!((none.code, none.err.contains("no run `nowhere`")), (Some(2), true), "{none:?}");
    std::fs::create_dir_all(place.path("runs/new")).unwrap();
    std::fs::write(place.path("runs/new/events.jsonl"), "").unwrap();
    let empty = place.planish(&["compare", "new"]);
    assert_eq!((empty.code, empty.err.contains("has not begun")), (Some(2), true), "{empty:?}");
}
