//! The eggbox (Feroz and Hobson, MNRAS 384, 449, 2008): equal narrow peaks in a regular pattern, on [0, 10π]².

use super::boxed::Likelihood;
use crate::lanes::one::{cos, exp, ln, sin_cos};
use std::f64::consts::PI;

/// log L = (2 + cos(x/2) cos(y/2))⁵.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eggbox;

impl Likelihood for Eggbox {
    fn dim(&self) -> usize {
        2
    }

    fn bounds(&self) -> [f64; 2] {
        [0.0, 10.0 * PI]
    }

    fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let [(sin_x, cos_x), (sin_y, cos_y)] = [sin_cos(0.5 * x[0]), sin_cos(0.5 * x[1])];
        let base = 2.0 + cos_x * cos_y;
        let fourth = (base * base) * (base * base);
        slopes[0] = -2.5 * fourth * sin_x * cos_y;
        slopes[1] = -2.5 * fourth * cos_x * sin_y;
        base * fourth
    }

    /// By the trapezoidal rule over one period, whose error for this integrand is below rounding.
    fn log_z(&self) -> f64 {
        let points = 600;
        let cosine = |i: u32| cos(2.0 * PI * f64::from(i) / f64::from(points));
        let cosines: Vec<f64> = (0..points).map(cosine).collect();
        let sum: f64 = cosines
            .iter()
            .flat_map(|a| cosines.iter().map(move |b| exp((2.0 + a * b).powi(5) - 243.0)))
            .sum();
        243.0 + ln(sum / f64::from(points * points))
    }
}
