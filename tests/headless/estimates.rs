//! `planish estimate`: what a run would take, without a key, a server or a call.

use serde_json::Value;

use crate::place::Place;

fn estimate(place: &Place, more: &[&str]) -> Value {
    let done = place.planish(&[&["estimate", "run.toml", "--json"], more].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json().remove(0)
}

fn stage<'a>(told: &'a Value, name: &str) -> &'a Value {
    told["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == name).unwrap()
}

fn spread(value: &Value) -> [f64; 3] {
    ["low", "expected", "high"].map(|end| value[end].as_f64().unwrap_or_else(|| panic!("{value}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_tells_calls_tokens_and_money_by_stage_and_makes_no_call() {
    let place = Place::new().await;
    place.write("prices.toml", "[[model]]\nname = \"mock\"\ninput = 1\noutput = 2\n");
    // A key that is not there is not asked for.
    let alone = ["-o", "optimizer.use_slow_update=false", "-o", "optimizer.use_meta_skill=false"];
    let keyless = ["-o", "budget.prices=prices.toml", "-o", "model.target.api_key_env=NOT_SET"];
    let settings = [alone, keyless].concat();
    let told = estimate(&place, &settings);
    assert_eq!((&told["measured_runs"], &told["steps"]), (&Value::from(0), &Value::from(3)));
    for stage in told["stages"].as_array().unwrap().iter().chain([&told["total"]]) {
        for what in ["calls", "tokens", "usd"] {
            let [low, expected, high] = spread(&stage[what]);
            assert!(0.0 <= low && low <= expected && expected <= high && high > 0.0, "{what} of {stage}");
        }
    }
    let rollout = stage(&told, "rollout");
    assert_eq!((spread(&rollout["calls"]), &rollout["basis"]), ([12.0; 3], &Value::from("assumed")));
    let unpriced = estimate(&place, &[]);
    assert_eq!(
        (&unpriced["total"]["usd"], &unpriced["unpriced"]),
        (&Value::Null, &serde_json::json!(["mock"]))
    );
    assert_eq!(place.server.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_measures_by_earlier_runs_and_the_run_stays_within_it() {
    let place = Place::new().await;
    let done = place.planish(&["run", "run.toml", "--name", "one", "--foreground", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let told = estimate(&place, &[]);
    assert_eq!(told["measured_runs"], 1);
    assert_eq!(stage(&told, "rollout")["measured_calls"], 12);
    let [low, _, high] = spread(&told["total"]["calls"]);
    let made = place.server.count() as f64;
    assert!((low..=high).contains(&made), "{made} calls of {low} to {high}");
    let [low, _, high] = spread(&told["total"]["tokens"]);
    let shown = place.planish(&["ctl", "one", "show", "--json"]).json().remove(0);
    let usage = &shown["usage"];
    let used = usage["prompt_tokens"].as_f64().unwrap() + usage["completion_tokens"].as_f64().unwrap();
    assert!((low..=high).contains(&used), "{used} tokens of {low} to {high}");
    // Another model was never measured.
    assert_eq!(estimate(&place, &["-o", "model.target.model=other"])["measured_runs"], 0);

    let text = place.planish(&["estimate", "run.toml", "-o", "budget.max_calls=30"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for words in
        ["measured calls", "No price is known of mock", "budget.max_calls = 30 is below what is expected"]
    {
        assert!(text.out.contains(words), "{words}: {}", text.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_stop_has_its_exit_code_and_a_higher_cap_resumes() {
    let place = Place::new().await;
    let start = ["run", "run.toml", "--name", "one", "--foreground", "--json", "-o", "budget.max_calls=40"];
    let done = place.planish(&start);
    assert_eq!(done.code, Some(4), "{done:?}");
    let last = done.json().pop().unwrap();
    assert_eq!(last["done"]["status"], "budget_exhausted");
    let why = last["done"]["reason"].as_str().unwrap();
    assert!(why.contains("40 calls used, budget.max_calls = 40; raise it and resume"), "{why}");
    assert_eq!(place.server.count(), 40);
    let done = place.planish(&["resume", "one", "--foreground", "--json", "-o", "budget.max_calls=500"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let shown = place.planish(&["ctl", "one", "show", "--json"]).json().remove(0);
    assert_eq!(shown["usage"]["calls"], place.server.count());
    assert_eq!(shown["caps"]["max_calls"], 500);
}
