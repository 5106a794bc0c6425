//! What the files of stages and modes say.

use planish::domain::{Skill, Verdict};
use planish::event::{Event, RunState};
use planish::store::{write_epoch, write_run, write_step};
use serde_json::{Value, json};

use super::Folder;
use super::fixture::{self, epochs};

#[test]
fn the_last_skill_of_an_epoch_is_saved_again_after_its_stages() {
    let folder = Folder::of(&epochs::stale());
    assert!(folder.text("skills/skill_v0004.md").contains(epochs::GUIDANCE));
    assert!(!folder.text("skills/skill_v0003.md").contains(epochs::GUIDANCE));
    assert_eq!(folder.text("slow_update/epoch_02/candidate_skill.md"), folder.text("skills/skill_v0004.md"));
    assert!(!folder.text("best_skill.md").contains(epochs::GUIDANCE), "a forced change is not the best");
    let state = folder.json("runtime_state.json");
    assert_eq!(state["current_origin"], "slow_update_epoch_02");
    assert_eq!(state["current_score_stale"], true);
    let first = Folder::of(&epochs::first());
    assert_eq!(first.json("runtime_state.json")["current_origin"], "slow_update_placeholder_epoch_01");
    assert_eq!(first.json("runtime_state.json")["best_origin"], "candidate");
    assert!(!first.has("slow_update/epoch_01/candidate_skill.md"));
}

#[test]
fn a_slow_update_tells_its_pairs_once_and_all_of_them_where_they_differ() {
    let folder = Folder::of(&epochs::stale());
    let pairs = folder.json("slow_update/epoch_02/comparison_pairs.json");
    assert_eq!(pairs.as_array().unwrap().len(), 5);
    assert_eq!(pairs[0]["category"], "regressed");
    assert!(pairs[0].get("prev_trajectory").is_none());
    assert!(!folder.has("slow_update/epoch_02/comparison_pairs_all.json"));
    assert!(folder.text("slow_update/epoch_02/rollout_curr/results.jsonl").lines().count() == 5);
}

#[test]
fn topups_lie_under_their_item_whatever_it_is_called() {
    let mut tape = epochs::first();
    let at = epochs::at(2);
    let eval = "e01/slow/topup1/prev".to_owned();
    let purpose = planish::event::EvalPurpose::LongitudinalPrev;
    let started =
        Event::EvaluationStarted { eval: eval.clone(), purpose, at, skill_hash: String::new(), n: 2 };
    tape.push(1, started);
    for (index, item) in ["..", "a/b"].into_iter().enumerate() {
        let result = fixture::rollout(item, "Lima", "Lima");
        let key = fixture::key(format!("{eval}/{item}#0"));
        tape.push(1, Event::EvaluationItemFinished { key, eval: eval.clone(), index, result });
    }
    let folder = Folder::of(&tape);
    let topup = folder.run.path().join("slow_update/epoch_01/rollout_prev/topup");
    let mut names: Vec<_> = std::fs::read_dir(topup)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["%2E%2E", "a%2Fb"]);
    assert_eq!(folder.json("slow_update/epoch_01/rollout_prev/topup/a%2Fb/results.jsonl")["id"], "a/b");
}

#[test]
fn a_gated_stage_tells_its_gate() {
    let folder = Folder::of(&epochs::first());
    let result = folder.json("meta_reflect/epoch_01/meta_result.json");
    assert_eq!((&result["action"], &result["gate_score"]), (&json!("reject"), &json!(29.0 / 60.0)));
    assert_eq!(result["patch"]["edits"][0]["update_origin"], "meta_reflect_momentum");
    assert_eq!(folder.json("meta_reflect/epoch_01/gate.json")["verdict"], "reject");
    assert!(folder.has("meta_reflect/epoch_01/selection_eval/results.jsonl"));
    assert!(!folder.text("meta_reflect/epoch_01/meta_candidate.md").contains("Do not explain"));
}

