//! Bad input gets one clear message that names the file, the key or the line, and exit code 2.

use planish::store::{RunDir, RunLock};
use serde_json::Value;

use crate::place::{Done, PLANISH, Place};

/// One `error:` line that contains all of `words`; nothing on stdout.
fn refused(done: &Done, words: &[&str]) {
    assert_eq!(done.code, Some(2), "{done:?}");
    assert_eq!(done.out, "");
    let first =
        done.err.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{done:?}"));
    for word in words {
        assert!(done.err.contains(word), "`{word}` is not in: {}", done.err);
    }
    assert!(first.len() > "error: ".len());
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_that_cannot_be_used_are_refused() {
    let place = Place::new().await;
    let config = place.config();
    for (from, to, words) in [
        ("batch_size = 4", "bach_size = 4", &["run.toml:9", "bach_size", "batch_size"][..]),
        ("batch_size = 4", "batch_size = -4", &["run.toml:9", "train.batch_size", "-4"]),
        ("batch_size = 4", "batch_size = = 4", &["run.toml:9"]),
        ("\"normalized_exact\"", "\"normalised_exact\"", &["run.toml:17", "normalized_exact"]),
        ("\"data.json\"", "\"nodata.json\"", &["nodata.json"]),
    ] {
        assert!(config.contains(from));
        place.write("run.toml", &config.replacen(from, to, 1));
        for mode in [&["--json", "--foreground"][..], &["--detach"]] {
            let done = place.planish(&[&["run", "run.toml", "--name", "bad"], mode].concat());
            refused(&done, words);
            assert_eq!(done.err.lines().count(), 1, "{}", done.err);
            assert!(!place.path("runs/bad").exists());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_host_finds_is_relayed_with_its_exit_code() {
    let place = Place::new().await;
    place.write("data.json", r#"[{"id": "a", "question": "?"}]"#);
    for mode in [&["--json", "--foreground"][..], &["--detach"], &["--plain"]] {
        let done = place.planish(&[&["run", "run.toml", "--name", "bad"], mode].concat());
        refused(&done, &["data.json"]);
        assert!(!place.path("runs/bad").exists(), "a start that got nowhere leaves nothing behind");
    }
    let done = {
        place.write("run.toml", &place.config());
        Place::new().await.planish(&["run", "run.toml", "-o", "budget.max_calls=3", "--detach"])
    };
    refused(&done, &["budget.max_calls", "at least"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_run_names_its_holder() {
    let place = Place::new().await;
    assert_eq!(place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--plain"]).code, Some(0));
    let events = std::fs::read_to_string(place.path("runs/one/events.jsonl")).unwrap();
    let begun: Vec<&str> = events.lines().take(5).collect();
    place.write("runs/one/events.jsonl", &(begun.join("\n") + "\n"));
    let _lock = RunLock::acquire(&RunDir::open(&place.path("runs/one")).unwrap()).unwrap();
    let pid = format!("process {}", std::process::id());
    refused(&place.planish(&["resume", "one", "--detach"]), &["in use by", &pid]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_worker_says_how_to_get_it() {
    let place = Place::new().await;
    // Elsewhere than the build's folder, where a worker may lie beside the program.
    let program = place.path("planish-alone");
    if std::fs::hard_link(PLANISH, &program).is_err() {
        std::fs::copy(PLANISH, &program).unwrap();
    }
    place.write(
        "run.toml",
        &place.config().replacen("[model.target]", "[model.target]\nbackend = \"local\"", 1),
    );
    let mut command = place.command_of(program, &["run", "run.toml", "--detach", "--name", "bad"]);
    let done = Done::of(command.env("PATH", place.path("empty")).output().unwrap());
    refused(&done, &["planish-torch", "make setup"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_is_refused_and_named_unless_nothing_depends_on_it() {
    let place = Place::new().await;
    let first = place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--json"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let events = std::fs::read_to_string(place.path("runs/one/events.jsonl")).unwrap();
    let whole: Vec<&str> = events.lines().collect();
    place.write("runs/one/events.jsonl", &(whole[..whole.len() / 2].join("\n") + "\n"));

    let again = ["run", "run.toml", "--name", "one", "--foreground", "--json", "-o"];
    let done = place.planish(&[&again[..], &["train.batch_size=5"]].concat());
    refused(&done, &["train.batch_size: 4 -> 5"]);
    let done = place.planish(&[&again[..], &["env.workers=2"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("env.workers"), "the change is not journaled: {}", done.out);
    let last = done.json().pop().unwrap();
    assert_eq!(last["done"]["best_score"], first.json().pop().unwrap()["done"]["best_score"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_runs_are_answered_with_near_ones() {
    let place = Place::new().await;
    assert_eq!(
        place.planish(&["run", "run.toml", "--name", "cards-1", "--foreground", "--plain"]).code,
        Some(0)
    );
    for command in
        [&["attach", "cards"][..], &["resume", "cards"], &["ctl", "cards", "show"], &["replay", "cards"]]
    {
        refused(&place.planish(command), &["no run `cards`", "cards-1"]);
    }
    refused(&place.planish(&["resume", "cards-1"]), &["has completed"]);
    refused(&place.planish(&["attach", "ssh://host-only"]), &["ssh://host/RUN"]);
    refused(&place.planish(&["run", "missing.toml"]), &["missing.toml"]);
    refused(&place.planish(&["run", "run.toml", "--name", "../up"]), &["name"]);
    refused(&place.planish(&["mock-serve", "--script", "none.json"]), &["none.json"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_errors_exit_with_2_and_help_with_0() {
    let place = Place::new().await;
    for usage in [
        &["fly"][..],
        &["run"],
        &["replay"],
        &["replay", "--demo", "--speed", "0"],
        &["ctl", "x", "decide", "0", "--accept"],
    ] {
        let done = place.planish(usage);
        assert_eq!((done.code, done.err.starts_with("error: ")), (Some(2), true), "{usage:?}: {done:?}");
    }
    assert_eq!(place.planish(&["--help"]).code, Some(0));
    assert_eq!(place.planish(&["--version"]).out.trim(), concat!("planish ", env!("CARGO_PKG_VERSION")));
    let _: Vec<Value> = place.planish(&["schema", "--json"]).json();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_dialects_is_told_with_a_file_over_it() {
    let place = Place::new().await;
    let told = place.planish(&["schema", "dialects"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("# token_field: ") && told.out.contains("name = \"anthropic\""), "{told:?}");
    let file = place.path("mine.toml");
    place.write("mine.toml", "[[dialect]]\nname = \"mine\"\nlike = \"vllm\"\n");
    let with = ["schema", "dialects", "--json", "--with", file.to_str().unwrap()];
    let rows: Vec<Value> = place.planish(&with).json();
    assert_eq!(
        rows.last().map(|row| (&row["name"], &row["thinking"])),
        Some((&"mine".into(), &"qwen_kwargs".into()))
    );
    place.write("mine.toml", "[[dialect]]\nname = \"mine\"\ncolour = 1\n");
    let refused = place.planish(&with);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("mine.toml line 3: unknown key \"colour\""), "{refused:?}");
}
