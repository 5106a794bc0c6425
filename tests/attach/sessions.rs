//! What a host does with one connection and with several.

use planish::client::ClientEvent;
use planish::domain::Author;
use planish::event::{AckResult, ClientLine, Command, HostLine, Live, WatchRole};
use planish::host::HostFile;

use crate::fake_run::{decision, finished, log};
use crate::stage::{PROTO, Stage, decide};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_decisions_at_once_the_second_gets_conflict_with_the_firsts_name() {
    let stage = Stage::new();
    let mut ann = stage.attach("ann@pts/1", WatchRole::Steer, 0).await;
    let mut bob = stage.attach("bob@pts/2", WatchRole::Steer, 0).await;
    let (to_ann, to_bob) = (ann.0.commands.clone(), bob.0.commands.clone());
    let (sent, sent_too) = tokio::join!(to_ann.send(decide("a", 0, 0)), to_bob.send(decide("b", 0, 0)));
    sent.and(sent_too).unwrap();

    let (of_ann, of_bob) = (ann.ack("a").await.0, bob.ack("b").await.0);
    let by = |name: &str| AckResult::Conflict { by: Author(name.into()), detail: "decided before".into() };
    let first_wins = (of_ann == AckResult::Applied && of_bob == by("ann@pts/1"))
        || (of_bob == AckResult::Applied && of_ann == by("bob@pts/2"));
    assert!(first_wins, "{of_ann:?} {of_bob:?}");
    assert_eq!(stage.run.last_seq(), 1);
}

#[tokio::test]
async fn a_repeated_command_gets_the_first_answer_and_changes_nothing() {
    let stage = Stage::new();
    let mut raw = stage.raw().await;
    raw.hello(PROTO, 0).await;
    let mut acks = Vec::new();
    for _ in 0..2 {
        raw.send_line(&decide("once", 0, 0)).await;
    }
    while acks.len() < 2 {
        if let HostLine::Ack { result, rev, .. } = raw.line().await.unwrap() {
            acks.push((result, rev));
        }
    }
    assert_eq!(acks, [(AckResult::Applied, 1), (AckResult::Applied, 1)]);
    assert_eq!(stage.run.last_seq(), 1);
}

#[tokio::test]
async fn a_watcher_may_not_give_commands() {
    let stage = Stage::new();
    let mut eve = stage.attach("eve", WatchRole::Watch, 0).await;
    eve.0.commands.send(decide("x", 0, 0)).await.unwrap();
    let (result, _) = eve.ack("x").await;
    assert_eq!(result, AckResult::Denied { reason: "this client only watches".into() });
    assert_eq!(stage.run.last_seq(), 0);
}

