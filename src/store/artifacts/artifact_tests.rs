use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::domain::*;
use crate::event::*;
use crate::store::atomic_write;

const NAME: &str = "q/../1";

fn edit(content: &str) -> Edit {
    Edit {
        priority: None,
        op: EditOp::Append,
        target: String::new(),
        content: content.into(),
        support_count: 2,
        source_type: SourceType::Failure,
        merge_level: Some(1),
        rationale: String::new(),
        motivated_by: vec![],
    }
}

fn patch(content: &str) -> Patch {
    Patch { reasoning: "because".into(), edits: vec![edit(content)] }
}

fn rollout(item: &str, hard: f64) -> ItemResult {
    ItemResult::Scored(Arc::new(Rollout {
        turns: Vec::new(),
        item: item.into(),
        task_type: "city".into(),
        task: "Where?".into(),
        gold: "Köln".into(),
        system_prompt: "sys".into(),
        user_prompt: "Where?".into(),
        reply: "Bonn".into(),
        answer: "Bonn".into(),
        score: Score {
            hard,
            soft: hard,
            reason: if hard == 0.0 { "wrong: Bonn".into() } else { "ok".into() },
        },
        finish: FinishReason::Stop,
        usage: Usage { calls: 1, prompt_tokens: 10, completion_tokens: 5, ..Usage::default() },
        ms: 12,
        judging: None,
    }))
}

fn key(path: &str) -> EffectKey {
    EffectKey { path: path.into(), fingerprint: fingerprint([path]) }
}

fn score(hard: f64, n: usize) -> GateScore {
    GateScore { hard, soft: hard, gate: hard, n, done: n }
}

fn at(step: u32) -> StepRef {
    StepRef { epoch: 1, step, step_in_epoch: step - 1 }
}

fn evaluation(eval: &str, purpose: EvalPurpose, at: StepRef, hash: &str, hards: [f64; 2]) -> Vec<Event> {
    let mut events = vec![Event::EvaluationStarted {
        eval: eval.into(),
        purpose,
        at,
        skill_hash: hash.into(),
        n: hards.len(),
    }];
    for (index, hard) in hards.into_iter().enumerate().rev() {
        let item = format!("v{index}");
        events.push(Event::EvaluationItemFinished {
            key: key(&format!("{eval}/{item}")),
            eval: eval.into(),
            index,
            result: rollout(&item, hard),
        });
    }
    let mean = hards.iter().sum::<f64>() / hards.len() as f64;
    let score = score(mean, hards.len());
    events.push(Event::EvaluationFinished { eval: eval.into(), score, curtailed: false, missing: 0 });
    events
}

