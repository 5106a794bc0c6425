//! Runs the test vectors that the Python original printed, case by case. A file is registered in [`GROUPS`] with the
//! function that answers its cases; every case is answered. Where planish means to differ, `deviations.toml` says why
//! and states the better answer, which is asserted instead.
#![allow(clippy::unwrap_used, clippy::panic)]

mod config;
mod data;
mod e2e;
mod epoch;
mod gate;
mod optim;
#[path = "../support/recorded_run.rs"]
#[allow(dead_code)]
mod recorded_run;
mod reflect;

use serde::Deserialize;
use serde_json::Value;

/// Answers one case in the shape of its recorded output; `None`: planish has no such function.
type Runner = fn(&Case) -> Option<Value>;

/// File stem, runner, keys of the recorded outputs that are not compared: request settings (they belong to roles here), file
/// names, error texts, a metric of SearchQA that is no score.
const GROUPS: &[(&str, Runner, &[&str])] = &[
    ("aggregate", optim::aggregate, &["stage", "max_completion_tokens", "retries"]),
    ("apply_patch", optim::apply_patch, &["error"]),
    ("batches", data::batches, &[]),
    ("config", config::config, &[]),
    ("config_shipped", config::config_shipped, &[]),
    ("e2e_run", e2e::e2e_run, &[]),
    ("gate", gate::gate, &[]),
    ("json_extract", optim::json_extract, &[]),
    ("legacy_reflection", epoch::legacy_reflection, &[]),
    ("optimizer_calls", optim::optimizer_calls, &["call"]),
    ("protected_regions", epoch::protected_regions, &[]),
    ("python_random", data::python_random, &[]),
    ("reflect", reflect::reflect, &["stage", "max_completion_tokens", "retries", "batch_size", "files"]),
    ("scheduler", optim::scheduler, &[]),
    ("score_hash", gate::score_hash, &[]),
    ("searchqa", data::searchqa, &["sub_em"]),
    ("split_counts", data::split_counts_and_ratios, &[]),
    ("trainer_misc", optim::trainer_misc, &["files"]),
    ("update_modes", config::update_modes, &[]),
];

#[derive(Deserialize)]
struct Group {
    n_cases: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    name: Option<String>,
    #[serde(default, rename = "fn")]
    function: Option<String>,
    input: Value,
    output: Value,
}

impl Case {
    /// `file/function/name`; a case without a name has its position in the file.
    fn id(&self, file: &str, position: usize) -> String {
        let name = self.name.clone().or_else(|| self.input.get("name")?.as_str().map(str::to_owned));
        let name = name.unwrap_or_else(|| format!("#{position}"));
        match &self.function {
            Some(function) => format!("{file}/{function}/{name}"),
            None => format!("{file}/{name}"),
        }
    }

    fn function(&self) -> &str {
        self.function.as_deref().unwrap_or_default()
    }

    fn text(&self, key: &str) -> &str {
        self.input[key].as_str().unwrap_or_default()
    }

    fn number(&self, key: &str) -> usize {
        self.input[key].as_u64().unwrap_or_else(|| panic!("no number {key:?} in {}", self.input)) as usize
    }
}

#[derive(Deserialize)]
struct Deviations {
    deviation: Vec<Deviation>,
}

/// One case with another answer than the original's.
#[derive(Deserialize)]
struct Deviation {
    id: String,
    reason: String,
    /// JSON text.
    better: String,
}

fn read(name: &str) -> String {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_case_gives_the_recorded_or_the_better_answer() {
    let deviations: Deviations = toml::from_str(&read("deviations.toml")).unwrap();
    let (mut wrong, mut used, mut ids) = (Vec::new(), Vec::new(), std::collections::HashSet::new());
    let mut total = 0;
    for (file, run, ignored) in GROUPS {
        let group: Group = serde_json::from_str(&read(&format!("{file}.json"))).unwrap();
        assert_eq!(group.cases.len(), group.n_cases, "{file}.json is incomplete");
        let (mut equal, mut better) = (0, 0);
        for (position, case) in group.cases.iter().enumerate() {
            let id = case.id(file, position);
            // Equal names of a file stay distinct by position.
            let id = if ids.insert(id.clone()) { id } else { format!("{id}#{position}") };
            let recorded = without(&case.output, ignored);
            let Some(answer) = run(case) else {
                wrong.push(format!("{id}: no answer"));
                continue;
            };
            let Some(deviation) = deviations.deviation.iter().find(|deviation| deviation.id == id) else {
                if same(&answer, &recorded) {
                    equal += 1;
                } else {
                    wrong.push(format!("{id}\n    recorded {recorded}\n    answered {answer}"));
                }
                continue;
            };
            used.push(deviation.id.as_str());
            let meant: Value =
                serde_json::from_str(&deviation.better).unwrap_or_else(|error| panic!("{id}: {error}"));
            if !same(&answer, &meant) {
                wrong.push(format!("{id}\n    meant    {meant}\n    answered {answer}"));
            } else if same(&answer, &recorded) {
                wrong.push(format!("{id}: the recorded answer already is the better one"));
            } else {
                better += 1;
            }
        }
        total += group.n_cases;
        println!("{file}: {equal} equal, {better} better, of {}", group.n_cases);
    }
    println!("{total} cases in {} files", GROUPS.len());
    for Deviation { id, reason, .. } in &deviations.deviation {
        if !used.contains(&id.as_str()) {
            wrong.push(format!("deviations.toml names {id:?}, which no case has"));
        }
        if reason.trim().is_empty() {
            wrong.push(format!("deviations.toml gives no reason for {id:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The value without the keys `ignored`, at any depth.
fn without(value: &Value, ignored: &[&str]) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !ignored.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), without(value, ignored))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| without(item, ignored)).collect()),
        other => other.clone(),
    }
}

/// What the original leaves out of an edit, a patch or a report row, because it is a default there or unknown.
const DEFAULTED: [&str; 11] = [
    "change_summary",
    "content",
    "content_preview",
    "instruction",
    "motivated_by",
    "motivation",
    "reasoning",
    "source_type",
    "support_count",
    "target",
    "title",
];

/// Equal but for the writing of numbers and for [`DEFAULTED`] keys that only the answer has.
fn same(answer: &Value, expected: &Value) -> bool {
    match (answer, expected) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let nothing_more = a.keys().all(|key| b.contains_key(key) || DEFAULTED.contains(&key.as_str()));
            nothing_more && b.iter().all(|(key, value)| a.get(key).is_some_and(|answer| same(answer, value)))
        }
        _ => answer == expected,
    }
}