#[test]
fn proposals_have_the_shape_of_their_mode() {
    let folder = Folder::of(&epochs::rewritten("rewrite_from_suggestions", epochs::suggestions()));
    let ranked = folder.json("steps/step_0001/ranked_edits.json");
    let item = &ranked["revise_suggestions"][0];
    for (field, value) in [
        ("type", json!("clarify")),
        ("title", json!("Where the answer ends")),
        ("motivation", json!("Six replies went on after the name.")),
        ("priority_hint", json!("high")),
        ("support_count", json!(9)),
    ] {
        assert_eq!(item[field], value, "{field}");
    }
    let patch = folder.json("steps/step_0001/patches/minibatch_fail_000.json");
    assert!(patch["patch"]["revise_suggestions"].is_array() && patch["appendix_notes"].is_array());
    let rewrite = folder.json("steps/step_0001/rewrite_result.json");
    assert_eq!(rewrite["change_summary"], json!(["one rule on form"]));
    assert!(!folder.has("steps/step_0001/edit_apply_report.json"), "there was no edit");

    let folder = Folder::of(&epochs::rewritten("full_rewrite_minibatch", epochs::whole_skills()));
    let result = folder.json("steps/step_0001/full_rewrite_result.json");
    assert_eq!(result["selected_candidate"]["title"], "One rule on form");
    assert_eq!(
        result["selected_candidate"]["change_summary"],
        json!(["One rule says where the answer ends", "Idle rule dropped"])
    );
    assert_eq!(result["merged_patch"]["skill_candidates"].as_array().unwrap().len(), 2);
    assert!(!folder.has("steps/step_0001/rewrite_result.json"));
}

#[test]
fn a_learned_budget_is_told_by_step_and_once_in_the_history() {
    let mut tape = epochs::rewritten("rewrite_from_suggestions", epochs::suggestions());
    assert!(!Folder::of(&tape).has("lr_history.jsonl"), "the step is not finished");
    let finished = fixture::two_steps().records.into_iter().find_map(|record| match record.event {
        Event::StepFinished { record, .. } => Some(record),
        _ => None,
    });
    let mut record = finished.unwrap();
    record.lr_control_mode = planish::domain::LrControlMode::Autonomous;
    record.at = epochs::at(1);
    record.action = Verdict::SkipNoRewrite;
    record.lr_decision.clone_from(&RunState::fold(&tape.records).steps[0].lr_decision);
    let hash = Skill::new(fixture::SKILL).hash;
    tape.push(1, Event::StepFinished { record, current_hash: hash.clone(), best_hash: hash });
    let folder = Folder::of(&tape);
    let decision = folder.json("steps/step_0001/lr_decision.json");
    assert_eq!((&decision["learning_rate"], &decision["clamped"]), (&json!(2), &json!(true)));
    let row = folder.json("lr_history.jsonl");
    assert_eq!((&row["step"], &row["epoch"], &row["learning_rate"]), (&json!(1), &json!(1), &json!(2)));
    write_step(&folder.run, &RunState::fold(&tape.records), 1).unwrap();
    assert_eq!(folder.text("lr_history.jsonl").lines().count(), 1);
    assert!(!folder.has("steps/step_0001/trajectory_digest.json"), "the step buffer got nothing");
}

#[test]
fn a_probe_tells_what_it_was_made_from() {
    let folder = Folder::of(&epochs::reviewing("patch", fixture::edits()));
    let probe = folder.json("steps/step_0001/deep_reflect/probe.json");
    assert_eq!(probe["probe_instruction"], "Name the rule you follow before you answer.");
    let summary = json!({ "selected_count": 1, "field_counts": { "reference_text": 1 } });
    assert_eq!(probe["reference_summary"], summary);
    assert_eq!(probe["selected_examples"][0]["reference_preview"], "Lima is the capital of Peru");
    assert_eq!(folder.text("steps/step_0001/deep_reflect/rollout/results.jsonl").lines().count(), 2);
}

#[test]
fn batches_have_folders_of_their_own_where_a_step_has_several() {
    let mut tape = fixture::Tape::new();
    tape.push(0, fixture::started());
    let at = epochs::at(1);
    for (batch, item) in [(0, "q1"), (0, "q2"), (1, "q1")] {
        let key = fixture::key(format!("{}/rollout/b{batch}/{item}#0", at.path()));
        let result = fixture::rollout(item, "Lima", "Lima");
        tape.push(1, Event::RolloutFinished { key, at, index: 0, result });
    }
    let mut analysed = epochs::reviewing("patch", fixture::edits());
    analysed.records.retain(|record| matches!(record.event, Event::AnalysisFinished { .. }));
    for mut record in analysed.records {
        if let Event::AnalysisFinished { key, .. } = &mut record.event {
            key.path = key.path.replace("/b0/", "/b1/");
        }
        tape.push(1, record.event);
    }
    let folder = Folder::of(&tape);
    let step = |name: &str| format!("steps/step_0001/{name}");
    assert_eq!(folder.text(&step("batch_0/rollout/results.jsonl")).lines().count(), 2);
    assert_eq!(folder.text(&step("batch_1/rollout/results.jsonl")).lines().count(), 1);
    assert!(folder.has(&step("batch_1/patches/minibatch_fail_000.json")));
    assert!(!folder.has(&step("rollout")) && !folder.has(&step("batch_0/patches")));
}