fn step(
    number: u32,
    content: &str,
    verdict: Verdict,
    scores: (f64, f64, f64),
    hash: (&str, &str),
) -> Vec<Event> {
    let (current, candidate_score, best) = scores;
    let at = at(number);
    let candidate = Skill::new(format!("seed\n{content}\n"));
    let report = EditReport::from_rows(vec![EditOutcome {
        index: 1,
        op: "append".into(),
        target: String::new(),
        content_preview: content.into(),
        status: EditStatus::AppliedAppend,
        error: None,
    }]);
    let mut events = vec![
        Event::PhaseStarted { at, phase: Phase::Rollout },
        Event::RolloutFinished { key: key("r1"), at, index: 0, result: rollout(NAME, 0.0) },
        Event::RolloutFinished { key: key("r2"), at, index: 1, result: rollout("q2", 1.0) },
        Event::RolloutFinished {
            key: key("r3"),
            at,
            index: 2,
            result: ItemResult::Missing { item: "q3".into(), error: "timeout".into() },
        },
        Event::PhaseStarted { at, phase: Phase::Reflect },
        Event::AnalysisFinished {
            appendix_notes: Vec::new(),
            deep: false,
            success_patterns: Vec::new(),
            failures: vec![FailureNote {
                failure_type: "Wrong".into(),
                count: Some(9),
                description: "guesses".into(),
            }],
            key: key("a0"),
            at,
            source: SourceType::Failure,
            minibatch: 0,
            items: vec![NAME.into()],
            patch: Some(patch(content)),
            note: String::new(),
            usage: Usage { calls: 1, prompt_tokens: 100, completion_tokens: 20, ..Usage::default() },
        },
        Event::AnalysisFinished {
            appendix_notes: Vec::new(),
            deep: false,
            success_patterns: Vec::new(),
            failures: Vec::new(),
            key: key("a1"),
            at,
            source: SourceType::Success,
            minibatch: 0,
            items: vec!["q2".into()],
            patch: None,
            note: "no JSON".into(),
            usage: Usage::default(),
        },
        Event::PhaseStarted { at, phase: Phase::Aggregate },
        Event::MergeFinished {
            at,
            patch: patch(content),
            model_merges: 0,
            fallbacks: 0,
            usage: Usage::default(),
        },
        Event::EditsSelected {
            ranking: Some(Ranking { reasoning: "best first".into(), selected_indices: vec![0] }),
            at,
            budget: Some(1),
            patch: patch(content),
            note: String::new(),
            usage: Usage::default(),
        },
        Event::ReviewOpened {
            on_timeout: crate::domain::TimeoutPolicy::Wait,
            at,
            mode: ReviewMode::Auto,
            edits: vec![edit(content)],
            current_hash: hash.0.into(),
            preview: candidate.text.clone(),
            timeout_s: None,
        },
        Event::ReviewClosed {
            at,
            close: ReviewClose::Auto,
            kept: vec![edit(content)],
            rejected: vec![],
            comments: Vec::new(),
        },
        Event::SkillUpdated {
            regions_restored: false,
            rewrite: None,
            at,
            candidate: candidate.clone(),
            report,
        },
        Event::PhaseStarted { at, phase: Phase::Evaluate },
    ];
    let eval = format!("candidate-{number}");
    events.extend(evaluation(
        &eval,
        EvalPurpose::Candidate,
        at,
        &candidate.hash,
        [candidate_score, candidate_score],
    ));
    events.push(Event::GateDecided {
        at,
        decision: Box::new(GateDecision {
            verdict,
            metric: GateMetric::Hard,
            candidate_hash: candidate.hash.clone(),
            candidate: score(candidate_score, 2),
            current: score(current, 2),
            best: score(best, 2),
            gained: vec!["v0".into()],
            lost: vec![],
            mid_p: Some(0.25),
            interval: (-0.1, 1.0),
            smallest_visible_gain: 0.4,
            curtailed: false,
            why: "better".into(),
        }),
    });
    let accepted = verdict.accepted();
    let after = if accepted { candidate_score } else { current };
    let origin = if number == 1 || accepted { format!("step_{number:04}") } else { "step_0001".into() };
    events.push(Event::StepFinished {
        record: Box::new(StepRecord {
            candidate_at_most: false,
            accumulation_batches: Vec::new(),
            current_score_stale: false,
            lr_control_mode: Default::default(),
            lr_decision: None,
            n_deep_failure_patches: None,
            n_deep_success_patches: None,
            rewrite_change_summary: None,
            n_execution_lapse_notes: None,
            n_appendix_notes_added: None,
            n_appendix_notes_total: None,
            n_appendix_notes_consolidated: None,
            at,
            tokens: BTreeMap::new(),
            rollout_hard: 0.5,
            rollout_soft: 0.5,
            rollout_n: 2,
            n_patches: 1,
            n_failure_patches: 1,
            n_success_patches: 0,
            n_edits_merged: 1,
            n_edits_ranked: 1,
            edit_budget: Some(1),
            support_counts: vec![2],
            candidate_hash: Some(candidate.hash.clone()),
            candidate_skill_len: Some(candidate.text.len()),
            edit_apply_summary: Some(ApplySummary { total: 1, applied: 1, skipped: 0, errors: 0 }),
            selection_hard: Some(candidate_score),
            selection_soft: Some(candidate_score),
            gate_metric: GateMetric::Hard,
            candidate_gate_score: Some(candidate_score),
            action: verdict,
            current_score: after,
            best_score: after,
            best_step: 1,
            current_origin: origin.clone(),
            best_origin: origin,
            skill_len: 9,
        }),
        current_hash: hash.1.into(),
        best_hash: hash.1.into(),
    });
    events
}

