//! From samples of a ladder to a frozen accelerator (App. E.2): batches, the training loop, and the guard
//! that keeps a transport only on those pairs where it beats the plain swap.
//!
//! Whatever training does, the run stays exact: accelerators weigh their own paths. The guard is about speed.

use std::sync::{Arc, Mutex};

use sterna::acceleration::Collected;
use sterna::accelerator::{Accelerator, Direction, Journey, Travellers};
use sterna::accelerators::{Identity, PerPair};
use sterna::path::{AnnealingPath, Points};
use sterna::streams::Streams;
use sterna::{Batch, Schedule};

use crate::losses::Loss;
use crate::optimiser::{AdamConfig, Decay};
use crate::training::{Trainer, TrainingStreams};
use crate::{Error, Real, Result};

/// Budget and settings of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Seed of starting weights, batches and noise.
    pub seed: u64,
    /// Steps of the optimiser.
    pub steps: u64,
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
    /// Whether pairs that do better without the transport are swapped plainly.
    pub guard: bool,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            seed: 1,
            steps: 3000,
            batch: 256,
            learning_rate: 1e-3,
            clip: 1.0,
            ema: 0.99,
            loss: Loss::Skl,
            threads: 1,
            guard: true,
        }
    }
}

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
        if !positive(self.learning_rate) {
            let value = self.learning_rate.to_string();
            return wrong("training.learning_rate", value, "it must be positive");
        }
        if !positive(self.clip) {
            return wrong("training.clip", self.clip.to_string(), "it must be positive");
        }
        if !(0.0..1.0).contains(&self.ema) {
            return wrong("training.ema", self.ema.to_string(), "it must lie in [0, 1)");
        }
        Ok(())
    }

    pub(crate) fn adam(&self) -> AdamConfig {
        AdamConfig {
            learning_rate: self.learning_rate,
            warm_up: (self.steps / 20).min(100),
            decay: Decay::Cosine { steps: self.steps, floor: 0.02 },
            clip: self.clip,
            average: self.ema,
            ..AdamConfig::default()
        }
    }
}

/// Rejection rates of a pair on samples that training did not see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairReport {
    /// With the transport.
    pub rejection: f64,
    /// With the plain swap.
    pub plain_rejection: f64,
    /// Whether the plain swap was chosen.
    pub plain: bool,
}

/// What a training did.
#[derive(Clone, Debug, Default)]
pub struct TrainingReport {
    /// Steps made, over all rounds.
    pub steps: u64,
    /// Mean loss of each twentieth of the last round's steps.
    pub losses: Vec<f64>,
    /// Each pair on held-out samples, after the last round.
    pub pairs: Vec<PairReport>,
    /// Points at which the target was evaluated inside losses.
    pub target_evaluations: u64,
    /// Points at which a network was evaluated inside losses.
    pub network_evaluations: u64,
    /// What a person should know: a short name, and what was seen.
    pub alarms: Vec<(&'static str, String)>,
    /// The trained transport as a file would hold it.
    pub transport: Vec<u8>,
}

/// A report that the trainer writes and others read.
pub(crate) type Shared<S> = Arc<Mutex<S>>;

/// Samples split into those that training sees and those that judge it.
pub(crate) struct Split<'a> {
    schedule: &'a Schedule,
    samples: &'a [Batch],
    trained: usize,
}

impl<'a> Split<'a> {
    /// The last eighth is held out: later than all others, so as independent of them as can be.
    pub fn new(collected: &Collected<'a>) -> Self {
        let rows = collected.samples[0].rows();
        let held_out = (rows / 8).clamp(1, rows - 1);
        Self { schedule: collected.schedule, samples: collected.samples, trained: rows - held_out }
    }

    /// β and β′ of a pair, from 0.
    pub fn ends(&self, pair: usize) -> (f64, f64) {
        let interval = self.schedule.interval(pair + 1);
        (interval.lower, interval.upper)
    }

    pub fn pairs(&self) -> usize {
        self.schedule.pairs()
    }

    /// A training sample of a chain.
    pub fn sample(&self, chain: usize, stream: &mut sterna::streams::RowStream) -> &'a [f64] {
        self.samples[chain].row(stream.below(self.trained))
    }

    /// At most this many held-out samples of a chain, evenly spread.
    fn held_out(&self, chain: usize, most: usize) -> Vec<&'a [f64]> {
        let samples = &self.samples[chain];
        let stride = (samples.rows() - self.trained).div_ceil(most).max(1);
        (self.trained..samples.rows()).step_by(stride).map(|i| samples.row(i)).collect()
    }
}

/// The loop: `fill` writes the inputs of a step. A diverged training is an error with the steps made so far.
pub(crate) fn train<T: Real>(
    trainer: &mut Trainer<T>,
    training: &Training,
    rows: usize,
    mut fill: impl FnMut(u64, &mut [Vec<T>]),
    inputs: usize,
    report: &mut TrainingReport,
) -> Result<()> {
    let mut buffers: Vec<Vec<T>> = vec![Vec::new(); inputs];
    let window = training.steps.div_ceil(20);
    let (mut sum, mut count) = (0.0, 0u64);
    report.losses.clear();
    for step in 0..training.steps {
        buffers.iter_mut().for_each(Vec::clear);
        fill(step, &mut buffers);
        let slices: Vec<&[T]> = buffers.iter().map(|b| &b[..]).collect();
        let made = trainer.step(rows, &slices)?;
        report.steps += 1;
        if made.loss.is_finite() {
            (sum, count) = (sum + made.loss, count + 1);
        }
        if (step + 1).is_multiple_of(window) || step + 1 == training.steps {
            report.losses.push(sum / count as f64);
            (sum, count) = (0.0, 0);
        }
    }
    if let Some(message) = trainer.alarm() {
        report.alarms.push(("training-skipped", message));
    }
    Ok(())
}

