//! The circuit breaker of a host: when call after call gets no reply, its calls hold until somebody says to go on. Must not
//! decide who that is, nor pause anything else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// How long a failed call waits for others to begin.
const MOMENT: Duration = Duration::from_secs(1);

/// An opened breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub host: String,
    /// Calls in a row without a reply.
    pub failures: u32,
    /// What the last of them met; redacted.
    pub error: String,
}

/// The breakers of a run, by host. Nothing opens until somebody attends to it: held calls need one who lets them go.
#[derive(Default)]
pub struct Breakers {
    hosts: Mutex<BTreeMap<String, Arc<Breaker>>>,
    /// The last one that opened.
    opened: watch::Sender<Option<Opened>>,
    attended: watch::Sender<bool>,
}

pub struct Breaker {
    host: String,
    state: watch::Sender<State>,
    /// Of the board it belongs to.
    opened: watch::Sender<Option<Opened>>,
    attended: watch::Receiver<bool>,
}

#[derive(Default)]
struct State {
    standing: Standing,
    /// Calls in a row without a reply.
    failures: u32,
    /// Calls answered so far.
    answered: u64,
    /// Calls under way, and those among them that failed and do not know yet whether they are alone in it.
    active: usize,
    undecided: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Closed,
    Open,
    /// Whoever attended has gone.
    Abandoned,
}

/// What becomes of a call that got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It failed.
    GiveUp,
    /// It held while the breaker was open: it begins anew.
    Anew,
    Abandoned,
}

/// Nobody will let held calls go.
#[derive(Debug, PartialEq, Eq)]
pub struct Abandoned;

impl Breakers {
    pub fn of(&self, host: &str) -> Arc<Breaker> {
        let breaker = || {
            Arc::new(Breaker {
                host: host.to_owned(),
                state: watch::Sender::default(),
                opened: self.opened.clone(),
                attended: self.attended.subscribe(),
            })
        };
        self.hosts().entry(host.to_owned()).or_insert_with(breaker).clone()
    }

    /// From now on breakers open; each time is told here, until [`Breakers::close`].
    pub fn attend(&self) -> watch::Receiver<Option<Opened>> {
        self.attended.send_replace(true);
        self.opened.subscribe()
    }

    /// Held calls go on, each with a fresh round of retries.
    pub fn close(&self) {
        self.opened.send_replace(None);
        for breaker in self.hosts().values() {
            breaker.state.send_modify(|state| {
                state.standing = Standing::Closed;
                state.failures = 0;
            });
        }
    }

    /// Held calls end, and no breaker opens any more.
    pub fn abandon(&self) {
        self.attended.send_replace(false);
        for breaker in self.hosts().values() {
            breaker.state.send_modify(|state| state.standing = Standing::Abandoned);
        }
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Breaker>>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Breaker {
    /// A call begins.
    pub fn enter(self: &Arc<Self>) -> Visit {
        self.state.send_modify(|state| state.active += 1);
        Visit(self.clone())
    }

    /// Waits while it is open.
    pub async fn pass(&self) -> Result<(), Abandoned> {
        match self.wait(|state| state.standing != Standing::Open).await {
            Standing::Abandoned => Err(Abandoned),
            Standing::Open | Standing::Closed => Ok(()),
        }
    }

    /// The host answered a call, if only with a refusal.
    fn answered(&self) {
        self.state.send_modify(|state| {
            state.failures = 0;
            state.answered += 1;
        });
    }

    async fn exhausted(&self, limit: u32, error: &str) -> Then {
        if limit == 0 || !*self.attended.borrow() {
            return Then::GiveUp;
        }
        let answered = self.state.borrow().answered;
        let mut opens = None;
        self.state.send_modify(|state| {
            state.failures += 1;
            state.undecided += 1;
            if state.failures >= limit && state.standing == Standing::Closed {
                state.standing = Standing::Open;
                opens = Some(state.failures);
            }
        });
        let _undecided = Undecided(self);
        if let Some(failures) = opens {
            let opened = Opened { host: self.host.clone(), failures, error: error.to_owned() };
            self.opened.send_replace(Some(opened));
        }
        match self.decided(answered).await {
            Standing::Closed => Then::GiveUp,
            Standing::Abandoned => Then::Abandoned,
            Standing::Open => match self.pass().await {
                Ok(()) => Then::Anew,
                Err(Abandoned) => Then::Abandoned,
            },
        }
    }

    /// One failed call tells nothing of the host: it waits for what the others under way come to, and a moment for
    /// others to begin.
    async fn decided(&self, answered: u64) -> Standing {
        let told = |state: &State| state.standing != Standing::Closed || state.answered > answered;
        let alone = |state: &State| state.undecided >= state.active;
        loop {
            self.wait(|state| told(state) || alone(state)).await;
            let company = self.wait(|state| told(state) || !alone(state));
            if tokio::time::timeout(MOMENT, company).await.is_err() || told(&self.state.borrow()) {
                return self.state.borrow().standing;
            }
        }
    }

    async fn wait(&self, until: impl FnMut(&State) -> bool) -> Standing {
        let mut state = self.state.subscribe();
        // The sender lives as long as `self`.
        match state.wait_for(until).await {
            Ok(state) => state.standing,
            Err(_) => Standing::Abandoned,
        }
    }
}

/// Held while a failed call is undecided.
struct Undecided<'a>(&'a Breaker);

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.undecided -= 1);
    }
}

