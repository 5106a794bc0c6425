//! Answers the vectors of the text optimiser's pure steps.

use planish::config::Scheduler;
use planish::domain::{Edit, FailureNote, Patch, SourceType, StepMemory, UpdateMode};
use planish::optim::{
    FailedItem, FinalMerge, MergePlan, MinibatchNotes, MissingAnchor, ReplyFault, analyst_reply, apply_edits,
    consolidated_notes, described, edit_budget, extract_json, extract_json_array, failed_attempt,
    failure_patterns, final_fallback, final_merge, first_edits, lr_decision, lr_fallback, memory_text,
    merge_reply, meta_skill_reply, ranked_edits, rewrite_reply, slow_update_reply, within_budget,
};
use serde_json::{Value, json};

use super::Case;

/// What the stubs of the original raise instead of replying.
const EXCEPTION: &str = "EXCEPTION";

pub fn json_extract(case: &Case) -> Option<Value> {
    let reply = case.input.as_str()?;
    let found = match case.function() {
        "extract_json" => extract_json(reply),
        "extract_json_array" => extract_json_array(reply),
        _ => return None,
    };
    Some(found.unwrap_or_default())
}

pub fn scheduler(case: &Case) -> Option<Value> {
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
    let (input, reply) = (&case.input, case.text("reply"));
    Some(match case.function() {
        "rank_and_select" => rank_and_select(case),
        "coerce_nonnegative_int" => {
            let reply = json!({"learning_rate": input}).to_string();
            json!(lr_decision(&reply, 0).ok().map(|decision| decision.raw_learning_rate))
        }
        "decide_autonomous_lr" => {
            let available = input["n_items"].as_u64()? as usize;
            json!(match reply {
                EXCEPTION => lr_fallback(available, "", Some("boom".into())),
                reply =>
                    lr_decision(reply, available).unwrap_or_else(|_| lr_fallback(available, reply, None)),
            })
        }
        // Without suggestions nobody is asked.
        "rewrite_from_suggestions" if input["n_suggestions"] == 0 => Value::Null,
        "rewrite_from_suggestions" => json!(rewrite_reply(reply).ok()),
        "run_slow_update" => told(slow_update_reply(reply), "slow_update_content"),
        "run_meta_skill" => told(meta_skill_reply(reply), "meta_skill_content"),
        "consolidate_appendix_notes" => {
            let notes = input["notes"].as_array()?;
            // A single note is as short as it gets.
            let asked = (notes.len() > 1).then(|| consolidated_notes(reply, notes.len()));
            asked.and_then(Result::ok).map_or_else(|| json!(notes), |notes| json!(notes))
        }
        "extract_appendix_notes_from_reply" => json!(super::epoch::notes_of_reply(input)),
        _ => return None,
    })
}

/// An empty text is an answer, and comes to the same as none.
fn told(reply: Result<(String, String), ReplyFault>, key: &str) -> Value {
    match reply {
        Ok((reasoning, content)) if !content.is_empty() => json!({"reasoning": reasoning, key: content}),
        Ok(_) | Err(_) => Value::Null,
    }
}

fn rank_and_select(case: &Case) -> Value {
    let number = |key: &str| case.input[key].as_u64().unwrap() as usize;
    let budget = number("budget");
    let edits = (0..number("n_edits")).map(|i| append(&format!("e{i}"))).collect();
    let merged = Patch { reasoning: "R".into(), edits };
    let (calls, selection) = match within_budget(&merged, budget) {
        Some(selection) => (0, selection),
        None => {
            let ranked = ranked_edits(&merged, budget, case.text("reply"));
            (1, ranked.unwrap_or_else(|_| first_edits(&merged, budget)))
        }
    };
    json!({
        "calls": calls,
        "kept": contents(&selection.patch),
        "reasoning": selection.patch.reasoning,
        "has_ranking_details": selection.ranking.is_some(),
    })
}

