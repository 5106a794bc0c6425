//! Every mode and option of the optimiser, one small configuration each: it finishes, leaves its files and events,
//! keeps protected regions, does not depend on concurrency, and repairs malformed replies.
#![allow(clippy::unwrap_used, clippy::panic)]

mod expect;
mod faults;
mod hostile;
#[path = "../support/lanterns.rs"]
#[allow(dead_code)]
#[macro_use]
mod lanterns;
mod regions;
mod repair;
#[path = "../support/scenario.rs"]
#[allow(dead_code)]
mod scenario;
mod verdicts;

use lanterns::{Finished, Lanterns, names};
use scenario::engine_events;
use serde_json::Value;

const FILES: [&str; 8] = [
    "best_skill.md",
    "config.json",
    "history.json",
    "runtime_state.json",
    "selection_eval_baseline/results.jsonl",
    "skills/skill_v0000.md",
    "summary.json",
    "test_eval/summary.json",
];

/// Runs a configuration twice and looks at what it left.
async fn finishes(name: &str, expect: fn(&Finished, &Lanterns)) {
    let lanterns = Lanterns::new(name).await;
    let run = lanterns.complete("wide", &["env.workers=16", "gradient.analyst_workers=16"]).await;
    for file in FILES {
        assert!(run.has(file), "{name}: no {file}");
    }
    let history = run.json("history.json");
    assert_eq!(history.as_array().unwrap().len(), run.state.steps.len());
    regions::survive(&run);
    verdicts::rest_on_measured_texts(&run);
    verdicts::cost_no_call_twice(&lanterns);
    expect(&run, &lanterns);

    lanterns.complete("narrow", &["env.workers=1", "gradient.analyst_workers=1"]).await;
    let events = |run: &str| {
        let mut events = engine_events(&lanterns.run(run));
        events[0]["run_started"]["config"]["gradient"]["analyst_workers"] = Value::Null;
        events
    };
    let (wide, narrow) = (events("wide"), events("narrow"));
    for (place, (wide, narrow)) in wide.iter().zip(&narrow).enumerate() {
        assert_eq!(wide, narrow, "{name}: engine event {place} depends on concurrency");
    }
    assert_eq!(wide.len(), narrow.len());
}

macro_rules! modes {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            finishes(stringify!($name), expect::$name).await;
        })*
    };
}

every_configuration!(modes);

#[test]
fn every_configuration_is_tested() {
    assert_eq!(names(), TESTED);
}
