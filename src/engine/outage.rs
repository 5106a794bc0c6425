//! What a host that is down does to a run: the word of its circuit breaker becomes a pause and an alert, and the end of the
//! pause lets the held calls go. Owns one task; must not judge what an outage is.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::journal::{Journal, JournalError};
use super::steering::{Cancelled, Steering};
use crate::domain::Author;
use crate::event::{BREAKER, BREAKER_OPEN, Command, Event, LogLevel};
use crate::model::{Breakers, Opened};

/// Attends to the breakers until dropped.
pub fn attend(
    breakers: Arc<Breakers>,
    steering: Arc<Steering>,
    journal: Arc<Journal>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = run(&breakers, &steering, &journal).await {
            // The control flow meets the same journal and ends the run.
            eprintln!("error: {error}");
        }
        breakers.abandon();
    }))
}

async fn run(breakers: &Breakers, steering: &Steering, journal: &Journal) -> Result<(), JournalError> {
    let mut opened = breakers.attend();
    loop {
        let Ok(outage) = opened.wait_for(Option::is_some).await.map(|outage| outage.clone()) else {
            return Ok(());
        };
        let Some(outage) = outage else { continue };
        // Where a person has paused or cancelled the run already, their word stands.
        steering.steer(Command::Pause, Author(BREAKER.into()), None).await?;
        journal.outside(|state| {
            let name = state.info.as_ref().map_or("RUN", |info| &info.name);
            let (code, message) = (BREAKER_OPEN.to_owned(), words(&outage, name));
            Ok(Event::Alert { level: LogLevel::Error, code, message })
        })?;
        match steering.may_dispatch().await {
            Ok(()) => breakers.close(),
            Err(Cancelled) => return Ok(()),
        }
    }
}

fn words(outage: &Opened, run: &str) -> String {
    let Opened { host, failures, error } = outage;
    format!(
        "{host} gave no reply to {failures} calls in a row (the last: {error}); the run is paused and its calls hold, \
         nothing is lost: press p in the workbench or use `planish ctl {run} resume` to go on"
    )
}