#[test]
fn appendix_notes_are_kept_and_the_skill_with_them() {
    let mut tape = epochs::first();
    epochs::noted(&mut tape, epochs::at(2));
    let notes = Folder::of(&tape).json("steps/step_0002/appendix_notes.json");
    assert_eq!(notes["step_notes"], json!(["Copy the name.", "One line only."]));
    assert_eq!(notes["appendix_after"], notes["step_notes"]);
}

#[test]
fn the_summary_tells_hard_scores_and_the_last_skills_test() {
    let summary = Folder::of(&epochs::ended()).json("summary.json");
    for (field, value) in [
        ("baseline_selection_hard", json!(19.0 / 60.0)),
        ("best_selection_hard", json!(36.0 / 60.0)),
        ("best_gate_score", json!(36.0 / 60.0)),
        ("final_selection_hard", json!(35.0 / 60.0)),
        ("final_test_hard", json!(0.66)),
        ("final_test_delta_hard", json!(0.64)),
        ("test_hard", json!(0.71)),
        ("current_origin", json!("slow_update_epoch_02")),
        ("total_accepts", json!(2)),
        ("total_rejects", json!(2)),
    ] {
        assert_eq!(summary[field], value, "{field}");
    }
    let state = Folder::of(&epochs::ended()).json("runtime_state.json");
    assert_eq!(state["current_score"], json!(35.0 / 60.0), "measured again before the test");
    assert!(state.get("current_score_stale").is_none());
    assert_eq!(summary["epoch_stats"][1]["steps"], json!([3, 4]));
    assert!(summary["token_summary"]["slow_update"]["calls"] == 1);
}

#[test]
fn along_the_way_only_what_changed_is_written_and_the_end_is_the_same() {
    let tape = epochs::ended();
    let whole = Folder::of(&tape);
    let folder = Folder::of(&fixture::begun());
    let mut state = RunState::default();
    for record in &tape.records {
        state.apply(record);
        let written = match &record.event {
            Event::EvaluationFinished { eval, .. } if eval == "baseline" => write_run(&folder.run, &state),
            Event::StepFinished { record, .. } => write_step(&folder.run, &state, record.at.step),
            Event::EpochStageFinished { at, .. } => write_epoch(&folder.run, &state, at.epoch),
            Event::RunFinished { .. } => write_run(&folder.run, &state),
            _ => Ok(()),
        };
        written.unwrap();
    }
    let mut names = whole.names();
    names.sort();
    let mut along = folder.names();
    along.sort();
    assert_eq!(along, names);
    for name in names {
        assert_eq!(folder.text(&name), whole.text(&name), "{name}");
    }
}

#[test]
fn a_step_leaves_the_baseline_alone_and_opening_the_run_mends_it() {
    let tape = epochs::stale();
    let folder = Folder::of(&tape);
    let state = RunState::fold(&tape.records);
    let lost = folder.run.path().join("selection_eval_baseline/predictions");
    std::fs::remove_dir_all(&lost).unwrap();
    write_step(&folder.run, &state, 3).unwrap();
    write_epoch(&folder.run, &state, 2).unwrap();
    assert!(!lost.exists());
    planish::store::project(&folder.run, &state).unwrap();
    assert!(lost.exists());
}

#[test]
fn no_comparison_means_no_pairs() {
    let folder = Folder::of(&epochs::first());
    assert_eq!(
        folder.json("slow_update/epoch_01/slow_result.json"),
        json!({ "action": "inject_placeholder", "epoch": 1 })
    );
    assert!(!folder.has("slow_update/epoch_01/comparison_pairs.json"));
    assert_eq!(
        folder.json("meta_skill/epoch_01/meta_skill_result.json"),
        json!({ "action": "skip_first_epoch", "epoch": 1 })
    );
    assert!(matches!(folder.json("history.json"), Value::Array(rows) if rows.len() == 2));
}
