//! The recorded end-to-end run: what the same data, settings and replies give here, in the shape of the recording.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::Case;
use crate::recorded_run::{REPLAY, files};

pub fn e2e_run(case: &Case) -> Option<Value> {
    match case.function() {
        "artifact_tree" => Some(json!(tree())),
        "step_sequence" => Some(steps(&case.output)),
        "history_record_shape" => Some(shape(&REPLAY.json("history.json")[0])),
        "batch_seeds" => Some(batch_seeds()),
        "file_shape" => Some(file_shape(case.input.as_str()?)),
        "edit_apply_report_example" => Some(REPLAY.json("steps/step_0001/edit_apply_report.json")),
        "optimizer_request_keys" => Some(request_keys()),
        "max_tokens_sent_by_call_kind" => Some(max_tokens()),
        _ => None,
    }
}

/// The run's files, with one name for all steps, epochs, items and calls.
fn tree() -> BTreeSet<String> {
    static NUMBERED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let patterns = [
            (r"step_\d{4}/", "step_NNNN/"),
            (r"epoch_\d\d/", "epoch_XX/"),
            (r"skill_v\d{4}\.", "skill_vNNNN."),
            (r"(minibatch_[a-z]+)_\d{3}\.", "${1}_NNN."),
            (r"predictions/q\d+/", "predictions/<id>/"),
            (r"calls/[0-9a-f]{2}/[0-9a-f]{64}\.", "calls/<call>."),
        ];
        patterns.map(|(pattern, name)| (Regex::new(pattern).unwrap(), name)).into()
    });
    let general = |name: String| {
        NUMBERED.iter().fold(name, |name, (pattern, general)| pattern.replace(&name, *general).into_owned())
    };
    files(&REPLAY.folder()).into_iter().map(general).collect()
}

/// The history with the fields that the recording has.
fn steps(recorded: &Value) -> Value {
    let history = REPLAY.json("history.json");
    let rows = history.as_array().unwrap().iter().zip(recorded.as_array().unwrap());
    let kept = |(row, recorded): (&Value, &Value)| {
        let names = recorded.as_object().unwrap().keys();
        names.map(|name| (name.clone(), row[name].clone())).collect::<Map<_, _>>()
    };
    assert_eq!(history.as_array().unwrap().len(), recorded.as_array().unwrap().len());
    rows.map(kept).map(Value::Object).collect()
}

fn batch_seeds() -> Value {
    let history = REPLAY.json("history.json");
    let seeds = |row: &Value| -> Value {
        row["accumulation_batches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|batch| batch["batch_seed"].clone())
            .collect()
    };
    history.as_array().unwrap().iter().map(seeds).collect()
}

fn file_shape(name: &str) -> Value {
    match name {
        "summary.json" => {
            let mut summary = REPLAY.json(name);
            assert_eq!(summary["config"], REPLAY.json("config.json"));
            summary["config"] = Value::Null;
            let mut shape = shape(&summary);
            shape["config"] = json!("<flat config, redacted>");
            shape
        }
        // Its two elements are of different kinds.
        "predictions/<id>/conversation.json" => {
            let messages = REPLAY.json("steps/step_0001/rollout/predictions/q3/conversation.json");
            messages.as_array().unwrap().iter().map(shape).collect()
        }
        name if name.ends_with(".jsonl") => shape(&REPLAY.json(name)[0]),
        name => shape(&REPLAY.json(name)),
    }
}

/// The Python types of a value; a list has the shape of its first element.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("NoneType"),
        Value::Bool(_) => json!("bool"),
        Value::Number(number) if number.is_f64() => json!("float"),
        Value::Number(_) => json!("int"),
        Value::String(_) => json!("str"),
        Value::Array(items) => items.iter().take(1).map(shape).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect())
        }
    }
}

/// The keys that every request of the optimizer has.
fn request_keys() -> Value {
    let of_optimizer = REPLAY.requests.iter().filter(|request| request.body["model"] == "opt-m");
    let keys = |body: &Value| body.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let sets: BTreeSet<BTreeSet<String>> = of_optimizer.map(|request| keys(&request.body)).collect();
    assert_eq!(sets.len(), 1, "{sets:?}");
    json!(sets.first())
}

fn max_tokens() -> Value {
    let mut by_kind: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for request in &REPLAY.requests {
        let tokens = request.body["max_tokens"].as_u64().unwrap();
        by_kind.entry(&request.rule).or_default().insert(tokens);
    }
    json!(by_kind)
}
