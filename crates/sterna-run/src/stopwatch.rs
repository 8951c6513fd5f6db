//! Time on the clock and time of processors.

use crate::process::processor_s;
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
