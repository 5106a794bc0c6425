//! The files of a run against SkillOpt's: every path of its artifact tree, every field and type of its JSON files, as
//! recorded from a real run in `tests/vectors/e2e_run.json`. More may be there, nothing less.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../fixture/mod.rs"]
mod fixture;
mod stages;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fixture::Tape;
use planish::config::Config;
use planish::event::RunState;
use planish::store::{RunDir, atomic_write, project};
use serde_json::Value;

/// Fields that only one benchmark's scorer has, or that SkillOpt loses on a resume.
const OTHERWISE: [(&str, &str); 4] = [
    ("steps/step_0001/rollout/results.jsonl", "em"),
    ("steps/step_0001/rollout/results.jsonl", "f1"),
    ("steps/step_0001/rollout/results.jsonl", "sub_em"),
    // Null there because that run had been resumed; here it is always known.
    ("summary.json", "baseline_selection_hard"),
];

pub struct Folder {
    _root: tempfile::TempDir,
    pub run: RunDir,
}

impl Folder {
    /// The projected files of a tape.
    pub fn of(tape: &Tape) -> Self {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "run").unwrap();
        atomic_write(&run.config_toml(), Config::default().resolved_toml().unwrap().as_bytes()).unwrap();
        project(&run, &RunState::fold(&tape.records)).unwrap();
        Self { _root: root, run }
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.run.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A JSON file, or the first row of JSON lines.
    pub fn json(&self, name: &str) -> Value {
        let text = self.text(name);
        let text = if name.ends_with(".jsonl") { text.lines().next().unwrap() } else { text.as_str() };
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn has(&self, name: &str) -> bool {
        self.run.path().join(name).exists()
    }

    fn names(&self) -> Vec<String> {
        fn walk(root: &Path, folder: &Path, into: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(root, &path, into);
                } else {
                    into.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let mut names = Vec::new();
        walk(self.run.path(), self.run.path(), &mut names);
        names
    }
}

fn vectors() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/e2e_run.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn cases(name: &str) -> Vec<(String, Value)> {
    let of_name = vectors().into_iter().filter(|case| case["fn"] == name);
    let found: Vec<_> =
        of_name.map(|case| (case["input"].as_str().unwrap().to_owned(), case["output"].clone())).collect();
    assert!(!found.is_empty(), "no case {name}");
    found
}

/// `steps/step_0003/…` as the tree writes it.
fn general(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    let part = |at: usize| match parts[at] {
        _ if at > 0 && parts[at - 1] == "predictions" => "<id>".to_owned(),
        part => {
            let digits = part.chars().filter(char::is_ascii_digit).count();
            let mark = if part.starts_with("epoch_") { 'X' } else { 'N' };
            match digits {
                0 | 1 => part.to_owned(),
                _ => part.chars().map(|c| if c.is_ascii_digit() { mark } else { c }).collect(),
            }
        }
    };
    (0..parts.len()).map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn the_tree_holds_every_file_of_skillopts() {
    let names: BTreeSet<String> =
        Folder::of(&fixture::epochs::ended()).names().iter().map(|name| general(name)).collect();
    let (_, tree) = cases("artifact_tree").remove(0);
    let theirs: BTreeSet<String> =
        tree.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let lacking: Vec<_> = theirs.difference(&names).collect();
    assert!(lacking.is_empty(), "{lacking:#?}");
    let own: Vec<_> = names.difference(&theirs).map(String::as_str).collect();
    assert_eq!(
        own,
        [
            "config.toml",
            "meta_reflect/epoch_XX/gate.json",
            "meta_reflect/epoch_XX/meta_candidate.md",
            "meta_reflect/epoch_XX/meta_patch.json",
            "meta_reflect/epoch_XX/meta_result.json",
            "meta_reflect/epoch_XX/selection_eval/predictions/<id>/conversation.json",
            "meta_reflect/epoch_XX/selection_eval/predictions/<id>/target_system_prompt.txt",
            "meta_reflect/epoch_XX/selection_eval/predictions/<id>/target_user_prompt.txt",
            "meta_reflect/epoch_XX/selection_eval/results.jsonl",
            "steps/step_NNNN/gate.json",
            "steps/step_NNNN/review.json",
        ]
    );
}

#[test]
fn every_json_file_has_the_fields_and_types_of_skillopts() {
    let folder = Folder::of(&fixture::epochs::ended());
    let mut faults = Vec::new();
    let mut files = cases("file_shape");
    let (_, record) = cases("history_record_shape").remove(0);
    files.push(("steps/step_0001/step_record.json".into(), record.clone()));
    assert!(files.len() > 15);
    for (name, expected) in files {
        let place = match name.as_str() {
            // A rejected step, as the fifth one is there; the only success analysis; any prediction.
            "steps/step_0005/trajectory_digest.json" => "steps/step_0002/trajectory_digest.json".to_owned(),
            "steps/step_0002/patches/minibatch_succ_000.json" => name.replace("succ_000", "succ_001"),
            "predictions/<id>/conversation.json" => {
                let any = |name: &String| name.ends_with("/conversation.json");
                folder.names().into_iter().find(any).unwrap()
            }
            other => other.to_owned(),
        };
        let actual = folder.json(&place);
        if name == "test_eval/summary.json" {
            // Task types are the data's.
            for row in actual.as_object().unwrap().values() {
                compare(&expected["overall"], row, &place, &mut faults);
            }
            continue;
        }
        compare(&expected, &actual, &place, &mut faults);
    }
    for row in folder.json("history.json").as_array().unwrap() {
        compare(&record, row, "history.json", &mut faults);
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Adds what `actual` lacks of the shape `expected`.
fn compare(expected: &Value, actual: &Value, place: &str, faults: &mut Vec<String>) {
    let otherwise = |field: &str| OTHERWISE.iter().any(|(file, name)| place == *file && field == *name);
    match expected {
        Value::Object(fields) => {
            let Value::Object(found) = actual else { return faults.push(format!("{place}: no object")) };
            for (field, expected) in fields.iter().filter(|(field, _)| !otherwise(field)) {
                match found.get(field) {
                    Some(actual) => {
                        let below = format!("{place} {field}");
                        let place = if place.contains(' ') { place } else { &below };
                        compare(expected, actual, place, faults);
                    }
                    None => faults.push(format!("{place}: no {field}")),
                }
            }
        }
        Value::Array(shapes) => {
            let Value::Array(found) = actual else { return faults.push(format!("{place}: no list")) };
            let Some(shape) = shapes.first() else { return };
            if found.is_empty() {
                faults.push(format!("{place}: empty list"));
            }
            for (at, actual) in found.iter().enumerate() {
                // A list of different kinds of rows gives each its shape.
                let shape = if shapes.len() == found.len() { &shapes[at] } else { shape };
                compare(shape, actual, place, faults);
            }
        }
        Value::String(kind) => {
            let fits = match kind.as_str() {
                "int" => actual.is_i64() || actual.is_u64(),
                "float" => actual.is_f64(),
                "str" => actual.is_string(),
                "bool" => actual.is_boolean(),
                "NoneType" => actual.is_null(),
                "<flat config, redacted>" => actual.is_object(),
                other => panic!("{place}: no kind {other}"),
            };
            if !fits {
                faults.push(format!("{place}: {actual} is no {kind}"));
            }
        }
        other => panic!("{place}: {other} is no shape"),
    }
}

#[test]
fn the_comparison_finds_what_lacks() {
    let expected = serde_json::json!({ "a": "int", "b": ["float"], "c": { "d": "str" } });
    for (actual, fault) in [
        (serde_json::json!({ "a": 1, "b": [1.0], "c": {} }), "x c: no d"),
        (serde_json::json!({ "a": 1.5, "b": [1.0], "c": { "d": "" } }), "x a: 1.5 is no int"),
        (serde_json::json!({ "a": 1, "b": [], "c": { "d": "" } }), "x b: empty list"),
        (serde_json::json!({ "a": 1, "b": [2], "c": { "d": "" } }), "x b: 2 is no float"),
    ] {
        let mut faults = Vec::new();
        compare(&expected, &actual, "x", &mut faults);
        assert_eq!(faults, [fault]);
    }
}
