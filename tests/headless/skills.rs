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

/// A finished run that began with the folder `cards`.
async fn finished() -> Place {
    let place = Place::new().await;
    skill(&place, "cards", DOCUMENT);
    place.write("run.toml", &place.config().replace("\"seed.md\"", "\"cards\""));
    let done = place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    place
}

fn text(place: &Place, path: &str) -> String {
    std::fs::read_to_string(place.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_skill_comes_out_as_a_folder_with_its_files_and_its_origin() {
    let place = finished().await;
    let done = place.planish(&["export-skill", "one", "--to", "out"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = text(&place, "out/cards/SKILL.md");
    let kept = DOCUMENT.split("---\n").nth(1).unwrap();
    assert!(document.starts_with(&format!("---\n{kept}metadata:\n  generator: \"planish ")), "{document}");
    for line in [
        "  run-id: \"one\"\n",
        "  val-score: \"1.0000\"\n",
        "  parent-sha: \"",
        "  gate-digest: \"",
        "  date: \"2",
    ] {
        assert!(document.contains(line), "{line}: {document}");
    }
    let body = document.splitn(3, "---\n").nth(2).unwrap();
    assert_eq!(body.trim(), text(&place, "runs/one/best_skill.md").trim());
    assert!(!body.contains("1.0"), "no score in the body");
    assert_eq!(text(&place, "out/cards/references/list.md"), "Hearts.\n");
    assert_eq!(place.planish(&["skill", "check", "out/cards"]).code, Some(0));

    let again = place.planish(&["export-skill", "one", "--to", "out", "--json"]);
    assert_eq!((again.code, again.json().remove(0)["written"].clone()), (Some(0), json!(false)), "{again:?}");
    place.write("out/cards/SKILL.md", "mine\n");
    let refused = place.planish(&["export-skill", "one", "--to", "out"]);
    assert_eq!((refused.code, refused.err.contains("is not this skill")), (Some(2), true), "{refused:?}");
    assert_eq!(text(&place, "out/cards/SKILL.md"), "mine\n");

    let renamed = place.planish(&["export-skill", "one", "--to", "out", "--name", "deck"]);
    assert_eq!(renamed.code, Some(0), "{renamed:?}");
    assert!(text(&place, "out/deck/SKILL.md").contains("name: \"deck\"\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_fit_is_not_exported() {
    let place = Place::new().await;
    assert_eq!(place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]).code, Some(0));
    let refused = |arguments: &[&str], words: &str| {
        let done = place.planish(&[&["export-skill", "one", "--to", "out"], arguments].concat());
        assert_eq!((done.code, done.err.contains(words)), (Some(2), true), "{words}: {done:?}");
        assert!(!place.path("out").exists());
    };
    refused(&[], "--description");
    refused(&["--description", "Use when asked.", "--name", "No"], "capital letter");
    refused(&["--description", ""], "the description is empty");
    let good = place.planish(&[
        "export-skill",
        "one",
        "--to",
        "out",
        "--description",
        "Tells colours. Use when: asked.",
    ]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(text(&place, "out/one/SKILL.md").contains("description: \"Tells colours. Use when: asked.\"\n"));
    // A seed that has a held-out question in it.
    let seed: String = (0..26).map(|n| format!("Do not mind the question: Colour of card {n}?\n")).collect();
    place.write("seed.md", &seed);
    assert_eq!(place.planish(&["run", "run.toml", "--name", "two", "--foreground", "--plain"]).code, Some(0));
    let leaky = place.planish(&["export-skill", "two", "--to", "out", "--description", "Use when asked."]);
    assert_eq!(leaky.code, Some(2), "{leaky:?}");
    assert!(
        leaky.err.contains("text of the held-out item \"card ") && !leaky.err.contains("Colour of"),
        "{leaky:?}"
    );
    std::fs::remove_file(place.path("data.json")).unwrap();
    let blind = place.planish(&["export-skill", "one", "--to", "blind", "--description", "Use when asked."]);
    assert_eq!(
        (blind.code, blind.err.contains("held-out text was not looked for")),
        (Some(0), true),
        "{blind:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_installed_replaced_by_that_of_a_run_and_brought_back() {
    let place = finished().await;
    let rehearsal = place.planish(&["skill", "install", "cards", "--dry-run"]);
    assert_eq!(rehearsal.code, Some(0), "{rehearsal:?}");
    assert!(rehearsal.out.contains("would be installed") && !place.path(".agents").exists(), "{rehearsal:?}");
    assert_eq!(place.planish(&["skill", "install", "cards/SKILL.md"]).code, Some(0));
    for copy in [".agents", ".claude"] {
        assert_eq!(text(&place, &format!("{copy}/skills/cards/SKILL.md")), DOCUMENT);
        assert_eq!(text(&place, &format!("{copy}/skills/cards/references/list.md")), "Hearts.\n");
    }
    let trained = place.planish(&["skill", "install", "one", "--client", "codex,copilot", "--json"]);
    let changes: Vec<(Value, Value)> =
        trained.json().into_iter().map(|row| (row["client"].clone(), row["change"].clone())).collect();
    let rows =
        [("agents", "replaced"), ("claude", "replaced"), ("codex", "installed"), ("copilot", "installed")];
    assert_eq!(changes, rows.map(|(client, change)| (json!(client), json!(change))), "{trained:?}");
    assert!(text(&place, ".github/skills/cards/SKILL.md").contains("All cards are red."));

    place.write(".claude/skills/cards/SKILL.md", "mine\n");
    let refused = place.planish(&["skill", "rollback", "cards"]);
    assert_eq!((refused.code, refused.err.contains("was changed since")), (Some(2), true), "{refused:?}");
    assert!(
        text(&place, ".agents/skills/cards/SKILL.md").contains("All cards are red."),
        "nothing was changed"
    );
    assert_eq!(place.planish(&["skill", "rollback", "cards", "--force"]).code, Some(0));
    for copy in [".agents", ".claude"] {
        assert_eq!(text(&place, &format!("{copy}/skills/cards/SKILL.md")), DOCUMENT);
    }
    assert!(!place.path(".github/skills/cards").exists());
    assert_eq!(place.planish(&["skill", "uninstall", "cards"]).code, Some(0));
    assert!(!place.path(".agents/skills/cards").exists());
    let gone = place.planish(&["skill", "uninstall", "cards"]);
    assert_eq!((gone.code, gone.err.contains("has not installed cards")), (Some(2), true), "{gone:?}");

    // For the user: the home folder is the tester's own.
    std::fs::create_dir(place.path("home")).unwrap();
    let mut command = place.command(&["skill", "install", "cards", "--user", "--client", "pi"]);
    let done = crate::place::Done::of(command.env("HOME", place.path("home")).output().unwrap());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(text(&place, "home/.pi/agent/skills/cards/SKILL.md"), DOCUMENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_installed_says_why() {
    let place = Place::new().await;
    skill(&place, "cards", &DOCUMENT.replace("list.md", "gone.md"));
    for (arguments, words) in [
        (&["cards"][..], "cards/SKILL.md:7: error: the folder has no \"references/gone.md\""),
        (&["nothing"], "no run `nothing`"),
        (&["cards", "--name", "x"], "front matter of its own"),
        (&["cards", "--client", "vim"], "no client \"vim\""),
        (&["cards", "--project", "nowhere"], "is no folder"),
    ] {
        if words.contains("is no folder") {
            skill(&place, "cards", DOCUMENT);
        }
        let done = place.planish(&[&["skill", "install"], arguments].concat());
        assert_eq!((done.code, done.err.contains(words)), (Some(2), true), "{words}: {done:?}");
        assert!(!place.path(".agents").exists());
    }
    std::os::unix::fs::symlink("/tmp", place.path(".claude")).unwrap();
    let linked = place.planish(&["skill", "install", "cards"]);
    assert_eq!(
        (linked.code, linked.err.contains(".claude is a symbolic link")),
        (Some(2), true),
        "{linked:?}"
    );
}
