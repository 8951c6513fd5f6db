//! A spike and a slab: a mode so narrow that no walk finds it, with half of the evidence, on [−1, 1]ᵈ.

use super::boxed::{Likelihood, log_sum, share};
use crate::lanes::one::{LN_TAU, ln};
use std::f64::consts::LN_2;

/// L = ½ N(¼, 0.02²) + ½ N(−¼, 0.2²), the same in every coordinate.
#[derive(Clone, Copy, Debug)]
pub struct SpikeAndSlab {
    dim: usize,
}

impl SpikeAndSlab {
    /// Mean and width of the spike.
    pub const SPIKE: (f64, f64) = (0.25, 0.02);
    /// Mean and width of the slab.
    pub const SLAB: (f64, f64) = (-0.25, 0.2);

    /// # Panics
    /// If `dim` is zero.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 1);
        Self { dim }
    }
}

impl Likelihood for SpikeAndSlab {
    fn dim(&self) -> usize {
        self.dim
    }

    fn bounds(&self) -> [f64; 2] {
        [-1.0, 1.0]
    }

    fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let bell = |(mean, width): (f64, f64)| {
            let squares: f64 = x.iter().map(|x| (x - mean) * (x - mean)).sum();
            -0.5 * squares / (width * width) - x.len() as f64 * (ln(width) + 0.5 * LN_TAU)
        };
        let (log_sum, share) = log_sum(bell(Self::SPIKE), bell(Self::SLAB));
        let pull = |x: f64, (mean, width): (f64, f64)| (mean - x) / (width * width);
        for (slope, &x) in slopes.iter_mut().zip(x) {
            *slope = share * pull(x, Self::SPIKE) + (1.0 - share) * pull(x, Self::SLAB);
        }
        log_sum - LN_2
    }

    fn log_z(&self) -> f64 {
        let within = |(mean, width)| share(self.bounds(), mean, width).powi(self.dim as i32);
        ln(0.5 * (within(Self::SPIKE) + within(Self::SLAB))) - self.dim as f64 * LN_2
    }
}
