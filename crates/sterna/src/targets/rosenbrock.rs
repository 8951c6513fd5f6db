//! Rosenbrock's function in pairs of coordinates, as pocoMC (Karamanis et al., MNRAS 516, 1644, 2022) has it, on [−10, 10]ᵈ.

use super::boxed::{Likelihood, integral, share};
use crate::lanes::one::{exp, ln};
use std::f64::consts::PI;

/// log L = −Σ 10 (x₂ₖ² − x₂ₖ₊₁)² + (x₂ₖ − 1)².
#[derive(Clone, Copy, Debug)]
pub struct Rosenbrock {
    dim: usize,
}

impl Rosenbrock {
    /// # Panics
    /// If `dim` is odd or zero.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 2 && dim.is_multiple_of(2));
        Self { dim }
    }
}

impl Likelihood for Rosenbrock {
    fn dim(&self) -> usize {
        self.dim
    }

    fn bounds(&self) -> [f64; 2] {
        [-10.0, 10.0]
    }

    fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let mut total = 0.0;
        for (x, slopes) in x.chunks_exact(2).zip(slopes.chunks_exact_mut(2)) {
            let (off, away) = (x[0] * x[0] - x[1], x[0] - 1.0);
            total -= 10.0 * off * off + away * away;
            slopes[0] = -40.0 * off * x[0] - 2.0 * away;
            slopes[1] = 20.0 * off;
        }
        total
    }

    /// The odd coordinates in closed form, the even ones by quadrature.
    fn log_z(&self) -> f64 {
        let width = 20f64.sqrt().recip();
        let along = |x: f64| exp(-(x - 1.0) * (x - 1.0)) * share(self.bounds(), x * x, width);
        let pair = (PI / 10.0).sqrt() * integral([-6.0, 8.0], 20_000, along);
        0.5 * self.dim as f64 * ln(pair / 400.0)
    }
}
