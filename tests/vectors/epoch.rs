//! Answers the vectors of the stages between steps and epochs: protected regions, comparison pairs, the appendix,
//! meta-reflection, deep reflection.

use planish::domain::{
    ComparisonPair, Edit, FinishReason, Item, PairCategory, PairPolicy, PairSide, Rollout, Score, SourceType,
    Trajectory, UpdateMode, Usage,
};
use planish::optim::{
    HistoryStep, PairInput, Selected, analyst_reply, appendix_notes, canonical_note, comparison_pairs,
    consolidated_notes, epoch_history, has_appendix, has_slow_update, kept_pairs, meta_reflect_reply,
    pair_counts, probe_examples, probe_reply, representatives, safe_pair_id, shorter, slow_update_text,
    union_notes, with_appendix, with_empty_appendix, with_empty_slow_update, with_reference,
    with_slow_update, without_appendix, without_slow_update,
};
use serde_json::{Map, Value, json};

use super::Case;

pub fn protected_regions(case: &Case) -> Option<Value> {
    let arguments = case.input.as_array()?;
    let skill = arguments[0].as_str().unwrap_or_default();
    let notes = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    Some(match case.function() {
        "has_slow_update_field" => json!(has_slow_update(skill)),
        "inject_empty_slow_update_field" => json!(with_empty_slow_update(skill)),
        "extract_slow_update_field" => json!(slow_update_text(skill)),
        "_strip_all_slow_update_fields" => json!(without_slow_update(skill)),
        "replace_slow_update_field" => json!(with_slow_update(skill, arguments[1].as_str()?)),
        "has_appendix_field" => json!(has_appendix(skill)),
        "inject_empty_appendix_field" => json!(with_empty_appendix(skill)),
        "extract_appendix_notes" => json!(appendix_notes(skill)),
        "_strip_all_appendix_fields" => json!(without_appendix(skill)),
        "append_to_appendix_field" => {
            let union = union_notes(&appendix_notes(skill), &notes(&arguments[1]));
            json!(with_appendix(skill, &union.all))
        }
        "_canonicalize" => json!(canonical_note(skill)),
        "_dedupe_preserve_order" => json!(union_notes(&[], &notes(&arguments[0])).all),
        _ => return None,
    })
}

/// Functions of the trainer that are about pairs and the appendix.
pub fn trainer(case: &Case) -> Option<Value> {
    let input = &case.input;
    match case.function() {
        "build_comparison_pairs" => Some(json!(built_pairs(input))),
        "filter_pairs" => {
            let policy: PairPolicy = serde_json::from_value(input["policy"].clone()).unwrap();
            let kept = kept_pairs(&categorised(&input["categories"]), policy);
            Some(kept.into_iter().map(|pair| pair.id).collect())
        }
        "pair_category_counts" => {
            let counts = pair_counts(&categorised(input));
            Some(counts.into_iter().map(|(category, n)| (category.name().to_owned(), json!(n))).collect())
        }
        "safe_pair_id" => Some(json!(safe_pair_id(input.as_str()?))),
        "flush_skill_aware_appendix" => Some(flushed(input)),
        _ => None,
    }
}

fn built_pairs(input: &Value) -> Vec<ComparisonPair> {
    let rollouts =
        |key: &str| -> Vec<Rollout> { input[key].as_array().unwrap().iter().map(rollout).collect() };
    let (prev, curr) = (rollouts("prev"), rollouts("curr"));
    let items: Vec<Item> = input["items"].as_array().unwrap().iter().map(item).collect();
    let inputs: Vec<PairInput> = items
        .iter()
        .map(|item| {
            let of_item = |rollout: &&Rollout| rollout.item == item.id;
            PairInput { item, prev: prev.iter().find(of_item), curr: curr.iter().find(of_item) }
        })
        .collect();
    comparison_pairs(&inputs)
}

