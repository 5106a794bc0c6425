use super::*;
use crate::domain::MachineSample;
use crate::event::LogLevel;

fn delta(path: &str, text: &str) -> Live {
    Live::CallDelta { path: path.into(), text: text.into() }
}

fn log(seq: u64) -> Arc<Record> {
    Arc::new(Record { seq, at: 0, event: Event::Log { level: LogLevel::Info, message: String::new() } })
}

fn decision(seq: u64) -> Arc<Record> {
    Arc::new(Record { seq, at: 0, event: Event::ConfigChanged { keys: vec![], changes: Vec::new() } })
}

async fn all(outbox: &Outbox) -> Vec<OutLine> {
    outbox.close();
    let mut lines = Vec::new();
    while let Some(more) = outbox.take(100).await {
        lines.extend(more);
    }
    lines
}

fn live(live: Live) -> OutLine {
    OutLine::Line(HostLine::Live(live))
}

#[tokio::test]
async fn text_of_one_call_is_joined_and_stays_in_order_with_its_other_lines() {
    let outbox = Outbox::new(CAPACITY);
    let retry = Live::CallRetrying { path: "a".into(), error: "500".into(), wait_ms: 1 };
    outbox.push_live(&delta("a", "x"));
    outbox.push_live(&delta("b", "1"));
    outbox.push_live(&delta("a", "y"));
    outbox.push_live(&retry);
    outbox.push_live(&delta("a", "z"));
    outbox.push_live(&delta("b", "2"));
    let expected = [delta("a", "xy"), delta("b", "12"), retry, delta("a", "z")].map(live);
    assert_eq!(all(&outbox).await, expected);
}

#[tokio::test]
async fn text_taken_once_is_not_sent_again() {
    let outbox = Outbox::new(CAPACITY);
    outbox.push_live(&delta("a", "x"));
    assert_eq!(outbox.take(10).await.unwrap(), [live(delta("a", "x"))]);
    outbox.push_live(&delta("a", "y"));
    assert_eq!(all(&outbox).await, [live(delta("a", "y"))]);
}

#[tokio::test]
async fn waiting_text_is_bounded() {
    let outbox = Outbox::new(CAPACITY);
    for _ in 0..100 {
        outbox.push_live(&delta("a", &"x".repeat(1024)));
    }
    let lines = all(&outbox).await;
    assert_eq!(lines[0], OutLine::Line(HostLine::Dropped { lines: 36 }));
    let OutLine::Line(HostLine::Live(Live::CallDelta { text, .. })) = &lines[1] else { panic!("{lines:?}") };
    assert_eq!(text.len(), DELTA_CAPACITY);
}

#[tokio::test]
async fn only_the_latest_throughput_and_sample_wait() {
    let outbox = Outbox::new(CAPACITY);
    let throughput = |n: usize| Live::Throughput { tokens_per_s: 1.0, in_flight: n };
    for n in 0..1000 {
        outbox.push_live(&throughput(n));
    }
    let machine = |rss: u64| Live::Machine(MachineSample { rss, ..MachineSample::default() });
    for n in 0..5 {
        outbox.push_live(&machine(n));
    }
    let taken = outbox.take(100).await;
    assert_eq!(taken, Some(vec![live(throughput(999)), live(machine(4))]));
    outbox.push_live(&machine(5));
    assert_eq!(all(&outbox).await, [live(machine(5))]);
}

#[tokio::test]
async fn old_logs_are_dropped_with_a_count_and_decisions_stay() {
    let outbox = Outbox::new(CAPACITY);
    outbox.push_record(decision(1));
    for seq in 2..=1_000_001 {
        outbox.push_record(log(seq));
    }
    outbox.push_record(decision(1_000_002));
    let lines = all(&outbox).await;
    assert_eq!(lines[0], OutLine::Line(HostLine::Dropped { lines: 1_000_000 - LOG_CAPACITY as u64 }));
    assert_eq!(lines[1], OutLine::Record(decision(1)));
    assert_eq!(lines.len(), LOG_CAPACITY + 3);
    assert_eq!(lines.last(), Some(&OutLine::Record(decision(1_000_002))));
}

#[tokio::test]
async fn an_overflow_leaves_only_the_word_resync() {
    let outbox = Outbox::new(4);
    for seq in 1..=6 {
        outbox.push_record(decision(seq));
    }
    assert!(outbox.overflowed() && outbox.is_closed());
    let lines = all(&outbox).await;
    let [OutLine::Line(HostLine::Error { message })] = &lines[..] else { panic!("{lines:?}") };
    assert!(message.starts_with("resync"));
}
