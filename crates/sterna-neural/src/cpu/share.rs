//! Tasks shared out over threads: rayon's, in the caller's pool.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Calls `f(task, worker)` for every task, on as many threads as there are workers, each of which has one to itself.
/// Whoever is free takes the next task; a thread that comes late finds none left.
pub fn share<W: Send>(workers: &mut [W], tasks: usize, f: impl Fn(usize, &mut W) + Sync) {
    let threads = workers.len().min(tasks);
    if threads < 2 {
        (0..tasks).for_each(|task| f(task, &mut workers[0]));
        return;
    }
    let next = AtomicUsize::new(0);
    workers[..threads].par_iter_mut().with_max_len(1).for_each(|worker| {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return;
            }
            f(task, worker);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for (workers, tasks) in [(1, 0), (1, 5), (3, 0), (3, 1), (3, 2), (3, 7), (3, 100)] {
            let counts: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            let mut made = vec![0; workers];
            share(&mut made, tasks, |task, made: &mut usize| {
                *made += 1;
                counts[task].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            assert_eq!(made.iter().sum::<usize>(), tasks);
        }
    }

    #[test]
    fn tasks_may_share_out_tasks() {
        let inner = AtomicUsize::new(0);
        share(&mut [(); 2], 4, |_, ()| {
            share(&mut [(); 2], 4, |_, ()| {
                inner.fetch_add(1, Ordering::Relaxed);
            })
        });
        assert_eq!(inner.load(Ordering::Relaxed), 16);
    }
}
