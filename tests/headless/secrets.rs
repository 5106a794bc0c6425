//! Keys from the environment, a file and a command reach servers and nothing else: no file of the run, no log, no
//! command line, no environment of a program that does not need them.

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::place::{Done, Place, script};

const FROM_ENV: &str = "key-from-the-environment-0001";
const FROM_FILE: &str = "key-from-a-private-file-0002";
const FROM_COMMAND: &str = "key-from-a-command-0003";
const KEYS: [&str; 3] = [FROM_ENV, FROM_FILE, FROM_COMMAND];

/// The target repeats every key; a judge says whether it also said red.
fn leaky() -> Value {
    let verdict = |verdict: &str, score: f64| {
        json!({"reason": format!("as {FROM_FILE} says"), "verdict": verdict, "score": score}).to_string()
    };
    let mut rules = vec![
        json!({"system": "judge whether", "matches": "<answer>\\s*red", "answers": [verdict("correct", 1.0)]}),
        json!({"system": "judge whether", "answers": [verdict("incorrect", 0.0)]}),
        json!({"system": "cards are red", "answers": [format!("{FROM_ENV} {FROM_COMMAND}\nred")]}),
        json!({"system": "Answer with one word", "answers": [format!("{FROM_ENV} {FROM_FILE}\nno idea")]}),
    ];
    rules.extend(script()["rules"].as_array().unwrap().iter().take(2).cloned());
    // The optimizer's prompts hold the skill as well.
    rules.rotate_left(4);
    rules.rotate_right(2);
    let judge: Vec<Value> = rules.drain(2..4).collect();
    rules.splice(0..0, judge);
    json!({ "rules": rules })
}

fn config(place: &Place) -> String {
    let url = place.server.base_url();
    place
        .config()
        .replace("[model.optimizer]", "api_key_env = \"PLACE_TARGET_KEY\"\n[model.optimizer]")
        .replace(
            "[train]",
            &format!(
                "api_key_command = [\"sh\", \"-c\", \"env > seen-by-command; tr '\\\\0' ' ' < /proc/$PPID/cmdline >> \
                 seen-by-command; echo {}\"]\n\
                 [model.judge]\nmodel = \"mock\"\nbase_url = \"{url}\"\napi_key_file = \"judge.key\"\n[train]",
                // Not as it is: the configuration is kept in the run.
                "key-from-a-comm''and-0003"
            ),
        )
        .replace("scorer = \"normalized_exact\"", "scorer = \"judge\"")
}

async fn place() -> Place {
    let place = Place::with(leaky()).await;
    place.write("judge.key", FROM_FILE);
    std::fs::set_permissions(place.path("judge.key"), Permissions::from_mode(0o600)).unwrap();
    place.write("run.toml", &config(&place));
    place
}

fn run(place: &Place, mode: &[&str]) -> Done {
    let arguments = [&["run", "run.toml", "--name", "one"], mode].concat();
    let mut command = place.command(&arguments);
    Done::of(command.env("PLACE_TARGET_KEY", FROM_ENV).output().unwrap())
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), into);
        } else if entry.file_type().unwrap().is_file() {
            into.push(entry.path());
        }
    }
}

/// The content of a file, unpacked.
fn content(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if file.extension().is_some_and(|end| end == "zst") {
        let packed = std::fs::File::open(file).unwrap();
        ruzstd::decoding::StreamingDecoder::new(packed).unwrap().read_to_end(&mut bytes).unwrap();
    } else {
        bytes = std::fs::read(file).unwrap();
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_reach_servers_and_nothing_else() {
    let place = place().await;
    let done = run(&place, &["--foreground", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let sent = |role: &str| {
        let requests = place.server.requests();
        let of_role = |body: &String| match role {
            "judge" => body.contains("judge whether"),
            "optimizer" => body.contains("scored as"),
            _ => !body.contains("judge whether") && !body.contains("scored as"),
        };
        let mut keys: Vec<String> = requests
            .iter()
            .filter(|request| of_role(&request.body.to_string()))
            .map(|request| request.headers["authorization"].clone())
            .collect();
        keys.dedup();
        keys
    };
    assert_eq!(sent("target"), [format!("Bearer {FROM_ENV}")]);
    assert_eq!(sent("optimizer"), [format!("Bearer {FROM_COMMAND}")]);
    assert_eq!(sent("judge"), [format!("Bearer {FROM_FILE}")]);

    let mut all = Vec::new();
    files(&place.path("runs"), &mut all);
    assert!(all.iter().any(|file| file.ends_with("events.jsonl")) && all.len() > 20, "{all:?}");
    let mut redacted = 0;
    for file in &all {
        let text = String::from_utf8_lossy(&content(file)).into_owned();
        for key in KEYS {
            assert!(!text.contains(key), "{key} is in {}", file.display());
        }
        redacted += usize::from(text.contains("[redacted]"));
    }
    assert!(redacted > 10, "what models repeated was taken out");
    for key in KEYS {
        assert!(!done.out.contains(key) && !done.err.contains(key), "{done:?}");
    }
    // The command that prints one key sees no other, in its environment or on the command line of its parent.
    let seen = std::fs::read_to_string(place.path("seen-by-command")).unwrap();
    assert!(seen.contains("PATH=") && seen.contains("planish"), "{seen}");
    assert!(!KEYS.iter().any(|key| seen.contains(key)), "{seen}");

    let show = place.planish(&["ctl", "one", "show", "--json"]).json();
    assert_eq!(show[0]["test"]["best_hard"], 1.0, "{}", show[0]);
    let events = std::fs::read_to_string(place.path("runs/one/events.jsonl")).unwrap();
    assert!(
        events.contains("\"judging\":{\"by\":\"openai_chat"),
        "the judge's calls are counted with the rollout"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_its_own_keeps_the_secrets_too() {
    let place = place().await;
    let done = run(&place, &["--plain"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    for file in ["runs/one/host.log", "runs/one/events.jsonl", "runs/one/config.toml"] {
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        assert!(!KEYS.iter().any(|key| text.contains(key)), "{file}");
    }
    assert!(!KEYS.iter().any(|key| done.out.contains(key) || done.err.contains(key)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_replayed_with_all_its_roles_and_no_key_or_server() {
    let place = place().await;
    assert_eq!(run(&place, &["--foreground", "--json"]).code, Some(0));
    let asked = place.server.count();
    let arguments = ["run", "run.toml", "--name", "two", "--foreground", "--json"];
    let replay = [&arguments[..], &["-o", "model.replay_from=runs/one/calls"]].concat();
    let done = place.planish(&replay);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(place.server.count(), asked, "nothing was asked again");
    let best =
        |name: &str| std::fs::read_to_string(place.path(&format!("runs/{name}/best_skill.md"))).unwrap();
    assert_eq!(best("one"), best("two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_for_everybody_is_refused_with_the_remedy() {
    let place = place().await;
    std::fs::set_permissions(place.path("judge.key"), Permissions::from_mode(0o644)).unwrap();
    let done = run(&place, &["--foreground", "--json"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.err.contains("model.judge.api_key_file") && done.err.contains("run `chmod 600 "),
        "{done:?}"
    );
    assert_eq!(place.server.count(), 0);
}