/// A whole run: one accepted step, one rejected, tested. Events are 1,250 ms apart.
fn records() -> Vec<Record> {
    let seed = Skill::new("seed\n");
    let better = Skill::new("seed\nRULE\n");
    let (seed_hash, better_hash) = (seed.hash.as_str(), better.hash.as_str());
    let mut events = vec![Event::RunStarted {
        config: serde_json::Value::Null,
        v: FORMAT_VERSION,
        run: "one".into(),
        seed: 7,
        config_hash: "c".into(),
        skill: seed.clone(),
        origin: None,
        folder: None,
        origins: Default::default(),
        plan: RunPlan {
            epochs: 1,
            steps_per_epoch: 2,
            total_steps: 2,
            batch_size: 3,
            train: 6,
            val: 2,
            test: 2,
            target: "t".into(),
            optimizer: "o".into(),
            judge: String::new(),
            env: "qa".into(),
            review: ReviewMode::Auto,
        },
    }];
    let start = StepRef::default();
    events.extend(evaluation("baseline", EvalPurpose::Baseline, start, seed_hash, [0.0, 0.0]));
    events.extend(step(1, "RULE", Verdict::AcceptNewBest, (0.0, 1.0, 0.0), (seed_hash, better_hash)));
    events.extend(step(2, "WORSE", Verdict::Reject, (1.0, 0.0, 1.0), (better_hash, better_hash)));
    events.extend(evaluation("test-base", EvalPurpose::TestBase, at(2), seed_hash, [0.0, 1.0]));
    events.extend(evaluation("test-best", EvalPurpose::TestBest, at(2), better_hash, [1.0, 1.0]));
    events.push(Event::TestFinished {
        outcome: TestOutcome {
            last: None,
            n: 2,
            base_hard: 0.5,
            base_soft: 0.5,
            best_hard: 1.0,
            best_soft: 1.0,
            gained: 1,
            lost: 0,
            delta: 0.5,
            interval: (-0.2, 1.0),
        },
    });
    events.push(Event::RunFinished {
        status: EndStatus::Completed,
        reason: "done".into(),
        best_hash: better.hash.clone(),
        best_step: 1,
        best_score: Some(1.0),
        baseline_score: Some(0.0),
    });
    (1..).zip(events).map(|(seq, event)| Record { seq, at: 1_000_000 + seq * 1250, event }).collect()
}

fn run() -> (tempfile::TempDir, RunDir) {
    let root = tempfile::tempdir().unwrap();
    let run = RunDir::create(root.path(), "one").unwrap();
    atomic_write(&run.config_toml(), Config::default().resolved_toml().unwrap().as_bytes()).unwrap();
    (root, run)
}

/// Every file below a folder, by relative path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, into);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                into.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

fn read_json(run: &RunDir, name: &str) -> Value {
    serde_json::from_slice(&fs::read(run.path().join(name)).unwrap()).unwrap()
}

fn read_text(run: &RunDir, name: &str) -> String {
    fs::read_to_string(run.path().join(name)).unwrap()
}

