//! The engine against a real HTTP server: a whole run, its determinism, decisions, pauses, faults.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../support/scenario.rs"]
#[allow(dead_code)]
mod scenario;

mod budget;
mod commands;
mod outages;
mod storm;

use std::sync::Arc;
use std::time::Duration;

use planish::cli::run_setup::start_run;
use planish::domain::{Author, Decision};
use planish::engine::RunService;
use planish::event::{AckResult, Command, EndStatus, Event, LogLine, RunState, RunStatus};
use planish::model::mock::hostile;
use planish::store::RunDir;
use scenario::{COLOURS, Scenario, engine_events, optimizer_script, records, target_script};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_learns_and_its_files_say_so() {
    let scenario = Scenario::new("").await;
    let state = scenario.complete("one", &[]).await;
    assert_eq!(state.baseline_score, Some(0.0), "{:?} {:?}", state.status, state.logs);
    assert_eq!(state.best_score, Some(1.0));
    // The scenario's merges are prose: nothing is lost, and the log says so.
    let unmerged =
        |line: &LogLine| line.message.contains("no JSON") && line.message.contains("stay unmerged");
    assert!(state.logs.iter().any(unmerged), "{:?}", state.logs);
    let test = state.test.unwrap();
    assert_eq!((test.n, test.base_hard, test.best_hard, test.lost), (8, 0.0, 1.0, 0));
    assert!(test.interval.0 > 0.0);
    let run = scenario.path("runs").join("one");
    let best = std::fs::read_to_string(run.join("best_skill.md")).unwrap();
    for (kind, colour) in COLOURS {
        assert!(best.contains(&format!("kind {kind} is {colour}")), "{best}");
    }
    let history: Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("history.json")).unwrap()).unwrap();
    assert_eq!(history.as_array().unwrap().len(), state.steps.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_gives_the_same_events_whatever_the_concurrency() {
    let scenario = Scenario::new("").await;
    scenario.complete("wide", &["env.workers=16"]).await;
    scenario.complete("narrow", &["env.workers=1", "gradient.analyst_workers=1"]).await;
    let events = |name: &str| {
        let mut events = engine_events(&scenario.path("runs").join(name));
        events[0]["run_started"]["config"]["gradient"]["analyst_workers"] = Value::Null;
        events
    };
    let (wide, narrow) = (events("wide"), events("narrow"));
    assert_eq!(wide.len(), narrow.len());
    for (wide, narrow) in wide.iter().zip(&narrow) {
        assert_eq!(wide, narrow);
    }
}

async fn wait_for_review(engine: &dyn RunService) -> RunState {
    let (backlog, mut later) = engine.records(0);
    let mut state = RunState::fold(backlog.iter().map(AsRef::as_ref));
    while state.open_review().is_none() {
        let record = tokio::time::timeout(Duration::from_secs(60), later.recv()).await.unwrap().unwrap();
        state.apply(&record);
    }
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_shape_the_measured_text_and_the_reason_reaches_the_next_reflection() {
    let scenario = Scenario::new("[review]\nmode = \"manual\"\n").await;
    let engine = scenario.start("one", &[]).await;
    let engine: Arc<dyn RunService> = engine;
    let state = wait_for_review(engine.as_ref()).await;
    let (at, review) = state.open_review().unwrap();
    let edits = review.edits.len();
    assert!(edits >= 2, "{edits} edits");
    let (ann, bob) = (Author("ann@one".into()), Author("bob@two".into()));
    let reject = Decision::Reject { reason: "colours must come from the table".into() };
    let decide = |edit, decision| Command::Decide { at, edit, decision };
    let (ack, rev) = engine.steer(decide(0, reject), ann.clone(), Some(0)).await;
    assert_eq!((ack, rev), (AckResult::Applied, 1));
    // Bob saw revision 0 and decides the same edit otherwise.
    let (ack, _) = engine.steer(decide(0, Decision::Accept), bob.clone(), Some(0)).await;
    assert!(matches!(ack, AckResult::Conflict { by, .. } if by == ann));
    let amended = Decision::Amend { content: "Kind Z cards are white.".into(), reason: String::new() };
    assert_eq!(engine.steer(decide(1, amended), bob, Some(1)).await.0, AckResult::Applied);
    assert_eq!(engine.steer(Command::Submit { at }, ann.clone(), None).await.0, AckResult::Applied);

    let run = scenario.path("runs").join("one");
    let second = loop {
        let (backlog, mut later) = engine.records(0);
        let state = RunState::fold(backlog.iter().map(AsRef::as_ref));
        if state.open_review().is_some_and(|(open, _)| open != at) {
            break state;
        }
        tokio::time::timeout(Duration::from_secs(60), later.recv()).await.unwrap().unwrap();
    };
    let step = &second.steps[0];
    let candidate = step.candidate.as_ref().unwrap();
    assert!(candidate.text.contains("Kind Z cards are white."));
    let struck = &review.edits[0].edit.content;
    assert!(!candidate.text.contains(struck.as_str()));
    let measured = &second.evals[step.eval.as_ref().unwrap()];
    assert_eq!(measured.skill_hash, candidate.hash);
    let prompts: Vec<String> =
        scenario.optimizer.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.contains("rejected by reviewer because colours must come from the table")),
        "no later prompt names the reason"
    );
    assert_eq!(engine.steer(Command::Cancel, ann, None).await.0, AckResult::Applied);
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    assert!(matches!(records(&run).last().unwrap().event, Event::RunFinished { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_resumes_to_the_same_end() {
    let scenario = Scenario::new("").await;
    scenario.complete("whole", &[]).await;
    let engine = scenario.start("cut", &[]).await;
    let (_, mut later) = engine.records(0);
    for _ in 0..20 {
        later.recv().await.unwrap();
    }
    engine.steer(Command::Cancel, Author("ann".into()), None).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    drop((engine, later));
    let run = scenario.path("runs").join("cut");
    let engine = start_run(&RunDir::open(&run).unwrap()).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    assert_eq!(engine_events(&run), engine_events(&scenario.path("runs").join("whole")));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authentication_failure_stops_the_run_without_a_score() {
    let status = json!({"rules": [{"answers": [{"fault": "status", "status": 401}]}]});
    let scenario = Scenario::with(status, optimizer_script(), "").await;
    let state = scenario.complete("one", &[]).await;
    let status = format!("{:?}", state.status);
    assert!(status.contains("authentication"), "{status}");
    assert_eq!(state.baseline_score, None);
    assert!(state.evals["baseline"].results.is_empty());
    let last = records(&scenario.path("runs").join("one")).pop().unwrap().event;
    assert!(matches!(last, Event::RunFinished { best_score: None, baseline_score: None, .. }), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_of_faults_changes_nothing_but_time() {
    let calm = Scenario::new("").await;
    calm.complete("one", &[]).await;
    let mut script = target_script();
    script["chaos"] = json!({"seed": 3, "rate": 0.3, "faults": [{"fault": "status", "status": 500, "headers": {"retry-after-ms": "1"}}]});
    let stormy = Scenario::with(script, optimizer_script(), "").await;
    stormy.complete("one", &["model.max_retries=12"]).await;
    let comparable = |scenario: &Scenario| {
        let mut events = engine_events(&scenario.path("runs/one"));
        events.remove(0);
        events.into_iter().map(without_fingerprints).collect::<Vec<_>>()
    };
    assert_eq!(comparable(&calm), comparable(&stormy));
}

/// Fingerprints name the server's address, which differs between two mock servers.
fn without_fingerprints(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("fingerprint");
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_replies_are_scored_capped_and_end_no_run() {
    let long = json!({"text": "x", "repeat": 1_000_000});
    let utf8 = json!({"fault": "invalid_utf8"});
    let answers = json!([hostile::ANSI, hostile::OSC52, hostile::BIDI, long, utf8]);
    let target = json!({"chunk": 10_000, "rules": [{"answers": answers}]});
    let scenario = Scenario::with(target, optimizer_script(), "").await;
    let state = scenario.complete("one", &["train.num_epochs=1"]).await;
    assert!(
        matches!(state.status, RunStatus::Ended { status: EndStatus::Completed, .. }),
        "{:?}",
        state.status
    );
    let rollouts: Vec<_> = state.steps.iter().flat_map(|step| &step.rollouts).collect();
    let replies: Vec<&str> = rollouts.iter().map(|result| result.rollout().unwrap().reply.as_str()).collect();
    assert!(replies.iter().any(|reply| reply.contains('\u{1b}')), "the journal keeps what was said");
    assert!(replies.iter().all(|reply| reply.len() < 40_000), "a reply is not capped");
    assert!(replies.iter().any(|reply| reply.contains('\u{fffd}')), "invalid UTF-8 is replaced");
    for record in &records(&scenario.path("runs").join("one")) {
        let line = planish::plain::describe(record);
        let visible =
            |c: char| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(line.chars().all(visible), "{line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_counts_also_when_the_run_goes_on_without_reviews() {
    let scenario = Scenario::new("[review]\nmode = \"manual\"\n").await;
    let engine = scenario.start("one", &[]).await;
    let engine: Arc<dyn RunService> = engine;
    let state = wait_for_review(engine.as_ref()).await;
    let (at, review) = state.open_review().unwrap();
    let struck = review.edits[0].edit.content.clone();
    let ann = Author("ann@one".into());
    let reject = Command::Decide { at, edit: 0, decision: Decision::Reject { reason: "no".into() } };
    assert_eq!(engine.steer(reject, ann.clone(), Some(0)).await.0, AckResult::Applied);
    assert_eq!(engine.steer(Command::Cancel, ann, None).await.0, AckResult::Applied);
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    drop(engine);
    let run = RunDir::open(&scenario.path("runs").join("one")).unwrap();
    let config = std::fs::read_to_string(run.config_toml()).unwrap();
    std::fs::write(run.config_toml(), config.replace("mode = \"manual\"", "mode = \"auto\"")).unwrap();
    let engine = start_run(&run).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let step = &scenario::fold(run.path()).steps[0];
    assert!(!step.candidate.as_ref().unwrap().text.contains(&struck), "{:?}", step.candidate);
    let review = step.review.as_ref().unwrap();
    assert_eq!(review.rejected.iter().map(|row| row.reason.as_str()).collect::<Vec<_>>(), ["no"]);
}
