//! Time on the clock and time of processors.

use crate::summary::Spent;
use std::time::Instant;

/// Runs from its making.
pub struct Stopwatch {
    clock: Instant,
    processor_s: f64,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Self {
        Self { clock: Instant::now(), processor_s: processor_s() }
    }

    /// Time since the start.
    pub fn stop(&self) -> Spent {
        Spent { clock_s: self.clock.elapsed().as_secs_f64(), processor_s: processor_s() - self.processor_s }
    }
}

/// Seconds that all threads of this process have had of processors.
fn processor_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}
