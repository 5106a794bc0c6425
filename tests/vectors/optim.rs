//! Answers the vectors of the text optimiser's pure steps.

use planish::config::Scheduler;
use planish::domain::{Edit, FailureNote, Patch, SourceType, StepMemory, UpdateMode};
use planish::optim::{
    FailedItem, FinalMerge, MergePlan, MinibatchNotes, MissingAnchor, analyst_reply, apply_edits,
    edit_budget, extract_json, failed_attempt, failure_patterns, final_fallback, final_merge, first_edits,
    memory_text, merge_reply, minibatches, ranked_edits, within_budget,
};
use serde_json::{Value, json};

use super::Case;

/// What the stubs of the original raise instead of replying.
const EXCEPTION: &str = "EXCEPTION";

pub fn json_extract(case: &Case) -> Option<Value> {
    let found = extract_json(case.input.as_str()?).unwrap_or(Value::Null);
    (case.function() == "extract_json").then_some(found)
}

pub fn scheduler(case: &Case) -> Option<Value> {
    if case.text("mode") == "autonomous" {
        return None;
    }
    let Ok(scheduler) = serde_json::from_value::<Scheduler>(case.input["mode"].clone()) else {
        return Some(json!({"error": "ValueError"}));
    };
    let number = |key: &str| Some(case.input[key].as_u64()? as usize);
    let (max, min, total) = (number("max_lr")?, number("min_lr")?, number("total_steps")?);
    let budget = |k| edit_budget(scheduler, max, min, k, total);
    match number("get_lr") {
        Some(k) => Some(json!(budget(k))),
        None => {
            let taken = number("current_step").unwrap_or(0);
            Some((taken + 1..=taken + number("n_calls")?).map(budget).collect())
        }
    }
}

/// Edits reach the update stage through an analyst's reply.
pub fn apply_patch(case: &Case) -> Option<Value> {
    let reply = json!({"patch": {"edits": case.input["edits"]}}).to_string();
    let edits = analyst_reply(&reply, UpdateMode::Patch, SourceType::Failure, usize::MAX, &[])
        .map(|reply| reply.patch.edits);
    let applied = apply_edits(case.text("skill"), &edits.unwrap_or_default(), MissingAnchor::Append);
    Some(json!({"skill": applied.skill, "report": applied.report.rows}))
}

pub fn optimizer_calls(case: &Case) -> Option<Value> {
    if case.function() != "rank_and_select" {
        return None;
    }
    let budget = case.input["budget"].as_u64()? as usize;
    let edits = (0..case.input["n_edits"].as_u64()?).map(|i| append(&format!("e{i}"))).collect();
    let merged = Patch { reasoning: "R".into(), edits };
    let (calls, selection) = match within_budget(&merged, budget) {
        Some(selection) => (0, selection),
        None => {
            let ranked = ranked_edits(&merged, budget, case.text("reply"));
            (1, ranked.unwrap_or_else(|_| first_edits(&merged, budget)))
        }
    };
    Some(json!({
        "calls": calls,
        "kept": contents(&selection.patch),
        "reasoning": selection.patch.reasoning,
        "has_ranking_details": selection.ranking.is_some(),
    }))
}

