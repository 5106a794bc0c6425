//! Kill -9 at any instant: the resumed run ends in the same bytes, and no recorded call is made twice.
#![allow(clippy::unwrap_used, clippy::panic)]

mod budget;
mod flight;
mod host;
#[path = "../support/lanterns.rs"]
#[allow(dead_code)]
#[macro_use]
mod lanterns;
#[path = "../support/scenario.rs"]
#[allow(dead_code)]
mod scenario;
mod stages;

use host::{Task, engine_len, outcome};
use scenario::Scenario;

/// Hosts killed in all, spread evenly over all journal positions in groups of `CHAINS` runs.
const KILLS: usize = 100;
const CHAINS: usize = 10;

#[test]
fn a_hundred_kills_change_nothing_and_repeat_no_recorded_call() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let scenario = runtime.block_on(Scenario::new(""));
    let task = Task {
        config: scenario.path("run.toml"),
        overrides: Vec::new(),
        folder: scenario.path(""),
        servers: [&scenario.target, &scenario.optimizer],
    };
    task.drive("undisturbed", None);
    let expected = outcome(&task.run("undisturbed"));
    let events = engine_len(&task.run("undisturbed"));
    assert!(events >= KILLS as u64, "the scenario has only {events} events");

    let mut kills = 0;
    for chain in 0.. {
        let name = format!("chain{chain}");
        let run = task.run(&name);
        let mut completed = false;
        for nth in 0..KILLS / CHAINS {
            let wanted = 1 + (nth * CHAINS + chain % CHAINS) as u64 * events / KILLS as u64;
            completed = task.drive(&name, Some(wanted.max(engine_len(&run) + 1)));
            if completed {
                break;
            }
            kills += 1;
        }
        if !completed {
            task.drive(&name, None);
        }
        for (file, text) in outcome(&run) {
            assert_eq!(text, expected[&file], "{file} of {name} differs from the undisturbed run");
        }
        if kills >= KILLS {
            break;
        }
        assert!(chain < 3 * CHAINS, "only {kills} kills came in time");
    }
}
