//! What one client still has to be sent: a bounded queue that coalesces high-rate lines and never blocks its
//! writers. It knows nothing of sockets.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::event::{Event, HostLine, Live, Record};

/// Lines that may wait for a client before it is sent away to reconnect.
pub const CAPACITY: usize = 8192;
/// Journaled log lines that may wait; older ones are dropped with a count.
const LOG_CAPACITY: usize = 256;
/// Bytes of reply text that may wait per call; what comes on top is dropped with a count.
const DELTA_CAPACITY: usize = 64 * 1024;

/// One waiting line. Records are shared with the engine, not copied.
#[derive(Clone, Debug, PartialEq)]
pub enum OutLine {
    Record(Arc<Record>),
    Line(HostLine),
}

#[derive(Default)]
struct Queue {
    /// Waiting lines by order of arrival.
    waiting: BTreeMap<u64, OutLine>,
    next: u64,
    /// Where the pending text of a call waits, by call path.
    deltas: HashMap<String, u64>,
    throughput: Option<u64>,
    machine: Option<u64>,
    logs: VecDeque<u64>,
    dropped: u64,
    closed: bool,
    overflowed: bool,
}

/// Queue between the tasks that produce lines and the one task that writes them to a client.
pub struct Outbox {
    queue: Mutex<Queue>,
    changed: Notify,
    capacity: usize,
}

impl Outbox {
    pub fn new(capacity: usize) -> Self {
        Self { queue: Mutex::default(), changed: Notify::new(), capacity }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push_record(&self, record: Arc<Record>) {
        let is_log = matches!(record.event, Event::Log { .. });
        self.change(|queue| {
            let place = queue.append(OutLine::Record(record));
            if is_log {
                queue.logs.push_back(place);
                if queue.logs.len() > LOG_CAPACITY
                    && let Some(oldest) = queue.logs.pop_front()
                {
                    queue.waiting.remove(&oldest);
                    queue.dropped += 1;
                }
            }
        });
    }

    pub fn push_line(&self, line: HostLine) {
        self.change(|queue| {
            queue.append(OutLine::Line(line));
        });
    }

    pub fn push_live(&self, live: &Live) {
        self.change(|queue| queue.append_live(live));
    }

    /// Counts lines that were lost before they came here.
    pub fn note_dropped(&self, lines: u64) {
        self.change(|queue| queue.dropped += lines);
    }

    /// Nothing more is taken; what waits may still be sent.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// More lines waited than fit, and they were thrown away.
    pub fn overflowed(&self) -> bool {
        self.lock().overflowed
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits for lines and takes at most `most` of them; `None` when closed and empty. One taker at a time.
    pub async fn take(&self, most: usize) -> Option<Vec<OutLine>> {
        loop {
            {
                let mut queue = self.lock();
                let lines = queue.take(most);
                if !lines.is_empty() {
                    return Some(lines);
                }
                if queue.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        change(&mut queue);
        if queue.waiting.len() > self.capacity {
            queue.overflow();
        }
        drop(queue);
        self.changed.notify_one();
    }
}

impl Queue {
    fn append(&mut self, line: OutLine) -> u64 {
        let place = self.next;
        self.next += 1;
        self.waiting.insert(place, line);
        place
    }

    fn append_live(&mut self, live: &Live) {
        match live {
            Live::CallDelta { path, text } => {
                let waiting = self.deltas.get(path).and_then(|place| self.waiting.get_mut(place));
                if let Some(OutLine::Line(HostLine::Live(Live::CallDelta { text: earlier, .. }))) = waiting {
                    if earlier.len() + text.len() > DELTA_CAPACITY {
                        self.dropped += 1;
                    } else {
                        earlier.push_str(text);
                    }
                } else {
                    let place = self.append(OutLine::Line(HostLine::Live(live.clone())));
                    self.deltas.insert(path.clone(), place);
                }
            }
            Live::Machine(_) => {
                if let Some(stale) = self.machine {
                    self.waiting.remove(&stale);
                }
                self.machine = Some(self.append(OutLine::Line(HostLine::Live(live.clone()))));
            }
            Live::Throughput { .. } => {
                if let Some(stale) = self.throughput {
                    self.waiting.remove(&stale);
                }
                self.throughput = Some(self.append(OutLine::Line(HostLine::Live(live.clone()))));
            }
            Live::CallStarted { path, .. }
            | Live::CallRetrying { path, .. }
            | Live::CallFinished { path, .. } => {
                // Later text of this path must come after this line.
                self.deltas.remove(path);
                self.append(OutLine::Line(HostLine::Live(live.clone())));
            }
        }
    }

    fn take(&mut self, most: usize) -> Vec<OutLine> {
        let mut lines = Vec::new();
        if self.dropped > 0 {
            lines.push(OutLine::Line(HostLine::Dropped { lines: std::mem::take(&mut self.dropped) }));
        }
        while lines.len() < most
            && let Some((place, line)) = self.waiting.pop_first()
        {
            match &line {
                OutLine::Record(_) if self.logs.front() == Some(&place) => {
                    self.logs.pop_front();
                }
                OutLine::Line(HostLine::Live(Live::CallDelta { path, .. }))
                    if self.deltas.get(path) == Some(&place) =>
                {
                    self.deltas.remove(path);
                }
                OutLine::Line(HostLine::Live(Live::Machine(_))) if self.machine == Some(place) => {
                    self.machine = None;
                }
                OutLine::Line(HostLine::Live(Live::Throughput { .. })) if self.throughput == Some(place) => {
                    self.throughput = None;
                }
                OutLine::Record(_) | OutLine::Line(_) => {}
            }
            lines.push(line);
        }
        lines
    }

    fn overflow(&mut self) {
        *self = Self { next: self.next, closed: true, overflowed: true, ..Self::default() };
        let message = "resync: this client read too slowly; reconnect with the last seq it has".into();
        self.append(OutLine::Line(HostLine::Error { message }));
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
