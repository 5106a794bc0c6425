//! `--foreground`: the engine in this process, its news on stdout. Other clients may attach all the same.

use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::report::{Launch, Report};
use super::run::Viewing;
use super::{Failure, assembly, exit, failure, output};
use crate::client::author_here;
use crate::engine::RunService;
use crate::event::{Command, HostLine, Record, RunStatus};
use crate::host::{HostSocket, runtime_dir, serve};
use crate::plain::PlainRenderer;
use crate::store::RunDir;

/// Runs to the end, also when its stdout or its terminal goes away. The first ctrl-c (or SIGTERM) asks the run to stop at
/// the next boundary, the second leaves at once; either way the journal stays resumable.
pub async fn foreground(run: &RunDir, viewing: &Viewing) -> Result<u8, Failure> {
    runtime_dir().map_err(|error| Failure::usage(error.to_string()))?;
    // Listened to from here on, so that no ctrl-c falls between two waits.
    let listen =
        |kind| signal(kind).map_err(|error| Failure::run(format!("cannot listen for signals: {error}")));
    let mut stops =
        Stops { interrupt: listen(SignalKind::interrupt())?, term: listen(SignalKind::terminate())? };
    // Once listened to, a hangup no longer ends the process.
    let _hangup = listen(SignalKind::hangup())?;
    let service = assembly::start_engine(run).await?;
    let socket = HostSocket::bind(run.path()).map_err(|error| Failure::usage(error.to_string()))?;

    let stop = CancellationToken::new();
    let (announce, announced) = tokio::sync::oneshot::channel();
    let served = tokio::spawn({
        let (service, stop, folder) = (Arc::clone(&service), stop.clone(), run.path().to_owned());
        async move { serve(service, socket, &folder, stop, |file| drop(announce.send(file.clone()))).await }
    });
    match announced.await {
        Ok(file) if viewing.json => heard(output::json(&Launch::new(run, &file).line()))?,
        Ok(_) => {}
        Err(_) => {
            let why = match served.await {
                Ok(Err(error)) => error.to_string(),
                _ => "the host task ended".to_owned(),
            };
            return Err(Failure::run(why));
        }
    }

    let mut teller = Teller::new(viewing);
    let outcome = tokio::select! {
        outcome = follow(service.as_ref(), &mut teller) => outcome,
        () = interrupted(service.as_ref(), &mut stops) => Ok(Ending::Interrupted),
    };
    let code = match outcome? {
        Ending::Over => {
            if viewing.json {
                heard(output::json(&teller.report.done(run.path())))?;
            }
            failure::code_of(teller.report.state(), viewing.require_improvement)
        }
        Ending::Interrupted => exit::INTERRUPTED,
        Ending::EngineGone => {
            return Err(Failure::run(
                "the engine stopped without ending the run; `planish resume` continues it",
            ));
        }
    };
    stop.cancel();
    let _ = served.await;
    Ok(code)
}

enum Ending {
    Over,
    Interrupted,
    EngineGone,
}

/// Returns at the second ctrl-c; the first one asks the run to stop.
/// What asks the run to stop.
struct Stops {
    interrupt: Signal,
    term: Signal,
}

impl Stops {
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.term.recv() => {}
        }
    }
}

/// A reader that has gone does not stop the run.
fn heard(told: Result<(), Failure>) -> Result<(), Failure> {
    match told {
        Err(Failure::Quiet) => Ok(()),
        other => other,
    }
}

async fn interrupted(service: &dyn RunService, stops: &mut Stops) {
    stops.recv().await;
    output::note(
        "stopping at the next boundary; press ctrl-c again to leave at once (the run stays resumable)",
    );
    let cancel = service.steer(Command::Cancel, author_here(), None);
    tokio::join!(cancel, stops.recv());
}

async fn follow(service: &dyn RunService, teller: &mut Teller) -> Result<Ending, Failure> {
    let mut ended = service.ended();
    let (backlog, mut later) = service.records(0);
    backlog.iter().try_for_each(|record| teller.tell(record))?;
    // An end in the backlog may be one that this start undoes.
    loop {
        tokio::select! {
            records = next(service, &mut later, teller.seq()) => {
                records.iter().try_for_each(|record| teller.tell(record))?;
            }
            // Not the last event: the engine writes the last files after it.
            _ = ended.wait_for(|ended| *ended) => {
                let (rest, _) = service.records(teller.seq());
                rest.iter().try_for_each(|record| teller.tell(record))?;
                return Ok(if teller.is_over() { Ending::Over } else { Ending::EngineGone });
            }
        }
    }
}

/// The next records; all that were missed when this reader was too slow.
async fn next(
    service: &dyn RunService,
    later: &mut broadcast::Receiver<Arc<Record>>,
    seq: u64,
) -> Vec<Arc<Record>> {
    match later.recv().await {
        Ok(record) => vec![record],
        Err(RecvError::Lagged(_)) => {
            let (missed, receiver) = service.records(seq);
            *later = receiver;
            missed
        }
        // The engine says that it ended by `ended`.
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

/// Says what happens, as JSON or plain lines.
struct Teller {
    json: bool,
    report: Report,
    plain: PlainRenderer,
}

impl Teller {
    fn new(viewing: &Viewing) -> Self {
        let report = Report::new(viewing.events, viewing.told_before);
        Self { json: viewing.json, report, plain: PlainRenderer::new() }
    }

    fn seq(&self) -> u64 {
        self.report.state().seq
    }

    fn is_over(&self) -> bool {
        matches!(self.report.state().status, RunStatus::Ended { .. })
    }

    fn tell(&mut self, record: &Record) -> Result<(), Failure> {
        let lines = self.report.take(record);
        if self.json {
            return heard(lines.iter().try_for_each(output::json));
        }
        let line = HostLine::Event(Box::new(record.clone()));
        heard(self.plain.lines(&line).iter().try_for_each(|text| output::line(text)))
    }
}
