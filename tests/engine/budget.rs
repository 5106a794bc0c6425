//! The hard budget: with retries and repairs on, the servers never see more than the cap allows; the stop names the cap; a
//! resume with a higher one goes on to the same end.

use planish::cli::run_setup::start_run;
use planish::engine::RunService;
use planish::event::{EndStatus, Event, RunState, RunStatus};
use planish::store::RunDir;
use serde_json::{Value, json};

use crate::scenario::{Scenario, engine_events, fold, optimizer_script, records, target_script};

/// Every third request meets a fault; those that are retried are so at once.
fn stormy(mut script: Value, seed: u64) -> Value {
    let now = json!({"retry-after-ms": "1"});
    let faults = json!([
        {"fault": "status", "status": 500, "headers": now},
        {"fault": "status", "status": 429, "headers": now},
        {"fault": "status", "status": 529, "headers": now},
    ]);
    script["chaos"] = json!({"seed": seed, "rate": 0.3, "faults": faults});
    script
}

async fn storm() -> Scenario {
    Scenario::with(stormy(target_script(), 3), stormy(optimizer_script(), 4), "").await
}

fn sent(scenario: &Scenario) -> u64 {
    scenario.target.count() + scenario.optimizer.count()
}

/// Resumes as `planish resume -o KEY=VALUE` does.
async fn resumed(scenario: &Scenario, settings: &[(&str, &str)]) -> RunState {
    let run = RunDir::open(&scenario.path("runs").join("one")).unwrap();
    let mut config = std::fs::read_to_string(run.config_toml()).unwrap();
    for (key, value) in settings {
        let lines = config.lines().map(|line| match line.split_once(" = ") {
            Some((name, _)) if name == *key => format!("{name} = {value}"),
            Some(_) | None => line.to_owned(),
        });
        config = lines.collect::<Vec<_>>().join("\n");
    }
    std::fs::write(run.config_toml(), config).unwrap();
    let engine = start_run(&run).await.unwrap();
    engine.ended().wait_for(|ended| *ended).await.unwrap();
    fold(run.path())
}

fn exhausted(state: &RunState) -> String {
    match &state.status {
        RunStatus::Ended { status: EndStatus::BudgetExhausted, reason } => reason.clone(),
        other => panic!("{other:?}"),
    }
}

fn completed(state: &RunState) {
    assert!(
        matches!(state.status, RunStatus::Ended { status: EndStatus::Completed, .. }),
        "{:?}",
        state.status
    );
}

/// Engine events without what names the cap.
fn comparable(run: &std::path::Path) -> Vec<Value> {
    let mut events = engine_events(run);
    events[0]["run_started"]["config"] = Value::Null;
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_over_the_cap_is_sent_and_a_higher_one_goes_on_to_the_same_end() {
    let scenario = storm().await;
    scenario.complete("whole", &["model.max_retries=12"]).await;
    let before = sent(&scenario);
    let state = scenario.complete("one", &["model.max_retries=12", "budget.max_calls=100"]).await;
    let why = exhausted(&state);
    assert!(why.contains("100 calls used, budget.max_calls = 100; raise it and resume"), "{why}");
    assert_eq!(sent(&scenario) - before, 100);
    assert!(state.total_unanswered().calls > 10, "{:?}", state.unanswered);

    let state = resumed(&scenario, &[]).await;
    assert!(exhausted(&state).contains("budget.max_calls = 100"));
    assert_eq!(sent(&scenario) - before, 100, "a resume without a higher cap sends nothing");

    let state = resumed(&scenario, &[("max_calls", "150")]).await;
    assert!(exhausted(&state).contains("150 calls used, budget.max_calls = 150"));
    assert_eq!(sent(&scenario) - before, 150);

    let state = resumed(&scenario, &[("max_calls", "0")]).await;
    completed(&state);
    let runs = scenario.path("runs");
    assert_eq!(comparable(&runs.join("one")), comparable(&runs.join("whole")));
    // What screens show is what the servers saw.
    assert_eq!(state.total_usage().calls, sent(&scenario) - before);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_cent_over_the_cap_is_spent() {
    // Of each request, answered or cut short, the servers count the same.
    const COST: f64 = (50.0 * 10.0 + 10.0 * 100.0) / 1e6;
    let cut = |mut script: Value| {
        script["usage"] = json!({"prompt_tokens": 50, "completion_tokens": 10});
        script["chaos"] = json!({"seed": 5, "rate": 0.1, "faults": [{"fault": "cut"}, {"fault": "drop"}]});
        script
    };
    let limits = "[budget]\nprices = \"prices.toml\"\nmax_usd = 0.15\n";
    let scenario = Scenario::with(cut(target_script()), cut(optimizer_script()), limits).await;
    std::fs::write(scenario.path("prices.toml"), "[[model]]\nname = \"mock\"\ninput = 10\noutput = 100\n")
        .unwrap();
    let tokens = ["model.target.max_tokens=32", "model.optimizer.max_tokens=64"];
    let state = scenario.complete("one", &tokens).await;
    let why = exhausted(&state);
    assert!(
        why.contains("budget.max_usd = 0.15, and the next call (") && why.contains("may cost up to $"),
        "{why}"
    );
    let billed = sent(&scenario) as f64 * COST;
    assert!(billed <= 0.15, "{billed}");
    let counted = state.total_usage().dollars();
    assert!((billed..=0.15).contains(&counted), "{billed} was billed, {counted} counted");
    assert!(counted > 0.05, "{counted}");

    let state = resumed(&scenario, &[("max_usd", "50.0")]).await;
    completed(&state);
    assert!(state.total_usage().dollars() >= sent(&scenario) as f64 * COST - 1e-9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_on_money_needs_prices() {
    let scenario = Scenario::new("").await;
    let config = ["budget.max_usd=1".to_owned()];
    let config = planish::config::Config::load(&scenario.path("run.toml"), &config).unwrap().config;
    let run = RunDir::create(&scenario.path("runs"), "one").unwrap();
    std::fs::write(run.config_toml(), config.resolved_toml().unwrap()).unwrap();
    let told = match start_run(&run).await {
        Ok(_) => panic!("it started"),
        Err(error) => format!("{error:#}"),
    };
    for words in ["budget.max_usd needs the price of \"mock\"", "[[model]]", "budget.prices"] {
        assert!(told.contains(words), "{told}");
    }
    assert_eq!(sent(&scenario), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_on_tokens_holds_for_calls_under_way() {
    let scenario = storm().await;
    let tokens = ["model.max_retries=12", "model.target.max_tokens=32", "model.optimizer.max_tokens=64"];
    let state = scenario.complete("one", &[&tokens[..], &["budget.max_tokens=12000"]].concat()).await;
    let why = exhausted(&state);
    assert!(why.contains("budget.max_tokens = 12000"), "{why}");
    let spent = state.total_usage().tokens();
    assert!((1_000..=12_000).contains(&spent), "{spent}");
    let told = records(&scenario.path("runs/one"));
    let attempts = told.iter().filter(|record| matches!(record.event, Event::AttemptsSpent { .. }));
    assert_eq!(attempts.count() as u64, state.total_unanswered().calls);
}
