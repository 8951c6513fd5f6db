//! Values that stand each for itself: any number, above or below a bound, between two.

use super::At;
use super::columns::{Columns, ColumnsMut};
use crate::lanes::{Lanes, exp, one, sigmoid, softplus};

#[inline(always)]
pub fn copy<L: Lanes>(size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    for j in 0..size {
        x.set(j, y.get::<L>(j));
    }
    L::splat(0.0)
}

#[inline(always)]
pub fn copy_back<L: Lanes>(size: usize, at: At, score: &mut ColumnsMut) {
    for j in 0..size {
        score.set(j, at.gradient.get::<L>(j));
    }
}

/// x = bound ± eʸ, log |dx/dy| = y.
#[inline(always)]
pub fn beyond<L: Lanes>(bound: f64, sign: f64, size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    let mut volume = L::splat(0.0);
    for j in 0..size {
        let y = y.get::<L>(j);
        x.set(j, exp(y).mul_add(L::splat(sign), L::splat(bound)));
        volume = volume + y;
    }
    volume
}

/// dx/dy = ±eʸ = x − bound; the volume's slope is 1. At x = bound the product with an infinite gradient is no number, and
/// the density has none there either.
#[inline(always)]
pub fn beyond_back<L: Lanes>(bound: f64, sign: f64, size: usize, at: At, score: &mut ColumnsMut) {
    for j in 0..size {
        // Not x − bound, which loses what rounding took from x.
        let slope = if bound == 0.0 { at.x.get::<L>(j) } else { exp(at.y.get::<L>(j)) * L::splat(sign) };
        score.set(j, at.gradient.get::<L>(j).mul_add(slope, L::splat(at.volume)));
    }
}

/// Between two bounds, one of which may be infinite.
#[inline(always)]
pub fn between<L: Lanes>([lower, upper]: [f64; 2], size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    match (lower.is_finite(), upper.is_finite()) {
        (true, true) => {
            let width = upper - lower;
            let mut volume = L::splat(0.0);
            for j in 0..size {
                let y = y.get::<L>(j);
                // From the nearer bound, so that neither is left but by rounding.
                let share = sigmoid(-y.abs()) * L::splat(width);
                let near = L::select(y.lt(L::splat(0.0)), L::splat(lower) + share, L::splat(upper) - share);
                x.set(j, near);
                volume = volume - (softplus(y) + softplus(-y));
            }
            volume
        }
        (true, false) => beyond(lower, 1.0, size, y, x),
        (false, true) => beyond(upper, -1.0, size, y, x),
        (false, false) => copy(size, y, x),
    }
}

/// dx/dy = (upper − lower) σ(y) σ(−y), and the volume's slope σ(−y) − σ(y).
#[inline(always)]
pub fn between_back<L: Lanes>([lower, upper]: [f64; 2], size: usize, at: At, score: &mut ColumnsMut) {
    match (lower.is_finite(), upper.is_finite()) {
        (true, true) => {
            for j in 0..size {
                let y = at.y.get::<L>(j);
                let (up, down) = (sigmoid(y), sigmoid(-y));
                let slope = up * down * L::splat(upper - lower);
                score.set(j, at.gradient.get::<L>(j).mul_add(slope, (down - up) * L::splat(at.volume)));
            }
        }
        (true, false) => beyond_back::<L>(lower, 1.0, size, at, score),
        (false, true) => beyond_back::<L>(upper, -1.0, size, at, score),
        (false, false) => copy_back::<L>(size, at, score),
    }
}

/// The coordinates of values.
pub fn unconstrain([lower, upper]: [f64; 2], x: &[f64], y: &mut [f64]) {
    for (x, y) in x.iter().zip(y) {
        *y = match (lower.is_finite(), upper.is_finite()) {
            (true, true) => one::ln(x - lower) - one::ln(upper - x),
            (true, false) => one::ln(x - lower),
            (false, true) => one::ln(upper - x),
            (false, false) => *x,
        };
    }
}
