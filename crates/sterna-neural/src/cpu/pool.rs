//! A small thread pool with little latency: tasks are numbers, the caller works too, and whoever comes
//! late is not waited for. Nothing is allocated per call.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Rounds of looking for work before a worker goes to sleep (some ten microseconds).
const SPINS: usize = 4000;

/// `f(task, worker)` behind a pointer whose lifetime `Pool::run` guarantees.
#[derive(Clone, Copy)]
struct Job {
    f: *const (dyn Fn(usize, usize) + Sync),
    tasks: usize,
}

// SAFETY: the function is `Sync`, and `Pool::run` does not return while a worker holds the job.
unsafe impl Send for Job {}

#[derive(Default)]
struct State {
    job: Option<Job>,
    sleeping: usize,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    /// Counts jobs, so that a worker sees new work without the lock.
    generation: AtomicU64,
    /// The next task.
    next: AtomicUsize,
    /// Workers inside the present job.
    active: AtomicUsize,
    panicked: AtomicBool,
}

/// Threads that run the tasks of one caller at a time.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    busy: Mutex<()>,
}

impl Pool {
    /// A pool of `threads` threads, the caller being one of them.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let workers = (1..threads)
            .map(|worker| {
                let shared = shared.clone();
                std::thread::Builder::new()
                    .name(format!("sterna-neural-{worker}"))
                    .spawn(move || work(&shared, worker))
                    .expect("the system gives a thread")
            })
            .collect();
        Self { shared, workers, busy: Mutex::new(()) }
    }

    /// Number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `f(task, worker)` for every task. The worker number is below [`threads`](Self::threads) and
    /// never used twice at a time within this call. Alone where another caller has the pool.
    pub fn run(&self, tasks: usize, f: &(dyn Fn(usize, usize) + Sync)) {
        let guard = if self.workers.is_empty() || tasks < 2 { None } else { self.busy.try_lock().ok() };
        let Some(_guard) = guard else {
            (0..tasks).for_each(|task| f(task, 0));
            return;
        };
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes; the job is withdrawn and its users are waited for below.
        let f: *const (dyn Fn(usize, usize) + Sync) = unsafe { std::mem::transmute(f) };
        shared.next.store(0, Ordering::Relaxed);
        {
            let mut state = shared.state.lock().expect("no panic under the lock");
            state.job = Some(Job { f, tasks });
            shared.generation.fetch_add(1, Ordering::Release);
            if state.sleeping > 0 {
                shared.wake.notify_all();
            }
        }
        let withdraw = Withdraw(shared);
        take_tasks(shared, Job { f, tasks }, 0);
        drop(withdraw);
        if shared.panicked.swap(false, Ordering::Relaxed) {
            panic!("a worker thread panicked");
        }
    }
}

/// Ends a job even if the caller's own task panics.
struct Withdraw<'a>(&'a Shared);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.0.state.lock().expect("no panic under the lock").job = None;
        let mut spins = 0;
        while self.0.active.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

fn take_tasks(shared: &Shared, job: Job, worker: usize) {
    loop {
        let task = shared.next.fetch_add(1, Ordering::Relaxed);
        if task >= job.tasks {
            return;
        }
        // SAFETY: the caller keeps the function alive until all active workers have left.
        unsafe { (*job.f)(task, worker) };
    }
}

fn work(shared: &Shared, worker: usize) {
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while shared.generation.load(Ordering::Acquire) == seen && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        let job = {
            let mut state = shared.state.lock().expect("no panic under the lock");
            while shared.generation.load(Ordering::Acquire) == seen && !state.stop {
                state.sleeping += 1;
                state = shared.wake.wait(state).expect("no panic under the lock");
                state.sleeping -= 1;
            }
            if state.stop {
                return;
            }
            seen = shared.generation.load(Ordering::Acquire);
            if state.job.is_some() {
                shared.active.fetch_add(1, Ordering::Acquire);
            }
            state.job
        };
        if let Some(job) = job {
            let tasks = std::panic::AssertUnwindSafe(|| take_tasks(shared, job, worker));
            if std::panic::catch_unwind(tasks).is_err() {
                shared.panicked.store(true, Ordering::Relaxed);
            }
            shared.active.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.lock().expect("no panic under the lock").stop = true;
        self.shared.generation.fetch_add(1, Ordering::Release);
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        let pool = Pool::new(3);
        for tasks in [0, 1, 2, 7, 100] {
            let counts: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            pool.run(tasks, &|task, worker| {
                assert!(worker < 3);
                counts[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn a_busy_pool_lets_the_second_caller_work_alone() {
        let pool = Pool::new(2);
        let inner = AtomicUsize::new(0);
        pool.run(4, &|_, _| {
            pool.run(4, &|_, _| {
                inner.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(inner.load(Ordering::Relaxed), 16);
    }
}
