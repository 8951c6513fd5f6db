//! A normal whose coordinates all have the same correlation, on the box [−5, 5]ᵈ.

use super::boxed::{Likelihood, integral, share};
use crate::lanes::one::{LN_TAU, exp, ln};
use std::f64::consts::TAU;

/// Unit variances, and the correlation 0.4 between any two coordinates; normalised.
#[derive(Clone, Copy, Debug)]
pub struct CorrelatedNormal {
    dim: usize,
}

impl CorrelatedNormal {
    /// Between any two coordinates.
    pub const CORRELATION: f64 = 0.4;

    /// # Panics
    /// If `dim` is zero.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 1);
        Self { dim }
    }
}

impl Likelihood for CorrelatedNormal {
    fn dim(&self) -> usize {
        self.dim
    }

    fn bounds(&self) -> [f64; 2] {
        [-5.0, 5.0]
    }

    fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let (dim, common) = (self.dim as f64, Self::CORRELATION);
        // Σ⁻¹ = (I − ρ/(1 + (d − 1)ρ) 11ᵀ)/(1 − ρ), by Sherman and Morrison.
        let whole = 1.0 + (dim - 1.0) * common;
        let shift = x.iter().sum::<f64>() * common / whole;
        let mut energy = 0.0;
        for (slope, &x) in slopes.iter_mut().zip(x) {
            *slope = (shift - x) / (1.0 - common);
            energy += *slope * x;
        }
        let log_determinant = (dim - 1.0) * ln(1.0 - common) + ln(whole);
        0.5 * (energy - log_determinant - dim * LN_TAU)
    }

    /// Given the part that all coordinates have in common they are independent: one quadrature.
    fn log_z(&self) -> f64 {
        let (common, own) = (Self::CORRELATION.sqrt(), (1.0 - Self::CORRELATION).sqrt());
        let inside = |z: f64| {
            exp(-0.5 * z * z) / TAU.sqrt() * share(self.bounds(), common * z, own).powi(self.dim as i32)
        };
        ln(integral([-10.0, 10.0], 2000, inside)) - self.dim as f64 * ln(10f64)
    }
}