fn item(row: &Value) -> Item {
    let id = row["id"].as_str().map_or_else(|| row["id"].to_string(), str::to_owned);
    Item { id, fields: row.as_object().unwrap().clone() }
}

fn rollout(row: &Value) -> Rollout {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let answer = if row.get("predicted_answer").is_some() { "predicted_answer" } else { "answer" };
    Rollout {
        item: text("id"),
        task_type: String::new(),
        task: String::new(),
        gold: String::new(),
        system_prompt: Default::default(),
        user_prompt: String::new(),
        reply: String::new(),
        answer: text(answer),
        turns: Vec::new(),
        score: Score {
            hard: row["hard"].as_f64().unwrap(),
            soft: row["soft"].as_f64().unwrap_or_default(),
            reason: text("fail_reason"),
        },
        finish: FinishReason::Stop,
        usage: Usage::default(),
        ms: 0,
        judging: None,
    }
}

/// Pairs named 1, 2, … with the given categories.
fn categorised(categories: &Value) -> Vec<ComparisonPair> {
    let side =
        || PairSide { hard: 0, soft: 0.0, predicted_answer: String::new(), fail_reason: String::new() };
    let pair = |(i, category): (usize, &Value)| ComparisonPair {
        id: (i + 1).to_string(),
        task: String::new(),
        category: serde_json::from_value::<PairCategory>(category.clone()).unwrap(),
        prev: side(),
        curr: side(),
        prev_trajectory: String::new(),
        curr_trajectory: String::new(),
    };
    categories.as_array().unwrap().iter().enumerate().map(pair).collect()
}

/// The notes of a step, as the engine takes them in.
fn flushed(input: &Value) -> Value {
    let skill = input["skill"].as_str().unwrap();
    let step_notes: Vec<String> =
        input["raw_patches"].as_array().unwrap().iter().flat_map(notes_of_reply).collect();
    if step_notes.is_empty() {
        return json!({"skill": skill, "record": {}, "appendix_notes": null});
    }
    let union = union_notes(&appendix_notes(skill), &step_notes);
    let (before, threshold) = (union.all.len(), input["threshold"].as_u64().unwrap() as usize);
    let consolidated = (threshold > 0 && before > threshold).then(|| {
        let reply = input["reply"].as_str().unwrap_or_default();
        shorter(consolidated_notes(reply, before).ok(), before)
    });
    let consolidated = consolidated.flatten();
    let notes = consolidated.as_ref().unwrap_or(&union.all);
    let mut record = json!({
        "n_execution_lapse_notes": step_notes.len(),
        "n_appendix_notes_added": union.added,
        "n_appendix_notes_total": notes.len(),
    });
    if let Some(notes) = &consolidated {
        record["n_appendix_notes_consolidated"] = json!(notes.len());
    }
    json!({
        "skill": with_appendix(skill, notes),
        "record": record,
        "appendix_notes": {"step_notes": step_notes, "appendix_after": union.all},
    })
}

/// The notes in an analyst's reply; a reply that is none has none.
pub fn notes_of_reply(reply: &Value) -> Vec<String> {
    let mut reply = reply.clone();
    if let Some(fields) = reply.as_object_mut() {
        fields.insert("patch".into(), json!({"edits": []}));
    }
    let reply = analyst_reply(&reply.to_string(), UpdateMode::Patch, SourceType::Failure, 1, &[]);
    reply.map(|reply| reply.appendix_notes).unwrap_or_default()
}

