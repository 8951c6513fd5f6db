//! What a network (or a formula) offers to an accelerator: a flow, a drift or an energy model (§5).
//!
//! Accelerators see only these traits. Each call gets a whole batch; row `i` belongs to the pair
//! `pairs[i]`. A result for a row depends on that row alone, to the bit, for any batch.
//! Memory between calls is the caller's [`Scratch`]: after the first call of a size nothing may be allocated.

use crate::call::Scratch;
use crate::{Batch, Evaluation, Result};

/// The two ends β < β′ of a pair of adjacent chains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// β of the chain nearer the reference.
    pub lower: f64,
    /// β′ of the chain nearer the target.
    pub upper: f64,
}

impl Interval {
    /// β′ − β.
    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

/// An invertible map T of points for each pair, with its log-determinant (§5.1).
pub trait Flow: Send + Sync {
    /// Replaces each row x by T(x) and writes log|det ∂T/∂x|.
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<()>;

    /// Replaces each row y by T⁻¹(y) and writes log|det ∂T⁻¹/∂y|.
    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        scratch: &mut Scratch,
    ) -> Result<()>;
}

/// The control b of a controlled Monte Carlo diffusion (§5.2).
pub trait Drift: Send + Sync {
    /// Writes b at path time `times[i]` ∈ [0, 1] of pair `pairs[i]` at row i.
    fn drift(
        &self,
        pairs: &[Interval],
        times: &[f64],
        x: &Batch,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> Result<()>;
}

/// A path of densities log π_s, s ∈ [0, 1], from reference to target (§5.3, App. D.3).
pub trait EnergyModel: Send + Sync {
    /// Writes log density and score of row i at `times[i]`.
    fn evaluate(&self, times: &[f64], x: &Batch, out: &mut Evaluation, scratch: &mut Scratch) -> Result<()>;
    /// log ∫ exp(log density at s = 0): not zero for a learned model (errata E13).
    fn log_z_reference(&self) -> f64;
    /// How often a point at this time asks the target, and a network.
    fn cost(&self, _time: f64) -> (u64, u64) {
        (1, 0)
    }
}
