//! Accelerators: paths that carry the proposals of a swap (§3.1; Algorithm 1, lines 5–10).

use crate::Result;
use crate::path::{AnnealingPath, Points};
use crate::streams::Streams;
use crate::transport::Interval;

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
}

impl Journey {
    /// Room for `rows` points of length `dim`.
    pub fn new(rows: usize, dim: usize) -> Self {
        Self { points: Points::zeros(rows, dim), log_weight: vec![0.0; rows], beta: vec![0.0; rows] }
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
