//! When something is due again.

use std::time::{Duration, Instant};

/// Due after the given seconds, and the later the longer it takes.
pub(super) struct Pace {
    seconds: f64,
    last: Instant,
    cost: Duration,
}

impl Pace {
    pub fn new(seconds: f64) -> Self {
        Self { seconds, last: Instant::now(), cost: Duration::ZERO }
    }

    pub fn is_due(&self) -> bool {
        // At most a twentieth of the time; with zero seconds as often as can be.
        let wait = Duration::from_secs_f64(self.seconds).max(20 * self.cost);
        self.seconds == 0.0 || self.last.elapsed() >= wait
    }

    pub fn time<T>(&mut self, job: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let out = job();
        (self.last, self.cost) = (Instant::now(), begin.elapsed());
        out
    }
}
