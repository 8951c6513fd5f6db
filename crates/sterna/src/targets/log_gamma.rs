//! LogGamma (Beaujean and Caldwell 2013; Buchner 2016): four modes with heavy tails, on the box [0, 1]ᵈ.

use super::boxed::{Likelihood, log_sum, share};
use crate::lanes::one::{LN_TAU, exp, ln};
use std::f64::consts::LN_2;

/// x₀ is one of two LogGamma laws and x₁ one of two normals, at ⅓ and ⅔ with equal weights; of the others one half are LogGamma and
/// the rest normal, at ⅔. All have the scale 1/30.
#[derive(Clone, Copy, Debug)]
pub struct LogGamma {
    dim: usize,
}

/// One over the scale of each law.
const RATE: f64 = 30.0;
const PLACES: [f64; 2] = [2.0 / 3.0, 1.0 / 3.0];

impl LogGamma {
    /// # Panics
    /// If `dim` < 2.
    pub fn new(dim: usize) -> Self {
        assert!(dim >= 2);
        Self { dim }
    }

    /// The first normal coordinate but x₁.
    fn normals_from(&self) -> usize {
        self.dim.midpoint(2)
    }
}

/// Log density of the LogGamma law with shape 1, and its slope.
fn skewed(x: f64, at: f64) -> (f64, f64) {
    let z = RATE * (x - at);
    let rise = exp(z);
    (z - rise + ln(RATE), RATE * (1.0 - rise))
}

/// Log density of the normal, and its slope.
fn normal(x: f64, at: f64) -> (f64, f64) {
    let z = RATE * (x - at);
    (-0.5 * z * z + ln(RATE) - 0.5 * LN_TAU, -RATE * z)
}

/// Two laws at both places, each with one half.
fn two(law: fn(f64, f64) -> (f64, f64), x: f64) -> (f64, f64) {
    let [(high, high_slope), (low, low_slope)] = PLACES.map(|at| law(x, at));
    let (log_density, share) = log_sum(high, low);
    (log_density - LN_2, share * high_slope + (1.0 - share) * low_slope)
}

impl Likelihood for LogGamma {
    fn dim(&self) -> usize {
        self.dim
    }

    fn bounds(&self) -> [f64; 2] {
        [0.0, 1.0]
    }

    fn evaluate(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let mut total = 0.0;
        for (j, (slope, &x)) in slopes.iter_mut().zip(x).enumerate() {
            let (log_density, of_one) = match j {
                0 => two(skewed, x),
                1 => two(normal, x),
                j if j < self.normals_from() => skewed(x, PLACES[0]),
                _ => normal(x, PLACES[0]),
            };
            *slope = of_one;
            total += log_density;
        }
        total
    }

    /// Shares of the laws in the box, in closed form.
    fn log_z(&self) -> f64 {
        let skewed = |at: f64| exp(-exp(-RATE * at)) - exp(-exp(RATE * (1.0 - at)));
        let normal = |at: f64| share([0.0, 1.0], at, 1.0 / RATE);
        let both = |law: &dyn Fn(f64) -> f64| ln(0.5 * (law(PLACES[0]) + law(PLACES[1])));
        both(&skewed)
            + both(&normal)
            + (self.normals_from() - 2) as f64 * ln(skewed(PLACES[0]))
            + (self.dim - self.normals_from()) as f64 * ln(normal(PLACES[0]))
    }
}
