//! Showing a connection: the workbench on a terminal, lines elsewhere, JSON lines on request.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::json_lines::Report;
use super::review::Review;
use super::run::Viewing;
use super::{Failure, assembly, exit, failure, output};
use crate::client::{ClientEvent, Connection, Presence, gone, presence};
use crate::event::{HostLine, RunStatus};
use crate::plain::PlainRenderer;
use crate::tui::Services;

/// Between looks at a host that is about to leave.
const HOST_PAUSE: Duration = Duration::from_millis(20);

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Workbench,
    Plain,
    Json,
}

impl View {
    /// JSON when asked for; plain lines when asked for or when stdout is no capable terminal.
    pub fn choose(plain: bool, json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if json {
            Self::Json
        } else if plain || dumb || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            Self::Plain
        } else {
            Self::Workbench
        }
    }
}

/// Shows a run until it ends or the client leaves. `run_dir`: the run's folder if it is on this machine; `services`: what
/// the workbench knows besides it.
pub async fn present(
    connection: Connection,
    view: View,
    run_dir: Option<&Path>,
    services: Arc<dyn Services>,
    read_only: bool,
    viewing: &Viewing,
) -> Result<u8, Failure> {
    match view {
        View::Workbench => {
            assembly::workbench(Some(connection), run_dir, services, read_only, (&viewing.screen).into())
                .await?;
            Ok(match run_dir {
                Some(run_dir) => code_of_folder(run_dir, viewing.require_improvement)?,
                None => exit::DONE,
            })
        }
        View::Plain | View::Json => lines(connection, view, run_dir, read_only, viewing).await,
    }
}

fn code_of_folder(run_dir: &Path, require_improvement: bool) -> Result<u8, Failure> {
    if matches!(run_dir.try_exists(), Ok(false)) {
        return Err(Failure::run(gone(run_dir)));
    }
    let state = crate::store::glance_run(&crate::store::RunDir::open(run_dir)?)?;
    Ok(failure::code_of(&state, require_improvement))
}

async fn lines(
    connection: Connection,
    view: View,
    run_dir: Option<&Path>,
    read_only: bool,
    viewing: &Viewing,
) -> Result<u8, Failure> {
    let Connection { mut events, commands } = connection;
    let mut review = Review::new(view, read_only, commands);
    let listen =
        |kind| signal(kind).map_err(|error| Failure::run(format!("cannot listen for signals: {error}")));
    let (mut hangup, mut interrupt) = (listen(SignalKind::hangup())?, listen(SignalKind::interrupt())?);
    let mut report = Report::new(viewing.events, viewing.told_before);
    let mut plain = PlainRenderer::new();
    let (mut last_seq, mut failed) = (0, false);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            typed = review.typed() => {
                review.take(typed, report.state(), &mut interrupt).await?;
                continue;
            }
            _ = hangup.recv() => return Err(Failure::Quiet),
            _ = interrupt.recv() => {
                output::note("left; the run goes on");
                return Ok(exit::INTERRUPTED);
            }
        };
        match event {
            // Only the link's own end is told so.
            Some(ClientEvent::Line(HostLine::Error { message })) => {
                output::complain(&message);
                failed = true;
            }
            Some(ClientEvent::Line(line)) => {
                if let HostLine::Welcome { last_seq: end, .. } = &line {
                    last_seq = *end;
                }
                show(&line, view, &mut report, &mut plain)?;
                let arrived = report.state().seq >= last_seq;
                review.hear(&line, report.state(), arrived, &mut interrupt).await?;
                // What lies before the welcome's mark may be an end that a resume has undone.
                let over = matches!(report.state().status, RunStatus::Ended { .. });
                if over && report.state().seq >= last_seq {
                    // Nothing more comes; a client that stays would keep the host.
                    drop((events, review));
                    tokio::select! {
                        () = host_leaves(run_dir) => {}
                        _ = hangup.recv() => return Err(Failure::Quiet),
                        _ = interrupt.recv() => return Ok(exit::INTERRUPTED),
                    }
                    if view == View::Json {
                        output::json(&report.done(run_dir.unwrap_or(Path::new(""))))?;
                    }
                    return Ok(failure::code_of(report.state(), viewing.require_improvement));
                }
            }
            Some(ClientEvent::Lost(why)) => {
                if run_dir.is_some_and(|run_dir| matches!(presence(run_dir), Ok(Presence::Dead))) {
                    return Err(Failure::run(why));
                }
                output::note(&format!("reconnecting: {why}"));
            }
            Some(ClientEvent::Recording) => {}
            Some(ClientEvent::Restored) => output::note("connected again"),
            None if failed => return Ok(exit::RUN_FAILED),
            None => return Ok(failure::code_of(report.state(), viewing.require_improvement)),
        }
    }
}

fn show(line: &HostLine, view: View, report: &mut Report, plain: &mut PlainRenderer) -> Result<(), Failure> {
    let mut news = Vec::new();
    if let HostLine::Event(record) = line {
        news = report.take(record);
    }
    match view {
        View::Json => news.iter().try_for_each(output::json),
        View::Plain | View::Workbench => plain.lines(line).iter().try_for_each(|text| output::line(text)),
    }
}

/// Until the host of an ended run is gone, and with that all files of the run are written.
async fn host_leaves(run_dir: Option<&Path>) {
    let Some(run_dir) = run_dir else { return };
    let Ok(Presence::Live(host)) = presence(run_dir) else { return };
    // Another host may follow at once.
    while matches!(presence(run_dir), Ok(Presence::Live(now)) if now == host) {
        tokio::time::sleep(HOST_PAUSE).await;
    }
}
