//! Two thousand items through a storm: nearly every third request meets one of many faults, and not one score is wrong, lost
//! or counted twice.

use std::collections::HashMap;

use planish::event::{Event, ItemResult};
use serde_json::{Value, json};

use crate::scenario::{COLOURS, Scenario, engine_events, optimizer_script, records, target_script};
use crate::without_fingerprints;

const ITEMS: usize = 2000;

fn items() -> Value {
    let item = |n: usize| {
        let (kind, colour) = COLOURS[n % 3];
        json!({"id": format!("card {n:04}"), "question": format!("What colour is card {n} of kind {kind}?"), "answers": [colour]})
    };
    (0..ITEMS).map(item).collect()
}

fn stormy(mut script: Value) -> Value {
    let now = json!({"retry-after-ms": "1"});
    script["chaos"] = json!({"seed": 11, "rate": 0.3, "faults": [
        {"fault": "status", "status": 500, "headers": now},
        {"fault": "status", "status": 429, "headers": now},
        {"fault": "status", "status": 503, "headers": now},
        {"fault": "status", "status": 529, "headers": now},
        {"fault": "rate_limit", "wait_ms": 1, "form": "milliseconds"},
        {"fault": "empty"},
        {"fault": "drop"},
        {"fault": "cut"},
        {"fault": "malformed"},
        {"fault": "error_in_body", "code": 502},
        {"fault": "error_in_stream", "code": "server_error"},
        {"fault": "html", "status": 502},
    ]});
    script["chunk"] = json!(1000);
    script
}

async fn run(scenario: &Scenario) -> Vec<Value> {
    std::fs::write(scenario.path("data.json"), items().to_string()).unwrap();
    let wide = [
        "train.num_epochs=1",
        "train.batch_size=1600",
        "gradient.minibatch_size=200",
        "env.split_ratio=8:1:1",
        "env.workers=256",
        "model.target.max_concurrency=256",
        "model.max_retries=20",
        "optimizer.use_slow_update=false",
        "optimizer.use_meta_skill=false",
    ];
    let state = scenario.complete("one", &wide).await;
    assert!(state.best_score.is_some(), "{:?}", state.status);
    let mut events = engine_events(&scenario.path("runs/one"));
    events.remove(0);
    events.into_iter().map(without_fingerprints).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_thousand_items_no_score_is_wrong_lost_or_counted_twice() {
    let calm = Scenario::with(target_script(), optimizer_script(), "").await;
    let expected = run(&calm).await;
    let storm = Scenario::with(stormy(target_script()), stormy(optimizer_script()), "").await;
    let met = run(&storm).await;
    let (asked, needed) = (storm.target.count() as f64, calm.target.count() as f64);
    assert!(asked / needed > 1.25, "hardly a storm: {asked} of {needed}");

    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    let mut items = std::collections::HashSet::new();
    for record in records(&storm.path("runs/one")) {
        let (place, result) = match record.event {
            Event::RolloutFinished { key, result, .. } => (key.path, result),
            Event::EvaluationItemFinished { eval, result, .. } => (eval, result),
            _ => continue,
        };
        assert!(matches!(result, ItemResult::Scored(_)), "lost: {place}: {result:?}");
        items.insert(result.item().to_owned());
        *seen.entry((place, result.item().to_owned())).or_default() += 1;
    }
    assert_eq!(items.len(), ITEMS, "every item was measured");
    assert!(seen.values().all(|times| *times == 1), "counted twice");
    assert_eq!(met.len(), expected.len());
    for (met, expected) in met.iter().zip(&expected) {
        assert_eq!(met, expected, "wrong");
    }
}