pub fn reflect(case: &Case) -> Option<Value> {
    let input = &case.input;
    let seed = input["seed"].as_u64();
    match case.function() {
        "shuffle_then_split" => {
            let failed = vec![true; input["n"].as_u64()? as usize];
            let groups = minibatches(&failed, input["minibatch"].as_u64()? as usize, seed?, true);
            Some(groups.into_iter().map(|group| group.members).collect())
        }
        "run_minibatch_reflect(workers=1,minibatch=2,budget=2)" => {
            if ["pre", "sa_on", "mode"].iter().any(|key| input.get(key).is_some()) {
                return None;
            }
            let rows = input["hard_by_id"].as_object()?;
            let ids: Vec<&String> = rows.keys().collect();
            let failed: Vec<bool> =
                rows.values().map(|hard| hard.as_f64().is_none_or(|hard| hard < 1e-9)).collect();
            let (mut calls, mut patches) = (Vec::new(), Vec::new());
            for group in minibatches(&failed, 2, seed?, input.get("fo").is_some()) {
                let shown: Vec<String> = group.members.iter().map(|&member| ids[member].clone()).collect();
                let (kind, reply) = match group.source {
                    SourceType::Failure => ("failure", case.text("reply_failure")),
                    SourceType::Success => ("success", case.text("reply_success")),
                };
                calls.push(json!({"kind": kind, "ids": shown}));
                if let Ok(reply) = analyst_reply(reply, UpdateMode::Patch, group.source, 2, &shown) {
                    patches.push(json!({"patch": reply.patch, "source_type": kind}));
                }
            }
            Some(json!({"calls": calls, "patches": patches}))
        }
        _ => None,
    }
}

pub fn aggregate(case: &Case) -> Option<Value> {
    match case.function() {
        "hierarchical_merge_trace" => Some(merge_trace(case)),
        "merge_patches" if case.text("mode") == "patch" => Some(merge_patches(case)),
        "normalise_patches" if case.text("mode") == "patch" => Some(normalise_patches(case)),
        _ => None,
    }
}

/// The stub joins the contents of its patches with `+`.
fn merge_trace(case: &Case) -> Value {
    let patch = |i| Patch { reasoning: format!("r{i}"), edits: vec![append(&format!("e{i}"))] };
    let patches = (0..case.input["n_patches"].as_u64().unwrap()).map(patch).collect();
    let mut plan = MergePlan::new(patches, case.input["batch_size"].as_u64().unwrap() as usize);
    let mut calls: Vec<(u32, Vec<String>)> = Vec::new();
    loop {
        let tasks = plan.next_level();
        if tasks.is_empty() {
            break;
        }
        let merged: Vec<Option<Patch>> = tasks
            .iter()
            .map(|task| {
                let inputs: Vec<String> = task.patches.iter().flat_map(contents).collect();
                let joined =
                    json!({"reasoning": "m", "edits": [{"op": "append", "content": inputs.join("+")}]});
                calls.push((task.level, inputs));
                merge_reply(&joined.to_string(), UpdateMode::Patch, Some(task.level), None, &task.patches)
                    .ok()
            })
            .collect();
        plan.complete(merged);
    }
    calls.sort();
    let calls: Vec<Value> =
        calls.iter().map(|(level, inputs)| json!({"level": level, "inputs": inputs})).collect();
    json!({"calls": calls, "result": plan.finish()})
}

fn merge_patches(case: &Case) -> Value {
    let patches = |key: &str| -> Vec<Patch> { serde_json::from_value(case.input[key].clone()).unwrap() };
    let mut replies = case.input["replies"].as_array().unwrap().iter().filter_map(Value::as_str);
    let mut calls = Vec::new();
    let mut merged = |patches: Vec<Patch>, source: SourceType| {
        let mut plan = MergePlan::new(patches, 8);
        loop {
            let tasks = plan.next_level();
            if tasks.is_empty() {
                break plan.finish();
            }
            let results: Vec<Option<Patch>> = tasks
                .iter()
                .map(|task| {
                    calls.push("batch");
                    let reply = replies.next().unwrap_or(EXCEPTION);
                    merge_reply(reply, UpdateMode::Patch, Some(task.level), Some(source), &task.patches).ok()
                })
                .collect();
            plan.complete(results);
        }
    };
    let failure = merged(patches("failure"), SourceType::Failure);
    let success = merged(patches("success"), SourceType::Success);
    let result = match final_merge(failure, success) {
        FinalMerge::Done(patch) => patch,
        FinalMerge::Ask(both) => {
            calls.push("final");
            let reply = replies.next().unwrap_or(EXCEPTION);
            merge_reply(reply, UpdateMode::Patch, None, None, &both).unwrap_or_else(|_| final_fallback(both))
        }
    };
    let calls: Vec<Value> = calls.iter().map(|kind| json!({"kind": kind})).collect();
    json!({"calls": calls, "result": result})
}