#[test]
fn a_finished_run_has_skillopts_files() {
    let (_root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    let names: Vec<String> =
        files(run.path()).into_keys().filter(|name| !name.contains("/predictions/")).collect();
    let step = |number: u32| {
        [
            "candidate_skill.md",
            "edit_apply_report.json",
            "gate.json",
            "merged_patch.json",
            "patches/minibatch_fail_000.json",
            "ranked_edits.json",
            "review.json",
            "rollout/results.jsonl",
            "selection_eval/results.jsonl",
            "step_record.json",
            "trajectory_digest.json",
        ]
        .map(|name| format!("steps/step_{number:04}/{name}"))
    };
    let mut expected: Vec<String> = [
        "best_skill.md",
        "config.json",
        "config.toml",
        "history.json",
        "runtime_state.json",
        "selection_eval_baseline/results.jsonl",
        "skills/skill_v0000.md",
        "skills/skill_v0001.md",
        "skills/skill_v0002.md",
        "summary.json",
        "test_eval/results.jsonl",
        "test_eval/summary.json",
        "test_eval_baseline/results.jsonl",
        "test_eval_baseline/summary.json",
    ]
    .map(str::to_owned)
    .to_vec();
    expected.extend(step(1));
    expected.extend(step(2));
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn skills_follow_the_gate() {
    let (_root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    assert_eq!(read_text(&run, "skills/skill_v0000.md"), "seed\n");
    assert_eq!(read_text(&run, "skills/skill_v0001.md"), "seed\nRULE\n");
    assert_eq!(read_text(&run, "skills/skill_v0002.md"), "seed\nRULE\n");
    assert_eq!(read_text(&run, "best_skill.md"), "seed\nRULE\n");
}

#[test]
fn history_rows_have_skillopts_fields_in_order_with_the_journals_times() {
    let (_root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    let history = read_json(&run, "history.json");
    let row = &history[0];
    let names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "step",
            "epoch",
            "step_in_epoch",
            "timing",
            "tokens",
            "rollout_hard",
            "rollout_soft",
            "rollout_n",
            "accumulation_batches",
            "n_patches",
            "n_failure_patches",
            "n_success_patches",
            "n_edits_merged",
            "n_edits_ranked",
            "edit_budget",
            "lr_control_mode",
            "support_counts",
            "candidate_hash",
            "candidate_skill_len",
            "edit_apply_summary",
            "selection_hard",
            "selection_soft",
            "gate_metric",
            "candidate_gate_score",
            "action",
            "current_score",
            "best_score",
            "best_step",
            "current_origin",
            "best_origin",
            "skill_len",
            "wall_time_s",
        ]
    );
    // Events are 1.25 s apart: 4 from rollout to reflect, 3 to aggregate, 6 to evaluate, 6 to the end.
    assert_eq!(
        row["timing"],
        json!({
            "rollout_s": 5.0, "reflect_s": 3.8, "aggregate_s": 7.5, "select_s": 0.0, "review_s": 0.0,
            "update_s": 0.0, "evaluate_s": 7.5, "gate_s": 0.0,
        })
    );
    assert_eq!(row["wall_time_s"], json!(23.8));
    assert_eq!(row["action"], "accept_new_best");
    assert_eq!(read_json(&run, "steps/step_0001/step_record.json"), *row);
    assert_eq!(history.as_array().unwrap().len(), 2);
}

#[test]
fn results_are_rows_and_a_missing_item_has_no_score() {
    let (_root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    let text = read_text(&run, "steps/step_0001/rollout/results.jsonl");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[0]["id"], &rows[0]["hard"]), (&json!(NAME), &json!(0)));
    assert_eq!(rows[0]["gold_answers"], json!(["Köln"]));
    assert_eq!((&rows[0]["fail_reason"], &rows[1]["fail_reason"]), (&json!("wrong: Bonn"), &json!("")));
    assert_eq!(rows[2], json!({ "id": "q3", "agent_ok": false, "error": "timeout" }));
    assert!(text.contains("Köln"), "non-ASCII is kept");
    let folder = "steps/step_0001/rollout/predictions/q%2F..%2F1";
    assert_eq!(read_text(&run, &format!("{folder}/target_system_prompt.txt")), "sys");
    assert_eq!(read_text(&run, &format!("{folder}/target_user_prompt.txt")), "Where?");
    assert_eq!(read_json(&run, &format!("{folder}/conversation.json"))[0]["content"], "Bonn");
    // Measured v1 first, written in the order of the split.
    let text = read_text(&run, "steps/step_0001/selection_eval/results.jsonl");
    let ids: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, ["v0", "v1"]);
}

