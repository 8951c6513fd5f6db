//! Samples of a ladder, split into those that training sees and those that judge it (App. E.2).

use std::sync::Arc;

use sterna::acceleration::Collected;
use sterna::{Batch, Schedule};

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

    /// Training samples of each chain.
    pub fn trained(&self) -> usize {
        self.trained
    }

    /// All training samples, chain after chain.
    pub fn trained_on(&self) -> Vec<f64> {
        let dim = self.collected.samples[0].dim();
        let chains = self.collected.samples.iter();
        chains.flat_map(|samples| &samples.as_slice()[..self.trained * dim]).copied().collect()
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
