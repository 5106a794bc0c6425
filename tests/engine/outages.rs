//! Servers that are down for a while: nothing is scored, a run stops before an outage is journaled, a resume asks again.

use planish::cli::run_setup::start_run;
use planish::engine::RunService;
use planish::event::{EndStatus, RunState, RunStatus};
use planish::model::mock::{MockServer, Script};
use planish::store::RunDir;
use serde_json::{Value, json};

use crate::scenario::{Scenario, fold, optimizer_script, target_script};

const NO_RETRY: &[&str] = &["model.max_retries=0"];

/// A script that answers `down` to prompts that match `prompt`.
fn partly_down(mut script: Value, prompt: &str) -> Value {
    let down = json!({"matches": prompt, "answers": [{"fault": "status", "status": 503}]});
    script["rules"].as_array_mut().unwrap().insert(0, down);
    script
}

async fn replaced(server: &mut MockServer, script: Value) {
    let port = server.port();
    let script: Script = serde_json::from_value(script).unwrap();
    let meanwhile = MockServer::start(0, script.clone()).await.unwrap();
    std::mem::replace(server, meanwhile).stop().await;
    *server = MockServer::start(port, script).await.unwrap();
}

fn reason(state: &RunState) -> String {
    match &state.status {
        RunStatus::Ended { status: EndStatus::Failed, reason } => reason.clone(),
        other => panic!("{other:?}"),
    }
}

async fn resumed(scenario: &Scenario) -> RunState {
    let run = scenario.path("runs").join("one");
    let engine = start_run(&RunDir::open(&run).unwrap()).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    fold(&run)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_during_the_baseline_is_asked_again_by_a_resume() {
    let down = partly_down(target_script(), "of kind [BC]");
    let mut scenario = Scenario::with(down, optimizer_script(), "").await;
    let state = scenario.complete("one", NO_RETRY).await;
    let why = reason(&state);
    assert!(why.contains("the baseline lacks") && why.contains("503"), "{why}");
    assert!(state.evals["baseline"].results.iter().all(|(_, result)| result.rollout().is_some()));
    replaced(&mut scenario.target, target_script()).await;
    let state = resumed(&scenario).await;
    assert_eq!(state.best_score, Some(1.0), "{:?}", state.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn rollouts_that_nobody_answers_are_asked_again_by_a_resume() {
    // The baseline is answered, nothing in training is: its prompts are of other cards.
    let scenario = Scenario::new("").await;
    scenario.complete("whole", &[]).await;
    let whole = fold(&scenario.path("runs").join("whole"));
    let cards: Vec<String> = whole.steps.iter().flat_map(|step| &step.rollouts).map(card).collect();
    let down = partly_down(target_script(), &format!("({}) of", cards.join("|")));
    let mut scenario = Scenario::with(down, optimizer_script(), "").await;
    let state = scenario.complete("one", NO_RETRY).await;
    let why = reason(&state);
    assert!(why.contains("no rollout of step 1 was answered"), "{why}");
    assert!(state.steps[0].rollouts.is_empty());
    replaced(&mut scenario.target, target_script()).await;
    let state = resumed(&scenario).await;
    assert_eq!(state.best_score, Some(1.0), "{:?}", state.status);
}

/// `card 07` as its question names it: `card 7`.
fn card(result: &planish::event::ItemResult) -> String {
    let number: usize = result.item().trim_start_matches("card ").parse().unwrap();
    format!("card {number}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_optimizer_that_answers_no_analyst_stops_the_run_and_is_asked_again() {
    let down = json!({"rules": [{"answers": [{"fault": "status", "status": 404}]}]});
    let mut scenario = Scenario::with(target_script(), down, "").await;
    let state = scenario.complete("one", NO_RETRY).await;
    let why = reason(&state);
    assert!(why.contains("no analyst of step 1 answered"), "{why}");
    assert!(state.steps[0].analyses.is_empty());
    replaced(&mut scenario.optimizer, optimizer_script()).await;
    let state = resumed(&scenario).await;
    assert_eq!(state.best_score, Some(1.0), "{:?}", state.status);
}
