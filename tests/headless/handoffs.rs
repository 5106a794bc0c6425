//! A run whose target is a person: prompts to files, answers from files.

use std::time::{Duration, Instant};

use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_through_files_and_a_resume_finds_the_answers() {
    let place = Place::new().await;
    let config = place.config().replacen("[model.target]\n", "[model.target]\nbackend = \"handoff\"\n", 1);
    place.write("run.toml", &config);
    let arguments = ["run", "run.toml", "--name", "one", "--foreground", "--plain"];
    let folder = place.path("runs/one/handoff");
    let mut child = place.command(&arguments).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    let mut shown = String::new();
    let status = loop {
        assert!(Instant::now() < patience, "not done in time");
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let entries =
            std::fs::read_dir(&folder).map(|all| all.flatten().collect()).unwrap_or_else(|_| Vec::new());
        let names: Vec<String> =
            entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        for name in names.iter().filter_map(|name| name.strip_suffix(".prompt.md")) {
            let answer = folder.join(format!("{name}.answer.md"));
            if answer.exists() {
                continue;
            }
            if shown.is_empty() {
                shown = place.planish(&["ctl", "one", "show"]).out;
            }
            let prompt = std::fs::read_to_string(folder.join(format!("{name}.prompt.md"))).unwrap();
            assert!(prompt.contains("role: target") && prompt.contains("Colour of card"), "{prompt}");
            let text = if prompt.contains("cards are red") { "red\n" } else { "no idea\n" };
            std::fs::write(folder.join("new"), text).unwrap();
            std::fs::rename(folder.join("new"), answer).unwrap();
        }
    };
    assert!(status.success());
    assert!(shown.contains("waiting_for_answers:") && shown.contains("handoff"), "{shown}");
    let out = place.planish(&["ctl", "one", "show"]).out;
    assert!(!out.contains("waiting_for_answers"), "{out}");
    let best = std::fs::read_to_string(place.path("runs/one/best_skill.md")).unwrap();
    assert!(best.contains("All cards are red."), "{best}");
}
