//! From samples of a ladder to a frozen accelerator (App. E.2): batches, the training loop, and the guard
//! that keeps a transport only on those pairs where it beats the plain swap.
//!
//! Whatever training does, the run stays exact: accelerators weigh their own paths. The guard is about speed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sterna::acceleration::{Collected, FitReport, Fitted, Fitting, PairReport};
use sterna::accelerator::{Accelerator, Direction, Journey, Travellers};
use sterna::accelerators::{Identity, PerPair};
use sterna::estimates::Seen;
use sterna::path::{AnnealingPath, Points};
use sterna::streams::Streams;
use sterna::{Batch, Schedule};

use crate::compute::{Compute, Opened};
use crate::losses::Loss;
use crate::optimiser::{AdamConfig, Decay};
use crate::parameters::{Layout, Parameters};
use crate::recipe::Recipe;
use crate::training::{Trainer, TrainingStreams};
use crate::weights::{from_bytes, to_bytes};
use crate::{Error, Result};

/// Budget and settings of a training.
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

/// Samples split into those that training sees and those that judge it.
#[derive(Clone)]
pub struct Split {
    collected: Arc<Collected>,
    trained: usize,
}

impl Split {
    /// The last eighth is held out: later than all others, so as independent of them as can be.
    pub fn new(collected: Arc<Collected>) -> Self {
        let rows = collected.samples[0].rows();
        let held_out = (rows / 8).clamp(1, rows - 1);
        Self { collected, trained: rows - held_out }
    }

    /// β and β′ of a pair, from 0.
    pub fn ends(&self, pair: usize) -> (f64, f64) {
        let interval = self.collected.schedule.interval(pair + 1);
        (interval.lower, interval.upper)
    }

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.collected.schedule.pairs()
    }

    /// A training sample of a chain.
    pub fn sample(&self, chain: usize, stream: &mut sterna::streams::RowStream) -> &[f64] {
        self.collected.samples[chain].row(stream.below(self.trained))
    }

    /// What a recipe needs of the samples: how many of each chain, all of them, and the schedule.
    pub fn for_recipe(&self) -> (usize, Vec<f32>, Vec<f64>) {
        let dim = self.collected.samples[0].dim();
        let of_chain = |samples: &Batch| samples.as_slice()[..self.trained * dim].to_vec();
        let all = self.collected.samples.iter().flat_map(of_chain).map(|x| x as f32).collect();
        (self.trained, all, self.collected.schedule.betas().to_vec())
    }

    /// At most this many training samples of a chain, evenly spread.
    pub fn training_rows(&self, chain: usize, most: usize) -> Batch {
        let samples = &self.collected.samples[chain];
        let stride = self.trained.div_ceil(most).max(1);
        let rows = (0..self.trained).step_by(stride).flat_map(|i| samples.row(i)).copied();
        Batch::from_vec(samples.dim(), rows.collect())
    }

    /// Samples that were not trained on at all.
    pub fn judging(collected: Collected) -> Self {
        Self { collected: Arc::new(collected), trained: 0 }
    }

    /// Other samples at another schedule, with all else as it was.
    pub fn with_samples(&self, schedule: Schedule, samples: Vec<Batch>) -> Collected {
        let Collected { round, local_barrier, local_variance, .. } = &*self.collected;
        let (local_barrier, local_variance) = (local_barrier.clone(), local_variance.clone());
        Collected { round: *round, schedule, samples, local_barrier, local_variance }
    }

    /// The training samples of the target chain.
    pub fn trained_on_target(&self) -> Batch {
        let samples = self.collected.samples.last().expect("a ladder has chains");
        Batch::from_vec(samples.dim(), samples.as_slice()[..self.trained * samples.dim()].to_vec())
    }

    /// At most this many held-out samples of a chain, evenly spread.
    pub fn held_out(&self, chain: usize, most: usize) -> Vec<&[f64]> {
        let samples = &self.collected.samples[chain];
        let stride = (samples.rows() - self.trained).div_ceil(most).max(1);
        (self.trained..samples.rows()).step_by(stride).map(|i| samples.row(i)).collect()
    }
}

/// What is particular to one kind of transport in training.
pub trait Lesson: Send {
    /// Rows of a batch.
    fn rows(&self) -> usize;
    /// Inputs of the recorded loss.
    fn inputs(&self) -> usize;
    /// Writes the inputs of a step, which come empty.
    fn fill(&mut self, step: u64, inputs: &mut [Vec<f32>]);
    /// How batches are drawn, where a device can do it without this lesson.
    fn recipe(&self) -> Option<Recipe> {
        None
    }
    /// Points at which a step evaluates the target, and the network.
    fn cost(&self) -> (u64, u64);
    /// Why the last inputs could not be written, if they could not.
    fn trouble(&mut self) -> Option<sterna::Error> {
        None
    }
    /// What is left if training diverges: plain swaps.
    fn failed(&self) -> sterna::Result<Fitted> {
        let (accelerator, record) = (Arc::new(Identity), Arc::new([]));
        Ok(Fitted { accelerator, path: None, record, report: FitReport::default() })
    }

