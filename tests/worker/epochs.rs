//! A whole undisturbed run on the real model: three epochs with slow update and meta skill, and the report of it.

use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{BINARY, model_file};

fn planish(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_planish")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn three_epochs_with_slow_update_and_meta_skill_end_and_their_lineage_is_told() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/demo-epochs.toml");
    let worker = format!("model.worker_command=[{BINARY:?}]");
    let model = format!("model.model_file={}", model_file());
    planish(&[
        "run",
        config,
        "--root",
        root,
        "--name",
        "epochs",
        "--foreground",
        "--json",
        "-o",
        &worker,
        "-o",
        &model,
        "-o",
        "env.limit=16",
        "-o",
        "optimizer.slow_update_samples=8",
    ]);
    let run = place.path().join("epochs");
    let journal = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let stages: Vec<String> = journal
        .lines()
        .filter_map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let finished = record.get("epoch_stage_finished")?;
            let kind = finished["stage"].as_object()?.keys().next()?.clone();
            Some(format!("{} {kind}", finished["at"]["epoch"]))
        })
        .collect();
    assert_eq!(
        stages,
        ["1 slow_update", "1 meta_skill", "2 slow_update", "2 meta_skill", "3 slow_update", "3 meta_skill"]
    );
    let best = std::fs::read_to_string(run.join("best_skill.md")).unwrap();
    let seed = include_str!("../../skills/city/SKILL.md");
    assert_ne!(best, seed, "the demo learns");
    let report = planish(&["report", "epochs", "--root", root]);
    let report = String::from_utf8(report.stdout).unwrap();
    let lineage = report.split("## Lineage of the best skill").nth(1).unwrap();
    let rows: Vec<&str> = lineage.lines().filter(|line| line.starts_with("| ")).collect();
    let rows = rows.iter().skip(2).take_while(|row| !row.starts_with("| Change")).collect::<Vec<_>>();
    assert_eq!(rows.len(), best.lines().count(), "one row per line of the best skill:\n{lineage}");
    assert!(rows.iter().any(|row| row.contains("step ")), "{lineage}");
    assert!(lineage.contains("as a worked example: log p(answer)"), "the reason is told: {lineage}");
}
