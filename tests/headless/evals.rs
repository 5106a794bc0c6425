//! `planish eval`: every split, repeats, two skills, files; nothing that was not answered has a score.

use serde_json::{Value, json};

use crate::place::{Done, Place};

/// Some cards are known, one is never answered, one is right every other time; with the rule all are right.
fn script() -> Value {
    json!({"rules": [
        {"matches": "card 3\\?", "answers": [{"fault": "empty"}]},
        {"system": "cards are red", "answers": ["red"]},
        {"matches": "card 5\\?", "pick": "round_robin", "answers": ["red", "blue"]},
        {"matches": "card 1?[02468]\\?", "answers": ["red"]},
        {"answers": ["I do not know"]},
    ]})
}

/// The items of all splits together; one worker, so that replies come in the order of the repeats.
const QUICK: [&str; 4] = ["-o", "model.max_retries=0", "-o", "env.workers=1"];

async fn place() -> Place {
    let place = Place::with(script()).await;
    place.write("good.md", "All cards are red.\n");
    place
}

fn eval(place: &Place, arguments: &[&str]) -> Done {
    place.planish(&[&["eval", "run.toml"], arguments, &QUICK].concat())
}

fn lines_of(done: &Done) -> Vec<Value> {
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_every_split_on_its_own_and_a_total() {
    let place = place().await;
    let lines = lines_of(&eval(&place, &["--skill", "seed.md", "--split", "all", "--json"]));
    let parts: Vec<&Value> = lines.iter().filter(|line| line["n_items"].is_u64()).collect();
    let sizes: Vec<(&str, u64)> = parts
        .iter()
        .map(|part| (part["split"].as_str().unwrap(), part["n_items"].as_u64().unwrap()))
        .collect();
    assert_eq!(sizes, [("train", 12), ("val", 6), ("test", 8), ("all", 26)]);
    assert_eq!(lines.len(), 26 + 4);
    let scored: u64 = parts[..3].iter().map(|part| part["n"].as_u64().unwrap()).sum();
    assert_eq!((scored, parts[3]["n"].as_u64(), &parts[3]["missing"]), (25, Some(25), &json!(1)));
    // Cards 0 to 18 with even numbers, and card 5 at its first draw.
    assert_eq!(parts[3]["hard"], json!(11.0 / 25.0));
    let one = lines_of(&eval(&place, &["--skill", "seed.md", "--split", "selection", "--json"]));
    assert_eq!((one.len(), &one[6]["split"], &one[6]["hard"]), (7, &json!("val"), &parts[1]["hard"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_are_draws_of_their_own_and_the_item_is_the_unit() {
    let place = place().await;
    let lines = lines_of(&eval(&place, &["--skill", "seed.md", "--split", "all", "-k", "4", "--json"]));
    let item = |id: &str| lines.iter().find(|line| line["item"] == id).unwrap();
    let hards = |id: &str| -> Vec<Value> {
        item(id)["results"].as_array().unwrap().iter().map(|result| result["score"]["hard"].clone()).collect()
    };
    assert_eq!(hards("card 05"), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(item("card 05")["hard"], 0.5);
    assert!(item("card 05")["reason"].as_str().unwrap().contains("blue"));
    assert_eq!(item("card 03")["hard"], Value::Null, "what was never answered has no score");
    let total = lines.last().unwrap();
    assert_eq!((&total["n"], &total["missing"], &total["repeats"]), (&json!(25), &json!(4), &json!(4)));
    assert_eq!(
        (&total["always"], &total["sometimes"], &total["never"]),
        (&json!(10), &json!(1), &json!(14)),
        "{total}"
    );
    let (low, high) = (total["interval"][0].as_f64().unwrap(), total["interval"][1].as_f64().unwrap());
    assert!(high - low > 0.3, "a hundred rollouts are still 25 items: [{low}, {high}]");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_fit_a_terminal_and_name_what_was_not_answered() {
    let place = place().await;
    let done = eval(&place, &["--skill", "seed.md", "--split", "all", "-k", "2"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.lines().all(|line| line.chars().count() <= 80), "{}", done.out);
    for text in ["card 05", "+x", "card 03", "NOT ANSWERED", "PASS^K", "train", "SOFT"] {
        assert!(done.out.contains(text), "{text} is not in:\n{}", done.out);
    }
    let unanswered =
        done.out.lines().filter(|line| line.starts_with("card 03") && line.contains("??")).count();
    assert_eq!(unanswered, 1, "{}", done.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_skills_are_compared_item_by_item() {
    let place = place().await;
    let lines = lines_of(&eval(
        &place,
        &["--skill", "seed.md", "--skill", "good.md", "--split", "all", "--json", "--out", "pair"],
    ));
    let compared: Vec<&Value> = lines.iter().filter_map(|line| line.get("comparison")).collect();
    let total = compared.last().unwrap();
    assert_eq!((compared.len(), &total["split"], &total["n"]), (4, &json!("all"), &json!(25)));
    assert_eq!(total["gained"].as_array().unwrap().len(), 14);
    assert_eq!((&total["lost"], &total["gain"]), (&json!([]), &json!(14.0 / 25.0)));
    assert!(total["mid_p"].as_f64().unwrap() < 1e-3);
    let written = std::fs::read_to_string(place.path("pair/comparison.json")).unwrap();
    assert_eq!(&serde_json::from_str::<Vec<Value>>(&written).unwrap()[3], *total);
    assert!(place.path("pair/skill_2/results.jsonl").is_file());

    let text = eval(&place, &["--skill", "seed.md", "--skill", "good.md", "--split", "test"]).out;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("gained") && text.contains("% sure that B is better"), "{text}");
    // The same text twice is two independent draws, not one copied.
    let before = place.server.count();
    lines_of(&eval(&place, &["--skill", "good.md", "--skill", "good.md", "--split", "val", "--json"]));
    assert_eq!(place.server.count() - before, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_holds_the_rows_and_the_calls_that_are_not_made_again() {
    let place = place().await;
    let run = |skill: &str, extra: &[&str]| {
        let before = place.server.count();
        let done = eval(&place, &[&["--skill", skill, "--split", "all", "--out", "out"], extra].concat());
        (done, place.server.count() - before)
    };
    let summary = || -> Value {
        serde_json::from_slice(&std::fs::read(place.path("out/eval_summary.json")).unwrap()).unwrap()
    };
    assert_eq!(run("seed.md", &[]).1, 26);
    let first = summary();
    assert_eq!(
        (&first["skill"], &first["split"], &first["n_items"], &first["hard"]),
        (&json!("seed.md"), &json!("all"), &json!(26), &json!(0.44))
    );
    assert_eq!(
        (&first["missing"][0]["item"], &first["splits"]["val"]["n_items"]),
        (&json!("card 03"), &json!(6))
    );
    let rows = std::fs::read_to_string(place.path("out/results.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!((rows.len(), &rows[0]["split"]), (26, &json!("train")));
    assert!(place.path("out/predictions").is_dir() && place.path("out/_generated_splits").is_dir());
    // Only what was not answered is asked again; the numbers stay.
    assert_eq!(run("seed.md", &[]).1, 1);
    assert_eq!(summary(), first);
    // Another skill's evaluation is not written over.
    let (refused, calls) = run("good.md", &["-k", "2"]);
    assert_eq!((refused.code, calls), (Some(2), 0));
    assert!(refused.err.contains("it holds the evaluation of another skill (seed.md)"), "{}", refused.err);
    assert_eq!(summary(), first);
    assert_eq!(run("seed.md", &["-k", "2"]).1, 27);
    assert!(place.path("out/repeat_1/results.jsonl").is_file() && !place.path("out/results.jsonl").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_before_any_call() {
    let place = place().await;
    place.write("precious.txt", "x");
    std::fs::create_dir_all(place.path("skills/skill_1")).unwrap();
    for (arguments, words) in [
        (&["--skill", "seed.md", "--split", "bogus"][..], &["bogus", "valid_unseen", "or all"][..]),
        (&["--skill", "seed.md", "--split", "val", "-k", "0"], &["0", "1.."]),
        (&["--split", "val"], &["--skill"]),
        (&["--skill", "none.md", "--split", "val"], &["none.md"]),
        (&["--skill", "a", "--skill", "b", "--skill", "c", "--split", "val"], &["twice"]),
        (&["--skill", "seed.md", "--split", "val", "--out", "."], &["--out", "new or empty"]),
        (&["--skill", "seed.md", "--split", "val", "--out", "skills"], &["skill_1", "new or empty"]),
        (&["--skill", "seed.md", "--split", "val", "--out", "seed.md"], &["--out", "seed.md"]),
    ] {
        let done = eval(&place, arguments);
        assert_eq!(done.code, Some(2), "{arguments:?}: {done:?}");
        for word in words {
            assert!(done.err.contains(word), "{word} is not in {}", done.err);
        }
    }
    assert!(place.path("precious.txt").exists() && place.path("skills/skill_1").is_dir());
    assert_eq!(place.server.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_that_cannot_go_on_says_how_it_ended() {
    let place = place().await;
    let out_of_budget = eval(&place, &["--skill", "seed.md", "--split", "all", "-o", "budget.max_calls=5"]);
    assert_eq!((out_of_budget.code, out_of_budget.out.as_str()), (Some(4), ""), "{out_of_budget:?}");
    let silent = Place::with(json!({"rules": [{"answers": [{"fault": "empty"}]}]})).await;
    let done = eval(&silent, &["--skill", "seed.md", "--split", "val", "--json"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(done.json().pop().unwrap()["hard"], Value::Null);
    assert!(done.err.contains("no item was answered"), "{}", done.err);
}
