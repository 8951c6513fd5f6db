//! Where the time went: as it is counted, and as `summary.json` tells it.

use super::number;
use serde::{Deserialize, Serialize};

/// Time spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Seconds on the clock.
    pub clock_s: f64,
    /// Seconds of processors, over all threads: what a busy machine does not change.
    pub processor_s: f64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.clock_s += more.clock_s;
        self.processor_s += more.processor_s;
    }
}

/// Seconds by stage: on the clock, and of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Tuning.
    pub tuning: Spent,
    /// Collecting samples for an accelerator.
    pub collecting: Spent,
    /// The part of it without an accelerator.
    pub plain: Spent,
    /// Training of transports.
    pub training: Spent,
    /// Burn-in and sampling.
    pub sampling: Spent,
}

impl Times {
    /// Of processors, over all stages.
    pub fn processor_s(&self) -> f64 {
        self.stages(|spent| spent.processor_s).total()
    }

    fn stages(&self, seconds: impl Fn(&Spent) -> f64) -> Stages {
        Stages {
            tuning_s: seconds(&self.tuning),
            collecting_s: seconds(&self.collecting),
            training_s: seconds(&self.training),
            sampling_s: seconds(&self.sampling),
        }
    }
}

/// Seconds of each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Tuning.
    pub tuning_s: f64,
    /// Collecting samples for an accelerator.
    pub collecting_s: f64,
    /// Training of transports.
    pub training_s: f64,
    /// Burn-in and sampling.
    pub sampling_s: f64,
}

impl Stages {
    /// All stages together.
    pub fn total(&self) -> f64 {
        self.tuning_s + self.collecting_s + self.training_s + self.sampling_s
    }
}

/// The `time` of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// On the clock.
    #[serde(flatten)]
    pub clock: Stages,
    /// Of processors, over all threads.
    pub processor: Stages,
    /// Iterations of sampling in a second on the clock.
    #[serde(deserialize_with = "number::one")]
    pub iterations_per_second: f64,
}

impl Time {
    /// Of so many iterations of sampling.
    pub(super) fn of(times: &Times, iterations: u64) -> Self {
        Self {
            clock: times.stages(|spent| spent.clock_s),
            processor: times.stages(|spent| spent.processor_s),
            iterations_per_second: iterations as f64 / times.sampling.clock_s,
        }
    }
}
