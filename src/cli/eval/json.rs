//! An evaluation as JSON: the lines of `--json`, and the files of `--out`. Pure but for writing those files.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::sheet::{Comparison, Part, Sheet};
use super::{Scored, Setting};
use crate::cli::Failure;
use crate::engine::ScoredItem;
use crate::event::ItemResult;
use crate::gate::{Estimate, RepeatSummary, item_means, smallest_visible_gain};
use crate::store::{StoreError, atomic_write, write_rollouts};

/// How two skills compare.
pub const COMPARISON: &str = "comparison.json";

/// What one skill came to.
pub const SUMMARY: &str = "eval_summary.json";

/// One line per item.
pub fn item(scored: &Scored, item: &ScoredItem) -> Value {
    let means = item_means(&item.scores());
    let results: Vec<Value> = item
        .results
        .iter()
        .enumerate()
        .map(|(repeat, result)| match result {
            ItemResult::Scored(rollout) => {
                json!({"repeat": repeat, "score": rollout.score, "answer": rollout.answer, "gold": rollout.gold})
            }
            ItemResult::Missing { error, .. } => json!({"repeat": repeat, "missing": error}),
        })
        .collect();
    json!({
        "item": item.item,
        "split": item.split,
        "skill": scored.path,
        "type": item.task_type(),
        "hard": means.map(|means| means.0),
        "soft": means.map(|means| means.1),
        "reason": item.last_failure(),
        "results": results,
    })
}

/// One line per part.
pub fn part(scored: &Scored, part: &Part) -> Value {
    let mut line = Map::new();
    line.insert("split".into(), json!(part.name));
    line.insert("skill".into(), json!(scored.path));
    line.append(&mut numbers(&part.summary));
    line.insert("missing".into(), json!(part.missing().count()));
    line.insert("types".into(), types(part));
    Value::Object(line)
}

pub fn comparison(pair: [&Scored; 2], compared: &Comparison) -> Value {
    let gain = &compared.gain;
    json!({
        "split": compared.name,
        "first": pair[0].path,
        "second": pair[1].path,
        "n": gain.n,
        "gain": gain.mean,
        "interval": gain.interval,
        "gained": compared.gained,
        "lost": compared.lost,
        "mid_p": gain.mid_p,
        "smallest_visible_gain": smallest_visible_gain(gain.psi, gain.n),
    })
}

fn numbers(summary: &RepeatSummary) -> Map<String, Value> {
    let mean = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.mean);
    let interval = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.interval);
    let numbers = json!({
        "n_items": summary.items,
        "n": summary.scored,
        "repeats": summary.repeats,
        "hard": mean(summary.hard),
        "interval": interval(summary.hard),
        "soft": mean(summary.soft),
        "soft_interval": interval(summary.soft),
        "always": summary.always,
        "sometimes": summary.sometimes,
        "never": summary.never,
        "flip": summary.flip,
    });
    match numbers {
        Value::Object(numbers) => numbers,
        _ => Map::new(),
    }
}

fn types(part: &Part) -> Value {
    part.types.iter().map(|(name, summary)| ((*name).to_owned(), Value::Object(numbers(summary)))).collect()
}

/// Writes a skill's rollout folder (one per repeat when there are several) and its `eval_summary.json`.
pub fn write(folder: &Path, setting: &Setting, scored: &Scored, sheet: &Sheet) -> Result<(), Failure> {
    for repeat in 0..setting.repeats {
        let rows = sheet.items.iter().filter_map(|item| Some((item.split, item.results.get(repeat)?)));
        match setting.repeats {
            1 => write_rollouts(folder, rows)?,
            _ => write_rollouts(&folder.join(format!("repeat_{repeat}")), rows)?,
        }
    }
    write_json(&folder.join(SUMMARY), &summary(setting, scored, sheet))
}

/// Writes how the second skill did against the first.
pub fn write_comparison(folder: &Path, pair: [&Scored; 2], compared: &[Comparison]) -> Result<(), Failure> {
    let rows: Vec<Value> = compared.iter().map(|row| comparison(pair, row)).collect();
    write_json(&folder.join(COMPARISON), &json!(rows))
}

fn summary(setting: &Setting, scored: &Scored, sheet: &Sheet) -> Value {
    let mut out = Map::new();
    out.insert("skill".into(), json!(scored.path));
    out.insert("skill_hash".into(), json!(scored.skill.hash));
    out.insert("split".into(), json!(setting.split_name));
    out.insert("target".into(), json!(setting.target));
    out.insert("environment".into(), json!(setting.environment));
    out.insert("seed".into(), json!(setting.seed));
    if let Some(whole) = sheet.whole() {
        out.append(&mut numbers(&whole.summary));
        let missing: Vec<Value> = whole
            .missing()
            .map(|(item, repeat, error)| {
                json!({"item": item.item, "split": item.split, "repeat": repeat, "error": error})
            })
            .collect();
        out.insert("missing".into(), json!(missing));
        out.insert("types".into(), types(whole));
    }
    let parts = sheet.parts.iter().take_while(|_| sheet.parts.len() > 1);
    out.insert(
        "splits".into(),
        parts.map(|part| (part.name.to_owned(), json!(numbers(&part.summary)))).collect(),
    );
    Value::Object(out)
}

fn write_json(path: &Path, value: &Value) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| StoreError::Encode { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    Ok(atomic_write(path, &bytes)?)
}
