//! A lasting link to a run: delivers lines in order without gap or repetition, reconnects for ever, and repeats
//! commands that were not answered. A run without a host is read from its journal.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;

use super::journal::folder_name;
use super::journal::{ended_by, gone, no_host};
use super::wire::{Welcome, Wire, dial};
use super::{ClientError, ClientEvent, ClientOptions, Presence, Target, presence};
use crate::event::{AckResult, ClientLine, HostLine, LONG_RUN, PROTOCOL, Record, RunState};
use crate::store::{RunDir, glance_snapshot, read_records};

const EVENTS: usize = 1024;
const COMMANDS: usize = 64;
const FIRST_DELAY: Duration = Duration::from_millis(250);
const LAST_DELAY: Duration = Duration::from_secs(5);

/// Both ends of a link. Dropping `events` ends it. Only [`ClientLine::Command`] is sent on.
pub struct Connection {
    pub events: mpsc::Receiver<ClientEvent>,
    pub commands: mpsc::Sender<ClientLine>,
}

/// Connects to the host of a run, or reads its journal when it has none. The first attempt's failure is returned;
/// later ones are [`ClientEvent::Lost`].
pub async fn open(target: Target, options: ClientOptions) -> Result<Connection, ClientError> {
    let first = match (dial(&target, &options, options.after_seq, true).await?, &target) {
        (Some(host), _) => Start::Host(Box::new(host)),
        (None, Target::Folder(run_dir)) => read(run_dir, options.glance && options.after_seq == 0).await?,
        (None, Target::Ssh { .. }) => Start::Journal(Vec::new()),
    };
    let (events, receiver) = mpsc::channel(EVENTS);
    let (sender, commands) = mpsc::channel(COMMANDS);
    let link = Link {
        last_seq: options.after_seq,
        target,
        options,
        events,
        commands: Some(commands),
        pending: VecDeque::new(),
        run_over: false,
    };
    tokio::spawn(async move {
        // The only error is that nobody listens any more.
        let _ = link.work(first).await;
    });
    Ok(Connection { events: receiver, commands: sender })
}

/// What a link begins with.
enum Start {
    Host(Box<(Wire, Welcome)>),
    /// A run without a host, read.
    Journal(Vec<Record>),
    /// A long run without a host, of which only a glance was taken yet.
    Glance(Box<RunState>),
}

/// Nobody takes events any more.
struct Abandoned;

struct Link {
    target: Target,
    options: ClientOptions,
    events: mpsc::Sender<ClientEvent>,
    /// `None` once the consumer gives no more commands.
    commands: Option<mpsc::Receiver<ClientLine>>,
    /// Commands without an answer; the flag says whether this connection has carried it.
    pending: VecDeque<(ClientLine, bool)>,
    last_seq: u64,
    run_over: bool,
}

impl Link {
    async fn work(mut self, start: Start) -> Result<(), Abandoned> {
        let mut lost = match start {
            Start::Host(host) => Some(self.converse(host.0, host.1).await?),
            Start::Journal(records) => {
                let last_seq = records.last().map_or(0, |record| record.seq);
                self.deliver(ClientEvent::Line(self.journal_welcome(last_seq))).await?;
                self.deliver_records(records).await?;
                None
            }
            Start::Glance(glance) => {
                self.deliver(ClientEvent::Line(self.journal_welcome(glance.seq))).await?;
                self.deliver(ClientEvent::Line(HostLine::Glance(glance))).await?;
                self.read_on().await?;
                None
            }
        };
        while let Some((wire, welcome)) = self.wait_for_host(lost.take()).await? {
            self.deliver(ClientEvent::Restored).await?;
            lost = Some(self.converse(wire, welcome).await?);
        }
        Ok(())
    }

