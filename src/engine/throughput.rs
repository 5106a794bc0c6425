//! Tokens per second and calls in flight, counted from the models' live news. Owns the one-second clock that
//! publishes them; nothing here is journaled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use crate::event::Live;
use crate::model::LiveSink;

const EVERY: Duration = Duration::from_secs(1);

/// What the models' news come to.
#[derive(Default)]
pub struct Meter {
    tokens: AtomicU64,
    in_flight: AtomicUsize,
}

impl Meter {
    /// Of this process.
    pub fn tokens(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

/// A sink that passes news on to `live` and counts it in the meter, and the task that publishes the counts while it is held.
/// Nothing is published while nothing happens.
pub fn metered(live: broadcast::Sender<Arc<Live>>) -> (LiveSink, Arc<Meter>, AbortOnDropHandle<()>) {
    let meter = Arc::new(Meter::default());
    let (counted, published) = (meter.clone(), live.clone());
    let sink: LiveSink = Arc::new(move |news| {
        match &news {
            // A retry starts the same call again.
            Live::CallStarted { attempt: 1, .. } => {
                counted.in_flight.fetch_add(1, Ordering::Relaxed);
            }
            Live::CallFinished { tokens, .. } => {
                counted.tokens.fetch_add(*tokens, Ordering::Relaxed);
                let less = |calls: usize| Some(calls.saturating_sub(1));
                let _ = counted.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            Live::CallStarted { .. }
            | Live::CallDelta { .. }
            | Live::CallRetrying { .. }
            | Live::Throughput { .. }
            | Live::Machine(_) => {}
        }
        // No client is fine.
        let _ = published.send(Arc::new(news));
    });
    let clock = AbortOnDropHandle::new(tokio::spawn(publish(meter.clone(), live)));
    (sink, meter, clock)
}

async fn publish(meter: Arc<Meter>, live: broadcast::Sender<Arc<Live>>) {
    let mut clock = interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    clock.tick().await;
    let mut last = (Instant::now(), 0);
    let mut quiet = true;
    loop {
        let now = clock.tick().await;
        let (tokens, in_flight) = (meter.tokens(), meter.in_flight());
        let tokens_per_s = (tokens - last.1) as f64 / now.duration_since(last.0).as_secs_f64();
        last = (now, tokens);
        let idle = tokens_per_s == 0.0 && in_flight == 0;
        if !(idle && quiet) {
            let _ = live.send(Arc::new(Live::Throughput { tokens_per_s, in_flight }));
        }
        quiet = idle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(tokens: u64) -> Live {
        Live::CallFinished { path: "p".into(), ok: true, tokens, ms: 1 }
    }

    fn started(attempt: u32) -> Live {
        Live::CallStarted { path: "p".into(), item: "i".into(), attempt }
    }

    #[tokio::test(start_paused = true)]
    async fn counts_tokens_per_second_and_falls_silent_after_one_zero() {
        let (live, mut heard) = broadcast::channel(64);
        let (sink, _meter, _clock) = metered(live);
        tokio::task::yield_now().await;
        sink(started(1));
        sink(started(2));
        sink(started(1));
        sink(finished(30));
        tokio::time::sleep(Duration::from_millis(4500)).await;
        sink(finished(12));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut rates = Vec::new();
        while let Ok(news) = heard.try_recv() {
            if let Live::Throughput { tokens_per_s, in_flight } = &*news {
                rates.push((tokens_per_s.round() as u64, *in_flight));
            }
        }
        assert_eq!(rates, [(30, 1), (0, 1), (0, 1), (0, 1), (12, 0), (0, 0)]);
    }
}
