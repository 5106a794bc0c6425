//! Commands that steer a run under way: what they journal, what they change, and that a resume needs no outside event.

use std::sync::Arc;
use std::time::Duration;

use planish::cli::run_setup::start_run;
use planish::config::Config;
use planish::domain::{Author, Decision, Phase, Retuned, Ruling, StepRef, Verdict};
use planish::engine::RunService;
use planish::event::{
    AckResult, Command, EndStatus, Event, ItemResult, LogLine, OverrulingOutcome, Record, RunState, RunStatus,
};
use planish::model::mock::MockServer;
use planish::store::RunDir;

use serde_json::{Value, json};

use crate::scenario::{COLOURS, Scenario, engine_events, fold, optimizer_script, records, target_script};

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

const MANUAL: &str = "[review]\nmode = \"manual\"\n";

/// Continues a run whose journal is cut or changed, with nobody to review, to its end.
async fn resumed_alone(scenario: &Scenario, kept: Vec<Record>) -> RunState {
    let config = Config::load(&scenario.path("run.toml"), &[]).unwrap().config;
    resumed_beside(scenario, kept, &config).await
}

/// As [`resumed_alone`], beside a `config.toml` that the killed host left so.
async fn resumed_beside(scenario: &Scenario, kept: Vec<Record>, config: &Config) -> RunState {
    scenario.rewrite("one", kept);
    let run = RunDir::open(&scenario.path("runs/one")).unwrap();
    let config = config.resolved_toml().unwrap();
    std::fs::write(run.config_toml(), config.replace("mode = \"manual\"", "mode = \"auto\"")).unwrap();
    let engine = start_run(&run).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    fold(run.path())
}

/// The settings of a run after each change in its journal: what its `config.toml` may hold when its host is killed.
fn files(records: &[Record]) -> Vec<Config> {
    let mut state = RunState::default();
    let mut files: Vec<Config> = Vec::new();
    for record in records {
        state.apply(record);
        if let Ok(config) = serde_json::from_value::<Config>(state.effective_config())
            && !files.contains(&config)
        {
            files.push(config);
        }
    }
    files
}

/// A host that is killed after any event from the first that `since` knows, with whatever it had written of its settings:
/// the same engine events up to the cut, and `holds` at the end.
async fn survives_every_cut(
    scenario: &Scenario,
    since: impl Fn(&Event) -> bool,
    until: impl Fn(&Event) -> bool,
    holds: impl Fn(&RunState),
) {
    let all = records(&scenario.path("runs/one"));
    let from = all.iter().position(|record| since(&record.event)).unwrap();
    let to = all.iter().position(|record| until(&record.event)).unwrap();
    assert!(from < to);
    for cut in from + 1..=to + 2 {
        let kept = all[..cut].to_vec();
        let before: Vec<Event> =
            kept.iter().map(|record| record.event.clone()).filter(|event| !event.is_outside()).collect();
        // One of them each time: none matters more after one line than after another.
        let files = files(&kept);
        let state = resumed_beside(scenario, kept, &files[cut % files.len()]).await;
        let after = records(&scenario.path("runs/one")).into_iter().map(|record| record.event);
        let after: Vec<Event> = after.filter(|event| !event.is_outside()).take(before.len()).collect();
        assert_eq!(after, before, "cut after line {cut}");
        assert!(state.test.is_some(), "cut after line {cut}: {:?}", state.status);
        holds(&state);
    }
}

async fn reject_all(engine: &dyn RunService, at: StepRef) {
    let state = until(engine, |state| state.open_review().is_some_and(|(open, _)| open == at)).await;
    for edit in 0..state.open_review().unwrap().1.edits.len() {
        applied(engine, Command::Decide { at, edit, decision: Decision::Reject { reason: "no".into() } })
            .await;
    }
    applied(engine, Command::Submit { at }).await;
}