/// Proposals become typed when a reply is read; that is where they are counted, cut and described.
pub fn proposals(case: &Case) -> Option<Value> {
    let mode = super::config::update_mode(&case.input["mode"]);
    // Budgets are counted from 0; proposals of the recorded containers are numbers.
    let wrapped = |container: &Value, budget| {
        let mut patch = container.clone();
        for item in patch.as_object_mut()?.values_mut().filter_map(Value::as_array_mut).flatten() {
            if let Some(number) = item.as_u64() {
                let text = number.to_string();
                *item = json!({"op": "append", "content": text, "instruction": text, "new_skill": text});
            }
        }
        let reply = json!({"patch": patch}).to_string();
        Some(analyst_reply(&reply, mode, SourceType::Failure, budget, &[]).map(|reply| reply.patch))
    };
    Some(match case.function() {
        "truncate_payload" => {
            let Some(budget) = case.input["max"].as_u64() else {
                return Some(json!({"error": "a budget is not negative"}));
            };
            match wrapped(&case.input["container"], budget as usize)? {
                Ok(patch) => {
                    let numbers = contents(&patch).into_iter().map(|number| number.parse::<u64>().unwrap());
                    json!({mode.items_key(): numbers.collect::<Vec<_>>()})
                }
                Err(fault) => json!({"error": fault.to_string()}),
            }
        }
        "get_payload_items" => {
            let patch =
                wrapped(&case.input["container"], usize::MAX).and_then(Result::ok).unwrap_or_default();
            patch.edits.iter().map(|edit| edit.as_item(mode)).collect()
        }
        "describe_item" | "short_item_summary" => {
            let patch = wrapped(&json!({mode.items_key(): [case.input["item"]]}), 1)?;
            let Some(edit) = patch.ok().and_then(|patch| patch.edits.first().cloned()) else {
                return Some(Value::Null);
            };
            match case.function() {
                "describe_item" => json!(described(&edit, mode)),
                _ => edit.as_digest(mode),
            }
        }
        _ => return None,
    })
}

pub fn aggregate(case: &Case) -> Option<Value> {
    match case.function() {
        "hierarchical_merge_trace" => Some(merge_trace(case)),
        "merge_patches" => Some(merge_patches(case)),
        "normalise_patches" => Some(normalise_patches(case)),
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
    let mode = super::config::update_mode(&case.input["mode"]);
    let patch = |raw: &Value| match mode {
        UpdateMode::Patch => serde_json::from_value(raw.clone()).unwrap(),
        // A patch has the form of a merge reply.
        _ => merge_reply(&raw.to_string(), mode, None, None, &[]).unwrap(),
    };
    let patches =
        |key: &str| -> Vec<Patch> { case.input[key].as_array().unwrap().iter().map(patch).collect() };
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
                    merge_reply(reply, mode, Some(task.level), Some(source), &task.patches).ok()
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
            merge_reply(reply, mode, None, None, &both).unwrap_or_else(|_| final_fallback(both))
        }
    };
    let calls: Vec<Value> = calls.iter().map(|kind| json!({"kind": kind})).collect();
    json!({"calls": calls, "result": result.as_payload(mode)})
}

/// Normalisation is a part of reading a reply; a patch without edits counts as none.
fn normalise_patches(case: &Case) -> Value {
    let mode = super::config::update_mode(&case.input["mode"]);
    let (mut failure, mut success) = (Vec::new(), Vec::new());
    for raw in case.input["raw"].as_array().unwrap() {
        let source = match raw["source_type"].as_str() {
            Some("success") => SourceType::Success,
            _ => SourceType::Failure,
        };
        let Ok(reply) = analyst_reply(&raw.to_string(), mode, source, usize::MAX, &["t0".into()]) else {
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
        _ => super::epoch::trainer(case).or_else(|| super::config::trainer(case)),
    }
}

fn step_memory(step: &Value) -> StepMemory {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let pattern = |row: &Value| {
        let ids = list(&row["task_ids"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        (row["pattern"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap() as usize, ids)
    };
    let edits = list(&step["rejected_edits"]).into_iter().map(|item| {
        let suggestion = item.get("title").is_some();
        let mode = if suggestion { UpdateMode::RewriteFromSuggestions } else { UpdateMode::Patch };
        let reply = json!({"patch": {mode.items_key(): [item]}}).to_string();
        analyst_reply(&reply, mode, SourceType::Failure, 1, &[]).unwrap().patch.edits.remove(0)
    });
    StepMemory {
        step: step["step"].as_u64().unwrap() as u32,
        action: step["action"].as_str().unwrap().to_owned(),
        n_total: step["n_total"].as_u64().unwrap_or(0) as usize,
        n_fail: step["n_fail"].as_u64().unwrap_or(0) as usize,
        failure_patterns: list(&step["failure_patterns"]).iter().map(pattern).collect(),
        scores: step["score_before"].as_f64().zip(step["score_after"].as_f64()),
        at_most: false,
        failed_attempts: edits.map(|edit: Edit| failed_attempt(&edit)).collect(),
        reviewer_notes: Vec::new(),
    }
}

fn append(content: &str) -> Edit {
    serde_json::from_value(json!({"op": "append", "content": content})).unwrap()
}

fn contents(patch: &Patch) -> Vec<String> {
    patch.edits.iter().map(|edit| edit.content.clone()).collect()
}