    /// Returns with the next connection; `None`: it can never come. `lost` is why the last one ended; without it
    /// the journal has just been read.
    async fn wait_for_host(&mut self, lost: Option<String>) -> Result<Option<(Wire, Welcome)>, Abandoned> {
        if self.folder_is_gone().await? {
            return Ok(None);
        }
        let mut at_rest = lost.is_none();
        if self.host_is_dead() && !at_rest {
            at_rest = true;
            self.catch_up().await?;
        }
        if !self.run_over {
            let why = lost.filter(|_| !at_rest).unwrap_or_else(|| self.no_host());
            self.deliver(ClientEvent::Lost(why)).await?;
        }
        for attempt in 0.. {
            self.rest(delay(attempt, RandomState::new().hash_one(attempt))).await?;
            if self.folder_is_gone().await? {
                return Ok(None);
            }
            if self.host_is_dead() {
                if !at_rest {
                    at_rest = true;
                    self.catch_up().await?;
                }
                continue;
            }
            let Ok(Some((wire, welcome))) = dial(&self.target, &self.options, self.last_seq, false).await
            else {
                continue;
            };
            if welcome.last_seq >= self.last_seq {
                return Ok(Some((wire, welcome)));
            }
            let message = format!(
                "the journal now ends at {}, before record {} which this client has seen; attach again",
                welcome.last_seq, self.last_seq
            );
            self.deliver(ClientEvent::Line(HostLine::Error { message })).await?;
            break;
        }
        Ok(None)
    }

    /// Says so when the run's folder was moved or deleted: no host can come back to it.
    async fn folder_is_gone(&mut self) -> Result<bool, Abandoned> {
        let Target::Folder(run_dir) = &self.target else { return Ok(false) };
        if !matches!(run_dir.try_exists(), Ok(false)) {
            return Ok(false);
        }
        let message = gone(run_dir);
        self.deny_pending().await?;
        self.deliver(ClientEvent::Line(HostLine::Error { message })).await?;
        Ok(true)
    }

    /// A folder's host is known to be gone (a far one can only be tried).
    fn host_is_dead(&self) -> bool {
        match &self.target {
            Target::Folder(run_dir) => matches!(presence(run_dir), Ok(Presence::Dead)),
            Target::Ssh { .. } => false,
        }
    }

    /// After a host died: what it still wrote is in the journal, and nobody will answer.
    async fn catch_up(&mut self) -> Result<(), Abandoned> {
        self.read_on().await?;
        self.deny_pending().await
    }

    /// Delivers what the journal holds beyond the last record.
    async fn read_on(&mut self) -> Result<(), Abandoned> {
        if let Target::Folder(run_dir) = &self.target {
            match load(run_dir).await {
                Ok(records) => self.deliver_records(records).await?,
                Err(error) => {
                    let message = error.to_string();
                    self.deliver(ClientEvent::Line(HostLine::Error { message })).await?;
                }
            }
        }
        Ok(())
    }

    fn no_host(&self) -> String {
        match &self.target {
            Target::Folder(run_dir) => no_host(&folder_name(run_dir)),
            Target::Ssh { host, .. } => format!("no connection to {host}"),
        }
    }

    /// Passes lines on until the connection ends; returns why it did.
    async fn converse(&mut self, mut wire: Wire, welcome: Welcome) -> Result<String, Abandoned> {
        for (_, sent) in &mut self.pending {
            *sent = false;
        }
        self.deliver(ClientEvent::Line(welcome.line)).await?;
        loop {
            for (command, sent) in self.pending.iter_mut().filter(|(_, sent)| !*sent) {
                if let Err(error) = wire.send(command).await {
                    return Ok(error.to_string());
                }
                *sent = true;
            }
            let line = tokio::select! {
                line = wire.receive() => line,
                command = next_command(&mut self.commands) => {
                    self.pending.push_back((command, false));
                    continue;
                }
                () = self.events.closed() => return Err(Abandoned),
            };
            match line {
                Ok(HostLine::Event(record)) => self.deliver_record(*record).await?,
                Ok(HostLine::Error { message }) => return Ok(message),
                Ok(line) => {
                    if let HostLine::Ack { cmd_id, .. } = &line {
                        self.pending.retain(|(pending, _)| command_id(pending) != Some(cmd_id));
                    }
                    self.deliver(ClientEvent::Line(line)).await?;
                }
                Err(reason) => return Ok(reason),
            }
        }
    }

    async fn deliver_record(&mut self, record: Record) -> Result<(), Abandoned> {
        if record.seq <= self.last_seq {
            return Ok(());
        }
        self.last_seq = record.seq;
        self.run_over = ended_by(&record.event).unwrap_or(self.run_over);
        self.deliver(ClientEvent::Line(HostLine::Event(Box::new(record)))).await
    }

