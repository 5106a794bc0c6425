//! The recorded SkillOpt run against planish's, file by file and value by value. Every difference is one that
//! `tests/vectors/deviations.toml` lists as `[[recorded_run]]`, with the reason and what planish has instead.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/recorded_run.rs"]
mod recorded_run;

use std::path::Path;

use recorded_run::{REPLAY, files, fixture, read_json};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Deviations {
    recorded_run: Vec<Allowed>,
}

/// Where planish means to differ.
#[derive(Deserialize)]
struct Allowed {
    /// Names of files, `*` for any text.
    file: String,
    /// JSON pointers in them, `*` for any text; an item's row is found under its id.
    at: String,
    /// Regular expression that the recorded JSON text matches; any without one.
    #[serde(default)]
    recorded: String,
    reason: String,
    /// Regular expression that the JSON text of planish's value matches; `absent` stands for no value.
    better: String,
}

/// An entry of the list, compiled.
struct Patterns {
    file: Regex,
    at: Regex,
    recorded: Regex,
    better: Regex,
}

impl Patterns {
    fn of(entry: &Allowed) -> Self {
        let glob = |text: &str| regex(&format!("^{}$", regex::escape(text).replace(r"\*", ".*")));
        let (file, at) = (glob(&entry.file), glob(&entry.at));
        Self { file, at, recorded: regex(&entry.recorded), better: regex(&entry.better) }
    }

    fn fit(&self, difference: &Difference) -> bool {
        self.file.is_match(&difference.file)
            && self.at.is_match(&difference.at)
            && self.recorded.is_match(&difference.recorded)
            && self.better.is_match(&difference.ours)
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("deviations.toml: {error}"))
}

struct Difference {
    file: String,
    at: String,
    recorded: String,
    ours: String,
}

#[test]
fn every_difference_from_the_recorded_run_is_meant() {
    let text = std::fs::read_to_string(fixture("../vectors/deviations.toml")).unwrap();
    let Deviations { recorded_run: allowed } = toml::from_str(&text).unwrap();
    let folder = fixture("skillopt_run");
    let mut found = Vec::new();
    let names = files(&folder);
    for name in &names {
        let read =
            |folder: &Path| keyed(content(&folder.join(name)).map(|content| without_config(name, content)));
        let (recorded, ours) = (read(&folder), read(&REPLAY.folder()));
        differences(name, "", recorded.as_ref(), ours.as_ref(), &mut found);
    }
    differences("requests", "", Some(&recorded_requests()), Some(&requests()), &mut found);
    println!("{} files of the recorded run, {} values differ", names.len(), found.len());

    let mut used = vec![false; allowed.len()];
    let mut unmeant = Vec::new();
    let patterns: Vec<Patterns> = allowed.iter().map(Patterns::of).collect();
    for difference in &found {
        match patterns.iter().position(|patterns| patterns.fit(difference)) {
            Some(entry) => used[entry] = true,
            None => unmeant.push(format!(
                "{} {}\n    recorded {}\n    ours     {}",
                difference.file, difference.at, difference.recorded, difference.ours
            )),
        }
    }
    for (entry, used) in allowed.iter().zip(used) {
        assert!(!entry.reason.trim().is_empty(), "{} {} has no reason", entry.file, entry.at);
        if !used {
            unmeant.push(format!("deviations.toml lists {} {}, which does not differ", entry.file, entry.at));
        }
    }
    assert!(unmeant.is_empty(), "{} differences:\n{}", unmeant.len(), unmeant.join("\n"));
}

/// The items of each batch, in the order in which CPython shuffles them.
#[test]
fn batches_hold_the_same_items_in_the_planned_order() {
    let batches = [
        ["q3", "q8", "q6", "q4"].as_slice(),
        &["q1", "q5", "q7", "q2"],
        &["q0"],
        &["q6", "q0", "q5", "q7"],
        &["q2", "q4", "q8", "q1"],
        &["q3"],
    ];
    for (step, batch) in (1..).zip(batches) {
        let name = format!("steps/step_{step:04}/rollout/results.jsonl");
        let ids =
            |rows: Value| rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
        let ours = ids(REPLAY.json(&name));
        assert_eq!(ours, batch, "step {step}");
        let (mut ours, mut recorded) = (ours, ids(read_json(&fixture("skillopt_run").join(name))));
        ours.sort_by_key(Value::to_string);
        recorded.sort_by_key(Value::to_string);
        assert_eq!(ours, recorded, "step {step}");
    }
}

/// What the recorded run's server was asked, as the first run counted it.
fn recorded_requests() -> Value {
    json!({"analyst": 12, "merge": 6, "ranking": 5, "slow_update": 1, "meta_skill": 1, "rollout": 97})
}

fn requests() -> Value {
    let mut counts = json!({});
    for request in &REPLAY.requests {
        let kind = match request.rule.as_str() {
            rule if rule.starts_with("analyst_") => "analyst",
            rule if rule.starts_with("merge_") => "merge",
            rule => rule,
        };
        counts[kind] = json!(counts[kind].as_u64().unwrap_or(0) + 1);
    }
    counts
}

/// The summary repeats the configuration, which is compared where it stands.
fn without_config(name: &str, mut content: Value) -> Value {
    if name == "summary.json" {
        content.as_object_mut().and_then(|summary| summary.shift_remove("config")).unwrap();
    }
    content
}

/// JSON, rows of JSON lines, or text.
fn content(path: &Path) -> Option<Value> {
    let json = path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl");
    match json {
        _ if !path.exists() => None,
        true => Some(read_json(path)),
        false => Some(json!(std::fs::read_to_string(path).unwrap())),
    }
}

/// Rows of items under their ids: in which order a rollout's rows come was left to chance in the recorded run.
fn keyed(content: Option<Value>) -> Option<Value> {
    let rows = match content {
        Some(Value::Array(rows)) => rows,
        other => return other,
    };
    if rows.is_empty() || !rows.iter().all(|row| row["id"].is_string()) {
        return Some(Value::Array(rows));
    }
    Some(rows.into_iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect())
}

fn differences(
    file: &str,
    at: &str,
    recorded: Option<&Value>,
    ours: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (recorded, ours) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                differences(file, &format!("{at}/{name}"), a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                differences(file, &format!("{at}/{index}"), a.get(index), b.get(index), found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => {
            let text = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
            let (file, at) = (file.to_owned(), at.to_owned());
            found.push(Difference { file, at, recorded: text(a), ours: text(b) });
        }
    }
}
