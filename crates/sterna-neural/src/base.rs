//! The affine base of a flow: mean and width of each coordinate on each chain, fitted to its samples.
//!
//! Couplings then work on numbers of order one whatever the chain, and an untrained flow is already the affine transport.

use serde::{Deserialize, Serialize};
use sterna::Batch;
use sterna::lanes::one;

use crate::graph::Value;

/// Means and widths; one row for each chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffineBase {
    mean: Vec<Vec<f64>>,
    log_width: Vec<Vec<f64>>,
}

impl AffineBase {
    /// Of the samples of each chain. What has no width, or none that is a number, stays as it is.
    pub fn of_samples(samples: &[Batch]) -> Self {
        let moments = |x: &Batch, j: usize| {
            let n = x.rows() as f64;
            let mean = x.iter_rows().map(|row| row[j]).sum::<f64>() / n;
            let variance = x.iter_rows().map(|row| (row[j] - mean).powi(2)).sum::<f64>() / n;
            // A width that is all rounding is none.
            let is_wide = variance.is_finite() && variance > (1e-13 * mean).powi(2);
            if is_wide { (mean, 0.5 * one::ln(variance)) } else { (0.0, 0.0) }
        };
        let of_chain = |x: &Batch| (0..x.dim()).map(|j| moments(x, j)).unzip();
        let (mean, log_width) = samples.iter().map(of_chain).unzip();
        Self { mean, log_width }
    }

    /// The same, where the first chain is N(0, I) and is to stay so.
    pub fn from_standard(mut self) -> Self {
        self.mean[0].fill(0.0);
        self.log_width[0].fill(0.0);
        self
    }

    /// Chains.
    pub fn chains(&self) -> usize {
        self.mean.len()
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.mean[0].len()
    }

    /// Whether every chain has a number for every coordinate.
    pub fn is_whole(&self, chains: usize, dim: usize) -> bool {
        let whole = |rows: &[Vec<f64>]| rows.len() == chains && rows.iter().all(|row| row.len() == dim);
        whole(&self.mean) && whole(&self.log_width)
    }

    /// Mean and log width at each row's position among the chains; linear between them.
    pub(crate) fn at<'g>(&self, position: Value<'g>) -> (Value<'g>, Value<'g>) {
        let graph = position.graph();
        let places: Vec<f64> = (0..self.chains()).map(|n| n as f64).collect();
        let near = 1.0 - (position - graph.constant(self.chains(), &places)).abs();
        let shares = near * near.step();
        let [mean, log_width] = [&self.mean, &self.log_width]
            .map(|rows| shares.matmul(graph.constant(self.dim(), &rows.concat())));
        (mean, log_width)
    }

    /// z = (x − m)/s at each row's chain, and log|det ∂z/∂x|.
    pub(crate) fn standardise<'g>(&self, position: Value<'g>, x: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mean, log_width) = self.at(position);
        ((x - mean) * (-log_width).exp(), -log_width.sum_cols())
    }

    /// x = m + s z, and log|det ∂x/∂z|.
    pub(crate) fn place<'g>(&self, position: Value<'g>, z: Value<'g>) -> (Value<'g>, Value<'g>) {
        let (mean, log_width) = self.at(position);
        (mean + z * log_width.exp(), log_width.sum_cols())
    }
}
