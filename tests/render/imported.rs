//! What a run that another program made looks like.

use std::path::Path;

use planish::engine::imported_journal;
use planish::event::HostLine;
use planish::store::foreign::ForeignRun;
use planish::tui::{App, Msg, Pane};

use crate::client::{app, hear, text, welcome};
use crate::{SIZES, show};

/// The recorded run, as if it lay elsewhere and ended at a known time.
fn imported(size: (u16, u16)) -> App {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/skillopt_run");
    let mut run = ForeignRun::open(&folder).unwrap();
    run.folder = "/data/skillopt_run".into();
    run.ended_at = 1_764_435_600_000;
    let records = imported_journal(&run, "old");
    let mut app = app(size);
    hear(&mut app, welcome(records.len() as u64));
    for record in records {
        hear(&mut app, HostLine::Event(Box::new(record)));
    }
    app.update(Msg::Tick(run.ended_at + 3_000));
    app
}

#[test]
fn an_imported_run() {
    let told: [(Pane, &[&str]); 5] = [
        (Pane::Steps, &["■ END  imported", "6 of 6", "★ 4        1.000 +0.167", "slow update", "meta skill"]),
        (Pane::Rollouts, &["q206     1.00", "base"]),
        (Pane::Patch, &["step 6  1 edit", "append  - GOOD-6", "accepted without review"]),
        (
            Pane::Gate,
            &["IMPORTED RUN", "imported from /data/skillopt_run, 6 steps done", "base 0.00 → best 1.00"],
        ),
        (Pane::Logs, &["test: base 0.00 → best 1.00"]),
    ];
    for (pane, parts) in told {
        let mut app = imported(SIZES[2]);
        show(&mut app, pane);
        let screen = text(&app);
        for part in parts {
            assert!(screen.contains(part), "{part} on {pane:?}:\n{screen}");
        }
    }
}