fn override_step(at: StepRef, ruling: Ruling, reason: &str) -> Command {
    Command::Override { at, ruling, reason: reason.into() }
}

/// The step under review, submitted, and the next one under review.
async fn to_the_second_review(engine: &dyn RunService) -> (StepRef, StepRef) {
    let state = until(engine, |state| state.open_review().is_some()).await;
    let (first, _) = state.open_review().unwrap();
    applied(engine, Command::Submit { at: first }).await;
    let next = |state: &RunState| state.open_review().is_some_and(|(open, _)| open != first);
    let state = until(engine, next).await;
    (first, state.open_review().unwrap().0)
}

fn is_applied(state: &RunState, step: usize) -> bool {
    let word = state.steps.get(step).and_then(|step| step.overruling.as_ref());
    word.is_some_and(|word| matches!(word.outcome, OverrulingOutcome::Applied { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_step_is_taken_back_at_the_next_boundary_whatever_happens_to_the_host() {
    let scenario = Scenario::new(MANUAL).await;
    let running = scenario.start("one", &[]).await;
    let engine: &dyn RunService = running.as_ref();
    let (first, second) = to_the_second_review(engine).await;
    let state = until(engine, |_| true).await;
    assert!(state.steps[0].gate.as_ref().unwrap().verdict.accepted());
    let seed = state.initial_hash.clone();
    assert!(denied(engine, override_step(first, Ruling::Reject, "  ")).await.contains("the reason is empty"));
    assert!(
        denied(engine, override_step(second, Ruling::Reject, "x")).await.contains("no verdict on step 2")
    );
    let (ack, _) = engine.steer(override_step(first, Ruling::Accept, "x"), ann(), None).await;
    assert_eq!(ack, AckResult::Noop);
    applied(engine, override_step(first, Ruling::Reject, "it leaks the answers")).await;
    let (ack, _) = engine.steer(override_step(first, Ruling::Reject, "again"), ann(), None).await;
    assert_eq!(ack, AckResult::Noop);
    reject_all(engine, second).await;
    let state = until(engine, |state| is_applied(state, 0)).await;
    assert_eq!((&state.current_hash, &state.best_hash), (&seed, &seed));
    assert_eq!((state.current_score, state.best_score, state.best_step), (Some(0.0), Some(0.0), 0));
    assert!(state.steps[0].record.as_ref().unwrap().action.accepted(), "the record says what the gate said");
    let third = until(engine, |state| state.open_review().is_some()).await.open_review().unwrap().0;
    assert_eq!(third.step, 3);
    submit_all(engine, 0).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let prompts: Vec<String> =
        scenario.optimizer.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(
        prompts.iter().any(|prompt| prompt.contains("rejected by reviewer because it leaks the answers"))
    );
    let held = |state: &RunState| {
        let word = state.steps[0].overruling.as_ref().unwrap();
        assert!(
            is_applied(state, 0) && word.reason == "it leaks the answers" && word.by == ann(),
            "{word:?}"
        );
    };
    drop(running);
    survives_every_cut(
        &scenario,
        // Before, nobody would have rejected the second step.
        |event| matches!(event, Event::ReviewClosed { at, .. } if at.step == 2),
        |event| matches!(event, Event::OverrideApplied { .. }),
        held,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_comes_to_nothing_when_a_later_step_changed_the_skill() {
    let scenario = Scenario::new(MANUAL).await;
    let running = scenario.start("one", &["optimizer.learning_rate=1"]).await;
    let engine: &dyn RunService = running.as_ref();
    let (first, second) = to_the_second_review(engine).await;
    applied(engine, override_step(first, Ruling::Reject, "no")).await;
    let content: Vec<String> =
        COLOURS.iter().map(|(kind, colour)| format!("A card of kind {kind} is {colour}.")).collect();
    let decision = Decision::Amend { content: content.join("\n"), reason: String::new() };
    applied(engine, Command::Decide { at: second, edit: 0, decision }).await;
    applied(engine, Command::Submit { at: second }).await;
    let lapsed = |state: &RunState| {
        let word = state.steps[0].overruling.as_ref();
        word.is_some_and(
            |word| matches!(&word.outcome, OverrulingOutcome::Lapsed { why } if why.contains("step_0002")),
        )
    };
    let state = until(engine, lapsed).await;
    assert!(state.steps[1].gate.as_ref().unwrap().verdict.accepted());
    assert!(
        denied(engine, override_step(first, Ruling::Reject, "no")).await.contains("step 2 was decided since")
    );
    applied(engine, Command::Cancel).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
}

/// Knows two kinds and learns nothing: candidates are rejected before every item is measured.
fn stubborn() -> Value {
    let known = |kind: &str, colour: &str| json!({"matches": format!("of kind {kind}"), "answers": [colour]});
    json!({"rules": [known("A", "red"), known("B", "green"), {"answers": ["I do not know"]}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_candidate_becomes_the_best_once_it_is_measured_as_a_whole() {
    let scenario = Scenario::with(stubborn(), optimizer_script(), MANUAL).await;
    let running = scenario.start("one", &[]).await;
    let engine: &dyn RunService = running.as_ref();
    let (first, second) = to_the_second_review(engine).await;
    let state = until(engine, |_| true).await;
    let decision = state.steps[0].gate.clone().unwrap();
    assert_eq!(decision.verdict, Verdict::Reject);
    assert!(decision.candidate.done < decision.candidate.n, "{decision:?}");
    applied(engine, override_step(first, Ruling::AcceptAsBest, "it reads better")).await;
    reject_all(engine, second).await;
    submit_all(engine, 0).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let candidate = &decision.candidate_hash;
    let held = |state: &RunState| {
        let Event::RunFinished { best_hash, best_step, best_score, .. } =
            records(&scenario.path("runs/one")).pop().unwrap().event
        else {
            panic!("not finished")
        };
        assert_eq!((&best_hash, best_step), (candidate, 1));
        assert_eq!(
            (&state.best_hash, state.best_step, state.best_score),
            (&best_hash, best_step, best_score)
        );
        let whole = &state.evals["s001/override"];
        assert_eq!(whole.score.as_ref().map(|score| (score.done, score.n)), Some((6, 6)));
        assert_eq!(state.best_score, whole.score.as_ref().map(|score| score.gate));
    };
    held(&fold(&scenario.path("runs/one")));
    drop(running);
    survives_every_cut(
        &scenario,
        |event| matches!(event, Event::OverrideRequested { .. }),
        |event| matches!(event, Event::EvaluationFinished { eval, .. } if eval == "s001/override"),
        held,
    )
    .await;
}

fn retune(key: &str, value: Value) -> Command {
    Command::Retune { changes: [(key.to_owned(), value)].into(), reason: "to see".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_change_at_once_or_between_steps_and_a_resume_knows_them() {
    let scenario = Scenario::new(MANUAL).await;
    let running = scenario.start("one", &[]).await;
    let engine: &dyn RunService = running.as_ref();
    until(engine, |state| state.open_review().is_some()).await;
    for (key, value, why) in [
        ("env.worker", json!(1), "unknown key, did you mean env.workers?"),
        ("env.workers", json!(0), "0 is out of range; give a whole number that is at least 1"),
        ("model.target.api_key", json!("sk-1"), "a key is never a value of a configuration"),
        ("train.batch_size", json!(2), "start a new run with -o train.batch_size=2"),
        ("model.worker_threads", json!(2), "planish resume RUN -o model.worker_threads=2"),
    ] {
        let reason = denied(engine, retune(key, value)).await;
        assert!(reason.contains(why) && reason.contains(key) && !reason.contains("sk-1"), "{reason}");
    }
    assert_eq!(engine.steer(retune("env.workers", json!(4)), ann(), None).await.0, AckResult::Noop);
    applied(engine, retune("env.workers", json!("2"))).await;
    applied(engine, retune("optimizer.learning_rate", json!(2))).await;
    applied(engine, retune("optimizer.learning_rate", json!(1))).await;
    let state = until(engine, |_| true).await;
    let now = |state: &RunState, pointer: &str| state.effective_config().pointer(pointer).cloned();
    assert_eq!(now(&state, "/env/workers"), Some(json!(2)));
    assert_eq!(now(&state, "/optimizer/learning_rate"), Some(json!(3)), "not before the boundary");
    submit_all(engine, 0).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let run = scenario.path("runs/one");
    let held = |state: &RunState| {
        let budgets: Vec<_> = state.steps[..2].iter().map(|step| step.budget).collect();
        assert_eq!(budgets, [Some(3), Some(1)]);
        assert_eq!(now(state, "/optimizer/learning_rate"), Some(json!(1)));
        assert!(state.retunes.iter().all(|retune| retune.waiting.is_empty() && retune.reason == "to see"));
        let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
        assert!(config.contains("learning_rate = 1\n"), "{config}");
    };
    held(&fold(&run));
    assert_eq!(now(&fold(&run), "/env/workers"), Some(json!(2)));
    assert!(std::fs::read_to_string(run.join("config.toml")).unwrap().contains("\nworkers = 2\n"));
    drop(running);
    survives_every_cut(
        &scenario,
        |event| matches!(event, Event::RetuneRequested { changes, .. } if changes[0].new == json!(1)),
        |event| matches!(event, Event::RetuneApplied { .. }),
        held,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_retuned_twice_goes_on_whatever_its_host_had_written() {
    let scenario = Scenario::new(MANUAL).await;
    let running = scenario.start("one", &[]).await;
    let engine: &dyn RunService = running.as_ref();
    let (first, _) = until(engine, |state| state.open_review().is_some()).await.open_review().unwrap();
    applied(engine, retune("optimizer.learning_rate", json!(2))).await;
    reject_all(engine, first).await;
    let next = |state: &RunState| state.open_review().is_some_and(|(open, _)| open != first);
    let (second, _) = until(engine, next).await.open_review().unwrap();
    applied(engine, retune("env.workers", json!(2))).await;
    applied(engine, retune("optimizer.learning_rate", json!(1))).await;
    reject_all(engine, second).await;
    submit_all(engine, 0).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let run = scenario.path("runs/one");
    let held = |state: &RunState| {
        let budgets: Vec<_> = state.steps[..3].iter().map(|step| step.budget).collect();
        assert_eq!(budgets, [Some(3), Some(2), Some(1)]);
        let config = state.effective_config();
        assert_eq!(config.pointer("/optimizer/learning_rate"), Some(&json!(1)));
        assert_eq!(config.pointer("/env/workers"), Some(&json!(2)));
        let file = std::fs::read_to_string(run.join("config.toml")).unwrap();
        assert!(file.contains("learning_rate = 1\n") && file.contains("\nworkers = 2\n"), "{file}");
    };
    held(&fold(&run));
    assert_eq!(files(&records(&run)).len(), 4);
    drop(running);
    survives_every_cut(
        &scenario,
        |event| matches!(event, Event::RetuneRequested { changes, .. } if changes[0].new == json!(1)),
        |event| matches!(event, Event::RetuneApplied { changes, .. } if changes[0].new == json!(1)),
        held,
    )
    .await;
}

/// How the question about `card 07` names it.
fn in_question(item: &str) -> String {
    format!("card {} of", item["card ".len()..].parse::<usize>().unwrap())
}

/// Waits until the server was asked about `item`.
async fn asked(server: &MockServer, item: &str) {
    let words = in_question(item);
    let seen = async {
        while !server.requests().iter().any(|request| request.body.to_string().contains(&words)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), seen).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_missing_and_a_requeued_one_is_asked_anew() {
    let plain = Scenario::new("").await;
    let state = plain.complete("one", &[]).await;
    let items: Vec<String> = state.steps[0].rollouts.iter().map(|result| result.item().to_owned()).collect();
    let measured = state.evals["baseline"].results[0].1.item().to_owned();
    let mut script = target_script();
    for item in [&items[0], &items[1], &measured] {
        let hangs = json!({"matches": in_question(item), "answers": [{"fault": "hang"}, "I do not know"], "pick": "sequence"});
        script["rules"].as_array_mut().unwrap().insert(0, hangs);
    }
    let scenario = Scenario::with(script, optimizer_script(), "").await;
    let running = scenario.start("one", &[]).await;
    let engine: &dyn RunService = running.as_ref();
    let cancel = |path: &str| Command::CancelRollout { path: path.into() };
    let requeue = |path: &str| Command::RequeueRollout { path: path.into() };
    assert!(denied(engine, cancel("e01/s001/rollout/none#0")).await.contains("no call is under way"));
    let path = format!("baseline/{measured}#0");
    asked(&scenario.target, &measured).await;
    let reason = denied(engine, cancel(&path)).await;
    assert!(reason.contains("the run needs the baseline"), "{reason}");
    applied(engine, requeue(&path)).await;
    let given_up = format!("e01/s001/rollout/{}#0", items[0]);
    let anew = format!("e01/s001/rollout/{}#0", items[1]);
    asked(&scenario.target, &items[0]).await;
    applied(engine, cancel(&given_up)).await;
    assert!(denied(engine, cancel(&given_up)).await.contains("no call is under way"));
    asked(&scenario.target, &items[1]).await;
    applied(engine, requeue(&anew)).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let missing = |state: &RunState| {
        let results = &state.steps[0].rollouts;
        let ItemResult::Missing { item, error } = &results[0] else { panic!("{results:?}") };
        assert_eq!((item, error.as_str()), (&items[0], "cancelled by ann@one"));
        assert!(results[1..].iter().all(|result| result.rollout().is_some()));
        assert_eq!(state.steps[0].record.as_ref().unwrap().rollout_n, results.len() - 1);
    };
    missing(&fold(&scenario.path("runs/one")));
    let requests = scenario.target.requests().len();
    drop(running);
    survives_every_cut(
        &scenario,
        |event| matches!(event, Event::RolloutCancelled { .. }),
        |event| matches!(event, Event::RolloutFinished { .. }),
        missing,
    )
    .await;
    assert_eq!(scenario.target.requests().len(), requests, "no recorded call is asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_report_and_lineage_tell_an_override() {
    let scenario = Scenario::with(stubborn(), optimizer_script(), MANUAL).await;
    let running = scenario.start("one", &["optimizer.use_slow_update=false"]).await;
    let engine: &dyn RunService = running.as_ref();
    let (first, second) = to_the_second_review(engine).await;
    applied(engine, override_step(first, Ruling::AcceptAsBest, "it reads better")).await;
    reject_all(engine, second).await;
    let state = until(engine, |state| is_applied(state, 0)).await;
    let candidate = state.steps[0].candidate.clone().unwrap();
    // Whatever comes is rejected by the gate, so the override's text stays.
    submit_all(engine, 0).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    let run = scenario.path("runs/one");
    let json =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(run.join(name)).unwrap()).unwrap() };
    let history = json("history.json");
    let told = &history[0]["override"];
    assert_eq!((&told["ruling"], &told["applied"]), (&json!("accept_as_best"), &json!(true)));
    assert_eq!(history[0]["action"], "reject", "the record stays what the gate said");
    let summary = json("summary.json");
    assert_eq!((&summary["total_overrides"], &summary["best_origin"]), (&json!(1), &json!("step_0001")));
    assert_eq!(summary["best_gate_score"], summary["best_selection_hard"]);
    assert_eq!(json("runtime_state.json")["current_origin"], "step_0001");
    assert_eq!(std::fs::read_to_string(run.join("best_skill.md")).unwrap(), candidate.text);
    let state = fold(&run);
    let report = planish::plain::report(&state).join("\n");
    assert!(report.contains("accept as best by ann@one"), "{report}");
    let lineage = serde_json::to_value(planish::plain::report_json(&state)).unwrap().to_string();
    assert!(lineage.contains("accepted_by_override"), "{lineage}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_boundary_is_refused_once_the_test_has_begun() {
    let plain = Scenario::new("").await;
    let state = plain.complete("one", &[]).await;
    let tested = state.evals["test_base"].results[0].1.item().to_owned();
    let mut script = target_script();
    let hangs = json!({"matches": in_question(&tested), "answers": [{"fault": "hang"}, "I do not know"], "pick": "sequence"});
    script["rules"].as_array_mut().unwrap().insert(0, hangs);
    let scenario = Scenario::with(script, optimizer_script(), "").await;
    let config = std::fs::read_to_string(scenario.path("run.toml")).unwrap();
    let config = config.replace("[optimizer]\n", "[optimizer]\nuse_slow_update = false\n");
    std::fs::write(scenario.path("run.toml"), config).unwrap();
    let running = scenario.start("one", &[]).await;
    let engine: &dyn RunService = running.as_ref();
    asked(&scenario.target, &tested).await;
    let state = until(engine, |_| true).await;
    let last = state.steps.iter().rfind(|step| step.gate.is_some()).unwrap();
    let ruling = if last.gate.as_ref().unwrap().verdict.accepted() { Ruling::Reject } else { Ruling::Accept };
    let reason = denied(engine, override_step(last.at, ruling, "late")).await;
    assert!(reason.contains(&format!("the verdict on step {} stands", last.at.step)), "{reason}");
    let reason = denied(engine, retune("optimizer.learning_rate", json!(1))).await;
    assert!(reason.contains("start a new run with -o optimizer.learning_rate=1"), "{reason}");
    applied(engine, retune("env.workers", json!(2))).await;
    applied(engine, Command::RequeueRollout { path: format!("test_base/{tested}#0") }).await;
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    drop(running);

    // A journal that took such requests all the same.
    let mut kept = records(&scenario.path("runs/one"));
    let test = |record: &Record| matches!(record.event, Event::PhaseStarted { phase: Phase::Test, .. });
    kept.truncate(kept.iter().position(test).unwrap() + 1);
    let (at, by) = (last.at, ann());
    let change = Retuned { key: "optimizer.learning_rate".into(), old: json!(3), new: json!(1) };
    for event in [
        Event::OverrideRequested { at, ruling, reason: "late".into(), by: by.clone(), rev: 90 },
        Event::RetuneRequested { changes: vec![change], reason: String::new(), by, rev: 91 },
    ] {
        kept.push(Record { seq: 0, at: 1, event });
    }
    let lapsed = |state: &RunState| {
        let step = state.steps.iter().find(|step| step.at == at).unwrap();
        let outcome = &step.overruling.as_ref().unwrap().outcome;
        assert!(
            matches!(outcome, OverrulingOutcome::Lapsed { why } if why.contains("all steps were done")),
            "{outcome:?}"
        );
        let told = |line: &LogLine| line.message.contains("optimizer.learning_rate = 1 was asked for after");
        assert!(state.logs.iter().any(told), "{:?}", state.logs);
        assert!(matches!(state.status, RunStatus::Ended { status: EndStatus::Completed, .. }));
    };
    lapsed(&resumed_alone(&scenario, kept).await);
    let mut again = records(&scenario.path("runs/one"));
    let told = |record: &Record| matches!(record.event, Event::OverrideLapsed { .. });
    again.truncate(again.iter().position(told).unwrap() + 1);
    let resumed = resumed_alone(&scenario, again).await;
    lapsed(&resumed);
}
