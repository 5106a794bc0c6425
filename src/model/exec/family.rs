//! A program and all it started: who they are and how they are ended. Agents run commands in sessions of their own, so
//! the process group is not enough; where there is a `/proc`, descent and the run's mark in the environment tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::Child;

use super::workspace::Workspace;

/// Ends with its processes: by [`Family::end`], or by a thread of its own when dropped before.
pub struct Family {
    leader: Option<Pid>,
    mark: String,
    grace: Duration,
    /// Removed when nobody works in it any more.
    workspace: Arc<Workspace>,
}

impl Family {
    pub fn new(leader: Option<u32>, mark: String, grace: Duration, workspace: Arc<Workspace>) -> Self {
        let leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { leader, mark, grace, workspace }
    }

    /// Asks all to end, then ends those that did not.
    pub async fn end(&mut self, child: &mut Child) {
        let Some(leader) = self.leader else { return };
        if let Ok(Some(_)) = child.try_wait()
            && members(leader, &self.mark).is_empty()
        {
            self.leader = None;
            return;
        }
        signal(leader, &self.mark, Signal::TERM);
        self.gone(leader, child, self.grace).await;
        signal(leader, &self.mark, Signal::KILL);
        self.gone(leader, child, DYING).await;
        self.leader = None;
    }

    /// Waits for all to be gone, within bounds.
    async fn gone(&self, leader: Pid, child: &mut Child, within: Duration) {
        let waited = tokio::time::timeout(within, async {
            let _ = child.wait().await;
            while !members(leader, &self.mark).is_empty() {
                tokio::time::sleep(POLL).await;
            }
        });
        // Too long is no fault: what comes next does not depend on it.
        let _ = waited.await;
    }
}

const POLL: Duration = Duration::from_millis(20);
/// How long the system may take to end a process that cannot refuse.
const DYING: Duration = Duration::from_secs(5);

impl Drop for Family {
    fn drop(&mut self) {
        let Some(leader) = self.leader.take() else { return };
        let (mark, grace) = (std::mem::take(&mut self.mark), self.grace);
        signal(leader, &mark, Signal::TERM);
        let workspace = self.workspace.clone();
        // No runtime may be left to wait on.
        std::thread::spawn(move || {
            let _in_use = workspace;
            let rounds = grace.as_millis() / POLL.as_millis();
            for _ in 0..rounds {
                if members(leader, &mark).is_empty() {
                    return;
                }
                std::thread::sleep(POLL);
            }
            signal(leader, &mark, Signal::KILL);
        });
    }
}

fn signal(leader: Pid, mark: &str, signal: Signal) {
    // Before the group: a leader's end would hide who descends from it.
    let members = members(leader, mark);
    let _ = kill_process_group(leader, signal);
    for member in members {
        let _ = kill_process(member, signal);
    }
}

/// Living processes that carry the mark, or descend from the leader or from one that does.
fn members(leader: Pid, mark: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: HashMap<i32, i32> = ids.filter_map(|id| Some((id, living_parent(id)?))).collect();
    let own = std::process::id();
    let belongs = |id: i32| id == leader.as_raw_nonzero().get() || is_marked(id, mark);
    let mut known: HashMap<i32, bool> = HashMap::new();
    for id in parents.keys() {
        let mut line = Vec::new();
        let mut at = *id;
        let found = loop {
            if let Some(found) = known.get(&at) {
                break *found;
            }
            line.push(at);
            if belongs(at) {
                break true;
            }
            match parents.get(&at) {
                Some(parent) if *parent > 1 && line.len() < 1000 => at = *parent,
                _ => break false,
            }
        };
        // Those below the one that was found belong as well; those above it do not.
        known.extend(line.into_iter().map(|id| (id, found)));
    }
    let members = known.into_iter().filter(|(id, found)| *found && u32::try_from(*id) != Ok(own));
    members.filter_map(|(id, _)| Pid::from_raw(id)).collect()
}

/// The parent, unless the process is dead and only waits to be collected.
fn living_parent(id: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name before it is in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.next()?.parse().ok(),
    }
}

fn is_marked(id: i32, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    !mark.is_empty() && memchr::memmem::find(&environment, mark.as_bytes()).is_some()
}
