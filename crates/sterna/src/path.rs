//! The annealing path π^β from reference (β = 0) to target (β = 1) (§2).

use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Evaluation, Result};

/// Points with what a path knows about them.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// The points.
    pub x: Batch,
    /// log π̃^β of each row at the row's own β; −∞ where it is not a number.
    pub log_density: Vec<f64>,
    /// Score of π̃^β at the row's own β.
    pub score: Batch,
    /// Kept by paths that can move to another β without asking the target again:
    /// log density of the reference …
    pub log_reference: Vec<f64>,
    /// … and the target's answer.
    pub target: Evaluation,
}

impl Points {
    /// Room for `rows` points of length `dim`.
    pub fn zeros(rows: usize, dim: usize) -> Self {
        Self {
            x: Batch::zeros(rows, dim),
            log_density: vec![0.0; rows],
            score: Batch::zeros(rows, dim),
            log_reference: vec![0.0; rows],
            target: Evaluation::zeros(rows, dim),
        }
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.x.rows()
    }

    /// Changes the number of rows, allocating only beyond the largest number so far.
    pub fn set_rows(&mut self, rows: usize) {
        self.x.set_rows(rows);
        self.log_density.resize(rows, 0.0);
        self.score.set_rows(rows);
        self.log_reference.resize(rows, 0.0);
        self.target.set_rows(rows);
    }

    /// Row `i` becomes a copy of row `j` of `other`.
    pub fn copy_row(&mut self, i: usize, other: &Points, j: usize) {
        self.x.row_mut(i).copy_from_slice(other.x.row(j));
        self.log_density[i] = other.log_density[j];
        self.score.row_mut(i).copy_from_slice(other.score.row(j));
        self.log_reference[i] = other.log_reference[j];
        self.target.log_density[i] = other.target.log_density[j];
        self.target.score.row_mut(i).copy_from_slice(other.target.score.row(j));
    }

    /// Becomes the given rows of `other`, in that order.
    pub fn gather(&mut self, other: &Points, rows: &[usize]) {
        self.set_rows(rows.len());
        for (i, &row) in rows.iter().enumerate() {
            self.copy_row(i, other, row);
        }
    }

    /// Whether the target answered NaN or +∞ at row `i`.
    pub fn is_bad(&self, i: usize) -> bool {
        let value = self.target.log_density[i];
        value.is_nan() || value == f64::INFINITY
    }
}

/// A path of unnormalised densities. Row i of every call is meant at `betas[i]`.
pub trait AnnealingPath: Send + Sync {
    /// Length of a point.
    fn dim(&self) -> usize;

    /// Fills all of `points` from `points.x`.
    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()>;

    /// The same points at other β: as `evaluate`, but free where the path is linear in β.
    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.evaluate(betas, points)
    }

    /// d log π̃^β / dβ at points that were evaluated at `betas`.
    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64]) -> Result<()>;

    /// Exact draws from β = 0, one stream per row. Only called if [`draws_reference`](Self::draws_reference).
    fn draw_reference(&self, streams: &Streams, phase: PhaseKey, iteration: u64, rows: &[u32], x: &mut Batch);

    /// Whether β = 0 can be drawn exactly; otherwise it has local moves like any other chain.
    fn draws_reference(&self) -> bool {
        true
    }

    /// log Z of β = 0. Zero for a normalised reference, not for learned paths (errata E13).
    fn log_z_reference(&self) -> f64 {
        0.0
    }

    /// log Z of the target, where it is known.
    fn log_z(&self) -> Option<f64>;

    /// Target evaluations since the path was made, in points.
    fn evaluations(&self) -> u64;
}
