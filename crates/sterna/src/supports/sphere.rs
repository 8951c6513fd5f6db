//! Directions: x = y/|y|, and angles, which are directions in the plane.
//!
//! There is no map of ℝⁿ onto a sphere without a seam, so a direction has as many coordinates as values, and their length r a
//! law of its own: y is a standard normal if x is uniform. It is normalised, so that an integral over y is one over the sphere:
//! log volume = −½ r² − log ∫ rⁿ⁻¹ exp(−½ r²) dr.

use super::At;
use super::columns::{Columns, ColumnsMut};
use crate::lanes::{Lanes, atan2, one};

/// −log ∫₀^∞ rⁿ⁻¹ exp(−½ r²) dr: by parts the integral is n − 2 times that of n − 2; of 2 it is 1, of 1 √(π/2).
pub fn log_constant(n: usize) -> f64 {
    let first = if n.is_multiple_of(2) { 0.0 } else { 0.5 * one::ln(std::f64::consts::FRAC_PI_2) };
    let factors = (1..n - 1).rev().step_by(2);
    -first - factors.map(|factor| one::ln(factor as f64)).sum::<f64>()
}

/// −½ r², and nothing at all at the origin, which has no direction.
#[inline(always)]
fn of_length<L: Lanes>(square: L) -> L {
    let zero = L::splat(0.0);
    L::select(zero.lt(square), square * L::splat(-0.5), L::splat(f64::NEG_INFINITY))
}

#[inline(always)]
fn square<L: Lanes>(y: Columns, first: usize, size: usize) -> L {
    let mut sum = L::splat(0.0);
    for k in first..first + size {
        let y = y.get::<L>(k);
        sum = y.mul_add(y, sum);
    }
    sum
}

#[inline(always)]
pub fn constrain<L: Lanes>(size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    let square = square::<L>(y, 0, size);
    let length = square.sqrt();
    for k in 0..size {
        x.set(k, y.get::<L>(k) / length);
    }
    of_length(square)
}

/// (g − x (x·g))/r − y.
#[inline(always)]
pub fn pull_back<L: Lanes>(size: usize, at: At, score: &mut ColumnsMut) {
    let length = square::<L>(at.y, 0, size).sqrt();
    let mut along = L::splat(0.0);
    for k in 0..size {
        along = at.x.get::<L>(k).mul_add(at.gradient.get::<L>(k), along);
    }
    for k in 0..size {
        let across = at.gradient.get::<L>(k) - at.x.get::<L>(k) * along;
        score.set(k, across / length - at.y.get::<L>(k) * L::splat(at.volume));
    }
}

/// Each value is the angle of two coordinates.
#[inline(always)]
pub fn angles<L: Lanes>(size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    let mut volume = L::splat(0.0);
    for k in 0..size {
        x.set(k, atan2(y.get::<L>(2 * k + 1), y.get::<L>(2 * k)));
        volume = volume + of_length(square::<L>(y, 2 * k, 2));
    }
    volume
}

/// g (−y₂, y₁)/r² − y.
#[inline(always)]
pub fn angles_back<L: Lanes>(size: usize, at: At, score: &mut ColumnsMut) {
    for k in 0..size {
        let (cosine, sine) = (at.y.get::<L>(2 * k), at.y.get::<L>(2 * k + 1));
        let turn = at.gradient.get::<L>(k) / square::<L>(at.y, 2 * k, 2);
        let volume = L::splat(at.volume);
        score.set(2 * k, -(turn * sine) - cosine * volume);
        score.set(2 * k + 1, turn * cosine - sine * volume);
    }
}

/// Points on the circle at these angles.
pub fn points(x: &[f64], y: &mut [f64]) {
    for (angle, y) in x.iter().zip(y.chunks_exact_mut(2)) {
        let (sine, cosine) = one::sin_cos(*angle);
        y.copy_from_slice(&[cosine, sine]);
    }
}
