//! Runs side by side: what each came to, with intervals, and the settings in which they differ. Pure functions of states
//! that hold their results; item ids and scores only.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::describe::{interval, score, signed};
use super::table::{left, right, text_table};
use crate::event::{EvalState, RunState};
use crate::gate::{PairedGain, paired_gain, wilson_interval};

/// Longest value of a setting in the table.
const VALUE: usize = 40;

/// One run's numbers.
struct Row<'a> {
    name: &'a str,
    state: &'a RunState,
    /// Share of the selection items that the best skill passes, 95 %.
    interval: Option<(f64, f64)>,
    /// Best against the seed, and against the first run's best, on the items both were measured on.
    gain: Option<PairedGain>,
    against_first: Option<PairedGain>,
}

fn rows<'a>(runs: &[(&'a str, &'a RunState)]) -> Vec<Row<'a>> {
    let first = runs.first().map(|(_, state)| scores(state, &state.best_hash)).unwrap_or_default();
    runs.iter()
        .enumerate()
        .map(|(index, (name, state))| {
            let (seed, best) = (scores(state, &state.initial_hash), scores(state, &state.best_hash));
            let passed: f64 = best.values().sum();
            Row {
                name,
                state,
                interval: (!best.is_empty()).then(|| wilson_interval(passed, best.len() as f64)),
                gain: paired(&seed, &best),
                against_first: if index == 0 { None } else { paired(&first, &best) },
            }
        })
        .collect()
}

/// Hard scores by item of the last whole measurement of a skill on the selection items.
fn scores<'a>(state: &'a RunState, hash: &str) -> HashMap<&'a str, f64> {
    let of_skill = |eval: &&EvalState| {
        eval.purpose.on_selection_items()
            && eval.skill_hash == hash
            && eval.score.as_ref().is_some_and(|score| score.done == score.n)
    };
    let evals = state.eval_order.iter().rev().filter_map(|id| state.evals.get(id));
    let results = evals.into_iter().find(of_skill).map_or(&[][..], |eval| &eval.results);
    results
        .iter()
        .filter_map(|(_, result)| Some((result.item(), result.rollout()?.score.hard)))
        .filter(|(_, hard)| hard.is_finite())
        .collect()
}

fn paired(first: &HashMap<&str, f64>, second: &HashMap<&str, f64>) -> Option<PairedGain> {
    let pairs: BTreeMap<&str, (f64, f64)> =
        first.iter().filter_map(|(item, score)| Some((*item, (*score, *second.get(item)?)))).collect();
    let pairs: Vec<(f64, f64)> = pairs.into_values().collect();
    (!pairs.is_empty()).then(|| paired_gain(&pairs))
}

/// The comparison in lines of at most `columns`. `runs`: names and states.
pub fn comparison(runs: &[(&str, &RunState)], columns: usize) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), score);
    let gain = |gain: &Option<PairedGain>| {
        gain.as_ref().map_or_else(
            || "–".to_owned(),
            |gain| format!("{} {} n {}", signed(gain.mean), interval(gain.interval), gain.n),
        )
    };
    let table: Vec<Vec<String>> = rows(runs)
        .iter()
        .map(|row| {
            let interval = row
                .interval
                .map_or_else(|| "–".to_owned(), |(low, high)| format!("[{}, {}]", score(low), score(high)));
            let done = row.state.steps.iter().filter(|step| step.record.is_some()).count();
            let total = row.state.info.as_ref().map_or(0, |info| info.plan.total_steps);
            vec![
                row.name.to_owned(),
                format!("{done}/{total}"),
                number(row.state.baseline_score),
                number(row.state.best_score),
                interval,
                number(row.state.current_score),
                gain(&row.gain),
                gain(&row.against_first),
            ]
        })
        .collect();
    let head = [
        left("RUN", 32),
        right("STEPS"),
        right("SEED"),
        right("BEST"),
        left("HARD 95 %", 16),
        right("LAST"),
        left("BEST - SEED", 40),
        left("BEST - FIRST RUN'S", 40),
    ];
    let mut out = text_table(&head, &table, columns);
    out.push(String::new());
    let differences = differences(runs);
    if differences.is_empty() {
        out.push("The configurations are equal.".to_owned());
        return out;
    }
    let head: Vec<_> =
        std::iter::once(left("SETTING", 40)).chain(runs.iter().map(|_| left("", VALUE))).collect();
    let names =
        std::iter::once(String::new()).chain(runs.iter().map(|(name, _)| (*name).to_owned())).collect();
    let words = |value: &Value| match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let settings = differences
        .iter()
        .map(|(key, values)| std::iter::once(key.clone()).chain(values.iter().map(words)).collect());
    let table: Vec<Vec<String>> = std::iter::once(names).chain(settings).collect();
    out.extend(text_table(&head, &table, columns));
    out
}

/// The comparison as data.
pub fn comparison_json(runs: &[(&str, &RunState)]) -> Value {
    let gain = |gain: &Option<PairedGain>| {
        gain.as_ref().map(|gain| {
            json!({ "n": gain.n, "mean": gain.mean, "interval": gain.interval, "gains": gain.gains,
                    "losses": gain.losses, "mid_p": gain.mid_p })
        })
    };
    let rows: Vec<Value> = rows(runs)
        .iter()
        .map(|row| {
            json!({
                "run": row.name,
                "baseline": row.state.baseline_score,
                "best": row.state.best_score,
                "best_step": row.state.best_step,
                "best_hard_interval": row.interval,
                "last": row.state.current_score,
                "best_minus_seed": gain(&row.gain),
                "best_minus_first": gain(&row.against_first),
                "test": row.state.test,
            })
        })
        .collect();
    let differences: serde_json::Map<String, Value> =
        differences(runs).into_iter().map(|(key, values)| (key, Value::Array(values))).collect();
    json!({ "runs": rows, "settings_that_differ": differences })
}

/// Settings that are not the same in all runs, by name, with the value of each run; null where it has none.
fn differences(runs: &[(&str, &RunState)]) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (index, (_, state)) in runs.iter().enumerate() {
        let mut leaves = Vec::new();
        flatten("", &state.effective_config(), &mut leaves);
        for (key, value) in leaves {
            all.entry(key).or_insert_with(|| vec![Value::Null; runs.len()])[index] = value;
        }
    }
    all.retain(|_, values| values.windows(2).any(|pair| pair[0] != pair[1]));
    all
}

fn flatten(prefix: &str, value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&path, value, out);
            }
        }
        Value::Null => {}
        leaf => out.push((prefix.to_owned(), leaf.clone())),
    }
}
