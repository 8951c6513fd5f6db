//! Increasing numbers: x₁ = y₁, xₖ = xₖ₋₁ + exp yₖ; the volume is exp Σₖ₌₂ yₖ.

use super::At;
use super::columns::{Columns, ColumnsMut};
use crate::lanes::{Lanes, exp, one};

#[inline(always)]
pub fn constrain<L: Lanes>(size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    let mut last = y.get::<L>(0);
    x.set(0, last);
    let mut volume = L::splat(0.0);
    for k in 1..size {
        let y = y.get::<L>(k);
        last = last + exp(y);
        x.set(k, last);
        volume = volume + y;
    }
    volume
}

/// A coordinate moves its value and all that follow.
#[inline(always)]
pub fn pull_back<L: Lanes>(size: usize, at: At, score: &mut ColumnsMut) {
    let mut sum = L::splat(0.0);
    for k in (1..size).rev() {
        sum = sum + at.gradient.get::<L>(k);
        score.set(k, sum.mul_add(exp(at.y.get::<L>(k)), L::splat(at.volume)));
    }
    score.set(0, sum + at.gradient.get::<L>(0));
}

/// The first, and the logarithms of the steps.
pub fn unconstrain(x: &[f64], y: &mut [f64]) {
    y[0] = x[0];
    for k in 1..x.len() {
        y[k] = one::ln(x[k] - x[k - 1]);
    }
}
