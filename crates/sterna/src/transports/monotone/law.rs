//! The law of one coordinate on one chain: its distribution function on a line that all chains share.

use super::super::smooth::BINS;
use crate::lanes::one::{exp, ln, softplus};
use serde::{Deserialize, Serialize};

/// Part of each law that is spread evenly over its bins: distribution functions rise everywhere.
const UNIFORM: f64 = 1e-5;

/// A place on the line that all chains share, and the slope of the way there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Knot {
    z: f64,
    slope: f64,
}

/// z = log F/(1 − F) as a spline with equal bins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Law {
    low: f64,
    step: f64,
    knots: Vec<Knot>,
}

impl Law {
    /// From log masses of bins.
    pub fn new(low: f64, step: f64, theta: &[f64]) -> Self {
        let total: f64 = theta.iter().map(|t| exp(*t)).sum();
        let bins = theta.len();
        let even = UNIFORM / bins as f64;
        let mass: Vec<f64> = theta.iter().map(|t| (1.0 - UNIFORM) * exp(*t) / total + even).collect();
        // A tail falls as the density does at its end: the density there, and the mass beyond.
        let tail = |end: f64, next: f64| {
            let fall = (ln(next / end) / step).max(1.0 / (bins as f64 * step));
            let density = end * exp(-0.5 * fall * step) / step;
            (density, density / fall)
        };
        let [(first, below), (last, above)] = [tail(mass[0], mass[1]), tail(mass[bins - 1], mass[bins - 2])];
        let density = |k: usize| match k {
            0 => first,
            k if k == bins => last,
            k => (mass[k - 1] * mass[k]).sqrt() / step,
        };
        // Summed from either end, so that neither tail is a difference of large numbers.
        let sums = |from: f64, masses: &mut dyn Iterator<Item = &f64>| {
            let mut sum = from;
            std::iter::once(from)
                .chain(masses.map(|m| {
                    sum += m;
                    sum
                }))
                .collect::<Vec<f64>>()
        };
        let (left, right) = (sums(below, &mut mass.iter()), sums(above, &mut mass.iter().rev()));
        let knot = |k: usize| {
            let (left, right) = (left[k], right[bins - k]);
            Knot { z: ln(left / right), slope: density(k) * (left + right) / (left * right) }
        };
        Self { low, step, knots: (0..=bins).map(knot).collect() }
    }

    /// The law whose log density lies so far between those of this one and another, on the bins of both.
    pub fn towards(&self, other: &Self, along: f64) -> Self {
        let bins = |law: &Self| (law.knots.len() - 1) as f64;
        let low = self.low.min(other.low);
        let high = (self.low + bins(self) * self.step).max(other.low + bins(other) * other.step);
        let step = (high - low) / BINS as f64;
        let at = |bin: usize| {
            let x = low + (bin as f64 + 0.5) * step;
            (1.0 - along) * self.log_density(x) + along * other.log_density(x)
        };
        let theta: Vec<f64> = (0..BINS).map(at).collect();
        let most = theta.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self::new(low, step, &theta.iter().map(|t| t - most).collect::<Vec<f64>>())
    }

    /// Of F = 1/(1 + e^-z).
    fn log_density(&self, x: f64) -> f64 {
        let (z, slope) = self.up(x);
        ln(slope) - z.abs() - 2.0 * softplus(-z.abs())
    }

    pub fn is_sound(&self) -> bool {
        let rises = |pair: &[Knot]| pair[0].z < pair[1].z;
        let is_knot = |knot: &Knot| knot.z.is_finite() && knot.slope > 0.0 && knot.slope.is_finite();
        self.knots.len() == BINS + 1
            && self.low.is_finite()
            && self.step > 0.0
            && self.step.is_finite()
            && self.knots.iter().all(is_knot)
            && self.knots.windows(2).all(rises)
    }

    /// z(x) and its slope.
    pub fn up(&self, x: f64) -> (f64, f64) {
        let last = self.knots.len() - 1;
        let place = (x - self.low) / self.step;
        // Beyond the knots, and where x is no number.
        if !(place >= 0.0 && place < last as f64) {
            let (k, knot) = if place < 0.0 { (0, self.knots[0]) } else { (last, self.knots[last]) };
            return (knot.z + knot.slope * (place - k as f64) * self.step, knot.slope);
        }
        let k = place as usize;
        let bin = Bin::new(self.knots[k], self.knots[k + 1], self.step);
        let along = place - k as f64;
        (self.knots[k].z + bin.rise(along), bin.slope(along))
    }

    /// x at z, and the slope of the way up there.
    pub fn down(&self, z: f64) -> (f64, f64) {
        let last = self.knots.len() - 1;
        let above = self.knots.partition_point(|knot| knot.z <= z);
        if above == 0 || above > last {
            let (k, knot) = if above == 0 { (0, self.knots[0]) } else { (last, self.knots[last]) };
            return (self.low + k as f64 * self.step + (z - knot.z) / knot.slope, knot.slope);
        }
        let k = above - 1;
        let bin = Bin::new(self.knots[k], self.knots[above], self.step);
        let along = bin.found(z - self.knots[k].z);
        (self.low + (k as f64 + along) * self.step, bin.slope(along))
    }
}

/// Between two knots: a quotient of two quadratics that rises (Gregory and Delbourgo 1982).
struct Bin {
    height: f64,
    mean: f64,
    first: f64,
    last: f64,
    /// By how much the slopes at both ends exceed the mean slope together.
    excess: f64,
}

impl Bin {
    fn new(from: Knot, to: Knot, width: f64) -> Self {
        let height = to.z - from.z;
        let mean = height / width;
        Self { height, mean, first: from.slope, last: to.slope, excess: from.slope + to.slope - 2.0 * mean }
    }

    /// How far it has risen at this share of the width.
    fn rise(&self, along: f64) -> f64 {
        let both = along * (1.0 - along);
        self.height * (self.mean * along * along + self.first * both) / (self.mean + self.excess * both)
    }

    fn slope(&self, along: f64) -> f64 {
        let left = 1.0 - along;
        let both = along * left;
        let above = self.last * along * along + 2.0 * self.mean * both + self.first * left * left;
        (self.mean / (self.mean + self.excess * both)).powi(2) * above
    }

    /// The share at which it has risen so far: a quadratic's root, in the form that does not cancel.
    fn found(&self, rise: f64) -> f64 {
        let a = self.height * (self.mean - self.first) + rise * self.excess;
        let b = self.height * self.first - rise * self.excess;
        let c = self.mean * rise;
        2.0 * c / (b + (b * b + 4.0 * a * c).max(0.0).sqrt())
    }
}
