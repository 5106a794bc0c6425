//! The calls under way, so that people can give one up or have it asked anew. Owns the orders; what a call given up means
//! to the run is its caller's.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::Author;
use crate::event::Live;
use crate::model::LiveSink;

/// What the run needs of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// It can go on without the result.
    None,
    /// It ends without it; what the call belongs to.
    This(String),
    /// It ends when no call of this group is answered; the group and what it is.
    OneOf { group: String, what: &'static str },
}

/// Why a call cannot be given up or asked anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error("no call is under way at this path")]
    NotUnderWay,
    #[error("the run needs {what}; to end the run, cancel it as a whole")]
    Needed { what: String },
}

#[derive(Default)]
pub struct InFlight {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    open: HashMap<String, Call>,
    /// How many calls of a group were answered, and how many still may be.
    groups: HashMap<String, Hope>,
}

#[derive(Default)]
struct Hope {
    answered: usize,
    open: usize,
}

struct Call {
    need: Need,
    /// Paths of its requests that were sent and not answered.
    asked: BTreeSet<String>,
    cancelled: Option<Author>,
    requeued: bool,
    ordered: Arc<Notify>,
}

/// A call among those under way, until dropped.
pub struct Entry {
    in_flight: Arc<InFlight>,
    path: String,
    ordered: Arc<Notify>,
    answered: bool,
}

/// The call was given up by a person.
pub struct GivenUp(pub Author);

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a call, before anything of it is awaited.
    pub fn enter(self: &Arc<Self>, path: &str, need: Need) -> Entry {
        let ordered = Arc::new(Notify::new());
        let mut calls = self.lock();
        if let Need::OneOf { group, .. } = &need {
            calls.groups.entry(group.clone()).or_default().open += 1;
        }
        let call =
            Call { need, asked: BTreeSet::new(), cancelled: None, requeued: false, ordered: ordered.clone() };
        calls.open.insert(path.to_owned(), call);
        Entry { in_flight: self.clone(), path: path.to_owned(), ordered, answered: false }
    }

    /// A result of this group is known from earlier.
    pub fn recalled(&self, need: &Need) {
        if let Need::OneOf { group, .. } = need {
            self.lock().groups.entry(group.clone()).or_default().answered += 1;
        }
    }

    /// Gives up the call at `path`, which is its own or that of a request it has sent. Returns its own.
    pub fn cancel(&self, path: &str, by: &Author) -> Result<String, Unavailable> {
        let mut calls = self.lock();
        let own = calls.find(path)?;
        let Calls { open, groups } = &mut *calls;
        let call = open.get_mut(&own).ok_or(Unavailable::NotUnderWay)?;
        match &call.need {
            Need::None => {}
            Need::This(what) => return Err(Unavailable::Needed { what: what.clone() }),
            Need::OneOf { group, what } => {
                let hope = groups.entry(group.clone()).or_default();
                if hope.answered == 0 && hope.open <= 1 {
                    return Err(Unavailable::Needed { what: (*what).to_owned() });
                }
                hope.open -= 1;
            }
        }
        call.need = Need::None;
        call.cancelled = Some(by.clone());
        call.ordered.notify_one();
        Ok(own)
    }

    /// Begins the call at `path` anew.
    pub fn requeue(&self, path: &str) -> Result<String, Unavailable> {
        let mut calls = self.lock();
        let own = calls.find(path)?;
        let call = calls.open.get_mut(&own).filter(|call| !call.asked.is_empty());
        let call = call.ok_or(Unavailable::NotUnderWay)?;
        call.requeued = true;
        call.ordered.notify_one();
        Ok(own)
    }
}

impl Calls {
    fn find(&self, path: &str) -> Result<String, Unavailable> {
        let asked = |(_, call): &(&String, &Call)| call.asked.contains(path);
        let found = match self.open.get_key_value(path) {
            Some(own) => Some(own),
            None => self.open.iter().find(asked),
        };
        let own = found.filter(|(_, call)| call.cancelled.is_none()).map(|(own, _)| own.clone());
        own.ok_or(Unavailable::NotUnderWay)
    }
}

enum Order {
    Cancelled(Author),
    Requeued,
}

impl Entry {
    /// Waits for `step`, unless the call is given up before.
    pub async fn unless_given_up<T>(&self, step: impl Future<Output = T>) -> Result<T, GivenUp> {
        tokio::select! {
            biased;
            by = self.cancelled() => Err(GivenUp(by)),
            done = step => self.stands(done),
        }
    }

    /// Makes the call, anew as often as ordered, until it ends or is given up.
    pub async fn conduct<T, F: Future<Output = T>>(
        &self,
        live: &LiveSink,
        attempt: impl Fn(LiveSink) -> F,
    ) -> Result<T, GivenUp> {
        loop {
            let attempted = attempt(self.watched(live));
            let order = tokio::select! {
                biased;
                order = self.order() => order,
                done = attempted => return self.stands(done),
            };
            // What was under way was dropped and tells no end of its own.
            for path in self.forget_asked() {
                live(Live::CallFinished { path, ok: false, tokens: 0, ms: 0 });
            }
            if let Order::Cancelled(by) = order {
                return Err(GivenUp(by));
            }
        }
    }

