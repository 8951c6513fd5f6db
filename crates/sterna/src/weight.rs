//! The log-weight of a journey, written once (§3, §5.2; errata E6 and E8).
//!
//! A sampler evaluates these formulas on numbers, training records them as values of a graph, and a GPU gets them as
//! source text. So training differentiates what sampling evaluates.

use crate::accelerator::Direction;
use std::ops::{Add, Div, Mul, Sub};

/// What a formula may be written in.
pub trait Term:
    Clone
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Mul<f64, Output = Self>
    + Div<Output = Self>
{
    /// The natural logarithm.
    fn ln(self) -> Self;
}

impl Term for f64 {
    #[inline(always)]
    fn ln(self) -> Self {
        crate::lanes::one::ln(self)
    }
}

/// Mean of a Langevin step with a drift: x + ½ v ∇U(x) + shift, where v = 2 Δs σ² is the step's variance and the shift
/// is Δs b(x) on the way there, −Δs b(x) on the way back.
#[inline(always)]
pub fn step_mean<T: Term>(x: T, variance: T, score: T, shift: T) -> T {
    x + variance * 0.5 * score + shift
}

/// What one Gaussian step adds to the log-ratio of returning to going: ½|z|² − |miss|²/(2u) + (d/2) log(v/u), where z is
/// the noise it went by, v its variance, u that of the return, and miss what the return's mean is off the point it
/// must come back to.
#[inline(always)]
pub fn step_log_ratio<T: Term>(
    dim: usize,
    noise_squared: T,
    miss_squared: T,
    variance: T,
    return_variance: T,
) -> T {
    let widths = (variance / return_variance.clone()).ln() * (0.5 * dim as f64);
    (noise_squared - miss_squared / return_variance) * 0.5 + widths
}

impl Direction {
    /// log w, always Q over P, from the log density where the journey began and the one where it
    /// ended, the latter with the log-ratio of returning to going (or a log-determinant) added.
    ///
    /// Forward this is end − start; backward, where start and end are exchanged, start − end.
    pub fn log_weight<T: Term>(self, start: T, end: T) -> T {
        match self {
            Self::Forward => end - start,
            Self::Backward => start - end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    #[test]
    fn a_step_adds_the_log_ratio_of_the_two_kernels() {
        let log_normal = |x: [f64; 2], mean: [f64; 2], variance: f64| -> f64 {
            (0..2).map(|j| -(x[j] - mean[j]).powi(2) / (2.0 * variance) - 0.5 * (TAU * variance).ln()).sum()
        };
        let (x, z, v, u) = ([0.3, -1.2], [0.7, 0.4], 0.05, 0.08f64);
        // ∇U(x) = −x and b(x) = (1, x₀).
        let mean = |x: [f64; 2], variance: f64, sign: f64| {
            [0, 1].map(|j| step_mean(x[j], variance, -x[j], sign * [1.0, x[0]][j]))
        };
        let there = mean(x, v, 1.0);
        let next = [0, 1].map(|j| there[j] + v.sqrt() * z[j]);
        let home = mean(next, u, -1.0);
        let squared = |y: [f64; 2]| y[0] * y[0] + y[1] * y[1];
        let miss = [0, 1].map(|j| x[j] - home[j]);
        let expected = log_normal(x, home, u) - log_normal(next, there, v);
        let got = step_log_ratio(2, squared(z), squared(miss), v, u);
        assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
        // The paper's print leaves the normalisers out (errata E8).
        assert!((got - step_log_ratio(0, squared(z), squared(miss), v, u)).abs() > 0.1);
    }
}