    async fn deliver_records(&mut self, records: Vec<Record>) -> Result<(), Abandoned> {
        for record in records {
            self.deliver_record(record).await?;
        }
        Ok(())
    }

    /// Hands an event over; takes commands meanwhile, so that a consumer that does one thing at a time cannot
    /// deadlock with a full channel.
    async fn deliver(&mut self, event: ClientEvent) -> Result<(), Abandoned> {
        loop {
            tokio::select! {
                permit = self.events.reserve() => {
                    permit.map_err(|_| Abandoned)?.send(event);
                    return Ok(());
                }
                command = next_command(&mut self.commands) => self.pending.push_back((command, false)),
            }
        }
    }

    /// Waits, answering commands when no host will.
    async fn rest(&mut self, time: Duration) -> Result<(), Abandoned> {
        let mut sleep = std::pin::pin!(tokio::time::sleep(time));
        loop {
            tokio::select! {
                () = &mut sleep => return Ok(()),
                () = self.events.closed() => return Err(Abandoned),
                command = next_command(&mut self.commands) => {
                    self.pending.push_back((command, false));
                    if self.host_is_dead() {
                        self.deny_pending().await?;
                    }
                }
            }
        }
    }

    async fn deny_pending(&mut self) -> Result<(), Abandoned> {
        let reason = if self.run_over { "the run has ended".to_owned() } else { self.no_host() };
        while let Some((command, _)) = self.pending.pop_front() {
            if let ClientLine::Command { cmd_id, .. } = command {
                let result = AckResult::Denied { reason: reason.clone() };
                self.deliver(ClientEvent::Line(HostLine::Ack { cmd_id, result, rev: 0 })).await?;
            }
        }
        Ok(())
    }

    fn journal_welcome(&self, last_seq: u64) -> HostLine {
        let (run, run_dir) = match &self.target {
            Target::Folder(run_dir) => (folder_name(run_dir), run_dir.display().to_string()),
            Target::Ssh { run, .. } => (run.clone(), String::new()),
        };
        HostLine::Welcome {
            proto: PROTOCOL,
            run,
            run_dir,
            last_seq,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The next command; never returns once there can be none.
async fn next_command(commands: &mut Option<mpsc::Receiver<ClientLine>>) -> ClientLine {
    if let Some(receiver) = commands {
        match receiver.recv().await {
            Some(line) => return line,
            None => *commands = None,
        }
    }
    std::future::pending().await
}

fn command_id(line: &ClientLine) -> Option<&String> {
    match line {
        ClientLine::Command { cmd_id, .. } => Some(cmd_id),
        ClientLine::Hello { .. } => None,
    }
}

/// A run without a host: its records, or a glance where that is `wanted` and worth it.
async fn read(run_dir: &Path, wanted: bool) -> Result<Start, ClientError> {
    if wanted {
        let run = RunDir::open(run_dir)?;
        let glance = tokio::task::spawn_blocking(move || glance_snapshot(&run)).await;
        let glance = glance.map_err(|error| ClientError::Unreachable(error.to_string()))??;
        if let Some(glance) = glance.filter(|glance| glance.seq >= LONG_RUN) {
            return Ok(Start::Glance(Box::new(glance)));
        }
    }
    Ok(Start::Journal(load(run_dir).await?))
}

async fn load(run_dir: &Path) -> Result<Vec<Record>, ClientError> {
    let run = RunDir::open(run_dir)?;
    match tokio::task::spawn_blocking(move || read_records(&run)).await {
        Ok(records) => Ok(records?),
        Err(error) => Err(ClientError::Unreachable(error.to_string())),
    }
}

/// Pause before reconnecting: doubles from a quarter second to five, less up to a quarter (so that clients of one
/// host do not come back in step). `random` is any evenly spread number.
fn delay(attempt: u32, random: u64) -> Duration {
    let full = FIRST_DELAY.saturating_mul(1 << attempt.min(8)).min(LAST_DELAY);
    full.mul_f64(1.0 - 0.25 * (random as f64 / u64::MAX as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_to_a_limit_with_jitter() {
        assert_eq!(delay(0, 0), FIRST_DELAY);
        assert_eq!(delay(1, 0), FIRST_DELAY * 2);
        assert_eq!(delay(1000, 0), LAST_DELAY);
        assert_eq!(delay(1000, u64::MAX), LAST_DELAY.mul_f64(0.75));
    }
}
