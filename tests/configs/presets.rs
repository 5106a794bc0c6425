//! The presets under `configs/`: each loads once its data is there, says what is missing before, and has the published
//! settings.

use std::path::{Path, PathBuf};

use planish::config::{Benchmark, Config, find_key};
use serde_json::{Value, json};

use super::{changed, project};

/// All presets but the base of the others and the demo.
fn presets() -> Vec<PathBuf> {
    let files = |folder: &str| std::fs::read_dir(project(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut presets: Vec<PathBuf> = files("configs")
        .chain(files("configs/features"))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter(|path| {
            !["_base.toml", "demo.toml", "demo-epochs.toml"].iter().any(|name| path.ends_with(name))
        })
        .collect();
    presets.sort();
    presets
}

/// Overrides that put data where `path` misses it: the paths of its complaints.
fn with_data(path: &Path, folder: &Path) -> Vec<String> {
    let file = folder.join("items.jsonl");
    std::fs::write(&file, "").unwrap();
    let errors = Config::load(path, &[]).unwrap_err();
    errors
        .0
        .iter()
        .filter(|error| error.key != "env.name")
        .map(|error| {
            assert!(error.problem.starts_with("no such ") && error.key.starts_with("env."), "{error}");
            let there = if error.problem.contains("folder:") || error.key != "env.data_path" {
                folder
            } else {
                &file
            };
            match error.key.as_str() {
                "env.data_dirs" => format!("{}=[{:?}]", error.key, there.display().to_string()),
                key => format!("{key}={}", there.display()),
            }
        })
        .collect()
}

#[test]
fn each_preset_misses_only_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let presets = presets();
    assert_eq!(presets.len(), 12, "{presets:?}");
    for path in presets {
        let overrides = with_data(&path, folder.path());
        assert!(!overrides.is_empty(), "{} needs no data?", path.display());
        let loaded = Config::load(&path, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(loaded.warnings, [""; 0], "{}", path.display());
        let config = &loaded.config;
        let name = config.env.benchmark.name;
        assert_ne!(name, Benchmark::None, "{}", path.display());
        if !path.ends_with("features/soft_gate.toml") {
            assert_eq!(path.file_stem().unwrap().to_str().unwrap(), name.word());
        }
        assert_eq!((config.train.num_epochs, config.train.seed, config.train.accumulation), (4, 42, 1));
        assert_eq!((config.optimizer.learning_rate, config.optimizer.min_learning_rate), (4, 2));
        assert!(
            config.evaluation.use_gate && config.optimizer.use_slow_update && config.optimizer.use_meta_skill
        );
        assert_eq!(config.model.target.model, config.model.optimizer.model);
        assert_eq!(config.model.reasoning.reasoning_effort.word(), "medium");
    }
}

/// Settings of one benchmark besides those of all, and besides paths.
fn published(name: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = project("configs").join(format!("{name}.toml"));
    let loaded = Config::load(&path, &with_data(&path, folder.path())).unwrap();
    let base = Config::load(&project("configs/_base.toml"), &["env.data_path=demo:city".into()]).unwrap();
    let base = changed(&base);
    let is_path = |key: &str| find_key(key).unwrap().kind.name().contains("fold") || key == "env.data_path";
    Value::Object(
        changed(&loaded)
            .into_iter()
            .filter(|(key, value)| !is_path(key) && base.get(key) != Some(value))
            .collect(),
    )
}

#[test]
fn benchmarks_have_their_published_settings() {
    for (name, expected) in [
        (
            "searchqa",
            json!({"train.train_size": 400, "env.split_mode": "split_dir", "env.max_turns": 1,
            "env.exec_timeout": 120, "env.workers": 24}),
        ),
        (
            "docvqa",
            json!({"env.split_mode": "split_dir", "env.image_detail": "auto", "env.max_turns": 1,
            "env.exec_timeout": 120}),
        ),
        (
            "livemathematicianbench",
            json!({"env.split_mode": "split_dir", "env.shuffle_choices": true,
            "env.use_theorem": false, "env.use_sketch": false, "env.max_turns": 1, "env.exec_timeout": 300,
            "env.workers": 64}),
        ),
        (
            "officeqa",
            json!({"env.split_mode": "split_dir", "env.max_tool_turns": 24, "env.search_mode": "offline",
            "env.search_provider": "duckduckgo", "env.search_max_num_results": 4, "env.search_timeout_seconds": 20.0,
            "env.search_auth_env": "OFFICEQA_CUSTOM_SEARCH_AUTH", "env.max_queries_per_turn": 4, "env.workers": 4}),
        ),
        (
            "spreadsheetbench",
            json!({"train.train_size": 80, "env.split_mode": "split_dir", "env.mode": "multi",
            "env.max_turns": 30, "env.exec_timeout": 600, "env.workers": 24}),
        ),
        (
            "alfworld",
            json!({"env.split_mode": "split_dir", "env.max_steps": 50, "env.max_api_workers": 8,
            "env.workers": 8}),
        ),
        (
            "babyvision",
            json!({"train.batch_size": 64, "env.image_detail": "auto", "env.max_turns": 1,
            "model.judge.model": "gpt-5.4", "model.judge.max_tokens": 256, "env.judge_retries": 5}),
        ),
        (
            "mathverse",
            json!({"train.batch_size": 64, "env.split_mode": "split_dir", "env.image_detail": "auto",
            "env.max_turns": 1, "model.judge.model": "gpt-5.4", "model.judge.max_tokens": 256,
            "env.judge_retries": 5, "env.problem_version": "Text Lite", "env.use_text_dominant_reference": false}),
        ),
        ("mmrb", json!({"train.batch_size": 128})),
        (
            "sealqa",
            json!({"train.batch_size": 10, "env.split_mode": "split_dir", "env.max_tool_turns": 12,
            "env.workers": 4}),
        ),
        (
            "swebench",
            json!({"train.batch_size": 20, "gradient.minibatch_size": 4, "env.dataset_name": "lite",
            "env.hf_split": "test", "env.step_limit": 50, "env.cost_limit": 3.0, "env.timeout_per_instance": 600,
            "env.eval_workers": 8, "env.workers": 8}),
        ),
        (
            "features/soft_gate",
            json!({"train.train_size": 400, "env.split_mode": "split_dir", "env.max_turns": 1,
            "env.exec_timeout": 120, "env.workers": 24, "evaluation.gate_metric": "soft"}),
        ),
    ] {
        let mut expected = expected;
        expected["env.name"] = if name.contains('/') { "searchqa".into() } else { name.into() };
        assert_eq!(published(name), expected, "{name}");
    }
}