/// Normalisation is a part of reading a reply; a patch without edits counts as none.
fn normalise_patches(case: &Case) -> Value {
    let (mut failure, mut success) = (Vec::new(), Vec::new());
    for raw in case.input["raw"].as_array().unwrap() {
        let source = match raw["source_type"].as_str() {
            Some("success") => SourceType::Success,
            _ => SourceType::Failure,
        };
        let Ok(reply) =
            analyst_reply(&raw.to_string(), UpdateMode::Patch, source, usize::MAX, &["t0".into()])
        else {
            continue;
        };
        if !reply.patch.edits.is_empty() {
            match source {
                SourceType::Failure => failure.push(reply.patch),
                SourceType::Success => success.push(reply.patch),
            }
        }
    }
    json!({"ok": {"failure": failure, "success": success}})
}

pub fn trainer_misc(case: &Case) -> Option<Value> {
    match case.function() {
        "extract_failure_patterns" => {
            let rows = case.input.get("rows").unwrap_or(&case.input).as_array()?;
            let id = |row: &Value| row.get("id").map_or_else(|| "?".to_owned(), Value::to_string);
            let ids: Vec<String> = rows.iter().map(id).collect();
            let failed = rows.iter().zip(&ids).filter(|(row, _)| row["hard"].as_f64().unwrap() < 1e-9);
            let failures: Vec<FailedItem> = failed
                .map(|(row, id)| FailedItem { id, reason: row["fail_reason"].as_str().unwrap_or_default() })
                .collect();
            // An analyst's reply, for its summary; the minibatch's items are not recorded.
            let summary = case.input.get("minibatch_fail_000.failure_summary").cloned();
            let reply = json!({"failure_summary": summary, "patch": {"edits": []}}).to_string();
            let notes: Vec<FailureNote> =
                analyst_reply(&reply, UpdateMode::Patch, SourceType::Failure, 1, &[]).unwrap().failures;
            let patterns = failure_patterns(&failures, &[MinibatchNotes { items: &[], notes: &notes }]);
            let row = |(pattern, count, ids): (String, usize, Vec<String>)| json!({"pattern": pattern, "count": count, "task_ids": ids});
            Some(patterns.into_iter().map(row).collect())
        }
        "format_step_buffer_lines_after_preamble" => {
            let steps: Vec<StepMemory> = case.input.as_array()?.iter().map(step_memory).collect();
            Some(memory_text(&steps).split('\n').collect())
        }
        "format_step_buffer_empty" => Some(json!(memory_text(&[]))),
        "task_type_buckets" => super::gate::task_type_buckets(case),
        _ => super::config::trainer(case),
    }
}

fn step_memory(step: &Value) -> StepMemory {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let pattern = |row: &Value| {
        let ids = list(&row["task_ids"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        (row["pattern"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap() as usize, ids)
    };
    let edits =
        list(&step["rejected_edits"]).into_iter().filter_map(|edit| serde_json::from_value(edit).ok());
    StepMemory {
        step: step["step"].as_u64().unwrap() as u32,
        action: step["action"].as_str().unwrap().to_owned(),
        n_total: step["n_total"].as_u64().unwrap_or(0) as usize,
        n_fail: step["n_fail"].as_u64().unwrap_or(0) as usize,
        failure_patterns: list(&step["failure_patterns"]).iter().map(pattern).collect(),
        scores: step["score_before"].as_f64().zip(step["score_after"].as_f64()),
        failed_attempts: edits.map(|edit: Edit| failed_attempt(&edit)).collect(),
    }
}

fn append(content: &str) -> Edit {
    serde_json::from_value(json!({"op": "append", "content": content})).unwrap()
}

fn contents(patch: &Patch) -> Vec<String> {
    patch.edits.iter().map(|edit| edit.content.clone()).collect()
}