#[test]
fn the_choice_is_told_with_what_was_chosen() {
    let (_root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    let ranked = read_json(&run, "steps/step_0001/ranked_edits.json");
    assert_eq!((&ranked["reasoning"], &ranked["edits"][0]["content"]), (&json!("because"), &json!("RULE")));
    assert_eq!(ranked["ranking_details"], json!({ "reasoning": "best first", "selected_indices": [0] }));
}

#[test]
fn digests_group_failures_and_tell_rejected_edits() {
    let (_root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    let pattern = json!([{ "pattern": "wrong: guesses", "count": 1, "task_ids": [NAME] }]);
    assert_eq!(
        read_json(&run, "steps/step_0001/trajectory_digest.json"),
        json!({ "step": 1, "action": "accept_new_best", "n_total": 2, "n_fail": 1, "failure_patterns": pattern })
    );
    assert_eq!(
        read_json(&run, "steps/step_0002/trajectory_digest.json"),
        json!({
            "step": 2, "action": "reject", "n_total": 2, "n_fail": 1, "failure_patterns": pattern,
            "score_before": 1.0, "score_after": 0.0,
            "rejected_edits": [{ "op": "append", "content": "WORSE", "target": "" }],
        })
    );
}

#[test]
fn state_and_summary_add_up() {
    let (_root, run) = run();
    let records = records();
    project(&run, &RunState::fold(&records)).unwrap();
    assert_eq!(
        read_json(&run, "runtime_state.json"),
        json!({
            "last_completed_step": 2, "current_skill_path": "skills/skill_v0002.md", "current_score": 1.0,
            "current_origin": "step_0001", "best_skill_path": "best_skill.md", "best_score": 1.0,
            "best_step": 1, "best_origin": "step_0001",
        })
    );
    let summary = read_json(&run, "summary.json");
    for (field, expected) in [
        ("status", json!("completed")),
        ("baseline_selection_hard", json!(0.0)),
        ("best_selection_hard", json!(1.0)),
        ("final_selection_hard", json!(1.0)),
        ("total_steps", json!(2)),
        ("total_accepts", json!(1)),
        ("total_rejects", json!(1)),
        ("total_skips", json!(0)),
        ("test_hard", json!(1.0)),
        ("final_test_hard", json!(1.0)),
        ("test_delta_hard", json!(0.5)),
        ("test_delta_interval", json!([-0.2, 1.0])),
        (
            "epoch_stats",
            json!([{
                "epoch": 1, "steps": [1, 2], "accepts": 1, "rejects": 1, "skips": 0, "undecided": 0,
                "best_score_at_epoch_end": 1.0, "current_score_at_epoch_end": 1.0,
            }]),
        ),
    ] {
        assert_eq!(summary[field], expected, "{field}");
    }
    let usage = &summary["token_summary"];
    assert_eq!(
        usage["analyst"],
        json!({"calls": 2, "prompt_tokens": 200, "completion_tokens": 40, "total_tokens": 240})
    );
    assert_eq!(usage["_total"]["calls"], json!(2 + 4 + 10));
    assert_eq!(summary["total_wall_time_s"], json!(((records.len() - 1) as f64 * 12.5).round() / 10.0));
    let config = read_json(&run, "config.json");
    assert_eq!((&config["train_size"], &config["samples_per_epoch"]), (&json!(6), &json!(6)));
    assert_eq!((&config["steps_per_epoch"], &config["edit_budget"]), (&json!(2), &json!(4)));
    assert_eq!(
        read_json(&run, "test_eval_baseline/summary.json"),
        json!({
            "city": { "total": 2, "hard_acc": 0.5 },
            "overall": { "total": 2, "hard_acc": 0.5, "missing": 0 },
        })
    );
}

#[test]
fn projecting_along_the_way_or_at_the_end_gives_the_same_bytes() {
    let records = records();
    let (_end, at_end) = run();
    project(&at_end, &RunState::fold(&records)).unwrap();

    let (_steps, stepwise) = run();
    let mut state = RunState::default();
    for record in &records {
        state.apply(record);
        write_run(&stepwise, &state).unwrap();
        write_step(&stepwise, &state, state.at.step).unwrap();
        write_epoch(&stepwise, &state, state.at.epoch).unwrap();
        let ended = matches!(state.status, RunStatus::Ended { .. });
        assert_eq!(stepwise.path().join("summary.json").exists(), ended, "event {}", record.seq);
    }
    assert_eq!(files(stepwise.path()), files(at_end.path()));

    let before = files(at_end.path());
    fs::remove_dir_all(at_end.path().join("steps")).unwrap();
    fs::write(at_end.path().join("history.json"), "torn").unwrap();
    project(&at_end, &RunState::fold(&records)).unwrap();
    assert_eq!(files(at_end.path()), before, "lost projections are made again");
    // A state that went through a snapshot is the same state.
    let text = serde_json::to_string(&RunState::fold(&records)).unwrap();
    assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), RunState::fold(&records));
}

#[test]
fn a_run_that_goes_on_has_no_summary() {
    let (_root, run) = run();
    let mut state = RunState::fold(&records());
    write_run(&run, &state).unwrap();
    assert!(run.path().join("summary.json").exists());
    let event = Event::HostStarted { host: "h".into(), pid: 1, resumed: true };
    state.apply(&Record { seq: state.seq + 1, at: state.updated_at, event });
    write_run(&run, &state).unwrap();
    assert!(!run.path().join("summary.json").exists());
}

#[test]
fn no_file_names_the_folder_of_the_run() {
    let (root, run) = run();
    project(&run, &RunState::fold(&records())).unwrap();
    let here = root.path().to_str().unwrap();
    for (name, bytes) in files(run.path()) {
        assert!(!String::from_utf8_lossy(&bytes).contains(here), "{name}");
    }
}

#[test]
fn a_run_without_its_config_says_which_file_is_missing() {
    let (_root, run) = run();
    fs::remove_file(run.config_toml()).unwrap();
    let told = write_run(&run, &RunState::fold(&records())).unwrap_err().to_string();
    assert!(told.contains("config.toml") && told.contains("no such file"), "{told}");
}
