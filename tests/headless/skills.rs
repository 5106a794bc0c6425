//! `planish skill` and `planish export-skill`: folders checked, made from runs, installed and taken back.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::place::Place;

const DOCUMENT: &str = "---\nname: cards\ndescription: \"Tells colours of cards. Use when asked for one.\"\nlicense: MIT\n---\n\n\
                        Answer with one word. See [the list](references/list.md).\n";

/// A skill folder with two other files.
fn skill(place: &Place, folder: &str, document: &str) -> PathBuf {
    let path = place.path(folder);
    std::fs::create_dir_all(path.join("references")).unwrap();
    std::fs::create_dir_all(path.join("scripts")).unwrap();
    std::fs::write(path.join("SKILL.md"), document).unwrap();
    std::fs::write(path.join("references/list.md"), "Hearts.\n").unwrap();
    std::fs::write(path.join("scripts/draw.sh"), "#!/bin/sh\n").unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_exits_with_0_or_1_and_says_where() {
    let place = Place::new().await;
    skill(&place, "cards", DOCUMENT);
    let good = place.planish(&["skill", "check", "cards", "cards/SKILL.md"]);
    assert_eq!((good.code, good.out.lines().count()), (Some(0), 2), "{good:?}");
    assert!(good.out.contains("cards: cards: 0 errors, 0 warnings; 3 files"), "{good:?}");

    skill(&place, "bad", &DOCUMENT.replace("list.md)", "gone.md)"));
    let bad = place.planish(&["skill", "check", "cards", "bad"]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(
        bad.out.contains("bad/SKILL.md:2: warning: the name \"cards\" is not that of its folder, \"bad\""),
        "{bad:?}"
    );
    assert!(bad.out.contains("bad/SKILL.md:7: error: the folder has no \"references/gone.md\""), "{bad:?}");

    let data = place.planish(&["skill", "check", "bad", "--json"]);
    let told = data.json().remove(0);
    assert_eq!((data.code, &told["name"], &told["files"]), (Some(1), &json!("cards"), &json!(3)));
    let levels: Vec<&Value> =
        told["findings"].as_array().unwrap().iter().map(|finding| &finding["level"]).collect();
    assert_eq!(levels, [&json!("warn"), &json!("error")], "{told}");

    let none = place.planish(&["skill", "check", "nowhere"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.out.contains("nowhere/.: error: cannot be read"), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_out_text_in_a_skill_is_an_error_that_does_not_show_it() {
    let place = Place::new().await;
    let items: Vec<Value> = (0..26)
        .map(|n| json!({"id": format!("card {n:02}"), "question": format!("Which colour has card number {n} of the deck?"), "answers": ["red"]}))
        .collect();
    place.write("data.json", &json!(items).to_string());
    let copied: String =
        (0..26).map(|n| format!("Which colour has card number {n} of the deck?\n")).collect();
    skill(&place, "cards", &format!("{DOCUMENT}{copied}"));
    assert_eq!(place.planish(&["skill", "check", "cards"]).code, Some(0));
    let leaky = place.planish(&["skill", "check", "cards", "--config", "run.toml"]);
    assert_eq!(leaky.code, Some(1), "{leaky:?}");
    let leaks =
        leaky.out.lines().filter(|line| line.contains("error: text of the held-out item \"card ")).count();
    assert_eq!(leaks, 14, "the selection and the test split have 6 and 8 of 26 items: {}", leaky.out);
    assert!(!leaky.out.contains("Which colour"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_begins_with_the_body_of_a_folder_and_carries_the_rest() {
    let place = Place::new().await;
    let folder = skill(&place, "cards", DOCUMENT);
    place.write("run.toml", &place.config().replace("\"seed.md\"", "\"cards\""));
    let done = place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]);
    assert_eq!(done.code, Some(0), "{done:?}");

    let events = std::fs::read_to_string(place.path("runs/one/events.jsonl")).unwrap();
    let started: Value = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find_map(|line| line.get("run_started").or(line["event"].get("run_started")).cloned())
        .unwrap();
    assert_eq!(started["skill"]["text"], "Answer with one word. See [the list](references/list.md).\n");
    assert_eq!(
        started["folder"]["front_matter"],
        "name: cards\ndescription: \"Tells colours of cards. Use when asked for one.\"\nlicense: MIT\n"
    );
    let best = std::fs::read_to_string(place.path("runs/one/best_skill.md")).unwrap();
    assert!(best.contains("cards are red") && !best.contains("license"), "{best}");

    let show = place.planish(&["ctl", "one", "show", "--json"]).json().remove(0);
    assert_eq!(show["skill_folder"]["name"], "cards");
    let paths: Vec<&Value> =
        show["skill_folder"]["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["references/list.md", "scripts/draw.sh"]);
    let report = place.planish(&["report", "one"]).out;
    assert!(report.contains("## Skill folder") && report.contains("| references/list.md | 8 |"), "{report}");
    let scored = place.planish(&["eval", "run.toml", "--skill", "cards", "--split", "val", "--json"]);
    assert_eq!(scored.code, Some(0), "{scored:?}");

    // The run goes on with its own copy, whatever became of the folder.
    std::fs::write(folder.join("SKILL.md"), "---\nname: other\n---\nOther.\n").unwrap();
    let whole: Vec<&str> = events.lines().collect();
    place.write("runs/one/events.jsonl", &(whole[..whole.len() / 2].join("\n") + "\n"));
    let again = place.planish(&["resume", "one", "--foreground", "--plain"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(std::fs::read_to_string(place.path("runs/one/best_skill.md")).unwrap(), best);

    std::fs::write(place.path("runs/one/skill_files/references/list.md"), "Spades.\n").unwrap();
    place.write("runs/one/events.jsonl", &(whole[..whole.len() / 2].join("\n") + "\n"));
    let changed = place.planish(&["resume", "one", "--foreground", "--plain"]);
    assert_eq!(changed.code, Some(2), "{changed:?}");
    assert!(
        changed.err.contains("skill_files/references/list.md is not as it was when the run began"),
        "{changed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_carried_starts_nothing() {
    let place = Place::new().await;
    let folder = skill(&place, "cards", DOCUMENT);
    place.write("run.toml", &place.config().replace("\"seed.md\"", "\"cards\""));
    let refused = |words: &str| {
        let done = place.planish(&["run", "run.toml", "--name", "bad", "--detach"]);
        assert_eq!((done.code, done.err.contains(words)), (Some(2), true), "{words}: {done:?}");
        assert!(!place.path("runs/bad").exists());
    };
    std::os::unix::fs::symlink("/etc/passwd", folder.join("references/link.md")).unwrap();
    refused("cards/references/link.md: error: is a symbolic link");
    std::fs::remove_file(folder.join("references/link.md")).unwrap();
    std::fs::write(folder.join("key.txt"), "ghp_abcdefghijklmnop1234\n").unwrap();
    refused("cards/key.txt:1: error: something here looks like a key");
    std::fs::remove_file(folder.join("key.txt")).unwrap();
    std::fs::write(folder.join("SKILL.md"), "---\nname: cards\n").unwrap();
    refused("the front matter does not end");
    std::fs::remove_file(folder.join("SKILL.md")).unwrap();
    refused("env.skill_init: no such file or skill folder");
}
