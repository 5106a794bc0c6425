//! Kill -9 and the hard budget: what a killed host had sent counts, so the cap holds over all hosts together.

use planish::event::{EndStatus, RunStatus};
use serde_json::json;

use crate::host::Task;
use crate::scenario::{Scenario, fold, optimizer_script, target_script};

const CAP: u64 = 100;

#[test]
fn the_cap_holds_over_killed_hosts_and_a_higher_one_goes_on() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut target = target_script();
    let fault = json!({"fault": "status", "status": 500, "headers": {"retry-after-ms": "1"}});
    target["chaos"] = json!({"seed": 2, "rate": 0.3, "faults": [fault]});
    // Slow enough that a kill meets calls under way.
    target["latency_ms"] = json!(20);
    let scenario = runtime.block_on(Scenario::with(target, optimizer_script(), ""));
    let task = Task {
        config: scenario.path("run.toml"),
        overrides: vec![format!("budget.max_calls={CAP}"), "model.max_retries=12".into()],
        folder: scenario.path(""),
        servers: [&scenario.target, &scenario.optimizer],
    };
    let sent = || scenario.target.count() + scenario.optimizer.count();
    for kill_at in [5, 12, 20, 30] {
        task.drive("one", Some(kill_at));
    }
    assert!(sent() < CAP, "the kills came too late");
    assert_eq!(task.exit_code("one", &[]), Some(4));
    assert!(sent() <= CAP, "{} calls were sent", sent());
    let state = fold(&task.run("one"));
    let RunStatus::Ended { status: EndStatus::BudgetExhausted, reason } = &state.status else {
        panic!("{:?}", state.status)
    };
    assert!(reason.contains("100 calls used, budget.max_calls = 100"), "{reason}");
    // The screens know of attempts under way when a host was killed, too; not of a reply that it did not store.
    let (told, sent_so_far) = (state.total_usage().calls, sent());
    assert!(told <= CAP && told + 4 * 4 >= sent_so_far, "{sent_so_far} sent, {told} told");
    assert_eq!(task.exit_code("one", &["budget.max_calls=1000"]), Some(0));
    assert!(fold(&task.run("one")).test.is_some());
}
