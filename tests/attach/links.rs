//! What the client's link does when hosts come and go.

use std::sync::Arc;

use planish::client::{ClientEvent, bridge};
use planish::event::{AckResult, HostLine, WatchRole};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};

use crate::fake_run::{decision, finished};
use crate::stage::{PROTO, Stage, decide, within};

fn lost(event: &ClientEvent) -> Option<String> {
    match event {
        ClientEvent::Lost(why) => Some(why.clone()),
        _ => None,
    }
}

fn restored(event: &ClientEvent) -> Option<()> {
    (*event == ClientEvent::Restored).then_some(())
}

#[tokio::test]
async fn a_link_survives_its_host_and_continues_where_it_was() {
    let mut stage = Stage::new();
    let mut ann = stage.attach("ann", WatchRole::Steer, 0).await;
    for n in 0..10 {
        stage.run.push(decision(n));
    }
    ann.records(0, 10).await;
    stage.kill_host();
    let why = ann.until(lost).await;
    assert!(!why.is_empty());

    ann.0.commands.send(decide("early", 0, 0)).await.unwrap();
    let (result, _) = ann.ack("early").await;
    assert!(
        matches!(&result, AckResult::Denied { reason } if reason.contains("planish resume")),
        "{result:?}"
    );

    for n in 10..20 {
        stage.run.push(decision(n));
    }
    stage.start_host();
    ann.until(restored).await;
    ann.records(10, 20).await;
    ann.0.commands.send(decide("again", 0, 0)).await.unwrap();
    assert_eq!(ann.ack("again").await.0, AckResult::Applied);
}

#[tokio::test]
async fn the_last_words_of_a_killed_host_are_read_from_the_journal() {
    let mut stage = Stage::new();
    let mut ann = stage.attach("ann", WatchRole::Watch, 0).await;
    let first = stage.run.push(decision(1));
    ann.records(0, first).await;
    stage.run.push_unheard(decision(2));
    stage.run.push_unheard(finished());
    stage.kill_host();
    ann.records(first, first + 2).await;
    ann.0.commands.send(decide("x", 0, 0)).await.unwrap();
    assert_eq!(ann.ack("x").await.0, AckResult::Denied { reason: "the run has ended".into() });
}

#[tokio::test]
async fn a_run_without_a_host_is_read_and_said_to_be_at_rest() {
    let mut stage = Stage::new();
    stage.stop_host().await;
    for n in 0..3 {
        stage.run.push(decision(n));
    }
    let mut ann = stage.attach("ann", WatchRole::Steer, 1).await;
    assert!(matches!(ann.next().await, ClientEvent::Line(HostLine::Welcome { last_seq: 3, .. })));
    ann.records(1, 3).await;
    assert!(ann.until(lost).await.contains("no host serves this run"));
}

#[tokio::test]
async fn a_folder_without_a_journal_is_an_error_that_names_it() {
    let mut stage = Stage::new();
    stage.stop_host().await;
    std::fs::remove_file(stage.run_dir.path().join("events.jsonl")).unwrap();
    let options = planish::client::ClientOptions {
        role: WatchRole::Watch,
        name: planish::domain::Author("ann".into()),
        live: false,
        glance: false,
        after_seq: 0,
    };
    let target = planish::client::Target::Folder(stage.run_dir.path().to_owned());
    let error = planish::client::open(target, options).await.err().unwrap().to_string();
    assert!(error.contains("no run at"), "{error}");
}

#[tokio::test]
async fn a_link_to_a_folder_that_is_gone_says_so_and_ends() {
    let mut stage = Stage::new();
    let mut ann = stage.attach("ann", WatchRole::Steer, 0).await;
    let last = stage.run.push(decision(0));
    ann.records(0, last).await;
    let moved = stage.run_dir.path().with_extension("moved");
    std::fs::rename(stage.run_dir.path(), &moved).unwrap();
    stage.hang_up();
    let message = ann
        .until(|event| match event {
            ClientEvent::Line(HostLine::Error { message }) => Some(message.clone()),
            _ => None,
        })
        .await;
    assert!(message.contains("is gone"), "{message}");
    assert_eq!(within(ann.0.events.recv()).await, None);
    std::fs::remove_dir_all(moved).unwrap();
}

/// Speaks through `bridge` as ssh would and returns the lines up to the ack of one command.
async fn through_bridge(stage: &Stage) -> Vec<HostLine> {
    let (near, far) = duplex(4096);
    let run_dir = Arc::new(stage.run_dir.path().to_owned());
    let bridged = tokio::spawn(async move {
        let (reader, writer) = split(far);
        bridge(&run_dir, reader, writer).await.unwrap();
    });
    let (reader, mut writer) = split(near);
    let hello = format!(
        "{{\"hello\":{{\"proto\":{PROTO},\"role\":\"steer\",\"name\":\"far\",\"after_seq\":0,\"live\":true}}}}\n"
    );
    writer.write_all(hello.as_bytes()).await.unwrap();
    let command = serde_json::to_string(&decide("far", 0, 0)).unwrap() + "\n";
    writer.write_all(command.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(reader).lines();
    let mut seen = Vec::new();
    loop {
        let line = within(lines.next_line()).await.unwrap().unwrap();
        seen.push(serde_json::from_str(&line).unwrap());
        if matches!(seen.last(), Some(HostLine::Ack { .. })) {
            break;
        }
    }
    drop((lines, writer));
    within(bridged).await.unwrap();
    seen
}

#[tokio::test]
async fn the_bridge_carries_a_live_run_and_serves_one_at_rest() {
    let mut stage = Stage::new();
    stage.run.push(decision(0));
    let live = through_bridge(&stage).await;
    assert!(matches!(live[0], HostLine::Welcome { last_seq: 1, .. }));
    assert!(matches!(live.last(), Some(HostLine::Ack { result: AckResult::Applied, .. })));

    stage.stop_host().await;
    let at_rest = through_bridge(&stage).await;
    assert!(matches!(at_rest[0], HostLine::Welcome { last_seq: 2, .. }));
    let ack = at_rest.last().unwrap();
    assert!(matches!(ack, HostLine::Ack { result: AckResult::Denied { .. }, .. }), "{ack:?}");
}

#[tokio::test]
async fn a_host_that_leaves_before_it_welcomes_is_no_error() {
    let mut stage = Stage::new();
    let last = stage.run.push(decision(0));
    stage.stop_host().await;
    // Announced and connectable, but hanging up: the last moment of a host.
    let folder = stage.run_dir.path().to_owned();
    let path = folder.join("leaving.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    planish::host::HostFile::of_this_process(&path).unwrap().write(&folder).unwrap();
    tokio::spawn(async move {
        let connection = listener.accept().await.unwrap();
        std::fs::remove_file(folder.join("host.json")).unwrap();
        drop(connection);
    });
    let mut late = stage.attach("late", WatchRole::Watch, 0).await;
    late.records(0, last).await;
}