/// Journeys that judge a pair, in each direction.
const JUDGES: usize = 1000;

/// Rejection rate of every pair on held-out samples: r = E|tanh(Δ/2)|, Δ = log w(forward) − log w(backward).
pub(crate) fn rejection_rates(
    accelerator: &dyn Accelerator,
    path: &dyn AnnealingPath,
    split: &Split,
    seed: u64,
) -> sterna::Result<Vec<f64>> {
    // Not the noise of sampling, nor that of batches.
    let streams = Streams::new(seed ^ 0x6A09_E667_F3BC_C908);
    let travel = |pair: usize, direction: Direction| -> sterna::Result<Vec<f64>> {
        let interval = split.schedule.interval(pair);
        let (chain, beta) = match direction {
            Direction::Forward => (pair - 1, interval.lower),
            Direction::Backward => (pair, interval.upper),
        };
        let starts = split.held_out(chain, JUDGES);
        let (n, dim) = (starts.len(), path.dim());
        let mut points = Points::zeros(n, dim);
        for (i, start) in starts.iter().enumerate() {
            points.x.row_mut(i).copy_from_slice(start);
        }
        path.evaluate(&vec![beta; n], &mut points)?;
        let row: Vec<usize> = (0..n).collect();
        let mut journey = Journey::new(n, dim);
        journey.begin(&points, &row);
        let key = row.iter().map(|&i| i as u32).collect();
        let travellers = Travellers { row, key, pair: vec![pair; n], interval: vec![interval; n] };
        accelerator.travel(direction, path, &streams, pair as u64, &travellers, &mut journey)?;
        Ok(journey.log_weight)
    };
    (1..=split.pairs())
        .map(|pair| {
            let (forward, backward) = (travel(pair, Direction::Forward)?, travel(pair, Direction::Backward)?);
            let n = forward.len();
            // A pair of samples of the same iteration would be correlated by the swap between them.
            let other = (0..n).map(|i| backward[(i + n / 2) % n]);
            let rejection = |(f, b): (&f64, f64)| {
                let r = (0.5 * (f - b)).tanh().abs();
                if r.is_nan() { 1.0 } else { r }
            };
            Ok(forward.iter().zip(other).map(rejection).sum::<f64>() / n as f64)
        })
        .collect()
}

/// Judges a transport pair by pair and replaces it where the plain swap does better.
pub(crate) fn guard(
    accelerator: Arc<dyn Accelerator>,
    path: &dyn AnnealingPath,
    split: &Split,
    training: &Training,
    report: &mut TrainingReport,
) -> sterna::Result<Arc<dyn Accelerator>> {
    let ours = rejection_rates(&*accelerator, path, split, training.seed)?;
    let plain = rejection_rates(&Identity, path, split, training.seed)?;
    let judge = |(&rejection, &plain_rejection): (&f64, &f64)| PairReport {
        rejection,
        plain_rejection,
        plain: training.guard && rejection > plain_rejection,
    };
    report.pairs = ours.iter().zip(&plain).map(judge).collect();
    let replaced: Vec<usize> = (0..report.pairs.len()).filter(|&n| report.pairs[n].plain).collect();
    if replaced.is_empty() {
        return Ok(accelerator);
    }
    let rates = |n: &usize| {
        let p = &report.pairs[*n];
        format!("{}–{} ({:.3} against {:.3})", n, n + 1, p.rejection, p.plain_rejection)
    };
    let message = format!(
        "on samples held out from training the transport rejects more than a plain swap between chains {}; \
         these pairs are swapped plainly; more samples (training.collect) or steps (training.steps) may help",
        replaced.iter().map(rates).collect::<Vec<_>>().join(", ")
    );
    report.alarms.push(("transport-replaced", message));
    if replaced.len() == report.pairs.len() {
        return Ok(Arc::new(Identity));
    }
    let plain = report.pairs.iter().map(|p| p.plain).collect();
    Ok(Arc::new(PerPair::new(accelerator, plain)))
}

/// What is done about a training that came to nothing.
pub(crate) fn fall_back(error: Error, report: &mut TrainingReport) -> sterna::Result<Arc<dyn Accelerator>> {
    match error {
        Error::Diverged { .. } => {
            let message = format!("training failed and plain swaps are used: {error}");
            report.alarms.push(("training-diverged", message));
            report.pairs.clear();
            Ok(Arc::new(Identity))
        }
        error => Err(into_library(error)),
    }
}

/// Our errors as the library's.
pub(crate) fn into_library(error: Error) -> sterna::Error {
    match error {
        Error::Config { field, value, reason } => sterna::Error::Setting { field, value, cure: reason },
        error => sterna::Error::Target(Box::new(error)),
    }
}

/// Streams of one round of training.
pub(crate) fn streams(training: &Training, round: usize) -> TrainingStreams {
    TrainingStreams::new(training.seed ^ (round as u64).wrapping_mul(0xA54F_F53A_5F1D_36F1))
}
