//! The space on which accelerated swaps are plain ones (App. B.6).

use crate::ladders::{ExactLadder, GaussianLadder};
use std::sync::Arc;
use sterna::call::Scratch;
use sterna::path::{AnnealingPath, Points};
use sterna::streams::{PhaseKey, RowStream, Streams};
use sterna::{Batch, Result, Schedule};

/// π_ex of App. B.6: chain n's law at x^n, forward kernels above it, backward kernels below it; the
/// kernels are one-step controlled diffusions without drift on a one-dimensional ladder, written out.
pub struct Extended {
    /// The law of each chain.
    pub ladder: GaussianLadder,
    /// β of each chain.
    pub schedule: Schedule,
    /// Half the variance of a kernel.
    pub noise: f64,
}

impl Extended {
    /// Mean of the kernel that leaves chain n.
    fn mean(&self, chain: usize, x: f64) -> f64 {
        let (mean, precision) = self.ladder.moments(self.schedule.betas()[chain], 0);
        x - self.noise * precision * (x - mean)
    }

    fn log_kernel(&self, chain: usize, from: f64, to: f64) -> f64 {
        let variance = 2.0 * self.noise;
        -0.5 * (to - self.mean(chain, from)).powi(2) / variance
            - 0.5 * (std::f64::consts::TAU * variance).ln()
    }

    /// log π_ex of a chain, normalised.
    pub fn log_density(&self, chain: usize, x: &[f64]) -> f64 {
        let (mean, precision) = self.ladder.moments(self.schedule.betas()[chain], 0);
        let up = (chain + 1..x.len()).map(|i| self.log_kernel(i - 1, x[i - 1], x[i]));
        let down = (0..chain).map(|j| self.log_kernel(j + 1, x[j + 1], x[j]));
        let own =
            -0.5 * precision * (x[chain] - mean).powi(2) + 0.5 * (precision / std::f64::consts::TAU).ln();
        own + up.sum::<f64>() + down.sum::<f64>()
    }

    fn chain(&self, beta: f64) -> usize {
        self.schedule.betas().iter().position(|&b| b == beta).expect("a chain of the schedule")
    }
}

/// Only what a plain swap asks of a path.
impl AnnealingPath for Extended {
    fn dim(&self) -> usize {
        self.schedule.chains()
    }
    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        for (i, &beta) in betas.iter().enumerate() {
            points.log_density[i] = self.log_density(self.chain(beta), points.x.row(i));
        }
        Ok(())
    }
    fn slopes(&self, _: &[f64], _: &Points, _: &mut [f64], _: &mut Scratch) -> Result<()> {
        unreachable!("swaps need no slopes")
    }
    fn draw_reference(&self, _: f64, _: &Streams, _: PhaseKey, _: u64, _: &[u32], _: &mut Batch) {
        unreachable!("swaps draw nothing")
    }
    fn log_z(&self) -> Option<f64> {
        Some(0.0)
    }
    fn evaluations(&self) -> u64 {
        0
    }
}

/// Its exact draws.
pub struct ExtendedLadder(pub Arc<Extended>);

impl ExactLadder for ExtendedLadder {
    fn path(&self) -> Arc<dyn AnnealingPath> {
        self.0.clone()
    }
    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]) {
        let chain = self.0.chain(beta);
        self.0.ladder.draw(beta, stream, &mut x[chain..=chain]);
        let scale = (2.0 * self.0.noise).sqrt();
        for i in chain + 1..x.len() {
            x[i] = self.0.mean(i - 1, x[i - 1]) + scale * stream.normal();
        }
        for j in (0..chain).rev() {
            x[j] = self.0.mean(j + 1, x[j + 1]) + scale * stream.normal();
        }
    }
    fn log_z(&self, _beta: f64) -> Option<f64> {
        Some(0.0)
    }
}
