//! Samples split into those that train and those that judge (App. E.2), and the guard that keeps a transport only on those pairs where it beats the plain swap.
//!
//! Whatever training does, the run stays exact: accelerators weigh their own paths. The guard is about speed.

use std::sync::Arc;

use sterna::acceleration::{Collected, FitReport, JUDGES, PairReport, judged_rejections, partly_plain};
use sterna::accelerator::Accelerator;
use sterna::accelerators::Identity;
use sterna::estimates::Seen;
use sterna::path::AnnealingPath;
use sterna::{Batch, Schedule};

use crate::fit::Training;

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

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.collected.schedule.pairs()
    }

    /// The schedule that the samples are of.
    pub fn schedule(&self) -> &Schedule {
        &self.collected.schedule
    }

    /// Evaluations of an iteration of one ladder, as the samples were collected; one where nobody counted.
    pub fn evaluations_each(&self) -> f64 {
        self.collected.prospect.evaluations_each().max(1.0)
    }

    /// Training samples of each chain.
    pub fn trained(&self) -> usize {
        self.trained
    }

    /// All training samples, chain after chain.
    pub fn trained_on(&self) -> Vec<f64> {
        self.rows_of(&self.collected.samples, 0..self.trained)
    }

    fn rows_of(&self, chains: &[Batch], rows: std::ops::Range<usize>) -> Vec<f64> {
        let dim = self.collected.samples[0].dim();
        let range = rows.start * dim..rows.end * dim;
        chains.iter().flat_map(|samples| &samples.as_slice()[range.clone()]).copied().collect()
    }

    /// The path's scores at all training samples, and at those that are held out; empty where there are none.
    pub fn scores(&self) -> [Vec<f64>; 2] {
        let rows = self.collected.samples[0].rows();
        [0..self.trained, self.trained..rows].map(|rows| self.rows_of(&self.collected.scores, rows))
    }

    /// How many samples of each chain training does not see, and all of them, chain after chain.
    pub fn all_held_out(&self) -> (usize, Vec<f64>) {
        let rows = self.collected.samples[0].rows();
        (rows - self.trained, self.rows_of(&self.collected.samples, self.trained..rows))
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
        let Collected { round, local_barrier, local_variance, prospect, .. } = &*self.collected;
        let (local_barrier, local_variance) = (local_barrier.clone(), local_variance.clone());
        let prospect = prospect.clone();
        let scores = Vec::new();
        Collected { round: *round, schedule, samples, scores, local_barrier, local_variance, prospect }
    }

    /// The training samples of the target chain.
    pub fn trained_on_target(&self) -> Batch {
        let samples = &self.collected.samples[self.collected.schedule.target()];
        Batch::from_vec(samples.dim(), samples.as_slice()[..self.trained * samples.dim()].to_vec())
    }

    /// At most this many held-out samples of a chain, evenly spread.
    pub fn held_out(&self, chain: usize, most: usize) -> Vec<&[f64]> {
        let samples = &self.collected.samples[chain];
        let stride = (samples.rows() - self.trained).div_ceil(most).max(1);
        (self.trained..samples.rows()).step_by(stride).map(|i| samples.row(i)).collect()
    }
}

/// Rejection rate of every pair on held-out samples: r = E|tanh(Δ/2)|, Δ = log w(forward) − log w(backward).
pub fn rejection_rates(
    accelerator: &dyn Accelerator,
    path: &dyn AnnealingPath,
    split: &Split,
    seed: u64,
) -> sterna::Result<Vec<f64>> {
    let batch = |chain| Batch::from_vec(path.dim(), split.held_out(chain, JUDGES).concat());
    let held_out: Vec<Batch> = (0..split.schedule().chains()).map(batch).collect();
    let each = judged_rejections(accelerator, path, split.schedule(), &held_out, seed)?;
    Ok(each.iter().map(|pair| pair.iter().sum::<f64>() / pair.len() as f64).collect())
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
    if !training.judges {
        return Ok(accelerator);
    }
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