/// A call under way, until dropped.
pub struct Visit(Arc<Breaker>);

impl Visit {
    pub async fn pass(&self) -> Result<(), Abandoned> {
        self.0.pass().await
    }

    pub fn answered(&self) {
        self.0.answered();
    }

    /// The call has used up its retries. `limit`: failures in a row that open the breaker; 0: none do.
    pub async fn exhausted(&self, limit: u32, error: &str) -> Then {
        self.0.exhausted(limit, error).await
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.active -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` calls under way at once, all of which then fail.
    fn fail(breaker: &Arc<Breaker>, n: usize, limit: u32) -> Vec<tokio::task::JoinHandle<Then>> {
        let visits: Vec<_> = (0..n).map(|_| breaker.enter()).collect();
        let failing = |visit: Visit| tokio::spawn(async move { visit.exhausted(limit, "no route").await });
        visits.into_iter().map(failing).collect()
    }

    async fn results(calls: Vec<tokio::task::JoinHandle<Then>>) -> Vec<Then> {
        let joined = futures_util::future::join_all(calls).await;
        joined.into_iter().map(Result::unwrap).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn enough_failures_in_a_row_hold_all_of_them_until_it_is_closed() {
        let board = Breakers::default();
        let mut opened = board.attend();
        let breaker = board.of("host");
        let calls = fail(&breaker, 7, 5);
        let told = opened.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        assert_eq!(told, Opened { host: "host".into(), failures: 5, error: "no route".into() });
        tokio::task::yield_now().await;
        assert!(calls.iter().all(|call| !call.is_finished()), "not one of them has failed");
        let newcomer = breaker.enter();
        let passing = tokio::spawn(async move { newcomer.pass().await });
        tokio::task::yield_now().await;
        assert!(!passing.is_finished());
        board.close();
        assert_eq!(results(calls).await, [Then::Anew; 7]);
        assert_eq!(passing.await.unwrap(), Ok(()));
        assert!(opened.borrow().is_none());
        // The count begins anew.
        assert_eq!(results(fail(&breaker, 4, 5)).await, [Then::GiveUp; 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn fewer_failures_are_failures_once_nobody_else_could_tell_more() {
        let board = Breakers::default();
        let _opened = board.attend();
        let breaker = board.of("host");
        let busy = breaker.enter();
        let calls = fail(&breaker, 3, 5);
        tokio::task::yield_now().await;
        assert!(calls.iter().all(|call| !call.is_finished()), "the busy call may still be answered");
        busy.answered();
        assert_eq!(results(calls).await, [Then::GiveUp; 3]);
        drop(busy);
        // Alone, one after the other: the fifth in a row opens it.
        for n in 1..5 {
            assert_eq!(results(fail(&breaker, 1, 5)).await, [Then::GiveUp], "{n}");
        }
        let last = fail(&breaker, 1, 5);
        tokio::task::yield_now().await;
        assert!(!last[0].is_finished());
        board.abandon();
        assert_eq!(results(last).await, [Then::Abandoned]);
        assert_eq!(breaker.pass().await, Err(Abandoned));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_between_an_unattended_run_and_a_limit_of_zero_open_nothing() {
        let board = Breakers::default();
        let breaker = board.of("host");
        assert_eq!(results(fail(&breaker, 9, 5)).await, [Then::GiveUp; 9]);
        let _opened = board.attend();
        assert_eq!(results(fail(&breaker, 9, 0)).await, [Then::GiveUp; 9]);
        for _ in 0..9 {
            assert_eq!(results(fail(&breaker, 1, 2)).await, [Then::GiveUp]);
            breaker.enter().answered();
        }
        assert!(!Arc::ptr_eq(&breaker, &board.of("other")));
    }
}
