//! A long run is shown before its history has been read, with a host and without.

use planish::client::{ClientEvent, ClientOptions, Target, open};
use planish::domain::Author;
use planish::event::{HostLine, LONG_RUN, RunState, WatchRole};
use planish::store::{RunDir, read_records, write_snapshot};
use planish::tui::{App, Identity, Msg};

use crate::fake_run::decision;
use crate::stage::{Stage, within};

async fn events(stage: &Stage) -> planish::client::Connection {
    let name = Author("ann".into());
    let options = ClientOptions { role: WatchRole::Watch, name, live: false, glance: true, after_seq: 0 };
    within(open(Target::Folder(stage.run_dir.path().to_owned()), options)).await.unwrap()
}

/// Feeds an app until it holds the whole run; says what its state was when the glance had come.
async fn watch(stage: &Stage) -> (Option<RunState>, RunState) {
    let identity = Identity { name: Author("ann".into()), read_only: true, client_id: "c".into() };
    let mut app = App::new(identity, (80, 24), 0);
    let mut connection = events(stage).await;
    let mut glanced = None;
    let last = stage.run.last_seq();
    while app.state.seq < last || app.history_read().is_some() {
        let event = within(connection.events.recv()).await.unwrap();
        let is_glance = matches!(event, ClientEvent::Line(HostLine::Glance(_)));
        app.update(Msg::Client(event));
        if is_glance {
            glanced = Some(app.state.clone());
        }
    }
    (glanced, app.state)
}

fn fill(stage: &Stage) {
    for n in 0..LONG_RUN {
        stage.run.push(decision(n));
    }
}

fn whole(stage: &Stage) -> (RunDir, RunState) {
    let run = RunDir::open(stage.run_dir.path()).unwrap();
    let state = RunState::fold(&read_records(&run).unwrap());
    (run, state)
}

#[tokio::test]
async fn a_host_gives_a_glance_at_a_long_run_first() {
    let stage = Stage::new();
    let (glanced, _) = watch(&stage).await;
    assert_eq!(glanced, None, "a short run is just read");
    fill(&stage);
    let (_, expected) = whole(&stage);
    let (glanced, state) = watch(&stage).await;
    assert_eq!(glanced, Some(expected.glance()));
    assert_eq!(state, expected);
}

#[tokio::test]
async fn so_does_the_snapshot_of_a_run_without_a_host() {
    let mut stage = Stage::new();
    fill(&stage);
    stage.stop_host().await;
    let (run, expected) = whole(&stage);
    let (glanced, state) = watch(&stage).await;
    assert_eq!((glanced, &state), (None, &expected), "without a snapshot the journal is read");
    let bytes = std::fs::metadata(run.events()).unwrap().len();
    write_snapshot(&run, &expected, bytes).unwrap();
    let (glanced, state) = watch(&stage).await;
    assert_eq!(glanced, Some(expected.glance()));
    assert_eq!(state, expected);
}
