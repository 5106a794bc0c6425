//! One client's conversation: hello, then events and live news out, commands in.
//! Reading, pumping and writing are separate futures, so none waits for another.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::lines::{BoundedLines, LineError};
use super::outbox::{CAPACITY, OutLine, Outbox};
use super::registry::Registry;
use crate::domain::Author;
use crate::engine::RunService;
use crate::event::{
    AckResult, Client, ClientLine, HostLine, LONG_RUN, Live, PROTOCOL, Record, RunState, WatchRole,
};

/// Longest line a client may send.
const CLIENT_LINE: usize = 1024 * 1024;
const HELLO_TIME: Duration = Duration::from_secs(10);
/// How long a client may take to read its last lines.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
const WRITE_BLOCK: usize = 64 * 1024;
/// Acknowledged commands that are remembered against repetition.
const REMEMBERED: usize = 1024;
const NAME_LENGTH: usize = 64;

/// What all sessions of one host share.
pub(super) struct Hub {
    pub service: Arc<dyn RunService>,
    pub registry: Arc<Registry>,
    pub run_dir: PathBuf,
    pub stopping: CancellationToken,
    answered: Mutex<Answered>,
}

/// Answers by (client name, command id): a client that lost its link repeats the command and gets the same answer.
#[derive(Default)]
struct Answered {
    answers: HashMap<(Author, String), (AckResult, u64)>,
    order: VecDeque<(Author, String)>,
}

impl Hub {
    pub fn new(service: Arc<dyn RunService>, run_dir: PathBuf) -> Self {
        Self {
            service,
            registry: Registry::new(),
            run_dir,
            stopping: CancellationToken::new(),
            answered: Mutex::default(),
        }
    }

    async fn steer(&self, line: ClientLine, by: &Author) -> Option<HostLine> {
        let ClientLine::Command { cmd_id, expect_rev, body } = line else { return None };
        let mut answered = self.answered.lock().await;
        let key = (by.clone(), cmd_id.clone());
        let (result, rev) = match answered.answers.get(&key) {
            Some(answer) => answer.clone(),
            None => {
                let answer = self.service.steer(body, by.clone(), expect_rev).await;
                answered.remember(key, answer.clone());
                answer
            }
        };
        Some(HostLine::Ack { cmd_id, result, rev })
    }
}

impl Answered {
    fn remember(&mut self, key: (Author, String), answer: (AckResult, u64)) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.answers.insert(key, answer);
    }
}

struct Hello {
    client: Client,
    after_seq: u64,
    live: bool,
    glance: bool,
}

