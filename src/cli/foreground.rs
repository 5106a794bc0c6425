//! `--foreground`: the engine in this process, its news on stdout. Other clients may attach all the same.

use std::sync::Arc;

use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::json_lines::{Launch, Report};
use super::run::Viewing;
use super::{Failure, assembly, exit, failure, output};
use crate::client::author_here;
use crate::domain::ReviewMode;
use crate::engine::RunService;
use crate::event::{Command, Event, HostLine, Record, RunStatus};
use crate::host::{HostSocket, runtime_dir, serve};
use crate::plain::PlainRenderer;
use crate::plain::review::how_to_decide;
use crate::store::RunDir;

/// Runs to the end. The first ctrl-c or SIGTERM asks the run to stop at the next boundary, the second leaves at once;
/// either way the journal stays resumable. A terminal or reader that goes away ends nothing but the printing.
pub async fn foreground(run: &RunDir, viewing: &Viewing) -> Result<u8, Failure> {
    runtime_dir().map_err(|error| Failure::usage(error.to_string()))?;
    // Listened to from here on, so that no signal falls between two waits.
    let mut signals = Signals::listen()?;
    let service = tokio::select! {
        service = assembly::start_engine(run) => service?,
        () = signals.stop() => {
            let text = "interrupted before the run was under way".into();
            return Err(Failure::Message { code: exit::INTERRUPTED, text });
        }
    };
    let socket = HostSocket::bind(run.path()).map_err(|error| Failure::usage(error.to_string()))?;

    let stop = CancellationToken::new();
    let (announce, announced) = tokio::sync::oneshot::channel();
    let served = tokio::spawn({
        let (service, stop, folder) = (Arc::clone(&service), stop.clone(), run.path().to_owned());
        async move { serve(service, socket, &folder, stop, |file| drop(announce.send(file.clone()))).await }
    });
    let Ok(file) = announced.await else {
        let why = match served.await {
            Ok(Err(error)) => error.to_string(),
            _ => "the host task ended".to_owned(),
        };
        return Err(Failure::run(why));
    };
    let mut teller = Teller::new(run.name(), viewing);
    if viewing.json {
        teller.json(&Launch::new(run, &file).line());
    }
    let ending = tokio::select! {
        ending = follow(service.as_ref(), &mut teller) => ending,
        () = interrupted(service.as_ref(), &mut signals) => Ending::Interrupted,
    };
    stop.cancel();
    let _ = served.await;
    match ending {
        Ending::Over => {
            if viewing.json {
                teller.json(&teller.report.done(run.path()));
            }
            Ok(failure::code_of(teller.report.state(), viewing.require_improvement))
        }
        Ending::Interrupted => Ok(exit::INTERRUPTED),
        Ending::EngineGone => {
            Err(Failure::run("the engine stopped without ending the run; `planish resume` continues it"))
        }
    }
}

enum Ending {
    Over,
    Interrupted,
    EngineGone,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Once listened to, a hangup no longer ends the process.
    _hangup: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::run(format!("cannot listen for signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            _hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next request to stop.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Returns at the second request to stop; the first one asks the run to stop.
async fn interrupted(service: &dyn RunService, signals: &mut Signals) {
    signals.stop().await;
    output::note(
        "stopping at the next boundary; press ctrl-c again to leave at once (the run stays resumable)",
    );
    let cancel = service.steer(Command::Cancel, author_here(), None);
    tokio::join!(cancel, signals.stop());
}

async fn follow(service: &dyn RunService, teller: &mut Teller) -> Ending {
    let mut ended = service.ended();
    let (backlog, mut later) = service.records(0);
    backlog.iter().for_each(|record| teller.tell(record));
    // An end in the backlog may be one that this start undoes.
    loop {
        tokio::select! {
            records = next(service, &mut later, teller.seq()) => {
                records.iter().for_each(|record| teller.tell(record));
            }
            // Not the last event: the engine writes the last files after it.
            _ = ended.wait_for(|ended| *ended) => {
                let (rest, _) = service.records(teller.seq());
                rest.iter().for_each(|record| teller.tell(record));
                return if teller.is_over() { Ending::Over } else { Ending::EngineGone };
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

/// Says what happens, as JSON or plain lines, until nobody listens any more.
struct Teller {
    run: String,
    json: bool,
    /// Stdout took no more lines.
    mute: bool,
    report: Report,
    plain: PlainRenderer,
}

impl Teller {
    fn new(run: String, viewing: &Viewing) -> Self {
        let report = Report::new(viewing.events, viewing.told_before);
        Self { run, json: viewing.json, mute: false, report, plain: PlainRenderer::new() }
    }

    fn seq(&self) -> u64 {
        self.report.state().seq
    }

    fn is_over(&self) -> bool {
        matches!(self.report.state().status, RunStatus::Ended { .. })
    }

    fn tell(&mut self, record: &Record) {
        let lines = self.report.take(record);
        if self.json {
            lines.iter().for_each(|line| self.json(line));
            return;
        }
        let line = HostLine::Event(Box::new(record.clone()));
        for text in self.plain.lines(&line) {
            self.print(|| output::line(&text));
        }
        if let Event::ReviewOpened { mode: ReviewMode::Manual, edits, .. } = &record.event
            && !edits.is_empty()
        {
            let words = how_to_decide(&self.run);
            self.print(|| output::line(&words));
        }
    }

    fn json(&mut self, line: &Value) {
        self.print(|| output::json(line));
    }

    fn print(&mut self, line: impl FnOnce() -> Result<(), Failure>) {
        if self.mute {
            return;
        }
        if let Err(failure) = line() {
            self.mute = true;
            if let Failure::Message { text, .. } = failure {
                output::note(&format!("{text}; the run goes on without it"));
            }
        }
    }
}
