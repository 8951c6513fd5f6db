//! Local exploration: moves that leave π^β of each row invariant (§2.1; Algorithm 1, line 3).

use crate::path::{AnnealingPath, Points};
use crate::streams::Streams;
use crate::{Batch, Result};

/// The rows to be moved: parallel lists.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Row in the ensemble.
    pub row: Vec<usize>,
    /// Key of its random numbers.
    pub key: Vec<u32>,
    /// Chain it sits on.
    pub chain: Vec<usize>,
    /// β of that chain.
    pub beta: Vec<f64>,
}

impl Rows {
    /// Number of rows.
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
        self.chain.clear();
        self.beta.clear();
    }

    pub(crate) fn push(&mut self, row: usize, key: u32, chain: usize, beta: f64) {
        self.row.push(row);
        self.key.push(key);
        self.chain.push(chain);
        self.beta.push(beta);
    }
}

/// What happened to one row in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moves {
    /// Sum of acceptance probabilities.
    pub acceptance: f64,
    /// Moves proposed.
    pub proposed: u32,
    /// Proposals at which the target answered NaN or +∞; they were rejected.
    pub bad: u32,
}

/// Buffers that a local move works in; the ensemble's owner keeps them, so the loop allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Proposals.
    pub points: Points,
    /// Momenta.
    pub momentum: Batch,
    /// Step size of each coordinate of each row.
    pub step: Batch,
    /// Log density of the extended target at the start, one per row.
    pub log_joint: Vec<f64>,
    /// Uniforms, one per row.
    pub uniforms: Vec<f64>,
    /// What further moves of the same iteration did, kept apart from those that step sizes adapt to.
    pub aside: Vec<Moves>,
    /// The bad proposal of this iteration with the first place in `Rows`, if any: that place, and the point.
    pub bad_point: Option<(usize, Vec<f64>)>,
}

impl Scratch {
    /// Room for `rows` points of length `dim`.
    pub fn new(rows: usize, dim: usize) -> Self {
        Self {
            points: Points::zeros(rows, dim),
            momentum: Batch::zeros(rows, dim),
            step: Batch::zeros(rows, dim),
            log_joint: vec![0.0; rows],
            uniforms: vec![0.0; rows],
            aside: Vec::with_capacity(rows),
            bad_point: None,
        }
    }
}

/// A Markov kernel for whole batches.
pub trait Explorer: Send + Sync {
    /// Moves the given rows of `points`, each leaving π^β of its chain invariant; `moves[i]` gains
    /// what happened to `rows.row[i]`.
    #[allow(clippy::too_many_arguments)]
    fn explore(
        &self,
        path: &dyn AnnealingPath,
        streams: &Streams,
        iteration: u64,
        rows: &Rows,
        points: &mut Points,
        moves: &mut [Moves],
        scratch: &mut Scratch,
    ) -> Result<()>;
}
