//! Who is connected. Every change is told to all clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::outbox::Outbox;
use crate::event::{Client, HostLine};

type Members = BTreeMap<u64, (Client, Arc<Outbox>)>;

pub struct Registry {
    members: Mutex<(u64, Members)>,
    count: watch::Sender<usize>,
}

/// Membership of one client; leaves when dropped.
pub struct Membership {
    registry: Arc<Registry>,
    id: u64,
}

impl Registry {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { members: Mutex::default(), count: watch::Sender::new(0) })
    }

    pub fn join(self: &Arc<Self>, client: Client, outbox: Arc<Outbox>) -> Membership {
        let mut members = self.lock();
        let id = members.0;
        members.0 += 1;
        members.1.insert(id, (client, outbox));
        self.tell(&members.1);
        Membership { registry: Arc::clone(self), id }
    }

    /// Returns once nobody is connected.
    pub async fn emptied(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Members)> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, members: &Members) {
        let clients: Vec<Client> = members.values().map(|(client, _)| client.clone()).collect();
        for (_, outbox) in members.values() {
            outbox.push_line(HostLine::Clients(clients.clone()));
        }
        self.count.send_replace(members.len());
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut members = self.registry.lock();
        members.1.remove(&self.id);
        self.registry.tell(&members.1);
    }
}
