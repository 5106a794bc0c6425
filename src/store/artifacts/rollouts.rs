//! A rollout folder: `results.jsonl` (one row per item) and `predictions/<item>/`.

use serde_json::{Map, Value, json};

use super::Output;
use crate::domain::{Bucket, Rollout, Split, Turn, TypeBuckets};
use crate::event::{EvalState, ItemResult};
use crate::store::{StoreError, encode_item_id};

/// Writes the folder; results keep the given order. `results.jsonl` comes last, so a folder that has it is whole.
pub(super) fn write<'a>(
    output: &Output,
    folder: &str,
    results: impl IntoIterator<Item = &'a ItemResult>,
) -> Result<(), StoreError> {
    write_rows(output, folder, results.into_iter().map(|result| (row(result), result)))
}

/// Writes the root itself as such a folder; every row names its split.
pub(super) fn write_with_split<'a>(
    output: &Output,
    results: impl IntoIterator<Item = (Split, &'a ItemResult)>,
) -> Result<(), StoreError> {
    let rows = results.into_iter().map(|(split, result)| {
        let mut row = row(result);
        row["split"] = json!(split);
        (row, result)
    });
    write_rows(output, ".", rows)
}

fn write_rows<'a>(
    output: &Output,
    folder: &str,
    results: impl Iterator<Item = (Value, &'a ItemResult)>,
) -> Result<(), StoreError> {
    let (mut rows, mut rollouts) = (String::new(), Vec::new());
    for (row, result) in results {
        rows.push_str(&row.to_string());
        rows.push('\n');
        rollouts.extend(result.rollout());
    }
    let name = format!("{folder}/results.jsonl");
    if output.holds(&name, &rows) {
        return Ok(());
    }
    for rollout in rollouts {
        write_prediction(output, folder, rollout)?;
    }
    output.text(&name, &rows)
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
            "n_turns": rollout.turns.len().max(1),
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
    let mut conversation: Vec<Value> = rollout.turns.iter().map(turn).collect();
    if conversation.is_empty() {
        conversation.push(json!({ "type": "message", "turn": 1, "content": rollout.reply }));
    }
    if !rollout.turns.iter().any(|turn| matches!(turn, Turn::Verification { .. })) {
        conversation.push(json!({ "role": "system", "content": verdict }));
    }
    let conversation = Value::Array(conversation);
    output.transcript(&format!("{folder}/conversation.json"), format!("{conversation:#}\n").as_bytes())?;
    let system = rollout.system_prompt.as_bytes();
    output.transcript(&format!("{folder}/target_system_prompt.txt"), system)?;
    output.transcript(&format!("{folder}/target_user_prompt.txt"), rollout.user_prompt.as_bytes())
}

/// A turn as the analysts' side reads it.
fn turn(turn: &Turn) -> Value {
    match turn {
        Turn::ToolCall { cmd, obs, exit } => {
            let mut told = json!({ "type": "tool_call", "cmd": cmd, "obs": obs });
            if let Some(code) = exit {
                told["exit_code"] = json!(code);
            }
            told
        }
        Turn::Step { step, reasoning, action, feedback } => {
            let mut told = json!({ "action": action, "env_feedback": feedback });
            if let Some(step) = step {
                told["step"] = json!(step);
            }
            if !reasoning.is_empty() {
                told["reasoning"] = json!(reasoning);
            }
            told
        }
        Turn::Verification { content } => json!({ "role": "system", "content": content }),
        Turn::Message { role, content } => json!({ "role": role, "content": content }),
    }
}
