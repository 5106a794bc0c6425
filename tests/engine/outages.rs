//! Servers that are down for a while: nothing is scored, a run stops before an outage is journaled, a resume asks again.

use std::sync::Arc;
use std::time::Duration;

use planish::cli::run_setup::start_run;
use planish::domain::Author;
use planish::engine::RunService;
use planish::event::{AckResult, BREAKER_OPEN, Command, EndStatus, RunState, RunStatus};
use planish::model::mock::{MockServer, Script};
use planish::store::RunDir;
use serde_json::{Value, json};

use crate::scenario::{Scenario, engine_events, fold, optimizer_script, target_script};

/// A run that takes every fault as it comes.
const NO_RETRY: &[&str] = &["model.max_retries=0", "model.breaker_failures=0"];

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

fn author() -> Author {
    Author("ann".into())
}

/// Waits until the run stands so.
async fn stands(engine: &dyn RunService, wanted: impl Fn(&RunState) -> bool) -> RunState {
    let (backlog, mut later) = engine.records(0);
    let mut state = RunState::fold(backlog.iter().map(AsRef::as_ref));
    while !wanted(&state) {
        let record = tokio::time::timeout(Duration::from_secs(60), later.recv()).await.unwrap().unwrap();
        state.apply(&record);
    }
    state
}

fn breaker_alert(state: &RunState) -> Option<&str> {
    let line = state.logs.iter().find(|line| line.code.as_deref() == Some(BREAKER_OPEN))?;
    Some(&line.message)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_down_pauses_the_run_and_nothing_is_lost_when_it_goes_on() {
    let mut scenario = Scenario::new("").await;
    scenario.complete("whole", &[]).await;
    replaced(&mut scenario.target, partly_down(target_script(), ".")).await;
    let engine: Arc<dyn RunService> =
        scenario.start("one", &["model.max_retries=0", "model.breaker_failures=3"]).await;
    let state = stands(engine.as_ref(), |state| breaker_alert(state).is_some()).await;
    assert_eq!(state.status, RunStatus::Paused { by: Author("circuit breaker".into()) });
    let told = breaker_alert(&state).unwrap();
    for words in ["127.0.0.1 gave no reply to 3 calls in a row", "503", "press p", "planish ctl one resume"] {
        assert!(told.contains(words), "{told}");
    }
    assert!(state.evals["baseline"].results.is_empty(), "nothing is scored, nothing is missing");
    let count = scenario.target.count();
    // Down still: it opens again.
    assert_eq!(engine.steer(Command::Resume, author(), None).await.0, AckResult::Applied);
    let seq = state.seq;
    let alerts = |state: &RunState| {
        state.logs.iter().filter(|line| line.code.as_deref() == Some(BREAKER_OPEN)).count()
    };
    let state = stands(engine.as_ref(), |state| alerts(state) == 2).await;
    assert!(state.seq > seq && scenario.target.count() > count);
    replaced(&mut scenario.target, target_script()).await;
    assert_eq!(engine.steer(Command::Resume, author(), None).await.0, AckResult::Applied);
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let runs = scenario.path("runs");
    let comparable = |name: &str| {
        let mut events = engine_events(&runs.join(name));
        events[0]["run_started"]["config"] = Value::Null;
        events
    };
    assert_eq!(comparable("one"), comparable("whole"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_holds_can_be_cancelled_and_resumed() {
    let mut scenario = Scenario::with(partly_down(target_script(), "."), optimizer_script(), "").await;
    let engine: Arc<dyn RunService> =
        scenario.start("one", &["model.max_retries=0", "model.breaker_failures=2"]).await;
    stands(engine.as_ref(), |state| breaker_alert(state).is_some()).await;
    assert_eq!(engine.steer(Command::Cancel, author(), None).await.0, AckResult::Applied);
    let ended = async { engine.ended().wait_for(|ended| *ended).await.map(|_| ()) };
    tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap().unwrap();
    let run = scenario.path("runs").join("one");
    let state = fold(&run);
    assert!(
        matches!(state.status, RunStatus::Ended { status: EndStatus::Cancelled, .. }),
        "{:?}",
        state.status
    );
    drop(engine);
    replaced(&mut scenario.target, target_script()).await;
    let state = resumed(&scenario).await;
    assert_eq!(state.best_score, Some(1.0), "{:?}", state.status);
}
