//! SkillOpt output folders: opened by `import`, continued by `resume --from`.

use std::path::{Path, PathBuf};

use planish::store::{RunDir, fold_run};
use serde_json::{Value, json};

use crate::place::{Done, Place};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Copies the recorded run into a place, so that a test may damage it.
fn foreign(place: &Place) -> PathBuf {
    let target = place.path("old");
    copy_tree(&fixture("skillopt_run"), &target);
    target
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy_tree(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

fn edit_file(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} holds no {from}", path.display());
    std::fs::write(path, text.replace(from, to)).unwrap();
}

/// The target knows every answer; analysts of failures and of successes propose one line each.
fn script() -> Value {
    let patch = |line: &str| {
        json!({"batch_size": 2, "failure_summary": [], "success_patterns": [],
            "patch": {"reasoning": "r", "edits": [{"op": "append", "content": line}]}})
        .to_string()
    };
    json!({"rules": [
        {"system": "scored as\\s+failures", "answers": [patch("- RULE-F")]},
        {"system": "scored as\\s+successes", "answers": [patch("- RULE-S")]},
        {"matches": "What is number (\\d+)\\?", "answers": [{"text": "<answer>A$1</answer>", "expand": true}]},
        {"answers": [json!({"reasoning": "r", "slow_update_content": "GUIDE-9", "meta_skill_content": "MEMO-9",
            "edits": [{"op": "append", "content": "- RULE-M"}], "selected_indices": [0]}).to_string()]},
    ]})
}

fn config(place: &Place, epochs: u32) -> String {
    let url = place.server.base_url();
    let split = fixture("skillopt_run_split");
    format!(
        r#"[model.target]
model = "tgt-m"
base_url = "{url}"
[model.optimizer]
model = "opt-m"
base_url = "{url}"
[train]
num_epochs = {epochs}
batch_size = 4
seed = 7
[gradient]
minibatch_size = 2
merge_batch_size = 2
[optimizer]
learning_rate = 3
min_learning_rate = 1
lr_scheduler = "cosine"
use_slow_update = true
slow_update_samples = 5
use_meta_skill = true
[env]
split_mode = "split_dir"
split_dir = "{}"
answer_rule = "tag"
scorer = "normalized_exact"
workers = 2
"#,
        split.display()
    )
}

async fn place(epochs: u32) -> Place {
    let place = Place::with(script()).await;
    place.write("next.toml", &config(&place, epochs));
    place
}

/// With the recorded scores as they stand.
fn resume(place: &Place, more: &[&str]) -> Done {
    resume_anew(place, &[&["--keep-scores"], more].concat())
}

fn resume_anew(place: &Place, more: &[&str]) -> Done {
    let fixed = [
        "resume",
        "--from",
        "old",
        "next.toml",
        "--name",
        "new",
        "--foreground",
        "--json",
        "--events",
        "all",
    ];
    place.planish(&[&fixed[..], more].concat())
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn events<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter_map(|line| line["event"].get(kind)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_run_is_listed_shown_and_played() {
    let place = place(3).await;
    let done = place.planish(&["import", &fixture("skillopt_run").display().to_string(), "--name", "old"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{done:?}");
    assert!(done.out.starts_with("imported old: 6 steps done, best 1.00 (step 4)"), "{}", done.out);

    let list = place.planish(&["ls", "--json"]).json();
    assert_eq!((&list[0]["name"], &list[0]["status"]), (&json!("old"), &json!("imported")));
    assert_eq!((&list[0]["steps_done"], &list[0]["best_score"]), (&json!(6), &json!(1.0)));
    let shown = &place.planish(&["ctl", "old", "show", "--json"]).json()[0];
    assert_eq!((&shown["status"], &shown["origin"]["steps"]), (&json!("imported"), &json!(6)));
    let played = place.planish(&["replay", "old", "--plain", "--speed", "inf"]);
    assert_eq!(played.code, Some(0), "{played:?}");
    for part in [
        "run old imported from ",
        "step 3: gate accepted, new best: 0.833 against 0.50 (2 gained, 0 lost)",
        "epoch 2: slow update",
        "test: base 0.00 → best 1.00, +1.00",
        "6 steps done",
    ] {
        assert!(played.out.contains(part), "{part} in {}", played.out);
    }
    let report = place.planish(&["report", "old"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    for part in
        ["imported from ", "step 2, edit 1", "step 4, edit 2", "epoch 1, slow update", "| 5 | 2 | 1.00 |"]
    {
        assert!(report.out.contains(part), "{part} in {}", report.out);
    }
    let attached = place.planish(&["attach", "old", "--plain"]);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    let best = std::fs::read_to_string(place.path("runs/old/best_skill.md")).unwrap();
    assert!(best.contains("- RULE-2") && best.contains("- NOTE-6"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_cannot_go_on_in_place_and_is_made_once() {
    let place = place(3).await;
    foreign(&place);
    assert_eq!(place.planish(&["import", "old"]).code, Some(0));
    let journal = std::fs::read(place.path("runs/old/events.jsonl")).unwrap();
    for arguments in [&["resume", "runs/old"][..], &["run", "next.toml", "--name", "old"]] {
        let done = place.planish(arguments);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains("cannot go on in place; `planish resume --from"), "{}", done.err);
    }
    let again = place.planish(&["import", "old"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("give another --name"), "{}", again.err);
    assert_eq!(std::fs::read(place.path("runs/old/events.jsonl")).unwrap(), journal);
}

#[tokio::test(flavor = "multi_thread")]
async fn oddities_are_warned_of_with_file_and_line() {
    let place = place(3).await;
    let old = foreign(&place);
    edit_file(
        &old.join("steps/step_0002/selection_eval/results.jsonl"),
        "{\"id\": \"q101\"",
        "{\"id\" \"q101\"",
    );
    edit_file(&old.join("history.json"), "\"action\": \"reject\"", "\"action\": \"hm\\u001b[2J\"");
    let done = place.planish(&["import", "old"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("warning: steps/step_0002/selection_eval/results.jsonl:"), "{}", done.err);
    assert!(done.err.contains("step 5: `action` is") && !done.err.contains('\u{1b}'), "{}", done.err);
    let told = place.planish(&["ctl", "old", "events"]).out;
    assert!(told.contains("a torn row; left out"), "{told}");
    for bad in [".", "next.toml", "none", "runs/old"] {
        let done = place.planish(&["import", bad, "--name", "other"]);
        assert_eq!(done.code, Some(2), "{bad}: {done:?}");
        assert!(!place.path("runs/other").exists(), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_behind_the_last_step() {
    let place = place(3).await;
    foreign(&place);
    let done = resume(&place, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = done.json();
    assert_eq!(lines.last().unwrap()["done"]["status"], "completed");
    let steps: Vec<&Value> =
        events(&lines, "step_finished").iter().map(|event| &event["record"]["step"]).collect();
    assert_eq!(steps, [7, 8, 9]);

    // The batches that the other program would have drawn: same seed, same data.
    let batches: Vec<Value> = events(&lines, "step_finished")
        .iter()
        .map(|event| event["record"]["accumulation_batches"][0]["batch_seed"].clone())
        .collect();
    assert_eq!(batches, [3008, 3009, 3010]);

    // Both skills have rows of exactly their text, so nothing is measured before the first step.
    let resumed = events(&lines, "evaluation_started");
    let purposes: Vec<&Value> = resumed.iter().map(|event| &event["purpose"]).collect();
    assert_eq!(purposes[..2], ["rescore", "rescore_best"]);
    let before: Vec<&Value> = events(&lines, "evaluation_item_finished")
        .into_iter()
        .filter(|event| event["eval"].as_str().is_some_and(|eval| eval.starts_with("resume_")))
        .collect();
    assert_eq!(before.len(), 12);
    assert!(before.iter().all(|event| event["result"]["scored"]["usage"]["calls"] == 0));
    assert!(done.out.contains("6 recorded selection results of the current skill stand"));

    // The stages of epoch 2 are done; those of epoch 3 follow, with what epoch 2 remembered.
    let stages: Vec<&Value> =
        events(&lines, "epoch_stage_finished").iter().map(|event| &event["at"]["epoch"]).collect();
    assert_eq!(stages, [3, 3]);
    let state = fold_run(&RunDir::open(&place.path("runs/new")).unwrap()).unwrap();
    assert_eq!((state.steps.len(), state.stages.len(), state.baseline_score), (9, 6, Some(0.0)));

    let history = read(&place.path("runs/new/history.json"));
    let rows = history.as_array().unwrap();
    let old = read(&fixture("skillopt_run").join("history.json"));
    assert_eq!(rows.len(), 9);
    for (row, recorded) in rows.iter().zip(old.as_array().unwrap()) {
        for key in [
            "step",
            "epoch",
            "action",
            "candidate_hash",
            "selection_hard",
            "current_score",
            "best_step",
            "current_origin",
            "rollout_hard",
            "edit_budget",
            "wall_time_s",
            "support_counts",
        ] {
            assert_eq!(row[key], recorded[key], "{key} of step {}", recorded["step"]);
        }
    }
    assert_eq!(rows[0]["tokens"]["rollout"]["calls"], old[0]["tokens"]["rollout"]["calls"]);
    let report = place.planish(&["report", "new"]).out;
    assert!(report.contains("behind its step 6") && report.contains("step 3, edit 1"), "{report}");
    let summary = read(&place.path("runs/new/summary.json"));
    assert_eq!((&summary["total_steps"], &summary["total_accepts"]), (&json!(9), &json!(4)));
    assert_eq!(summary["baseline_selection_hard"], 0.0);
    assert!(summary["token_summary"]["analyst"]["calls"].as_u64().unwrap() > 12);
    let skill = |version: u32| {
        std::fs::read_to_string(place.path(&format!("runs/new/skills/skill_v{version:04}.md"))).unwrap()
    };
    for version in [0, 3, 6] {
        let recorded = fixture("skillopt_run").join(format!("skills/skill_v{version:04}.md"));
        assert_eq!(skill(version), std::fs::read_to_string(recorded).unwrap(), "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_continued_is_refused_with_the_remedy() {
    let place = place(1).await;
    let old = foreign(&place);
    let refused = |done: Done, part: &str| {
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains(part), "{part} in {}", done.err);
        assert!(!place.path("runs/new").exists(), "a start that got nowhere leaves nothing behind");
    };
    refused(
        resume(&place, &[]),
        "has 6 steps done, but this configuration plans 3: raise train.num_epochs to 2",
    );
    refused(
        resume(&place, &["-o", "train.num_epochs=4", "-o", "train.batch_size=5"]),
        "has 3 steps per epoch, but this configuration gives 2",
    );
    // Other batches are no reason to refuse, but to say so.
    let other = resume(&place, &["-o", "train.num_epochs=2", "-o", "train.seed=8"]);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(other.err.contains("train.seed is 8, not 7: the batches to come are not those"), "{}", other.err);
    assert!(other.out.contains("train.seed is 8, not 7"), "the log of the run says so too");
    std::fs::remove_dir_all(place.path("runs/new")).unwrap();
    std::fs::remove_file(old.join("skills/skill_v0006.md")).unwrap();
    edit_file(&old.join("runtime_state.json"), "skills/skill_v0006.md", "gone.md");
    refused(resume(&place, &["-o", "train.num_epochs=3"]), "lacks the text of the current skill");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_conditions_are_measured_again() {
    let place = place(3).await;
    let old = foreign(&place);
    // Nothing of the run is done beyond its last step: only the test is left.
    let two = ["-o", "train.num_epochs=2"];
    let rescored = |done: &Done| {
        assert_eq!(done.code, Some(0), "{done:?}");
        let lines = done.json();
        let calls = events(&lines, "evaluation_item_finished")
            .into_iter()
            .filter(|event| event["eval"] == "resume_current")
            .filter(|event| event["result"]["scored"]["usage"]["calls"] == 1)
            .count();
        std::fs::remove_dir_all(place.path("runs/new")).unwrap();
        calls
    };
    assert_eq!(rescored(&resume(&place, &two)), 0);
    assert_eq!(rescored(&resume_anew(&place, &two)), 6);
    let other = resume(&place, &[&two[..], &["-o", "model.target.model=another"]].concat());
    assert!(other.err.contains("the target model is another"), "{}", other.err);
    assert_eq!(rescored(&other), 6);
    let rows = old.join("final_selection_eval/results.jsonl");
    edit_file(&rows, "What is number 103?", "What was number 103?");
    let other = resume(&place, &two);
    assert!(other.out.contains("are of other items"), "{}", other.out);
    assert_eq!(rescored(&other), 6);
    std::fs::remove_dir_all(old.join("final_selection_eval")).unwrap();
    let other = resume(&place, &two);
    assert!(other.err.contains("no result of exactly its text is recorded"), "{}", other.err);
    assert_eq!(rescored(&other), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_state_and_with_a_score_of_zero_the_run_goes_on_all_the_same() {
    let place = place(3).await;
    let old = foreign(&place);
    edit_file(&old.join("runtime_state.json"), "\"current_score\": 1.0", "\"current_score\": 0.0");
    let state = |done: Done| {
        assert_eq!(done.code, Some(0), "{done:?}");
        let lines = done.json();
        let started = events(&lines, "run_started")[0]["origin"]["continued"].clone();
        std::fs::remove_dir_all(place.path("runs/new")).unwrap();
        started
    };
    let zero = state(resume(&place, &[]));
    assert_eq!((&zero["current"]["score"], &zero["last"]["step"]), (&json!(0.0), &json!(6)));
    std::fs::remove_file(old.join("runtime_state.json")).unwrap();
    let done = resume(&place, &[]);
    assert!(
        done.err.contains("runtime_state.json: is not usable; the last record of history.json"),
        "{}",
        done.err
    );
    let fallback = state(done);
    assert_eq!((&fallback["current"]["score"], &fallback["best_step"]), (&json!(1.0), &json!(4)));
}

/// Takes the run back to where it was after step `last`, in the middle of epoch 2.
fn stopped_after(old: &Path, last: u32) {
    let history = read(&old.join("history.json"));
    let rows: Vec<&Value> =
        history.as_array().unwrap().iter().filter(|row| row["step"].as_u64() <= Some(last.into())).collect();
    std::fs::write(old.join("history.json"), json!(rows).to_string()).unwrap();
    for step in last + 1..=6 {
        std::fs::remove_dir_all(old.join(format!("steps/step_{step:04}"))).unwrap();
        std::fs::remove_file(old.join(format!("skills/skill_v{step:04}.md"))).unwrap();
    }
    for folder in ["slow_update/epoch_02", "meta_skill/epoch_02", "final_selection_eval", "test_eval"] {
        std::fs::remove_dir_all(old.join(folder)).unwrap();
    }
    std::fs::remove_file(old.join("summary.json")).unwrap();
    std::fs::remove_file(old.join("runtime_state.json")).unwrap();
}

fn ids(results: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(results).unwrap();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = text.lines().map(id).collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_middle_of_an_epoch_batches_schedule_and_step_buffer_go_on() {
    let place = place(2).await;
    let old = foreign(&place);
    stopped_after(&old, 4);
    let done = resume(&place, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = done.json();
    let records: Vec<&Value> = events(&lines, "step_finished").iter().map(|event| &event["record"]).collect();
    assert_eq!(records.iter().map(|record| record["step"].as_u64().unwrap()).collect::<Vec<_>>(), [5, 6]);
    // The other program drew these items for these steps, and this edit budget.
    let recorded = read(&fixture("skillopt_run").join("history.json"));
    for (record, step) in records.iter().zip([5, 6]) {
        let rollouts = format!("steps/step_{step:04}/rollout/results.jsonl");
        assert_eq!(
            ids(&place.path("runs/new").join(&rollouts)),
            ids(&fixture("skillopt_run").join(&rollouts))
        );
        assert_eq!(record["edit_budget"], recorded[step - 1]["edit_budget"], "step {step}");
    }
    // The step buffer knows step 4; the analysts of step 5 are told of it.
    let told = |part: &str| {
        place.server.requests().iter().any(|request| request.body["messages"].to_string().contains(part))
    };
    let digest = read(&fixture("skillopt_run").join("steps/step_0004/trajectory_digest.json"));
    let pattern = digest["failure_patterns"][0]["pattern"].as_str().unwrap();
    assert!(told(pattern), "{pattern} is in no prompt");
    // Epoch 2 ends here: its stages are this run's own.
    let stages: Vec<&Value> =
        events(&lines, "epoch_stage_finished").iter().map(|event| &event["at"]["step"]).collect();
    assert_eq!(stages, [6, 6]);
    assert!(told("GUIDE-9") || told("previous"), "the slow update compares two epochs");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_the_last_epoch_reaches_the_next_one() {
    let place = place(3).await;
    foreign(&place);
    assert_eq!(resume(&place, &[]).code, Some(0));
    let asked = place.server.requests();
    let analysts: Vec<String> = asked
        .iter()
        .map(|request| request.body["messages"].to_string())
        .filter(|messages| messages.contains("scored as"))
        .collect();
    assert!(!analysts.is_empty() && analysts.iter().all(|messages| messages.contains("MEMO-1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_stages_of_the_last_epoch_are_run_first() {
    let place = place(3).await;
    let old = foreign(&place);
    std::fs::remove_dir_all(old.join("meta_skill/epoch_02")).unwrap();
    let done = resume(&place, &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = done.json();
    let kinds: Vec<String> = events(&lines, "epoch_stage_finished")
        .iter()
        .map(|event| {
            let stage = event["stage"].as_object().unwrap().keys().next().unwrap().clone();
            format!("{} {stage}", event["at"]["epoch"])
        })
        .collect();
    assert_eq!(kinds, ["2 meta_skill", "3 slow_update", "3 meta_skill"]);
}

/// Engine events of a journal, without times.
fn engine_events(journal: &str) -> Vec<Value> {
    let outside = ["host_started", "log", "alert", "config_changed"];
    let mut events: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    events.retain(|event| !outside.iter().any(|kind| event.get(kind).is_some()));
    for event in &mut events {
        let map = event.as_object_mut().unwrap();
        map.remove("seq");
        map.remove("at");
        strip(event);
    }
    events
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.get("ms").is_some_and(Value::is_number) {
                map.remove("ms");
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_continuation_resumes_to_the_same_run() {
    let place = place(3).await;
    foreign(&place);
    assert_eq!(resume(&place, &[]).code, Some(0));
    // The new run stands on its own.
    std::fs::remove_dir_all(place.path("old")).unwrap();
    let journal = place.path("runs/new/events.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    let best = std::fs::read(place.path("runs/new/best_skill.md")).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for cut in [1, 2, 4, 9, lines.len() / 3, lines.len() / 2, lines.len() - 1] {
        std::fs::write(&journal, lines[..cut].concat()).unwrap();
        let done = place.planish(&["resume", "new", "--foreground"]);
        assert_eq!(done.code, Some(0), "cut after {cut}: {done:?}");
        let again = std::fs::read_to_string(&journal).unwrap();
        assert_eq!(engine_events(&again), engine_events(&whole), "cut after {cut}");
        assert_eq!(std::fs::read(place.path("runs/new/best_skill.md")).unwrap(), best);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configuration_the_folders_own_is_used() {
    let place = place(3).await;
    foreign(&place);
    let bare = place.planish(&["resume", "--from", "old", "--name", "new", "--foreground"]);
    assert_eq!(bare.code, Some(2), "{bare:?}");
    assert!(bare.err.contains("-o KEY=VALUE"), "{}", bare.err);
    assert!(!place.path("runs/new").exists());
    let url = place.server.base_url();
    let set = [
        "train.num_epochs=3".to_owned(),
        format!("model.target.base_url={url}"),
        "model.target.api_key_env=".into(),
        format!("model.optimizer.base_url={url}"),
        "model.optimizer.api_key_env=".into(),
        format!("env.split_dir={}", fixture("skillopt_run_split").display()),
        "env.skill_init=".into(),
        "env.name=".into(),
        "env.answer_rule=tag".into(),
        "env.scorer=normalized_exact".into(),
    ];
    let mut arguments = vec!["resume", "--from", "old", "--name", "new", "--foreground", "--json"];
    for one in &set {
        arguments.extend(["-o", one]);
    }
    let done = place.planish(&arguments);
    assert_eq!(done.code, Some(0), "{done:?}");
    let state = fold_run(&RunDir::open(&place.path("runs/new")).unwrap()).unwrap();
    assert_eq!((state.steps.len(), state.info.unwrap().plan.batch_size), (9, 4));
}
