//! Plays a recording: its records in order, paced by their times. No host, model or key.

use std::time::Duration;

use tokio::sync::mpsc;

use super::ClientEvent;
use super::link::Connection;
use crate::event::{AckResult, ClientLine, HostLine, PROTOCOL, Record};

/// Longest pause between two records, whatever the recording says.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Starts playing. `speed` divides the pauses; infinite: none. Records keep the times at which they happened.
pub fn replay(run: String, records: Vec<Record>, speed: f64) -> Connection {
    let (events, receiver) = mpsc::channel(1024);
    let (sender, mut commands) = mpsc::channel::<ClientLine>(64);
    let denials = events.clone();
    tokio::spawn(async move {
        while let Some(line) = commands.recv().await {
            if let ClientLine::Command { cmd_id, .. } = line {
                let result = AckResult::Denied { reason: "this is a recording".into() };
                let ack = HostLine::Ack { cmd_id, result, rev: 0 };
                if denials.send(ClientEvent::Line(ack)).await.is_err() {
                    return;
                }
            }
        }
    });
    tokio::spawn(async move {
        let welcome = HostLine::Welcome {
            proto: PROTOCOL,
            run,
            run_dir: String::new(),
            last_seq: records.last().map_or(0, |record| record.seq),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        for event in [ClientEvent::Recording, ClientEvent::Line(welcome)] {
            if events.send(event).await.is_err() {
                return;
            }
        }
        let mut previous = records.first().map_or(0, |record| record.at);
        for record in records {
            let pause = pause(record.at.saturating_sub(previous), speed);
            previous = record.at;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            if events.send(ClientEvent::Line(HostLine::Event(Box::new(record)))).await.is_err() {
                return;
            }
        }
    });
    Connection { events: receiver, commands: sender }
}

fn pause(gap_ms: u64, speed: f64) -> Duration {
    Duration::try_from_secs_f64(gap_ms as f64 / 1000.0 / speed)
        .map_or(LONGEST_PAUSE, |gap| gap.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    #[test]
    fn pauses_are_scaled_and_bounded() {
        assert_eq!(pause(1000, 2.0), Duration::from_millis(500));
        assert_eq!(pause(1000, f64::INFINITY), Duration::ZERO);
        assert_eq!(pause(u64::MAX, 0.001), LONGEST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn records_come_in_order_and_commands_are_denied() {
        let record = |seq: u64| Record {
            seq,
            at: seq * 1000,
            event: Event::ConfigChanged { keys: vec![], changes: Vec::new() },
        };
        let mut played = replay("demo".into(), vec![record(1), record(2), record(3)], 1.0);
        assert_eq!(played.events.recv().await, Some(ClientEvent::Recording));
        let began = tokio::time::Instant::now();
        assert!(matches!(
            played.events.recv().await,
            Some(ClientEvent::Line(HostLine::Welcome { last_seq: 3, .. }))
        ));
        for seq in 1..=3 {
            let expected = ClientEvent::Line(HostLine::Event(Box::new(record(seq))));
            assert_eq!(played.events.recv().await, Some(expected));
        }
        assert_eq!(began.elapsed().as_secs(), 2);
        let body = crate::event::Command::Pause;
        played
            .commands
            .send(ClientLine::Command { cmd_id: "1".into(), expect_rev: None, body })
            .await
            .unwrap();
        let ack = played.events.recv().await;
        assert!(matches!(
            ack,
            Some(ClientEvent::Line(HostLine::Ack { result: AckResult::Denied { .. }, .. }))
        ));
    }
}
