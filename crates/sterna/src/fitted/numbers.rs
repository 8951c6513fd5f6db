//! Elementary functions and sums whose bits are the same on every processor.

pub(super) use crate::lanes::one::ln;
use crate::lanes::{self, Kernel, Lanes, dispatch, for_each_chunk};

/// a · b over the length of `a`: eight sums side by side, joined in a fixed order.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let b = &b[..a.len()];
    let mut sums = [0.0; 8];
    let (eights, rest) = (a.chunks_exact(8), a.len() / 8 * 8);
    for (a, b) in eights.zip(b.chunks_exact(8)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f64 = a[rest..].iter().zip(&b[rest..]).map(|(a, b)| a * b).sum();
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (b + f)) + ((c + g) + (d + h)) + rest
}

/// `to` becomes to + by · from.
pub(super) fn add(to: &mut [f64], by: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += by * from);
}

/// log Σ exp of the numbers, which become their shares of the sum; −∞ and untouched where all are −∞ or one is NaN.
pub(super) fn shares(logs: &mut [f64]) -> f64 {
    let largest = logs.iter().fold(f64::NEG_INFINITY, |a, &b| if b > a || b.is_nan() { b } else { a });
    if !largest.is_finite() {
        return f64::NEG_INFINITY;
    }
    dispatch(Exponentials { logs, largest });
    let sum: f64 = logs.iter().sum();
    logs.iter_mut().for_each(|share| *share /= sum);
    largest + ln(sum)
}

struct Exponentials<'a> {
    logs: &'a mut [f64],
    largest: f64,
}

impl Kernel for Exponentials<'_> {
    type Output = ();

    /// Each number becomes exp of its distance from the largest; zero where that is below rounding.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (largest, negligible) = (L::splat(self.largest), L::splat(-80.0));
        for_each_chunk!(self.logs.len(), |chunk| {
            let below = L::load_some(&self.logs[chunk.clone()]) - largest;
            let share = L::select(negligible.lt(below), lanes::exp(below), L::splat(0.0));
            share.store_some(&mut self.logs[chunk]);
        });
    }
}

/// |a − b| ≤ tolerance · (1 + |b|), number by number.
#[cfg(test)]
pub(super) fn near(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_shares_are_those_of_the_textbook() {
        let a: Vec<f64> = (0..21).map(|i| f64::from(i) - 7.5).collect();
        assert_eq!(dot(&a, &a), a.iter().map(|a| a * a).sum::<f64>());
        assert!((ln(3.0) - 3f64.ln()).abs() < 1e-15);
        let mut logs: Vec<f64> = (0..11).map(|i| 700.0 - f64::from(i * i)).collect();
        let plain: f64 = (0..11).map(|i| (-f64::from(i * i)).exp()).sum();
        assert!((shares(&mut logs) - 700.0 - plain.ln()).abs() < 1e-13);
        assert!((logs[1] - (-1f64).exp() / plain).abs() < 1e-15);
        for mut bad in [vec![f64::NEG_INFINITY; 3], vec![0.0, f64::NAN]] {
            assert_eq!(shares(&mut bad), f64::NEG_INFINITY);
        }
    }
}