    /// The call was answered: others of its group may be given up.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// A call that was given up stays so, even if it ended at that moment.
    fn stands<T>(&self, done: T) -> Result<T, GivenUp> {
        match self.with_call(|call| call.cancelled.clone()) {
            Some(Some(by)) => Err(GivenUp(by)),
            Some(None) | None => Ok(done),
        }
    }

    async fn cancelled(&self) -> Author {
        loop {
            match self.order().await {
                Order::Cancelled(by) => return by,
                Order::Requeued => {}
            }
        }
    }

    async fn order(&self) -> Order {
        loop {
            let order = self.with_call(|call| match &call.cancelled {
                Some(by) => Some(Order::Cancelled(by.clone())),
                None => std::mem::take(&mut call.requeued).then_some(Order::Requeued),
            });
            if let Some(Some(order)) = order {
                return order;
            }
            self.ordered.notified().await;
        }
    }

    fn with_call<T>(&self, look: impl FnOnce(&mut Call) -> T) -> Option<T> {
        self.in_flight.lock().open.get_mut(&self.path).map(look)
    }

    fn forget_asked(&self) -> BTreeSet<String> {
        self.with_call(|call| std::mem::take(&mut call.asked)).unwrap_or_default()
    }

    /// A sink that also keeps which requests are out.
    fn watched(&self, live: &LiveSink) -> LiveSink {
        let (in_flight, own, live) = (self.in_flight.clone(), self.path.clone(), live.clone());
        Arc::new(move |news| {
            let (path, out) = match &news {
                Live::CallStarted { path, .. } => (Some(path), true),
                Live::CallFinished { path, .. } => (Some(path), false),
                Live::CallDelta { .. }
                | Live::CallRetrying { .. }
                | Live::Throughput { .. }
                | Live::Machine(_) => (None, false),
            };
            if let Some(path) = path
                && let Some(call) = in_flight.lock().open.get_mut(&own)
            {
                if out {
                    call.asked.insert(path.clone());
                } else {
                    call.asked.remove(path);
                }
            }
            live(news);
        })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut calls = self.in_flight.lock();
        let Some(call) = calls.open.remove(&self.path) else { return };
        if let Need::OneOf { group, .. } = call.need {
            let hope = calls.groups.entry(group).or_default();
            hope.open = hope.open.saturating_sub(1);
            hope.answered += usize::from(self.answered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by() -> Author {
        Author("ann".into())
    }

    fn quiet() -> LiveSink {
        Arc::new(|_| {})
    }

    fn started(path: &str) -> Live {
        Live::CallStarted { path: path.into(), item: "i".into(), attempt: 1 }
    }

    #[tokio::test]
    async fn a_requeued_call_is_asked_anew_and_a_cancelled_one_is_given_up() {
        let calls = Arc::new(InFlight::default());
        let entry = calls.enter("a", Need::None);
        assert_eq!(calls.requeue("a"), Err(Unavailable::NotUnderWay), "it was not sent yet");
        let tries = std::sync::atomic::AtomicUsize::new(0);
        let live = quiet();
        let attempt = |sink: LiveSink| {
            let nth = tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let calls = &calls;
            async move {
                sink(started("a/t1"));
                if nth == 0 {
                    assert_eq!(calls.requeue("a/t1"), Ok("a".into()));
                    std::future::pending::<()>().await;
                }
                nth
            }
        };
        assert_eq!(entry.conduct(&live, attempt).await.ok(), Some(1));
        assert_eq!(calls.cancel("a", &by()), Ok("a".into()));
        let ended = entry.conduct(&live, |_| async { 1 }).await;
        assert!(matches!(ended, Err(GivenUp(who)) if who == by()), "given up while it ended");
        assert_eq!(calls.cancel("a", &by()), Err(Unavailable::NotUnderWay));
        drop(entry);
        assert_eq!(calls.requeue("a"), Err(Unavailable::NotUnderWay));
    }

    #[test]
    fn the_last_hope_of_a_group_and_what_a_run_needs_stay() {
        let calls = Arc::new(InFlight::default());
        let one_of = || Need::OneOf { group: "g".into(), what: "one rollout" };
        let (a, b) = (calls.enter("a", one_of()), calls.enter("b", one_of()));
        let baseline = calls.enter("base", Need::This("the baseline".into()));
        assert!(calls.cancel("base", &by()).unwrap_err().to_string().contains("needs the baseline"));
        assert!(calls.cancel("a", &by()).is_ok());
        assert!(calls.cancel("b", &by()).unwrap_err().to_string().contains("needs one rollout"));
        drop((a, baseline));
        let mut c = calls.enter("c", one_of());
        c.answered();
        drop(c);
        assert!(calls.cancel("b", &by()).is_ok());
        drop(b);
    }
}
