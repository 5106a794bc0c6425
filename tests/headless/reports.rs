//! `planish report`: a finished run in Markdown and as data, with the lineage of its best skill.

use serde_json::{Value, json};

use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn a_report_says_where_each_line_of_the_best_skill_came_from() {
    let place = Place::new().await;
    assert_eq!(place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]).code, Some(0));
    let done = place.planish(&["report", "one"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    for text in [
        "# one",
        "Completed",
        "## Steps",
        "| 1 | Answer with one word. | seed |",
        "step 1, edit 1",
        "failure ×",
    ] {
        assert!(done.out.contains(text), "{text} is not in:\n{}", done.out);
    }
    let row = done.out.lines().find(|line| line.contains("All cards are red.")).unwrap();
    assert!(row.contains("step 1, edit 1"), "{row}");

    let data = place.planish(&["report", "one", "--json"]).json().remove(0);
    let lines = data["lineage"]["lines"].as_array().unwrap();
    let text: String = lines.iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(text, std::fs::read_to_string(place.path("runs/one/best_skill.md")).unwrap());
    let red = lines.iter().find(|line| line["text"] == "All cards are red.\n").unwrap();
    let origin = &data["lineage"]["origins"][red["origin"].as_u64().unwrap() as usize];
    assert_eq!((&origin["stage"], &origin["edit"]["op"]), (&json!("edit"), &json!("append")));
    assert_eq!(origin["verdict"], "accept_new_best");
    assert_eq!((&data["status"], &data["best_score"]), (&json!("completed"), &json!(1.0)));

    let written = place.planish(&["report", "--out", "report.md"]);
    assert_eq!((written.code, written.out.as_str()), (Some(0), ""), "{written:?}");
    assert_eq!(std::fs::read_to_string(place.path("report.md")).unwrap(), done.out);
    let json_file = place.planish(&["report", "one", "--json", "--out", "report.json"]);
    assert_eq!(json_file.code, Some(0));
    let read: Value = serde_json::from_slice(&std::fs::read(place.path("report.json")).unwrap()).unwrap();
    assert_eq!(read, data);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_nothing_is_refused() {
    let place = Place::new().await;
    let none = place.planish(&["report"]);
    assert_eq!((none.code, none.err.contains("no runs")), (Some(2), true), "{none:?}");
    std::fs::create_dir_all(place.path("runs/new")).unwrap();
    place.write("runs/new/config.toml", "");
    let unbegun = place.planish(&["report", "new"]);
    assert_eq!((unbegun.code, unbegun.err.contains("has not begun")), (Some(2), true), "{unbegun:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_run_has_its_lineage_too() {
    let place = Place::new().await;
    let folder = format!("{}/tests/fixtures/skillopt_run", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(place.planish(&["import", &folder, "--name", "old"]).code, Some(0));
    let data = place.planish(&["report", "old", "--json"]).json().remove(0);
    let (lines, origins) = (&data["lineage"]["lines"], &data["lineage"]["origins"]);
    let text: String = lines.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(text, std::fs::read_to_string(format!("{folder}/best_skill.md")).unwrap());
    let note = lines.as_array().unwrap().iter().find(|line| line["text"] == "- NOTE-5\n").unwrap();
    let origin = &origins[note["origin"].as_u64().unwrap() as usize];
    assert_eq!((&origin["at"]["step"], &origin["edit"]["number"]), (&json!(3), &json!(2)), "{origin}");
    assert_eq!((&origin["verdict"], &origin["reason"]), (&json!("accept_new_best"), &json!("r")));
    let known = ["seed", "edit", "slow_update"].map(|stage| json!(stage));
    assert!(origins.as_array().unwrap().iter().all(|origin| known.contains(&origin["stage"])), "{origins}");
}