    /// Whether there is a weight whose round-trip loss can be made small.
    fn can_fine_tune(&self) -> bool {
        false
    }
    /// Turns to the round-trip loss, from these weights: rows, inputs and costs are from now on its own.
    ///
    /// # Panics
    /// Where this is impossible.
    fn fine_tune(&mut self, _weights: Parameters<f32>) -> Result<Trainer<f32>> {
        unreachable!("asked of a lesson that cannot")
    }
    /// The accelerator of these weights, judged, and its file.
    fn graduate(&self, weights: &Parameters<f32>, report: &mut FitReport) -> sterna::Result<Fitted>;
}

/// A training under way: steps of the optimiser on batches of a lesson.
pub struct Course<L> {
    lesson: L,
    training: Training,
    trainer: Trainer<f32>,
    layout: Layout,
    buffers: Vec<Vec<f32>>,
    report: FitReport,
    notes: Notes,
}

/// Where a course stands, beside the optimiser's own counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Notes {
    steps: u64,
    window: (f64, u64),
    losses: Vec<f64>,
    /// Whether the round-trip loss is trained on by now, and its losses.
    fine: bool,
    fine_losses: Vec<f64>,
    /// Points at which the target, and the network, were evaluated, and steps left out, before that.
    earlier_cost: (u64, u64),
    earlier_alarm: Option<String>,
    /// Why it came to nothing.
    failed: Option<String>,
}

impl<L: Lesson> Course<L> {
    /// `report` is that of earlier rounds.
    pub fn new(
        lesson: L,
        training: Training,
        mut trainer: Trainer<f32>,
        layout: Layout,
        report: FitReport,
    ) -> Self {
        let training =
            Training { fine_tune: if lesson.can_fine_tune() { training.fine_tune } else { 0 }, ..training };
        let buffers = vec![Vec::new(); lesson.inputs()];
        trainer.draw_from(|| lesson.recipe());
        Self { lesson, training, trainer, layout, buffers, report, notes: Notes::default() }
    }

    /// Turns to the round-trip loss.
    fn begin_fine_tuning(&mut self, weights: Parameters<f32>) -> sterna::Result<()> {
        self.notes.earlier_cost = self.cost();
        self.notes.earlier_alarm = self.trainer.alarm();
        self.notes.fine = true;
        self.trainer = self.lesson.fine_tune(weights).map_err(into_library)?;
        self.buffers.resize(self.lesson.inputs(), Vec::new());
        let first_step = self.notes.steps;
        self.trainer.draw_from(|| self.lesson.recipe().map(|recipe| Recipe { first_step, ..recipe }));
        Ok(())
    }

    /// Points at which the target, and the network, were evaluated so far.
    fn cost(&self) -> (u64, u64) {
        let (target, network) = self.lesson.cost();
        let Notes { fine, steps, earlier_cost: earlier, .. } = &self.notes;
        let steps = if *fine { steps - self.training.steps } else { *steps };
        (earlier.0 + steps * target, earlier.1 + steps * network)
    }

    /// One step, or as many of `most` as a device can do by itself.
    fn step(&mut self, most: u64) -> sterna::Result<()> {
        if self.notes.steps == self.training.steps && !self.notes.fine {
            self.begin_fine_tuning(self.trainer.averaged().clone())?;
        }
        if self.trainer.draws() {
            let end = self.training.steps + if self.notes.fine { self.training.fine_tune } else { 0 };
            let made = self.trainer.steps(most.min(end - self.notes.steps));
            return self.note(made);
        }
        self.buffers.iter_mut().for_each(Vec::clear);
        self.lesson.fill(self.notes.steps, &mut self.buffers);
        if let Some(error) = self.lesson.trouble() {
            return Err(error);
        }
        let inputs: Vec<&[f32]> = self.buffers.iter().map(|b| &b[..]).collect();
        let made = self.trainer.step(self.lesson.rows(), &inputs).map(|made| vec![made.loss]);
        self.note(made)
    }

