//! Positive numbers whose sum is 1: x = softmax(V y), where the columns of V are orthonormal and each sums to 0, so that all
//! values are treated alike.
//!
//! Column i of V is 1/√(i(i+1)) at the first i places and −i/√(i(i+1)) at the next. The volume is that of all values but the
//! last: log |∂x/∂y| = Σ log xₖ + ½ log K.

use super::At;
use super::columns::{Columns, ColumnsMut};
use crate::lanes::{Lanes, exp, ln, one};

/// 1/√(i(i+1)).
#[inline(always)]
fn scale(i: usize) -> f64 {
    1.0 / ((i * (i + 1)) as f64).sqrt()
}

/// ½ log K.
pub(crate) fn log_constant(size: usize) -> f64 {
    0.5 * one::ln(size as f64)
}

#[inline(always)]
pub fn constrain<L: Lanes>(size: usize, y: Columns, x: &mut ColumnsMut) -> L {
    // x holds V y, from the last to the first, then its exponentials, then shares of their sum.
    let mut sum = L::splat(0.0);
    x.set(size - 1, sum);
    let mut top = L::splat(f64::NEG_INFINITY);
    for i in (1..size).rev() {
        let part = y.get::<L>(i - 1) * L::splat(scale(i));
        let last = part.mul_add(L::splat(-(i as f64)), x.get::<L>(i));
        x.set(i, last);
        top = top.max(last);
        sum = sum + part;
        x.set(i - 1, sum);
    }
    top = top.max(x.get::<L>(0));
    let mut total = L::splat(0.0);
    for k in 0..size {
        let share = exp(x.get::<L>(k) - top);
        x.set(k, share);
        total = total + share;
    }
    for k in 0..size {
        x.set(k, x.get::<L>(k) / total);
    }
    // Σ log xₖ = Σ (V y)ₖ − K log Σ exp, of which the first sum is 0.
    (top + ln(total)) * L::splat(-(size as f64))
}

/// Vᵀ times the gradient by V y, which is xₖ (gₖ − x·g) − K xₖ.
#[inline(always)]
pub fn pull_back<L: Lanes>(size: usize, at: At, score: &mut ColumnsMut) {
    let mut mean = L::splat(at.volume * size as f64);
    for k in 0..size {
        mean = at.x.get::<L>(k).mul_add(at.gradient.get::<L>(k), mean);
    }
    let slope = |k: usize| at.x.get::<L>(k) * (at.gradient.get::<L>(k) - mean);
    let mut sum = slope(0);
    for i in 1..size {
        let next = slope(i);
        score.set(i - 1, next.mul_add(L::splat(-(i as f64)), sum) * L::splat(scale(i)));
        sum = sum + next;
    }
}

/// Vᵀ log x.
pub fn unconstrain(x: &[f64], y: &mut [f64]) {
    gather(x.iter().map(|x| one::ln(*x)), y);
}

/// Vᵀ z.
pub(crate) fn gather(z: impl IntoIterator<Item = f64>, y: &mut [f64]) {
    let mut z = z.into_iter();
    let mut sum = z.next().unwrap_or(0.0);
    for (i, (y, next)) in (1..).zip(y.iter_mut().zip(z)) {
        *y = (sum - i as f64 * next) * scale(i);
        sum += next;
    }
}

/// V y.
pub(crate) fn spread(y: &[f64], z: &mut [f64]) {
    let mut sum = 0.0;
    z[y.len()] = 0.0;
    for i in (1..=y.len()).rev() {
        let part = y[i - 1] * scale(i);
        z[i] -= part * i as f64;
        sum += part;
        z[i - 1] = sum;
    }
}