pub fn legacy_reflection(case: &Case) -> Option<Value> {
    let input = &case.input;
    match case.function() {
        "select_representative_items" => {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let ids: Vec<String> = input["item_ids"].as_array()?.iter().map(text).collect();
            let rows = input["results"].as_array()?.iter().filter(|row| ids.contains(&text(&row["id"])));
            let rows: Vec<&Value> = rows.collect();
            let failed: Vec<bool> = rows.iter().map(|row| row["hard"].as_f64().unwrap() < 1e-9).collect();
            let types: Vec<&str> = rows.iter().map(|row| row["task_type"].as_str().unwrap()).collect();
            let number = |key: &str| input[key].as_u64().unwrap();
            let (failures, successes) = (number("n_failures") as usize, number("n_successes") as usize);
            let picked = representatives(&failed, &types, failures, successes, number("seed"));
            Some(picked.into_iter().map(|i| rows[i]["id"].clone()).collect())
        }
        "attach_reference_context" => {
            let rows = input["items"].as_array()?.iter().map(|item| {
                let (id, reference) = (item["id"].as_str().unwrap(), item["reference_text"].as_str());
                let shown = with_reference(shown(id), reference.unwrap_or_default());
                let mut row = Map::from_iter([("id".to_owned(), json!(shown.item))]);
                if !shown.reference.is_empty() {
                    row.insert("reference_text".into(), json!(shown.reference));
                }
                Value::Object(row)
            });
            Some(rows.collect())
        }
        "get_reference_metadata" => {
            let reference = "x".repeat(input["reference_text_len"].as_u64()? as usize);
            let [example] = &probe_examples(&[with_reference(shown("a"), &reference)])[..] else {
                return None;
            };
            let preview = example.reference_preview.chars().count();
            Some(json!({"fields": example.reference_fields, "preview_len": preview}))
        }
        "build_epoch_history" => Some(json!(history(&input["records"]))),
        "run_meta_reflect(budget=2)" => {
            let told = meta_reflect_reply(input.as_str()?, UpdateMode::Patch, 2).ok();
            Some(json!({"ok": told.map(|(summary, patch)| json!({"meta_summary": summary, "patch": patch}))}))
        }
        "generate_deep_probe_instruction" => {
            // Without a trajectory nothing is picked, and nobody is asked.
            if input == "no trajectory files" {
                let picked = representatives(&[], &[], 4, 2, 1);
                return Some(if picked.is_empty() { Value::Null } else { json!(picked) });
            }
            Some(json!({"ok": probe_reply(input.as_str()?, &["7".to_owned()], None).ok()}))
        }
        _ => None,
    }
}

fn shown(id: &str) -> Trajectory {
    let item = Item { id: id.to_owned(), fields: Map::new() };
    Trajectory::of_training(&item, &rollout(&json!({"id": id, "hard": 0})))
}

/// The files beside the records are told in words only: step 1 selected one edit and has one failure pattern, the others
/// nothing.
fn history(records: &Value) -> String {
    let edit: Edit =
        serde_json::from_value(json!({"op": "append", "content": "rule one", "support_count": 3})).unwrap();
    let (edits, patterns) = ([edit], [("P".to_owned(), 2, vec!["a".to_owned(), "b".to_owned()])]);
    let step = |record: &Value| {
        let step = record["step"].as_u64().unwrap() as u32;
        let action = record["action"].as_str().unwrap().to_owned();
        (step, action, ["selection_hard", "current_score", "best_score"].map(|key| record[key].as_f64()))
    };
    let steps: Vec<_> = records.as_array().unwrap().iter().map(step).collect();
    let steps: Vec<HistoryStep> = steps
        .iter()
        .map(|(step, action, [selection_hard, current_score, best_score])| HistoryStep {
            step: *step,
            action,
            selection_hard: *selection_hard,
            current_score: *current_score,
            best_score: *best_score,
            selected: match action.as_str() {
                action if action.starts_with("skip") => Selected::Skipped,
                _ if *step == 1 => Selected::Edits(&edits),
                _ => Selected::None,
            },
            n_total: if *step == 1 { 4 } else { 0 },
            n_fail: if *step == 1 { 2 } else { 0 },
            patterns: if *step == 1 { &patterns } else { &[] },
        })
        .collect();
    epoch_history(&steps, UpdateMode::Patch)
}
