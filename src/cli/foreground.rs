//! `--foreground`: the engine in this process, its news on stdout. Other clients may attach all the same.

use std::sync::Arc;

use serde_json::Value;
use tokio::signal::ctrl_c;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::report::{Launch, Report};
use super::run::Viewing;
use super::{Failure, assembly, exit, failure, output};
use crate::client::author_here;
use crate::engine::RunService;
use crate::event::{Command, HostLine, Record};
use crate::host::{HostSocket, runtime_dir, serve};
use crate::store::RunDir;

/// Runs to the end. The first ctrl-c asks the run to stop at the next boundary, the second leaves at once; either
/// way the journal stays resumable.
pub async fn foreground(run: &RunDir, viewing: &Viewing) -> Result<u8, Failure> {
    runtime_dir().map_err(|error| Failure::usage(error.to_string()))?;
    let service = assembly::start_engine(run).await?;
    let socket = HostSocket::bind(run.path()).map_err(|error| Failure::usage(error.to_string()))?;

    let stop = CancellationToken::new();
    let (announce, announced) = tokio::sync::oneshot::channel();
    let served = tokio::spawn({
        let (service, stop, folder) = (Arc::clone(&service), stop.clone(), run.path().to_owned());
        async move { serve(service, socket, &folder, stop, |file| drop(announce.send(file.clone()))).await }
    });
    match announced.await {
        Ok(file) if viewing.json => output::json(&Launch::new(run, &file).line())?,
        Ok(_) => {}
        Err(_) => {
            let why = match served.await {
                Ok(Err(error)) => error.to_string(),
                _ => "the host task ended".to_owned(),
            };
            return Err(Failure::run(why));
        }
    }

    let mut report = Report::new(viewing.events, viewing.told_before);
    let outcome = tokio::select! {
        outcome = follow(service.as_ref(), viewing, &mut report) => outcome,
        () = interrupted(service.as_ref()) => Ok(Ending::Interrupted),
    };
    let code = match outcome? {
        Ending::Over => {
            if viewing.json {
                output::json(&report.done(run.path()))?;
            }
            failure::code_of(report.state(), viewing.require_improvement)
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

async fn interrupted(service: &dyn RunService) {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    output::note(
        "stopping at the next boundary; press ctrl-c again to leave at once (the run stays resumable)",
    );
    let second = ctrl_c();
    let cancel = service.steer(Command::Cancel, author_here(), None);
    let (_, second) = tokio::join!(cancel, second);
    if second.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn follow(service: &dyn RunService, viewing: &Viewing, report: &mut Report) -> Result<Ending, Failure> {
    let mut ended = service.ended();
    let (backlog, mut later) = service.records(0);
    for record in backlog {
        tell(&record, viewing, report)?;
    }
    while !is_over(report) {
        tokio::select! {
            records = next(service, &mut later, report.state().seq) => {
                for record in records {
                    tell(&record, viewing, report)?;
                }
            }
            _ = ended.wait_for(|ended| *ended) => {
                for record in service.records(report.state().seq).0 {
                    tell(&record, viewing, report)?;
                }
                return Ok(if is_over(report) { Ending::Over } else { Ending::EngineGone });
            }
        }
    }
    Ok(Ending::Over)
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

fn is_over(report: &Report) -> bool {
    matches!(report.state().status, crate::event::RunStatus::Ended { .. })
}

fn tell(record: &Record, viewing: &Viewing, report: &mut Report) -> Result<(), Failure> {
    let lines: Vec<Value> = report.take(record);
    if viewing.json {
        lines.iter().try_for_each(output::json)
    } else {
        assembly::plain_lines(&HostLine::Event(Box::new(record.clone())))
            .iter()
            .try_for_each(|line| output::line(line))
    }
}
