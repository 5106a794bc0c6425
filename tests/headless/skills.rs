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
