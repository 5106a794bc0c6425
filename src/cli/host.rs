//! `planish host`: the process that owns a run. It lives in a session of its own, serves clients, and survives
//! them and their terminals. Its stdout carries one word to whoever started it.

use std::io::Write;
use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::json_lines::Launch;
use super::launch::HostWord;
use super::{Failure, assembly, block_on, exit};
use crate::event::{RunState, RunStatus};
use crate::host::{HostSocket, runtime_dir, serve};
use crate::store::RunDir;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of a prepared run
    run_dir: PathBuf,
}

pub fn run(args: &Args) -> Result<u8, Failure> {
    // Fails only for a process that leads a group already (started by hand or by a service manager).
    let _ = rustix::process::setsid();
    let outcome = block_on(host(args));
    if let Err(Failure::Message { code, text }) = &outcome {
        tell(&HostWord::Failed { code: *code, message: text.clone() });
    }
    outcome
}

async fn host(args: &Args) -> Result<u8, Failure> {
    let stop = stop_on_signals()?;
    let run = RunDir::open(&args.run_dir)?;
    // Found out before the engine starts to spend.
    runtime_dir().map_err(|error| Failure::usage(error.to_string()))?;
    let service = assembly::start_engine(&run).await?;
    let socket = HostSocket::bind(run.path()).map_err(|error| Failure::usage(error.to_string()))?;
    serve(service.clone(), socket, run.path(), stop, |file| {
        tell(&HostWord::Launch(Launch::new(&run, file)));
    })
    .await
    .map_err(|error| Failure::run(error.to_string()))?;

    let (records, _) = service.records(0);
    let state = RunState::fold(records.iter().map(AsRef::as_ref));
    Ok(match state.status {
        RunStatus::Ended { .. } => super::failure::code_of(&state, false),
        _ => exit::INTERRUPTED,
    })
}

/// SIGTERM and SIGINT end the host (the run stays resumable); SIGHUP does not.
fn stop_on_signals() -> Result<CancellationToken, Failure> {
    let listen =
        |kind| signal(kind).map_err(|error| Failure::run(format!("cannot listen for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    // Once listened to, a hangup no longer ends the process.
    let _ = listen(SignalKind::hangup())?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stopped.cancel();
    });
    Ok(stop)
}

/// The starter may have gone; the run does not depend on it.
fn tell(word: &HostWord) {
    if let Ok(mut line) = serde_json::to_vec(word) {
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