#[tokio::test]
async fn everyone_sees_who_is_connected() {
    let stage = Stage::new();
    let mut ann = stage.attach("ann", WatchRole::Steer, 0).await;
    let bob = stage.attach("bob\u{1b}[2J", WatchRole::Watch, 0).await;
    let names = |event: &ClientEvent| match event {
        ClientEvent::Line(HostLine::Clients(clients)) => {
            Some(clients.iter().map(|client| client.name.0.clone()).collect::<Vec<_>>())
        }
        _ => None,
    };
    // Control characters in a name are removed.
    ann.until(|event| names(event).filter(|names| names[..] == ["ann", "bob[2J"])).await;
    drop(bob);
    ann.until(|event| names(event).filter(|names| names[..] == ["ann"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_follow_after_seq_without_gap_while_the_run_goes_on() {
    let stage = Stage::new();
    for n in 0..500 {
        stage.run.push(decision(n));
    }
    let run = stage.run.clone();
    let writer = tokio::task::spawn_blocking(move || {
        for n in 0..5000 {
            run.push(decision(n));
        }
    });
    let mut early = stage.attach("early", WatchRole::Watch, 0).await;
    let mut late = stage.attach("late", WatchRole::Watch, 321).await;
    early.records(0, 5500).await;
    late.records(321, 5500).await;
    writer.await.unwrap();
}

#[tokio::test]
async fn a_stuck_client_blocks_nobody_and_resyncs_when_it_comes_back() {
    let stage = Stage::new();
    let mut stuck = stage.raw().await;
    stuck.hello(PROTO, 0).await;
    assert!(matches!(stuck.line().await, Some(HostLine::Welcome { .. })));
    let mut quick = stage.attach("quick", WatchRole::Watch, 0).await;

    // More than a client's queue and the socket's buffers hold.
    let text = "x".repeat(500);
    let mut last = 0;
    for round in 0..200 {
        for n in 0..100 {
            last = stage.run.push(decision(n));
            stage.run.push_live(Live::CallDelta { path: "p".into(), text: text.clone() });
        }
        quick.records(round * 100, last).await;
    }
    assert!(stuck.final_error().await.starts_with("resync"));

    let mut back = stage.attach("back", WatchRole::Watch, 7).await;
    back.records(7, last).await;
}

#[tokio::test]
async fn a_slow_client_misses_logs_with_a_count_but_no_decision() {
    let stage = Stage::new();
    let mut slow = stage.raw().await;
    slow.hello(PROTO, 0).await;
    assert!(matches!(slow.line().await, Some(HostLine::Welcome { .. })));
    let mut quick = stage.attach("quick", WatchRole::Watch, 0).await;
    let text = "x".repeat(4000);
    let mut sent = 0;
    for round in 0..100 {
        stage.run.push(decision(round));
        for _ in 0..20 {
            sent = stage.run.push(log(&text));
        }
        quick.records(round * 21, sent).await;
    }
    let last = stage.run.push(decision(100));

    let (mut logs, mut decisions, mut dropped, mut seq) = (0, 0, 0, 0);
    while seq < last {
        match slow.line().await.expect("disconnected") {
            HostLine::Event(record) => {
                assert!(record.seq > seq);
                seq = record.seq;
                match record.event {
                    planish::event::Event::Log { .. } => logs += 1,
                    _ => decisions += 1,
                }
            }
            HostLine::Dropped { lines } => dropped += lines,
            _ => {}
        }
    }
    assert_eq!(decisions, 101);
    assert!(dropped > 0);
    assert_eq!(logs + dropped, 2000);
}

#[tokio::test]
async fn broken_lines_are_answered_and_the_connection_ends() {
    let stage = Stage::new();
    let too_long = [&vec![b'x'; 2 * 1024 * 1024][..], b"\n"].concat();
    for (bytes, expected) in [
        (&b"{nonsense\n"[..], "malformed line"),
        (b"\xff\xfe\n", "malformed line"),
        (&too_long, "longer than 1048576 bytes"),
    ] {
        let mut before_hello = stage.raw().await;
        before_hello.send(bytes).await;
        let error = before_hello.final_error().await;
        assert!(error.contains(expected), "{error}");

        let mut after_hello = stage.raw().await;
        after_hello.hello(PROTO, 0).await;
        after_hello.send(bytes).await;
        let error = after_hello.final_error().await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_connection_begins_with_one_hello_of_the_same_protocol() {
    let stage = Stage::new();
    let mut newer = stage.raw().await;
    newer.hello(PROTO + 1, 0).await;
    assert!(newer.final_error().await.contains("use the same version"));

    let mut rude = stage.raw().await;
    rude.send_line(&ClientLine::Command { cmd_id: "1".into(), expect_rev: None, body: Command::Pause }).await;
    assert!(rude.final_error().await.contains("must be a hello"));

    let mut twice = stage.raw().await;
    twice.hello(PROTO, 0).await;
    twice.hello(PROTO, 0).await;
    assert!(twice.final_error().await.contains("already said"));
    assert_eq!(stage.run.last_seq(), 0);
}

#[tokio::test]
async fn the_welcome_tells_where_the_journal_ends() {
    let stage = Stage::new();
    for n in 0..5 {
        stage.run.push(decision(n));
    }
    for after in [0, 3, 5, 99] {
        let mut raw = stage.raw().await;
        raw.hello(PROTO, after).await;
        let line = raw.line().await.unwrap();
        assert!(matches!(line, HostLine::Welcome { last_seq: 5, .. }), "after {after}: {line:?}");
    }
}

#[tokio::test]
async fn a_host_leaves_after_the_end_and_takes_its_files_along() {
    let mut stage = Stage::new();
    let mut ann = stage.attach("ann", WatchRole::Steer, 0).await;
    let last = stage.run.push(finished());
    ann.records(0, last).await;
    drop(ann);
    stage.host_left().await;
    assert_eq!(HostFile::read(stage.run_dir.path()).unwrap(), None);
    assert_eq!(stage.sockets(), 0);
}

#[tokio::test]
async fn a_client_that_stays_does_not_keep_a_finished_host() {
    let mut stage = Stage::new();
    let mut raw = stage.raw().await;
    raw.hello(PROTO, 0).await;
    while !matches!(raw.line().await, Some(HostLine::Clients(_))) {}
    let last = stage.run.push(finished());
    stage.host_left().await;
    let mut seen = 0;
    while let Some(line) = raw.line().await {
        if let HostLine::Event(record) = line {
            seen = record.seq;
        }
    }
    assert_eq!(seen, last);
}
