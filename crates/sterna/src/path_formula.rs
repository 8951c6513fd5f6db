//! The geometric path η^{1−β} π^β, written once (§2): its log density and its score.
//!
//! Samplers evaluate the formulas on numbers, eight at a time where it pays; training records them as values of a
//! graph, and a GPU gets them as source text. Each says what a mean of two terms is; what is mixed is said here.
//! Rules for points where the target has no density belong to who evaluates it.

use crate::lanes::Lanes;
use std::ops::Neg;

/// What the path may be written in.
pub trait Blend: Neg<Output = Self> {
    /// (1 − share)·self + share·other.
    fn blend(self, other: Self, share: Self) -> Self;
}

/// log π̃^β = (1 − β) log η + β log π̃.
#[inline(always)]
pub fn path_log_density<T: Blend>(beta: T, log_reference: T, log_target: T) -> T {
    log_reference.blend(log_target, beta)
}

/// ∇ log π̃^β = (1 − β) ∇log η + β ∇log π̃, where `pull` is −∇log η: x itself for a standard normal.
#[inline(always)]
pub fn path_score<T: Blend>(beta: T, pull: T, target_score: T) -> T {
    (-pull).blend(target_score, beta)
}

/// a log η + b log π̃, where (a, b) are exponents that a path goes over instead of (1 − β, β).
#[inline(always)]
pub fn powers_log_density(powers: [f64; 2], ends: [f64; 2]) -> f64 {
    powers[0] * ends[0] + powers[1] * ends[1]
}

/// Its score, from the scores of both ends.
#[inline(always)]
pub fn powers_score(powers: [f64; 2], scores: [f64; 2]) -> f64 {
    powers_log_density(powers, scores)
}

impl Blend for f64 {
    /// With two weights, so that both ends are exact.
    #[inline(always)]
    fn blend(self, other: Self, share: Self) -> Self {
        (1.0 - share) * self + share * other
    }
}

impl<L: Lanes> Blend for L {
    #[inline(always)]
    fn blend(self, other: Self, share: Self) -> Self {
        other.mul_add(share, self * (L::splat(1.0) - share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Portable, Vector};

    #[test]
    fn the_score_is_the_slope_of_the_log_density() {
        // From N(0, 1) to N(1, ½).
        let log_reference = |x: f64| -0.5 * x * x;
        let log_target = |x: f64| -(x - 1.0) * (x - 1.0);
        for beta in [0.0, 0.3, 1.0] {
            for x in [-1.5, 0.2, 2.0] {
                let at = |x: f64| path_log_density(beta, log_reference(x), log_target(x));
                let slope = (at(x + 1e-5) - at(x - 1e-5)) / 2e-5;
                let score = path_score(beta, x, -2.0 * (x - 1.0));
                assert!((slope - score).abs() < 1e-9, "β = {beta}, x = {x}: {score} is not {slope}");
                let lanes =
                    path_score(Portable::splat(beta), Portable::splat(x), Portable::splat(2.0 - 2.0 * x));
                assert!((lanes.to_array()[3] - score).abs() < 1e-15);
            }
        }
        assert_eq!((path_log_density(0.0, 3.0, 7.0), path_log_density(1.0, 3.0, 7.0)), (3.0, 7.0));
    }
}
