//! Knots of a path over exponents move to where its barrier is lower, by what chains have shown of both ends: no further evaluation.
//!
//! Laws η^a π^b are an exponential family with parameters θ = (a, b) and statistics s = (log η, log π): the mean of s on a chain is a
//! gradient of log Z, its covariance the Fisher metric. Neighbours' symmetric divergence is (θ′ − θ)·(E′s − Es), where all
//! normalisers cancel, and does not saturate where they hardly overlap (Syed et al., 2021). Knots lie at the chains. Each
//! moves along its natural gradient, in logarithms of its exponents, as far as its own samples, weighted anew, still tell
//! what happens there.

use crate::Schedule;
use crate::lanes::one;
use crate::paths::{Knot, Spline};

/// What chains have shown of both ends of a path.
#[derive(Clone, Debug)]
pub struct Bend {
    /// Exponents of each chain, as it was sampled.
    powers: Vec<[f64; 2]>,
    /// (log η, log π) of the samples of each chain.
    samples: Vec<Vec<[f64; 2]>>,
}

/// Sweeps over all knots in one bend.
const SWEEPS: usize = 30;
/// The share of samples that must be left in effect once they are weighted anew.
const LEAST_EFFECTIVE: f64 = 0.5;
/// Samples of a chain that are looked at.
const MOST_SAMPLES: usize = 1000;
/// Fewer tell too little.
const LEAST_SAMPLES: usize = 30;
/// Statistics farther than so many widths of their middle nine tenths are drawn in: at the reference a target may be of any size.
const WIDTHS: f64 = 3.0;
/// Bounds of exponents.
const POWERS: [f64; 2] = [1e-6, 1e3];

impl Bend {
    /// From the samples of chains of a schedule. None where one of them has too few.
    pub fn new(path: &Spline, schedule: &Schedule, samples: Vec<Vec<[f64; 2]>>) -> Option<Self> {
        let samples: Vec<_> = samples.into_iter().map(usable).collect();
        if samples.len() != schedule.chains() || samples.iter().any(|s| s.len() < LEAST_SAMPLES) {
            return None;
        }
        Some(Self { powers: schedule.betas().iter().map(|&beta| path.powers(beta)).collect(), samples })
    }

    /// The path over moved knots, and the schedule that shares its divergences out equally.
    pub fn bent(&self, path: &Spline, schedule: &Schedule) -> Option<(Spline, Schedule)> {
        let mut powers = self.powers.clone();
        let last = powers.len() - 1;
        let mut means: Vec<[f64; 2]> =
            (0..=last).filter_map(|n| self.moments(n, powers[n])).map(|m| m.mean).collect();
        if means.len() <= last {
            return None;
        }
        for _ in 0..SWEEPS {
            for n in 1..last {
                let sides = [n - 1, n + 1].map(|m| (powers[m], means[m]));
                if let Some((moved, mean)) = self.step(n, powers[n], sides) {
                    (powers[n], means[n]) = (moved, mean);
                }
            }
        }
        let lengths: Vec<f64> = (0..last)
            .map(|n| divergence((powers[n], means[n]), (powers[n + 1], means[n + 1])).max(0.0).sqrt())
            .collect();
        let knot =
            |n: usize| Knot { beta: schedule.betas()[n], reference: powers[n][0], target: powers[n][1] };
        let path = Spline::new(path.ground().clone(), (1..last).map(knot).collect()).ok()?;
        Some((path, schedule.equalise_rejections(&lengths)))
    }

