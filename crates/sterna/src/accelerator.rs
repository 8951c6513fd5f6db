//! Accelerators: paths that carry the proposals of a swap (§3.1; Algorithm 1, lines 5–10).

use crate::path::{AnnealingPath, Points};
use crate::streams::Streams;
use crate::transport::Interval;
use crate::{Batch, Result};

/// Replicas on their way to the neighbouring chain: parallel lists, one entry per proposed pair.
#[derive(Clone, Debug, Default)]
pub struct Travellers {
    /// Row in the ensemble.
    pub row: Vec<usize>,
    /// Key of its random numbers.
    pub key: Vec<u32>,
    /// Pair n ∈ 1..=N.
    pub pair: Vec<usize>,
    /// β and β′ of the pair.
    pub interval: Vec<Interval>,
}

impl Travellers {
    /// Number of travellers.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.row.clear();
        self.key.clear();
        self.pair.clear();
        self.interval.clear();
    }

    pub(crate) fn push(&mut self, row: usize, key: u32, pair: usize, interval: Interval) {
        self.row.push(row);
        self.key.push(key);
        self.pair.push(pair);
        self.interval.push(interval);
    }
}

/// Where travellers start, where they end, and the weight of the way. Also the buffers for it.
#[derive(Clone, Debug, Default)]
pub struct Journey {
    /// In: the points, evaluated at the chain they come from. Out: the end points, evaluated at
    /// the chain they would go to.
    pub points: Points,
    /// log w of the path, always written forward: Q over P (eq. 5).
    pub log_weight: Vec<f64>,
    /// β that a step works at, one per row.
    pub beta: Vec<f64>,
    /// Log-determinant of a map, or log-ratio of kernels so far, one per row.
    pub log_det: Vec<f64>,
    /// Variance of a step, one per row.
    pub variance: Vec<f64>,
    /// Variance of the step that returns, one per row.
    pub return_variance: Vec<f64>,
    /// Noise of a step.
    pub noise: Batch,
    /// Points before a step.
    pub before: Batch,
    /// Mean of a step.
    pub mean: Batch,
    /// What steers a step: a drift, where there is one.
    pub control: Batch,
}

impl Journey {
    /// Room for `rows` points of length `dim`.
    pub fn new(rows: usize, dim: usize) -> Self {
        let matrix = || Batch::zeros(rows, dim);
        let vector = || vec![0.0; rows];
        Self {
            points: Points::zeros(rows, dim),
            log_weight: vector(),
            beta: vector(),
            log_det: vector(),
            variance: vector(),
            return_variance: vector(),
            noise: matrix(),
            before: matrix(),
            mean: matrix(),
            control: matrix(),
        }
    }

    /// Sets the travellers' starting points.
    pub fn begin(&mut self, from: &Points, rows: &[usize]) {
        self.set_rows(rows.len());
        self.points.gather(from, rows);
    }

    /// Changes the number of travellers, allocating only beyond the largest number so far.
    pub fn set_rows(&mut self, rows: usize) {
        let Self { log_weight, beta, log_det, variance, return_variance, .. } = self;
        for vector in [log_weight, beta, log_det, variance, return_variance] {
            vector.resize(rows, 0.0);
        }
        for matrix in [&mut self.noise, &mut self.before, &mut self.mean, &mut self.control] {
            matrix.set_rows(rows);
        }
        self.points.set_rows(rows);
    }
}

/// The direction of a journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From chain n − 1 to chain n, by P.
    Forward,
    /// From chain n to chain n − 1, by Q.
    Backward,
}

impl Direction {
    /// β at which journeys in this direction end.
    pub fn ends(self, intervals: &[Interval], out: &mut [f64]) {
        for (out, interval) in out.iter_mut().zip(intervals) {
            *out = match self {
                Self::Forward => interval.upper,
                Self::Backward => interval.lower,
            };
        }
    }
}

/// A family of forward and backward kernels, one pair of them for each pair of chains.
pub trait Accelerator: Send + Sync {
    /// K.
    fn steps(&self) -> usize;

    /// Carries all travellers in one direction and weighs their paths.
    fn travel(
        &self,
        direction: Direction,
        path: &dyn AnnealingPath,
        streams: &Streams,
        iteration: u64,
        travellers: &Travellers,
        journey: &mut Journey,
    ) -> Result<()>;
}
