//! A rollout folder: `results.jsonl` (one row per item) and `predictions/<item>/`.

use serde_json::{Map, Value, json};

use super::Output;
use crate::domain::{Bucket, Rollout, TypeBuckets};
use crate::event::{EvalState, ItemResult};
use crate::store::{StoreError, encode_item_id};

/// Writes the folder; results keep the given order.
pub(super) fn write<'a>(
    output: &Output,
    folder: &str,
    results: impl IntoIterator<Item = &'a ItemResult>,
) -> Result<(), StoreError> {
    let mut rows = String::new();
    for result in results {
        rows.push_str(&row(result).to_string());
        rows.push('\n');
        if let ItemResult::Scored(rollout) = result {
            write_prediction(output, folder, rollout)?;
        }
    }
    output.text(&format!("{folder}/results.jsonl"), &rows)
}

/// Writes an evaluation in the order of its split, whatever order its items were measured in.
pub(super) fn write_evaluation(output: &Output, folder: &str, eval: &EvalState) -> Result<(), StoreError> {
    let mut results: Vec<&(usize, ItemResult)> = eval.results.iter().collect();
    results.sort_by_key(|(index, _)| *index);
    write(output, folder, results.into_iter().map(|(_, result)| result))
}

/// Name of the row over all types in a `summary.json`.
const OVERALL: &str = "overall";

/// Accuracy by task type and overall, `summary.json` of a test evaluation. Missing items are counted apart.
pub(super) fn accuracy(eval: &EvalState) -> Value {
    let scored = eval.results.iter().filter_map(|(_, result)| result.rollout());
    let buckets: TypeBuckets = scored.map(|rollout| (rollout.task_type.as_str(), &rollout.score)).collect();
    let share = |bucket: &Bucket| json!({ "total": bucket.total, "hard_acc": bucket.mean_hard() });
    let mut rows: Map<String, Value> = Map::new();
    for (name, bucket) in &buckets.types {
        // An item may call its type so; the row over all keeps its name.
        let name = if name == OVERALL { "overall (task type)" } else { name };
        rows.insert(name.to_owned(), share(bucket));
    }
    let mut overall = share(&buckets.overall);
    overall["missing"] = json!(eval.results.len() - buckets.overall.total);
    rows.insert(OVERALL.into(), overall);
    Value::Object(rows)
}

/// One line of `results.jsonl`. A missing item has an error and no score.
fn row(result: &ItemResult) -> Value {
    match result {
        ItemResult::Scored(rollout) => json!({
            "id": rollout.item,
            "task_type": rollout.task_type,
            "question": rollout.task,
            "hard": whole(rollout.score.hard),
            "soft": rollout.score.soft,
            "predicted_answer": rollout.answer,
            "gold_answers": [rollout.gold],
            "response": rollout.reply,
            "fail_reason": if rollout.score.failed() { rollout.score.reason.as_str() } else { "" },
            "agent_ok": true,
            "n_turns": 1,
            "finish_reason": rollout.finish,
            "usage": rollout.usage,
            "ms": rollout.ms,
        }),
        ItemResult::Missing { item, error } => json!({ "id": item, "agent_ok": false, "error": error }),
    }
}

/// 0 and 1 as whole numbers, as SkillOpt's readers expect of `hard`.
fn whole(hard: f64) -> Value {
    if hard == 0.0 {
        json!(0)
    } else if hard == 1.0 {
        json!(1)
    } else {
        json!(hard)
    }
}

fn write_prediction(output: &Output, folder: &str, rollout: &Rollout) -> Result<(), StoreError> {
    let folder = format!("{folder}/predictions/{}", encode_item_id(&rollout.item));
    let verdict = format!(
        "[EVALUATION RESULT]\nTask: {}\nAnswer found: {}\nReference: {}\nhard {} soft {}\n{}",
        rollout.task,
        rollout.answer,
        rollout.gold,
        rollout.score.hard,
        rollout.score.soft,
        rollout.score.reason
    );
    let conversation = json!([
        { "type": "message", "turn": 1, "content": rollout.reply },
        { "role": "system", "content": verdict },
    ]);
    output.transcript(&format!("{folder}/conversation.json"), format!("{conversation:#}\n").as_bytes())?;
    let system = rollout.system_prompt.as_bytes();
    output.transcript(&format!("{folder}/target_system_prompt.txt"), system)?;
    output.transcript(&format!("{folder}/target_user_prompt.txt"), rollout.user_prompt.as_bytes())
}