    /// A step of a knot that brings it nearer to both neighbours, if there is one.
    fn step(
        &self,
        n: usize,
        powers: [f64; 2],
        sides: [([f64; 2], [f64; 2]); 2],
    ) -> Option<([f64; 2], [f64; 2])> {
        let here = self.moments(n, powers)?;
        let far = |at: ([f64; 2], [f64; 2])| divergence(at, sides[0]) + divergence(at, sides[1]);
        let before = far((powers, here.mean));
        // Gradient of both divergences by θ, then by log θ; and the metric there.
        let mut gradient = [0.0; 2];
        for (other, mean) in sides {
            let apart = [0, 1].map(|k| powers[k] - other[k]);
            for k in 0..2 {
                gradient[k] += here.mean[k] - mean[k]
                    + here.covariance[k][0] * apart[0]
                    + here.covariance[k][1] * apart[1];
            }
        }
        let gradient = [0, 1].map(|k| powers[k] * gradient[k]);
        let metric = [0, 1].map(|k| [0, 1].map(|l| powers[k] * here.covariance[k][l] * powers[l]));
        let direction = solve(metric, gradient)?;
        let mut share = 0.25;
        for _ in 0..8 {
            let moved = [0, 1].map(|k| {
                (powers[k] * one::exp((-share * direction[k]).clamp(-1.0, 1.0))).clamp(POWERS[0], POWERS[1])
            });
            if let Some(there) = self.moments(n, moved)
                && far((moved, there.mean)) < before
            {
                return Some((moved, there.mean));
            }
            share *= 0.5;
        }
        None
    }

    /// Mean and covariance of the statistics of chain n at other exponents; none where its samples do not tell them.
    fn moments(&self, n: usize, powers: [f64; 2]) -> Option<Moments> {
        let shift = [0, 1].map(|k| powers[k] - self.powers[n][k]);
        let samples = &self.samples[n];
        let log_weight = |s: &[f64; 2]| shift[0] * s[0] + shift[1] * s[1];
        let top = samples.iter().map(log_weight).fold(f64::NEG_INFINITY, f64::max);
        let (mut all, mut squares, mut sum, mut products) = (0.0, 0.0, [0.0; 2], [[0.0; 2]; 2]);
        // About the first, so that squares of large numbers leave something.
        let origin = samples[0];
        for s in samples {
            let weight = one::exp(log_weight(s) - top);
            let from = [s[0] - origin[0], s[1] - origin[1]];
            all += weight;
            squares += weight * weight;
            for k in 0..2 {
                sum[k] += weight * from[k];
                (0..2).for_each(|l| products[k][l] += weight * from[k] * from[l]);
            }
        }
        let enough = all * all > LEAST_EFFECTIVE * squares * samples.len() as f64;
        if !enough {
            return None;
        }
        let mean = sum.map(|sum| sum / all);
        let covariance = [0, 1].map(|k| [0, 1].map(|l| products[k][l] / all - mean[k] * mean[l]));
        Some(Moments { mean: [0, 1].map(|k| mean[k] + origin[k]), covariance })
    }
}

struct Moments {
    mean: [f64; 2],
    covariance: [[f64; 2]; 2],
}

/// Symmetric divergence of two laws with such exponents and means of (log η, log π).
fn divergence(a: ([f64; 2], [f64; 2]), b: ([f64; 2], [f64; 2])) -> f64 {
    (0..2).map(|k| (b.0[k] - a.0[k]) * (b.1[k] - a.1[k])).sum()
}

/// The solution of a system that is positive definite but for rounding.
fn solve(matrix: [[f64; 2]; 2], right: [f64; 2]) -> Option<[f64; 2]> {
    let ridge = 1e-3 * (matrix[0][0] + matrix[1][1]) + f64::MIN_POSITIVE;
    let [[a, b], [_, d]] = [[matrix[0][0] + ridge, matrix[0][1]], [matrix[1][0], matrix[1][1] + ridge]];
    let determinant = a * d - b * b;
    let solved = [(d * right[0] - b * right[1]) / determinant, (a * right[1] - b * right[0]) / determinant];
    Some(solved).filter(|x| determinant > 0.0 && x.iter().all(|x| x.is_finite()))
}

/// The latest samples that are numbers, with what lies far out drawn in.
fn usable(samples: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let mut samples: Vec<[f64; 2]> =
        samples.into_iter().filter(|s| s.iter().all(|s| s.is_finite())).collect();
    let every = samples.len().div_ceil(MOST_SAMPLES).max(1);
    samples = samples.into_iter().rev().step_by(every).collect();
    if samples.is_empty() {
        return samples;
    }
    for k in 0..2 {
        let mut sorted: Vec<f64> = samples.iter().map(|s| s[k]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
        let (low, high) = (at(0.05), at(0.95));
        let width = WIDTHS * (high - low);
        samples.iter_mut().for_each(|s| s[k] = s[k].clamp(low - width, high + width));
    }
    samples
}
