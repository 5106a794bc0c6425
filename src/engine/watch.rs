//! Looks at a run from outside its control flow: what it takes of the machine, and whether anything happens at all. Owns one
//! clock; it never changes what the run does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use super::journal::{Journal, JournalError, now_ms};
use super::throughput::Meter;
use crate::event::{Event, Live, LogLevel, RunState, RunStatus};
use crate::telemetry::Sampler;

const EVERY: Duration = Duration::from_secs(2);
/// Ticks of working time between two samples in the journal: 30 s.
const JOURNALED: u32 = 15;

/// Watches until dropped.
pub fn watch(
    journal: Arc<Journal>,
    meter: Arc<Meter>,
    live: broadcast::Sender<Arc<Live>>,
) -> AbortOnDropHandle<()> {
    let watch = Watch { journal, meter, live };
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = watch.run().await {
            // The control flow meets the same journal and ends the run.
            eprintln!("error: {error}");
        }
    }))
}

struct Watch {
    journal: Arc<Journal>,
    meter: Arc<Meter>,
    live: broadcast::Sender<Arc<Live>>,
}

impl Watch {
    async fn run(&self) -> Result<(), JournalError> {
        let mut sampler = self.sampler().await?;
        let mut clock = interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        clock.tick().await;
        let (mut worked, mut tokens, mut told) = (0, self.meter.tokens(), 0);
        loop {
            clock.tick().await;
            let (works, stalled) =
                self.journal.with_state(|state| (works(state), stalled_since(state, now_ms())));
            if let Some(since) = stalled.filter(|since| *since != told) {
                told = since;
                self.alert()?;
            }
            if !works && self.live.receiver_count() == 0 {
                continue;
            }
            let Some(mut taking) = sampler.take() else { continue };
            let taken = tokio::task::spawn_blocking(move || {
                let sample = taking.sample();
                (taking, sample)
            });
            let Ok((used, sample)) = taken.await else { continue };
            sampler = Some(used);
            // No client is fine.
            let _ = self.live.send(Arc::new(Live::Machine(sample.clone())));
            if !works {
                continue;
            }
            worked += 1;
            if worked == JOURNALED {
                worked = 0;
                let seconds = EVERY.as_secs_f64() * f64::from(JOURNALED);
                let tokens_per_s = (self.meter.tokens() - tokens) as f64 / seconds;
                tokens = self.meter.tokens();
                let in_flight = self.meter.in_flight();
                self.journal.outside(|_| Ok(Event::MachineSampled { sample, tokens_per_s, in_flight }))?;
            }
        }
    }

    /// `None` where the system tells nothing about itself, which is said once.
    async fn sampler(&self) -> Result<Option<Sampler>, JournalError> {
        let made = tokio::task::spawn_blocking(Sampler::new).await.map_err(|error| error.to_string());
        match made.and_then(std::convert::identity) {
            Ok(sampler) => Ok(Some(sampler)),
            Err(why) => {
                let message = format!("the machine is not sampled: {why}");
                self.journal.outside(|_| Ok(Event::Log { level: LogLevel::Warn, message }))?;
                Ok(None)
            }
        }
    }

    fn alert(&self) -> Result<(), JournalError> {
        let calls = match self.meter.in_flight() {
            0 => "no call is in flight".to_owned(),
            1 => "1 call is in flight; requeue or cancel it".to_owned(),
            n => format!("{n} calls are in flight; requeue or cancel one"),
        };
        self.journal.outside(|state| {
            let phase = state.phase.map_or("the beginning", |phase| phase.name());
            let limit = state.stall_limit_ms().unwrap_or_default() / 1000;
            let message = format!("nothing has happened for {limit} s in {phase}; {calls}");
            Ok(Event::Alert { level: LogLevel::Warn, code: "stalled".into(), message })
        })?;
        Ok(())
    }
}

/// It has something to do that waits for no person.
fn works(state: &RunState) -> bool {
    matches!(state.status, RunStatus::Running | RunStatus::Cancelling { .. }) && state.open_review().is_none()
}

/// Since when a working run has told nothing, if that is longer than the limit; 0 is none.
fn stalled_since(state: &RunState, now: u64) -> Option<u64> {
    let silent = now.saturating_sub(state.progress_at) > state.stall_limit_ms()?;
    (works(state) && silent).then_some(state.progress_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, MachineSample};
    use crate::event::Record;

    #[test]
    fn a_working_run_is_stalled_when_nothing_but_samples_and_alerts_is_told() {
        let mut state = RunState { status: RunStatus::Running, progress_at: 1_000, ..RunState::default() };
        let limit = |seconds: u64| serde_json::json!({ "engine": { "stall_alert_s": seconds } });
        state.config = limit(10);
        assert_eq!(stalled_since(&state, 11_000), None);
        assert_eq!(stalled_since(&state, 11_001), Some(1_000));
        state.config = limit(0);
        assert_eq!(stalled_since(&state, 1_000_000), None);
        state.config = limit(10);
        let sampled =
            Event::MachineSampled { sample: MachineSample::default(), tokens_per_s: 0.0, in_flight: 1 };
        let alert = Event::Alert { level: LogLevel::Warn, code: "stalled".into(), message: String::new() };
        for (event, seq) in [sampled, alert].into_iter().zip(1..) {
            state.apply(&Record { seq, at: 9_000, event });
        }
        assert_eq!(stalled_since(&state, 11_001), Some(1_000));
        state.status = RunStatus::Paused { by: Author("ann".into()) };
        assert_eq!(stalled_since(&state, 1_000_000), None);
    }
}
