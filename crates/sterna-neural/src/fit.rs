//! Budget and settings of a training, and what all fits share (App. E.2).

use sterna::acceleration::{FitReport, Fitted};

use crate::compute::{Compute, Opened};
use crate::losses::Loss;
use crate::optimiser::{AdamConfig, Decay};
use crate::training::TrainingStreams;
use crate::{Error, Result};

/// Budget and settings of a training.
///
/// ```
/// use sterna_neural::Training;
///
/// let training = Training { steps: 200, learning_rate: 1e-2, ..Training::default() };
/// assert!(training.check().is_ok());
/// let error = Training { batch: 0, ..training }.check().unwrap_err();
/// assert!(error.to_string().contains("training.batch"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Seed of starting weights, batches and noise.
    pub seed: u64,
    /// Steps of the optimiser.
    pub steps: u64,
    /// Steps that follow on the round-trip loss Σ r/(1 − r), which puts the effort on the worst pairs.
    pub fine_tune: u64,
    /// Journeys of a step, in each direction.
    pub batch: usize,
    /// Learning rate at the beginning; it falls along a half cosine.
    pub learning_rate: f64,
    /// Gradients longer than this are shortened to it.
    pub clip: f64,
    /// Weight of the past in the average of the parameters.
    pub ema: f64,
    /// What is made small.
    pub loss: Loss,
    /// Threads that train; they change no bit.
    pub threads: usize,
    /// Where training runs.
    pub compute: Compute,
    /// Whether pairs that do better without the transport are swapped plainly.
    pub guard: bool,
    /// Whether its end is judged on held-out samples, which asks the target: somebody else may do so.
    pub judges: bool,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            seed: 1,
            steps: 3000,
            fine_tune: 0,
            batch: 256,
            learning_rate: 1e-3,
            clip: 1.0,
            ema: 0.99,
            loss: Loss::Skl,
            threads: 1,
            compute: Compute::Cpu,
            guard: true,
            judges: true,
        }
    }
}

/// Steps of a training: sums of them are numbers too.
const MOST_STEPS: u64 = 1_000_000_000_000;

impl Training {
    /// Names the first setting that cannot be.
    ///
    /// # Errors
    /// If there is one.
    pub fn check(&self) -> Result<()> {
        let wrong = |field, value: String, reason| Err(Error::Config { field, value, reason });
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if self.steps == 0 {
            return wrong("training.steps", "0".into(), "at least 1 step is needed");
        }
        if self.batch == 0 {
            return wrong("training.batch", "0".into(), "at least 1 journey a step is needed");
        }
        if !(positive(self.learning_rate) && self.learning_rate <= 10.0) {
            let value = self.learning_rate.to_string();
            return wrong("training.learning_rate", value, "it must be positive, and at most 10");
        }
        if !(positive(self.clip) && self.clip <= 1e6) {
            return wrong("training.clip", self.clip.to_string(), "it must be positive, and at most 1e6");
        }
        if self.steps.max(self.fine_tune) > MOST_STEPS {
            let (field, steps) = match self.steps > MOST_STEPS {
                true => ("training.steps", self.steps),
                false => ("training.fine_tune", self.fine_tune),
            };
            return wrong(field, steps.to_string(), "at most 1e12 steps are possible");
        }
        if !(0.0..1.0).contains(&self.ema) {
            return wrong("training.ema", self.ema.to_string(), "it must lie in [0, 1)");
        }
        Ok(())
    }

    /// The optimiser's settings.
    pub fn adam(&self) -> AdamConfig {
        AdamConfig {
            learning_rate: self.learning_rate,
            warm_up: (self.steps / 20).min(100),
            decay: Decay::Cosine { steps: self.steps, floor: 0.02 },
            clip: self.clip,
            average: self.ema,
            ..AdamConfig::default()
        }
    }

    /// The optimiser of fine-tuning, which starts near a minimum.
    pub(crate) fn gentle_adam(&self) -> AdamConfig {
        let steps = self.fine_tune;
        AdamConfig {
            learning_rate: FINE_TUNING_RATE * self.learning_rate,
            warm_up: (steps / 20).min(100),
            decay: Decay::Cosine { steps, floor: 0.02 },
            ..self.adam()
        }
    }
}

/// Learning rate of fine-tuning, relative to that of training.
const FINE_TUNING_RATE: f64 = 0.5;

/// The report that a round of training starts with: that of earlier rounds, or a note where the CPU stands in.
pub(crate) fn first_report(earlier: Option<&Fitted>, opened: &Opened) -> FitReport {
    if let Some(earlier) = earlier {
        return earlier.report.clone();
    }
    let alarms = opened.note.iter().map(|note| ("device-replaced".into(), note.clone())).collect();
    FitReport { alarms, ..FitReport::default() }
}

/// Our errors as the library's.
pub fn into_library(error: Error) -> sterna::Error {
    match error {
        Error::Config { field, value, reason } => {
            sterna::Error::Setting { setting: field, value, cure: reason }
        }
        error => sterna::Error::Transport(Box::new(error)),
    }
}

/// Streams of one round of training.
pub fn streams(training: &Training, round: usize) -> TrainingStreams {
    TrainingStreams::new(training.seed ^ (round as u64).wrapping_mul(0xA54F_F53A_5F1D_36F1))
}
