//! Two Gaussian shells (Feroz, Hobson and Bridges, MNRAS 398, 1601, 2009), on the box [−6, 6]ᵈ.

use super::boxed::{Likelihood, integral, log_sum};
use crate::lanes::one::{exp, ln};
use std::f64::consts::{LN_2, PI, TAU};

/// Shells of radius 2 and width 0.1 about ±3.5 e₁, each as high as a normal of that width; half of the evidence is in each.
#[derive(Clone, Copy, Debug)]
pub struct Shells {
    dim: usize,
}

impl Shells {
    /// Radius of a shell.
    pub const RADIUS: f64 = 2.0;
    /// Width of a shell.
    pub const WIDTH: f64 = 0.1;
    /// First coordinate of the second centre.
    pub const CENTRE: f64 = 3.5;

    /// # Panics
    /// If `dim` < 2.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 2);
        Self { dim }
    }
}

impl Likelihood for Shells {
    fn dim(&self) -> usize {
        self.dim
    }

    fn bounds(&self) -> [f64; 2] {
        [-6.0, 6.0]
    }

    fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let rest: f64 = x[1..].iter().map(|x| x * x).sum();
        let shell = |centre: f64| {
            let distance = ((x[0] - centre) * (x[0] - centre) + rest).sqrt();
            let away = (distance - Self::RADIUS) / Self::WIDTH;
            // The centre of a shell has no direction: no slope rather than NaN.
            let slope = if distance > 0.0 { -away / (Self::WIDTH * distance) } else { 0.0 };
            (-0.5 * away * away, slope)
        };
        let ((left, left_slope), (right, right_slope)) = (shell(-Self::CENTRE), shell(Self::CENTRE));
        let (log_sum, share) = log_sum(left, right);
        let along = share * left_slope + (1.0 - share) * right_slope;
        for (slope, x) in slopes.iter_mut().zip(x) {
            *slope = along * x;
        }
        slopes[0] += Self::CENTRE * (share * left_slope - (1.0 - share) * right_slope);
        log_sum - ln(Self::WIDTH * TAU.sqrt())
    }

    /// The shells' radius by quadrature, their angles in closed form; the box cuts off less than 10⁻⁷ of them.
    fn log_z(&self) -> f64 {
        let dim = self.dim as i32;
        let density = |r: f64| {
            let away = (r - Self::RADIUS) / Self::WIDTH;
            r.powi(dim - 1) * exp(-0.5 * away * away) / (Self::WIDTH * TAU.sqrt())
        };
        // log of the sphere's surface 2 π^{d/2} / Γ(d/2), from Γ(1) = 1 or Γ(½) = √π upwards.
        let mut log_gamma = if dim % 2 == 0 { 0.0 } else { 0.5 * ln(PI) };
        let mut argument = if dim % 2 == 0 { 1.0 } else { 0.5 };
        while argument < 0.5 * f64::from(dim) {
            log_gamma += ln(argument);
            argument += 1.0;
        }
        let surface = LN_2 + 0.5 * f64::from(dim) * ln(PI) - log_gamma;
        LN_2 + surface + ln(integral([0.8, 3.5], 4000, density)) - f64::from(dim) * ln(12f64)
    }
}
