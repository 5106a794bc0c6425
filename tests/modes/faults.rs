//! Faults that must not come back: zero is a score, a budget of zero is zero, an empty merge loses nothing, order does
//! not matter, unknown modes are errors.

use planish::config::Config;
use planish::domain::{Author, Verdict};
use planish::engine::RunService;
use planish::event::{Command, EvalPurpose, Event};
use planish::model::mock::{Chaos, MockServer, Rule, Script};
use planish::store::RunDir;
use serde_json::json;

use crate::lanterns::{Finished, Lanterns, optimizer};
use crate::scenario::engine_events;

#[tokio::test(flavor = "multi_thread")]
async fn a_score_of_zero_is_a_score_on_resume() {
    let lanterns = Lanterns::new("patch").await;
    let whole = lanterns.complete("whole", &[]).await;
    assert_eq!(whole.state.baseline_score, Some(0.0));
    let engine = lanterns.start("cut", &[]).await;
    let (_, mut later) = engine.records(0);
    while !matches!(later.recv().await.unwrap().event, Event::RolloutFinished { .. }) {}
    engine.steer(Command::Cancel, Author("ann".into()), None).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    drop((engine, later));
    let path = lanterns.run("cut");
    assert_eq!(Finished::open(&path).state.current_score, Some(0.0));
    let asked = lanterns.target.requests().len();
    let engine = planish::cli::run_setup::start_run(&RunDir::open(&path).unwrap()).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    assert_eq!(engine_events(&path), engine_events(&whole.path));
    // The baseline was not measured again: its items never met the seed again.
    for request in &lanterns.target.requests()[asked..] {
        let [system, user] =
            [0, 1].map(|at| request.body["messages"][at]["content"].as_str().unwrap().to_owned());
        let selection = ["lantern 21", "lantern 22", "lantern 23"].iter().any(|item| user.contains(item));
        assert!(!selection || system.contains("row"), "{user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_zero_applies_nothing_and_asks_nothing() {
    let lanterns = Lanterns::new("schedule_linear").await;
    let run = lanterns.complete("run", &["optimizer.learning_rate=1", "optimizer.min_learning_rate=0"]).await;
    let budgets: Vec<_> = run.state.steps.iter().map(|step| step.budget).collect();
    assert_eq!(budgets, [Some(1), Some(0), Some(0), Some(0)]);
    for step in &run.state.steps[1..] {
        assert!(step.merged.as_ref().is_some_and(|patch| !patch.edits.is_empty()), "something was proposed");
        assert!(step.ranked.as_ref().unwrap().edits.is_empty() && step.eval.is_none());
        assert_eq!(step.record.as_ref().unwrap().action, Verdict::SkipNoChange);
    }
    let ranking = lanterns.optimizer.requests().into_iter().filter(|request| {
        request.body["messages"][0]["content"].as_str().unwrap().contains("\"selected_indices\"")
    });
    assert_eq!(ranking.count(), 1, "only the first step ranks");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_merge_keeps_the_edits() {
    let empty = json!({
        "system": "list directly in it", "answers": [{"json": {"reasoning": "nothing matters", "edits": []}}]
    });
    let lanterns = Lanterns::with("patch", optimizer(vec![serde_json::from_value(empty).unwrap()])).await;
    let run = lanterns.complete("run", &[]).await;
    let step = &run.state.steps[0];
    let proposed: usize = step.analyses.iter().map(|one| one.patch.as_ref().unwrap().edits.len()).sum();
    assert_eq!((step.merged.as_ref().unwrap().edits.len(), proposed), (4, 4));
    assert!(run.state.logs.iter().any(|line| line.message.contains("stay unmerged")), "{:?}", run.state.logs);
}

/// Every third request fails once or more, so calls finish in another order each time.
fn shaken(mut script: Script) -> Script {
    let fault = json!({"fault": "status", "status": 500, "headers": {"retry-after-ms": "3"}});
    let faults = vec![serde_json::from_value(fault).unwrap()];
    script.chaos = Some(Chaos { seed: 5, rate: 0.3, faults });
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_depends_on_the_order_in_which_calls_finish() {
    for config in ["deep_reflect", "meta_skill_after_slow_update", "rewrite_from_suggestions", "skill_aware"]
    {
        let lanterns = Lanterns::with(config, shaken(optimizer(Vec::<Rule>::new()))).await;
        let settings = ["model.max_retries=12", "env.workers=16", "gradient.analyst_workers=16"];
        // Whom a fault hits depends on how often the server heard the question.
        lanterns.complete("one", &settings).await;
        lanterns.complete("two", &settings).await;
        assert_eq!(engine_events(&lanterns.run("one")), engine_events(&lanterns.run("two")), "{config}");
        assert!(lanterns.optimizer.count() > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_appendix_without_notes_is_part_of_the_skill_from_the_start() {
    let silent = json!({"system": "\"batch_size\"", "answers": ["no idea"]});
    let lanterns =
        Lanterns::with("skill_aware", optimizer(vec![serde_json::from_value(silent).unwrap()])).await;
    let run = lanterns.complete("run", &[]).await;
    assert!(run.text("skills/skill_v0001.md").contains("<!-- APPENDIX_START -->"));
    assert!(run.last().contains("<!-- APPENDIX_START -->"));
    let rescored = run.state.evals.values().filter(|eval| eval.purpose == EvalPurpose::Rescore);
    assert_eq!(rescored.count(), 0, "nothing was judged");
}

#[test]
fn unknown_modes_are_errors() {
    let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/tests/patch.toml");
    for key in [
        "optimizer.skill_update_mode",
        "optimizer.lr_control_mode",
        "optimizer.lr_scheduler",
        "optimizer.longitudinal_pair_policy",
        "optimizer.insert_after_fallback",
        "optimizer.skill_aware_appendix_source",
        "evaluation.gate_metric",
        "review.mode",
        "review.on_timeout",
        "env.split_mode",
    ] {
        let error = Config::load(&config, &[format!("{key}=sideways")]).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("sideways"), "{key}: {error}");
    }
}

/// One selection item has no answer the first time that the current skill is measured again.
#[tokio::test(flavor = "multi_thread")]
async fn a_measurement_that_lacks_an_item_decides_nothing_and_is_completed_later() {
    let mut lanterns = Lanterns::new("slow_update_forced").await;
    let mut target = Lanterns::target_replies();
    let mut answers = vec![json!({"fault": "status", "status": 503})];
    answers.resize(99, json!("I do not know"));
    let once_down: Rule = serde_json::from_value(json!({
        "system": "SLOW_UPDATE_START", "matches": "lantern 21 of row", "pick": "round_robin", "answers": answers,
    }))
    .unwrap();
    target.rules.insert(0, once_down);
    lanterns.target = MockServer::start(0, target).await.unwrap();
    let run = lanterns.complete("one", &["model.max_retries=0"]).await;
    let rescored: Vec<_> =
        run.state.evals.values().filter(|eval| eval.purpose == EvalPurpose::Rescore).collect();
    let lacking = rescored.iter().find(|eval| eval.missing == 1).expect("one lacks an item");
    let step = run.state.steps.iter().find(|step| step.at == lacking.at).unwrap();
    let record = step.record.as_ref().unwrap();
    assert_eq!((record.action, record.current_score_stale), (Verdict::Undecided, true));
    assert!(step.gate.is_none(), "{:?}", step.gate);
    // The next one asks for that item alone.
    let next =
        rescored.iter().find(|eval| eval.at.step > lacking.at.step && eval.skill_hash == lacking.skill_hash);
    let next = next.expect("measured again before the next verdict");
    let asked: u64 = next.results.iter().filter_map(|(_, result)| Some(result.rollout()?.usage.calls)).sum();
    assert_eq!((next.missing, asked), (0, 1));
}
