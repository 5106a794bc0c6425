//! Runs the test vectors that the Python original printed, case by case. A file is registered in [`GROUPS`] with the
//! function that answers its cases. Where planish means to differ, `deviations.toml` says why and states the better
//! answer, which is asserted instead; cases of mechanisms that planish does not have are named there too, so that no
//! case is passed over in silence.
#![allow(clippy::unwrap_used, clippy::panic)]

mod config;
mod data;
mod e2e;
mod gate;
mod optim;
#[path = "../support/recorded_run.rs"]
#[allow(dead_code)]
mod recorded_run;

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
    ("optimizer_calls", optim::optimizer_calls, &["call"]),
    ("python_random", data::python_random, &[]),
    ("reflect", optim::reflect, &["stage", "max_completion_tokens", "retries", "batch_size", "files"]),
    ("scheduler", optim::scheduler, &[]),
    ("score_hash", gate::score_hash, &[]),
    ("searchqa", data::searchqa, &["sub_em"]),
    ("split_counts", data::split_counts_and_ratios, &[]),
    ("trainer_misc", optim::trainer_misc, &[]),
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
    left_out: Vec<LeftOut>,
}

/// One case with another answer than the original's.
#[derive(Deserialize)]
struct Deviation {
    id: String,
    reason: String,
    /// JSON text.
    better: String,
}

/// Cases whose id starts with `cases`: not a part of planish, or not yet.
#[derive(Deserialize)]
struct LeftOut {
    cases: String,
    reason: String,
}

fn read(name: &str) -> String {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_case_gives_the_recorded_or_the_better_answer() {
    let deviations: Deviations = toml::from_str(&read("deviations.toml")).unwrap();
    let (mut wrong, mut used, mut ids) = (Vec::new(), Vec::new(), std::collections::HashSet::new());
    for (file, run, ignored) in GROUPS {
        let group: Group = serde_json::from_str(&read(&format!("{file}.json"))).unwrap();
        assert_eq!(group.cases.len(), group.n_cases, "{file}.json is incomplete");
        let (mut equal, mut better, mut left_out) = (0, 0, 0);
        for (position, case) in group.cases.iter().enumerate() {
            let id = case.id(file, position);
            // Equal names of a file stay distinct by position.
            let id = if ids.insert(id.clone()) { id } else { format!("{id}#{position}") };
            let deviation = deviations.deviation.iter().find(|deviation| deviation.id == id);
            let excuse = deviations.left_out.iter().find(|entry| id.starts_with(&entry.cases));
            let expected = match deviation {
                Some(deviation) => {
                    used.push(deviation.id.as_str());
                    serde_json::from_str(&deviation.better).unwrap_or_else(|error| panic!("{id}: {error}"))
                }
                None => without(&case.output, ignored),
            };
            match (run(case), excuse) {
                (Some(_), Some(entry)) => {
                    wrong.push(format!("{id}: has an answer but is left out as {:?}", entry.cases));
                }
                (None, None) => wrong.push(format!("{id}: no answer, and deviations.toml does not say why")),
                (None, Some(entry)) => {
                    used.push(entry.cases.as_str());
                    left_out += 1;
                }
                (Some(answer), None) if !same(&answer, &expected) => {
                    wrong.push(format!("{id}\n    expected {expected}\n    answered {answer}"));
                }
                (Some(answer), None)
                    if deviation.is_some() && same(&answer, &without(&case.output, ignored)) =>
                {
                    wrong.push(format!("{id}: the recorded answer already is the better one"));
                }
                (Some(_), None) if deviation.is_some() => better += 1,
                (Some(_), None) => equal += 1,
            }
        }
        println!("{file}: {equal} equal, {better} better, {left_out} left out, of {}", group.n_cases);
    }
    let named = deviations.deviation.iter().map(|entry| (&entry.id, &entry.reason));
    for (name, reason) in named.chain(deviations.left_out.iter().map(|entry| (&entry.cases, &entry.reason))) {
        if !used.contains(&name.as_str()) {
            wrong.push(format!("deviations.toml names {name:?}, which no case has"));
        }
        if reason.trim().is_empty() {
            wrong.push(format!("deviations.toml gives no reason for {name:?}"));
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
const DEFAULTED: [&str; 7] =
    ["content", "content_preview", "motivated_by", "reasoning", "source_type", "support_count", "target"];

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