/// Speaks with one client until it leaves, breaks the protocol, falls too far behind or the host stops.
pub(super) async fn run<R, W>(hub: &Hub, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let outbox = Arc::new(Outbox::new(CAPACITY));
    let mut lines = BoundedLines::new(reader, CLIENT_LINE);
    let hello = tokio::select! {
        hello = timeout(HELLO_TIME, read_hello(&mut lines)) => hello,
        () = hub.stopping.cancelled() => return,
    };
    let hello = match hello {
        Ok(Ok(Some(hello))) => hello,
        Ok(Ok(None)) => return,
        Ok(Err(message)) => return refuse(outbox, writer, message).await,
        Err(_) => return refuse(outbox, writer, "no hello line in time".into()).await,
    };

    let (backlog, records) = hub.service.records(hello.after_seq);
    let last_seq = backlog.last().map_or_else(|| last_seq(hub, hello.after_seq), |record| record.seq);
    outbox.push_line(HostLine::Welcome {
        proto: PROTOCOL,
        run: hub.service.run_name(),
        run_dir: hub.run_dir.display().to_string(),
        last_seq,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let wanted = hello.glance && hello.after_seq == 0 && last_seq >= LONG_RUN;
    let glance = wanted.then(|| Box::new(hub.service.glance()));
    let membership = hub.registry.join(hello.client.clone(), Arc::clone(&outbox));

    {
        let mut pump = std::pin::pin!(pump(hub, &outbox, records, last_seq, hello.live));
        let mut read = std::pin::pin!(read_commands(hub, &outbox, &mut lines, &hello.client));
        let mut write = std::pin::pin!(write_lines(&outbox, writer, glance, backlog));
        tokio::select! {
            () = &mut pump => {}
            goodbye = &mut read => match goodbye {
                Goodbye::Left => return,
                Goodbye::Expelled => {}
            },
            _ = &mut write => return,
        }
        let _ = timeout(FAREWELL_TIME, write).await;
    }
    drop(membership);
}

/// The journal's end, for a client that has all (or claims more).
fn last_seq(hub: &Hub, after_seq: u64) -> u64 {
    match after_seq {
        0 => 0,
        // Asking again from one before tells whether that record exists.
        claimed => {
            let (records, _) = hub.service.records(claimed - 1);
            match records.last() {
                Some(record) => record.seq,
                None => hub.service.records(0).0.last().map_or(0, |record| record.seq),
            }
        }
    }
}

async fn read_hello<R: AsyncRead + Unpin>(lines: &mut BoundedLines<R>) -> Result<Option<Hello>, String> {
    match next_line(lines).await? {
        None => Ok(None),
        Some(ClientLine::Hello { proto, .. }) if proto != PROTOCOL => Err(format!(
            "this host speaks protocol {PROTOCOL} (planish {}), the client {proto}; use the same version",
            env!("CARGO_PKG_VERSION")
        )),
        Some(ClientLine::Hello { role, name, after_seq, live, glance, .. }) => {
            let name = Author(name.0.chars().filter(|c| !c.is_control()).take(NAME_LENGTH).collect());
            Ok(Some(Hello { client: Client { name, role }, after_seq, live, glance }))
        }
        Some(ClientLine::Command { .. }) => Err("the first line must be a hello".into()),
    }
}

async fn next_line<R: AsyncRead + Unpin>(lines: &mut BoundedLines<R>) -> Result<Option<ClientLine>, String> {
    match lines.next().await {
        Ok(Some(line)) => {
            serde_json::from_slice(line).map(Some).map_err(|error| format!("malformed line: {error}"))
        }
        Ok(None) | Err(LineError::Io(_)) => Ok(None),
        Err(error @ LineError::TooLong { .. }) => Err(error.to_string()),
    }
}

async fn refuse<W: AsyncWrite + Unpin>(outbox: Arc<Outbox>, writer: W, message: String) {
    outbox.push_line(HostLine::Error { message });
    outbox.close();
    let _ = timeout(FAREWELL_TIME, write_lines(&outbox, writer, None, Vec::new())).await;
}

/// Moves news from the engine's channels into the outbox; ends when the client overflowed or the host stops.
async fn pump(
    hub: &Hub,
    outbox: &Outbox,
    mut records: broadcast::Receiver<Arc<Record>>,
    mut last: u64,
    live: bool,
) {
    let mut news = live.then(|| hub.service.live());
    let take = |record: Arc<Record>, last: &mut u64| {
        if record.seq > *last {
            *last = record.seq;
            outbox.push_record(record);
        }
    };
    while !outbox.is_closed() {
        tokio::select! {
            record = records.recv() => match record {
                Ok(record) => take(record, &mut last),
                Err(RecvError::Lagged(_)) => {
                    let (missed, later) = hub.service.records(last);
                    missed.into_iter().for_each(|record| take(record, &mut last));
                    records = later;
                }
                Err(RecvError::Closed) => {
                    hub.stopping.cancelled().await;
                    break;
                }
            },
            line = next_news(&mut news) => match line {
                Ok(line) => outbox.push_live(&line),
                Err(RecvError::Lagged(lines)) => outbox.note_dropped(lines),
                Err(RecvError::Closed) => news = None,
            },
            () = hub.stopping.cancelled() => break,
        }
    }
    let (rest, _) = hub.service.records(last);
    rest.into_iter().for_each(|record| take(record, &mut last));
    outbox.close();
}

async fn next_news(news: &mut Option<broadcast::Receiver<Arc<Live>>>) -> Result<Arc<Live>, RecvError> {
    match news {
        Some(news) => news.recv().await,
        None => std::future::pending().await,
    }
}

enum Goodbye {
    Left,
    /// The outbox ends with the reason.
    Expelled,
}

async fn read_commands<R: AsyncRead + Unpin>(
    hub: &Hub,
    outbox: &Outbox,
    lines: &mut BoundedLines<R>,
    client: &Client,
) -> Goodbye {
    loop {
        let message = match next_line(lines).await {
            Ok(None) => return Goodbye::Left,
            Ok(Some(ClientLine::Hello { .. })) => "hello was already said".into(),
            Ok(Some(ClientLine::Command { cmd_id, .. })) if client.role == WatchRole::Watch => {
                let result = AckResult::Denied { reason: "this client only watches".into() };
                outbox.push_line(HostLine::Ack { cmd_id, result, rev: 0 });
                continue;
            }
            Ok(Some(command)) => {
                if let Some(ack) = hub.steer(command, &client.name).await {
                    outbox.push_line(ack);
                }
                continue;
            }
            Err(message) => message,
        };
        outbox.push_line(HostLine::Error { message });
        outbox.close();
        return Goodbye::Expelled;
    }
}

/// Writes the welcome, the glance, the backlog and then what comes, until the outbox is closed and empty.
async fn write_lines<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    mut writer: W,
    glance: Option<Box<RunState>>,
    backlog: Vec<Arc<Record>>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    if let Some(welcome) = outbox.take(1).await {
        encode(&welcome, &mut buffer)?;
    }
    if let Some(glance) = glance {
        encode(&[OutLine::Line(HostLine::Glance(glance))], &mut buffer)?;
    }
    for record in backlog {
        encode(&[OutLine::Record(record)], &mut buffer)?;
        if buffer.len() >= WRITE_BLOCK {
            writer.write_all(&buffer).await?;
            buffer.clear();
        }
        if outbox.overflowed() {
            break;
        }
    }
    loop {
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        match outbox.take(256).await {
            Some(lines) => encode(&lines, &mut buffer)?,
            None => return writer.shutdown().await,
        }
    }
}

/// [`HostLine::Event`] without a copy of the record.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum SharedEvent<'a> {
    Event(&'a Record),
}

fn encode(lines: &[OutLine], buffer: &mut Vec<u8>) -> std::io::Result<()> {
    for line in lines {
        match line {
            OutLine::Record(record) => serde_json::to_writer(&mut *buffer, &SharedEvent::Event(record))?,
            OutLine::Line(line) => serde_json::to_writer(&mut *buffer, line)?,
        }
        buffer.push(b'\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    #[test]
    fn a_shared_record_is_encoded_as_an_event_line() {
        let record = Record {
            seq: 1,
            at: 2,
            event: Event::ConfigChanged { keys: vec!["a".into()], changes: Vec::new() },
        };
        let mut buffer = Vec::new();
        encode(&[OutLine::Record(Arc::new(record.clone()))], &mut buffer).unwrap();
        let line: HostLine = serde_json::from_slice(&buffer).unwrap();
        assert_eq!(line, HostLine::Event(Box::new(record)));
    }

    #[test]
    fn only_so_many_answers_are_remembered() {
        let mut answered = Answered::default();
        for n in 0..REMEMBERED + 10 {
            answered.remember((Author("a".into()), n.to_string()), (AckResult::Applied, 1));
        }
        assert_eq!((answered.answers.len(), answered.order.len()), (REMEMBERED, REMEMBERED));
        assert!(!answered.answers.contains_key(&(Author("a".into()), "9".into())));
    }
}
