//! Commands that steer a run under way: what they journal, what they change, and that a resume needs no outside event.

use std::sync::Arc;
use std::time::Duration;

use planish::cli::run_setup::start_run;
use planish::domain::{Author, StepRef};
use planish::engine::RunService;
use planish::event::{AckResult, Command, Event, RunState};
use planish::store::RunDir;

use crate::scenario::{Scenario, engine_events, records};

pub fn ann() -> Author {
    Author("ann@one".into())
}

/// Follows the run until its state is as wanted.
pub async fn until(engine: &dyn RunService, wanted: impl Fn(&RunState) -> bool) -> RunState {
    let (backlog, mut later) = engine.records(0);
    let mut state = RunState::fold(backlog.iter().map(AsRef::as_ref));
    while !wanted(&state) {
        let record = tokio::time::timeout(Duration::from_secs(60), later.recv()).await.unwrap().unwrap();
        state.apply(&record);
    }
    state
}

pub async fn applied(engine: &dyn RunService, command: Command) {
    let (ack, _) = engine.steer(command.clone(), ann(), None).await;
    assert_eq!(ack, AckResult::Applied, "{command:?}");
}

pub async fn denied(engine: &dyn RunService, command: Command) -> String {
    match engine.steer(command.clone(), ann(), None).await.0 {
        AckResult::Denied { reason } => reason,
        other => panic!("{command:?}: {other:?}"),
    }
}

async fn submit_all(engine: &dyn RunService, from: u32) {
    for _ in from.. {
        let state = until(engine, |state| state.open_review().is_some() || state.test.is_some()).await;
        let Some((at, _)) = state.open_review() else { return };
        engine.steer(Command::Submit { at }, ann(), None).await;
        until(engine, |state| state.open_review().is_none_or(|(open, _)| open != at)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_reach_later_prompts_and_a_resume_without_the_outside_events() {
    let scenario = Scenario::new("[review]\nmode = \"manual\"\n").await;
    let engine: Arc<dyn RunService> = scenario.start("one", &[]).await;
    let state = until(engine.as_ref(), |state| state.open_review().is_some()).await;
    let (at, _) = state.open_review().unwrap();
    let say = |edit, text: &str| Command::Comment { at, edit, text: text.into() };
    applied(engine.as_ref(), say(Some(0), "keep this one short")).await;
    applied(engine.as_ref(), say(None, "fewer rules, please")).await;
    assert_eq!(engine.steer(say(None, "fewer rules, please"), ann(), None).await.0, AckResult::Noop);
    submit_all(engine.as_ref(), 0).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let wrong = Command::Comment { at: StepRef::default(), edit: None, text: "x".into() };
    assert!(denied(engine.as_ref(), wrong).await.contains("has ended"));
    let prompts: Vec<String> =
        scenario.optimizer.requests().iter().map(|request| request.body.to_string()).collect();
    for words in ["keep this one short", "on the step: fewer rules, please"] {
        assert!(prompts.iter().any(|prompt| prompt.contains(words)), "no later prompt says {words}");
    }
    drop(engine);

    // The comments as outside events are taken out; what the review closed with stands.
    let run = scenario.path("runs/one");
    let before = engine_events(&run);
    let kept: Vec<_> = records(&run)
        .into_iter()
        .filter(|record| {
            !matches!(
                record.event,
                Event::ReviewCommented { .. } | Event::RunFinished { .. } | Event::TestFinished { .. }
            )
        })
        .collect();
    scenario.rewrite("one", kept);
    let asked = scenario.optimizer.requests().len();
    let engine = start_run(&RunDir::open(&run).unwrap()).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    assert_eq!(engine_events(&run), before);
    assert_eq!(scenario.optimizer.requests().len(), asked, "no recorded call is asked again");
}
