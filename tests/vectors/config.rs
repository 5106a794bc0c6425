//! Answers the vectors of configuration: files and overrides as SkillOpt merges them, backends of roles, words.

use std::collections::HashMap;

use planish::config::skillopt::{Mapping, Merged, Node, cast_value, default_model, label, role_backends};
use planish::config::{Kind, canonical_word, find_key, needs_responses_api, secret_variable};
use planish::domain::UpdateMode;
use planish::env::train_size;
use serde_json::{Map, Value, json};

use super::Case;

pub fn config(case: &Case) -> Option<Value> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match case.function() {
        "cast_value" => Some(cast(case.input.as_str()?)),
        "load_config" => Some(load(case)),
        "normalize_backend_name" => Some(json!(label(case.input.as_str()))),
        "default_model_for_backend" => Some(json!(default_model(case.input.as_str()?))),
        "resolve_role_backends(trainer)" => {
            let [label, optimizer, target] = case.input.as_array()?.as_slice() else { return None };
            Some(json!(role_backends(label.as_str()?, text(optimizer).as_deref(), text(target).as_deref())))
        }
        "needs_responses_api" => Some(json!(needs_responses_api(case.input.as_str().unwrap_or_default()))),
        _ => None,
    }
}

fn cast(text: &str) -> Value {
    let python = |number: f64| match number {
        number if number.is_nan() => "nan".to_owned(),
        number if number.is_infinite() => number.to_string(),
        number => format!("{number:?}"),
    };
    let (kind, value) = match cast_value(text) {
        Node::Bool(value) => ("bool", json!(value)),
        Node::Int(value) => ("int", json!(value)),
        Node::Float(value) => ("float", json!(python(value))),
        Node::Text(value) => ("str", json!(value)),
        Node::Null | Node::List(_) | Node::Map(_) => return Value::Null,
    };
    json!({"type": kind, "value": value})
}

fn load(case: &Case) -> Value {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in case.input["files"].as_object().unwrap() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.as_str().unwrap()).unwrap();
    }
    let overrides: Vec<String> = case.input["overrides"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect();
    match Merged::load(&folder.path().join(case.text("main")), &overrides) {
        Ok(merged) => {
            let flat = merged.flatten().0;
            let flat: Map<String, Value> =
                flat.into_iter().map(|(name, flat)| (name, plain(&flat.entry.node))).collect();
            json!({"loaded": mapping(&merged.settings), "structured": merged.is_structured(), "flat": flat})
        }
        Err(error) if error.is_missing_file() => json!({"error": "FileNotFoundError"}),
        Err(_) => json!({"error": "ValueError"}),
    }
}

fn mapping(mapping: &Mapping) -> Value {
    Value::Object(mapping.iter().map(|(name, entry)| (name.clone(), plain(&entry.node))).collect())
}

fn plain(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => json!(value),
        Node::Int(value) => json!(value),
        Node::Float(value) => json!(value),
        Node::Text(value) => json!(value),
        Node::List(items) => items.iter().map(plain).collect(),
        Node::Map(entries) => mapping(entries),
    }
}

/// The configurations that the original ships, in own words: what its keys are and not how its files are written.
pub fn config_shipped(case: &Case) -> Option<Value> {
    let folder = format!("{}/tests/configs/skillopt", env!("CARGO_MANIFEST_DIR"));
    let path = std::path::Path::new(&folder).join(case.input.as_str()?.strip_prefix("configs/")?);
    let flat = Merged::load(&path, &[]).unwrap_or_else(|error| panic!("{error}")).flatten().0;
    let value = |name: &str| flat.get(name).map_or(Value::Null, |flat| plain(&flat.entry.node));
    let names = ["env", "split_dir", "workers", "skill_init", "batch_size", "edit_budget", "lr_scheduler"];
    Some(names.into_iter().map(|name| (name.to_owned(), value(name))).collect::<Map<_, _>>().into())
}

/// What a word means at a key that allows a few words.
pub fn word(key: &str, input: &Value) -> Option<&'static str> {
    let Kind::Choice(allowed) = find_key(key)?.kind else { return None };
    canonical_word(key, allowed, input.as_str().unwrap_or_default())
}

/// Names of proposals under an update mode; an unknown mode is an error, not patch.
/// A mode by any of its names.
pub fn update_mode(name: &Value) -> UpdateMode {
    serde_json::from_value(json!(word("optimizer.skill_update_mode", name).unwrap())).unwrap()
}

pub fn update_modes(case: &Case) -> Option<Value> {
    if !["normalize_update_mode", "payload_key", "payload_label"].contains(&case.function()) {
        return super::optim::proposals(case);
    }
    let mode = word("optimizer.skill_update_mode", &case.input);
    let mode = mode.map(|mode| (mode, serde_json::from_value::<UpdateMode>(json!(mode)).unwrap()));
    let Some((word, mode)) = mode else { return Some(json!({"error": "ValueError"})) };
    match case.function() {
        "normalize_update_mode" => Some(json!(word)),
        "payload_key" => Some(json!(mode.items_key())),
        "payload_label" => {
            let plural = format!("{}s", mode.noun());
            let titled: Vec<String> =
                plural.split(' ').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
            Some(json!([plural, titled.join(" "), mode.noun()]))
        }
        _ => None,
    }
}

/// Functions of the trainer that are about configuration.
pub fn trainer(case: &Case) -> Option<Value> {
    let checked = |key| match word(key, &case.input) {
        Some(word) => json!({"ok": word}),
        None => json!({"error": "ValueError"}),
    };
    match case.function() {
        "longitudinal_pair_policy" => Some(checked("optimizer.longitudinal_pair_policy")),
        "lr_control_mode" => Some(checked("optimizer.lr_control_mode")),
        "resolve_role_backends" => {
            let role = |name: &str| case.input[name].as_str();
            Some(json!(role_backends(case.text("backend"), role("optimizer"), role("target"))))
        }
        "resolve_train_size" => {
            let number = |name: &str| match &case.input[name] {
                Value::String(text) => match cast_value(text) {
                    Node::Int(number) => number as usize,
                    other => panic!("{other:?}"),
                },
                number => number.as_u64().unwrap_or_default() as usize,
            };
            Some(match train_size(number("configured"), number("loader")) {
                Some(size) => json!({"ok": size}),
                None => json!({"error": "ValueError"}),
            })
        }
        "redact_cfg" => {
            let kept = |name: &String, value: &Value| match value.as_str() {
                Some("") => String::new(),
                _ => secret_variable(name).map(|variable| format!("${variable}")).unwrap_or_default(),
            };
            let input = case.input.as_object().unwrap();
            Some(
                input
                    .iter()
                    .map(|(name, value)| (name.clone(), kept(name, value)))
                    .collect::<HashMap<_, _>>(),
            )
            .map(|map| json!(map))
        }
        _ => None,
    }
}
