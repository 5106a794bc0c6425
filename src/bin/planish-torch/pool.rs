//! A fixed team of threads for the short parallel regions of a decode step (about 150 per step, tens of
//! microseconds each). Knows nothing of what it runs; results must not depend on which thread runs a task.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Set in `state` while a job may be entered; the rest of the word counts the threads inside it.
const OPEN: usize = 1 << (usize::BITS - 1);
/// Waits this long for the next job before it sleeps: regions of one step follow each other closely, and a
/// sleeping team costs a wake-up per region; longer spinning would take the core from the program beside us.
const SPINS: u32 = 4_000;

#[derive(Clone, Copy)]
struct Job {
    task: *const (dyn Fn(usize) + Sync),
    count: usize,
}

struct Shared {
    state: AtomicUsize,
    /// Number of jobs so far; a thread enters each at most once.
    generation: AtomicUsize,
    job: UnsafeCell<Option<Job>>,
    next: AtomicUsize,
    panicked: AtomicBool,
    stop: AtomicBool,
}

// SAFETY: `job` is written only by `Pool::run` while no thread is inside a job (state is 0), and read only by
// threads that entered through an acquiring exchange of `state`, which orders the read after the write.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer in `job` is only dereferenced while `run` keeps its target alive.
unsafe impl Send for Shared {}

pub struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// `threads` counts the caller's; 0: all cores.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        };
        let shared = Arc::new(Shared {
            state: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let mut pool = Self { shared: Arc::clone(&shared), helpers: Vec::new() };
        for index in 1..threads {
            let shared = Arc::clone(&shared);
            let name = format!("decode-{index}");
            pool.helpers.push(std::thread::Builder::new().name(name).spawn(move || help(&shared))?);
        }
        Ok(pool)
    }

    /// Calls `task(0)` to `task(count - 1)`, each once, in any order and on any thread; returns when all are done.
    /// A panic of a task continues in the caller. Takes `&mut self`: jobs never nest or overlap.
    pub fn run(&mut self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        if count <= 1 || self.helpers.is_empty() {
            (0..count).for_each(task);
            return;
        }
        let shared = &*self.shared;
        // SAFETY: only the lifetime is erased; this function does not return before every thread has left the job.
        let task: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task) };
        let job = Job { task, count };
        // SAFETY: state is 0 between jobs, so no thread reads `job` now.
        unsafe { *shared.job.get() = Some(job) };
        shared.next.store(0, Ordering::Relaxed);
        shared.state.store(OPEN, Ordering::Release);
        shared.generation.fetch_add(1, Ordering::Release);
        self.helpers.iter().for_each(|helper| helper.thread().unpark());
        let own = catch_unwind(AssertUnwindSafe(|| work(shared, job)));
        shared.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0;
        while shared.state.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        if shared.panicked.swap(false, Ordering::Relaxed) {
            resume_unwind(Box::new("a decode thread panicked".to_string()));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            // A helper catches its tasks' panics, so there is nothing to learn from its end.
            let _ = helper.join();
        }
    }
}

fn work(shared: &Shared, job: Job) {
    loop {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index >= job.count {
            return;
        }
        // SAFETY: `run` keeps the closure alive until every thread has left the job.
        unsafe { (*job.task)(index) };
    }
}

fn help(shared: &Shared) {
    let mut seen = 0;
    loop {
        let mut spins = 0;
        loop {
            if shared.stop.load(Ordering::Acquire) {
                return;
            }
            let generation = shared.generation.load(Ordering::Acquire);
            if generation != seen {
                seen = generation;
                break;
            }
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::park() }
        }
        let entered = shared.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            (state & OPEN != 0).then_some(state + 1)
        });
        if entered.is_err() {
            continue;
        }
        // SAFETY: entered, so `run` neither changes `job` nor returns before the count below falls.
        let job = unsafe { *shared.job.get() };
        let done = catch_unwind(AssertUnwindSafe(|| {
            if let Some(job) = job {
                work(shared, job);
            }
        }));
        if done.is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.state.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        let mut pool = Pool::new(3).unwrap();
        for count in [0, 1, 2, 7, 100] {
            for _ in 0..200 {
                let hits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                pool.run(count, &|i| {
                    hits[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_panicking_task_reaches_the_caller_and_the_pool_stays_usable() {
        let mut pool = Pool::new(2).unwrap();
        for bad in 0..8 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(8, &|i| assert_ne!(i, bad));
            }));
            assert!(result.is_err());
        }
        let sum = AtomicUsize::new(0);
        pool.run(10, &|i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.load(Ordering::Relaxed), 45);
    }
}
