//! Answers the vectors of the gate and of scores.

use planish::domain::{Bucket, GateMetric, Score, TypeBuckets, Verdict, skill_hash};
use planish::gate::{LEADING_WORDS, decide_strict, density, gate_score, summarize, with_density};
use serde_json::{Map, Value, json};

use super::Case;

pub fn gate(case: &Case) -> Option<Value> {
    let input = &case.input;
    let weight = input["mixed_weight"].as_f64().unwrap_or(0.5);
    let metric = || -> Option<GateMetric> {
        let name = input.get("metric").cloned().unwrap_or_else(|| json!("hard"));
        serde_json::from_value(name).ok()
    };
    match case.function() {
        "select_gate_score" => {
            let Some(metric) = metric() else { return Some(json!({"error": "ValueError"})) };
            let score = gate_score(metric, weight, number(&input["hard"]), number(&input["soft"]));
            let bonus = input["use_semantic_density"].as_bool().unwrap_or(false);
            let weight = input["semantic_density_weight"].as_f64().unwrap_or(0.05);
            let density = || density(case.text("skill_content"), &LEADING_WORDS);
            Some(json!(if bonus { with_density(score, density(), weight) } else { score }))
        }
        "compute_semantic_density" => {
            let words: Option<Vec<String>> = serde_json::from_value(input["leading_words"].clone()).ok()?;
            Some(json!(match words {
                Some(words) => density(case.text("skill"), &words),
                None => density(case.text("skill"), &LEADING_WORDS),
            }))
        }
        "evaluate_gate" => {
            let soft = input.get("cand_soft").map_or(0.0, number);
            let candidate = gate_score(metric()?, weight, number(&input["cand_hard"]), soft);
            let (current, best) = (number(&input["current_score"]), number(&input["best_score"]));
            let verdict = decide_strict(candidate, current, best);
            let taken = verdict != Verdict::Reject;
            let new_best = verdict == Verdict::AcceptNewBest;
            Some(json!({
                "action": verdict.name(),
                "current_skill": if taken { "CAND" } else { "CUR" },
                "current_score": written(if taken { candidate } else { current }),
                "best_skill": if new_best { "CAND" } else { "BEST" },
                "best_score": written(if new_best { candidate } else { best }),
                "best_step": if new_best { &input["global_step"] } else { &input["best_step"] },
            }))
        }
        _ => None,
    }
}

pub fn score_hash(case: &Case) -> Option<Value> {
    match case.function() {
        "skill_hash" => Some(json!(skill_hash(case.input.as_str()?))),
        "compute_score" => {
            let rows: Vec<Score> = case.input.as_array()?.iter().filter_map(Score::of_row).collect();
            let means = summarize(GateMetric::Hard, 0.5, rows.len(), &rows);
            Some(json!([means.hard, means.soft]))
        }
        _ => None,
    }
}

/// Sums by task type, as the test evaluation's summary takes its means from.
pub fn task_type_buckets(case: &Case) -> Option<Value> {
    let types: Vec<&str> = case.input["types"].as_array()?.iter().filter_map(Value::as_str).collect();
    let mut buckets = TypeBuckets::expecting(types);
    for row in case.input["rows"].as_array()? {
        buckets.add(row["task_type"].as_str().unwrap_or_default(), &Score::of_row(row)?);
    }
    let sums = |bucket: &Bucket| json!({"total": bucket.total, "hard": bucket.hard(), "soft": bucket.soft()});
    let mut rows: Map<String, Value> =
        buckets.types.iter().map(|(name, bucket)| (name.clone(), sums(bucket))).collect();
    rows.insert("overall".into(), sums(&buckets.overall));
    Some(Value::Object(rows))
}

/// A number, or NaN as the vectors write it.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn written(number: f64) -> Value {
    if number.is_nan() { json!("NaN") } else { json!(number) }
}