    /// Notes the losses of steps that were made.
    fn note(&mut self, made: Result<Vec<f64>>) -> sterna::Result<()> {
        let made = match made {
            Ok(made) => made,
            Err(error @ Error::Diverged { .. }) => {
                self.notes.failed = Some(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(into_library(error)),
        };
        let Notes { steps, window, losses, fine, fine_losses, .. } = &mut self.notes;
        let (losses, before, planned) = match fine {
            false => (losses, 0, self.training.steps),
            true => (fine_losses, self.training.steps, self.training.fine_tune),
        };
        for loss in made {
            *steps += 1;
            if loss.is_finite() {
                *window = (window.0 + loss, window.1 + 1);
            }
            let done = *steps - before;
            let ends = done.is_multiple_of(planned.div_ceil(20)) || done == planned;
            if ends && window.1 > 0 {
                losses.push(window.0 / window.1 as f64);
                *window = (0.0, 0);
            }
        }
        Ok(())
    }
}

impl<L: Lesson> Fitting for Course<L> {
    fn progress(&self) -> (u64, u64) {
        let steps = self.notes.steps;
        // A failed course is at its end.
        let all = self.training.steps + self.training.fine_tune;
        (steps, if self.notes.failed.is_some() { steps } else { all })
    }

    fn advance(&mut self, most: u64) -> sterna::Result<()> {
        let (done, total) = self.progress();
        let end = done + most.min(total - done);
        while self.notes.failed.is_none() && self.notes.steps < end {
            self.step(end - self.notes.steps)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> sterna::Result<Fitted> {
        let (target, network) = self.cost();
        self.report.steps += self.notes.steps;
        self.report.target_evaluations += target;
        self.report.network_evaluations += network;
        self.report.losses = self.notes.losses.clone();
        self.report.fine_tuning_losses = self.notes.fine_losses.clone();
        for message in [self.notes.earlier_alarm.take(), self.trainer.alarm()].into_iter().flatten() {
            self.report.alarms.push(("training-skipped".into(), message));
        }
        if let Some(reason) = &self.notes.failed {
            let message = format!("training failed and plain swaps are used: {reason}");
            self.report.alarms.push(("training-diverged".into(), message));
            self.report.pairs.clear();
            return Ok(Fitted { report: self.report, ..self.lesson.failed()? });
        }
        let mut fitted = self.lesson.graduate(self.trainer.averaged(), &mut self.report)?;
        fitted.report = self.report;
        Ok(fitted)
    }

    fn save(&self) -> sterna::Result<Vec<u8>> {
        let state = self.trainer.state();
        to_bytes(&self.notes, &self.layout, self.trainer.parameters(), Some(&state)).map_err(into_library)
    }

    fn restore(&mut self, saved: &[u8]) -> sterna::Result<()> {
        let stored = from_bytes::<Notes>(saved.to_vec(), "training state").map_err(into_library)?;
        let state = stored.state(&self.layout).map_err(into_library)?;
        let state = state.ok_or_else(|| sterna::Error::Saved("it holds no state of an optimiser".into()))?;
        if stored.description.fine && !self.notes.fine {
            self.begin_fine_tuning(stored.parameters(&self.layout).map_err(into_library)?)?;
        }
        self.trainer.restore(&state).map_err(into_library)?;
        self.notes = stored.description;
        Ok(())
    }
}

/// Journeys that judge a pair, in each direction.
const JUDGES: usize = 1000;

/// Rejection rate of every pair on held-out samples: r = E|tanh(Δ/2)|, Δ = log w(forward) − log w(backward).
pub fn rejection_rates(
    accelerator: &dyn Accelerator,
    path: &dyn AnnealingPath,
    split: &Split,
    seed: u64,
) -> sterna::Result<Vec<f64>> {
    // Not the noise of sampling, nor that of batches.
    let streams = Streams::new(seed ^ 0x6A09_E667_F3BC_C908);
    let travel = |pair: usize, direction: Direction| -> sterna::Result<Vec<f64>> {
        let interval = split.collected.schedule.interval(pair);
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
    report: &mut FitReport,
) -> sterna::Result<Arc<dyn Accelerator>> {
    report.seen = Seen::new(&split.trained_on_target());
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
    report.alarms.push(("transport-replaced".into(), message));
    Ok(partly_plain(accelerator, report.pairs.iter().map(|p| p.plain).collect()))
}

/// Plain swaps on the pairs that are marked.
pub(crate) fn partly_plain(accelerator: Arc<dyn Accelerator>, plain: Vec<bool>) -> Arc<dyn Accelerator> {
    if plain.iter().all(|&p| p) {
        Arc::new(Identity)
    } else if plain.iter().any(|&p| p) {
        Arc::new(PerPair::new(accelerator, plain))
    } else {
        accelerator
    }
}

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
        Error::Config { field, value, reason } => sterna::Error::Setting { field, value, cure: reason },
        error => sterna::Error::Transport(Box::new(error)),
    }
}

/// The pair of a row where each pair should have as many rows as the others.
pub(crate) fn spread(step: u64, row: usize, pairs: usize) -> usize {
    ((step + row as u64) % pairs as u64) as usize
}

/// Streams of one round of training.
pub fn streams(training: &Training, round: usize) -> TrainingStreams {
    TrainingStreams::new(training.seed ^ (round as u64).wrapping_mul(0xA54F_F53A_5F1D_36F1))
}
