//! mRNA transfection: a posterior with two modes that weigh the same.
//!
//! A cell is given mRNA, which it translates into a protein that shines: after the release at t₀, with translation k m₀ and
//! rates of decay β and δ,
//!
//! μ(t) = k m₀ (e^{−β(t−t₀)} − e^{−δ(t−t₀)}) / (δ − β), and 0 before t₀.
//!
//! Exchanging β and δ changes nothing, so that each mode holds one half. Five parameters on a scale of log₁₀, flat within
//! bounds (Ballnus et al., BMC Systems Biology 11:63, 2017).

use crate::lanes::one::{self, LN_TAU};
use crate::lanes::{Kernel, Lanes, WIDTH, dispatch, exp, sigmoid, softplus};
use crate::{Batch, Evaluation, Result, Target};
use std::f64::consts::LN_10;

/// Fluorescence every 0.2 hours from 0 to 10: C. Leonhardt et al., Single-cell mRNA transfection studies, Nanomedicine 10,
/// 679 (2014), in the example of the parameter estimation toolbox PESTO (P. Stapor et al., Bioinformatics 34, 705, 2018).
pub const FLUORESCENCE: [f64; 51] = [
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.8309, 3.3559, 4.6091, 5.4235, 5.9757, 6.6298,
    7.0080, 7.8280, 7.5852, 7.9247, 7.8363, 8.0107, 7.7077, 7.5316, 7.4208, 7.5734, 7.3197, 7.1489, 7.1987,
    6.8493, 6.6425, 6.6268, 6.1223, 6.1078, 5.9242, 5.6034, 5.4618, 5.1281, 4.9489, 4.8930, 4.7747, 4.7750,
    4.3095, 4.2211, 4.0416, 3.7485, 3.7164, 3.4799, 3.5286, 3.2785,
];

/// Hours between two measurements.
pub const INTERVAL: f64 = 0.2;

const DIM: usize = 5;

/// The posterior of (t₀, k m₀, β, δ, σ), each as log₁₀ and within bounds; measurements are normal of width σ.
///
/// A point is free in ℝ⁵: xⱼ stands for lower + (upper − lower) / (1 + e^{−xⱼ}), and the density has the Jacobian. log Z is
/// that of the likelihood over the bounds, with a prior density of one.
///
/// ```
/// use sterna::{Target, targets::Mrna};
/// let beta_and_delta_exchanged = [Mrna::values(&[0.1, 0.2, 0.3, 0.4, 0.5]), Mrna::values(&[0.1, 0.2, 0.4, 0.3, 0.5])];
/// assert_eq!(beta_and_delta_exchanged[0][2], beta_and_delta_exchanged[1][3]);
/// assert_eq!(Mrna.dim(), 5);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Mrna;

impl Mrna {
    /// What values are called.
    pub const NAMES: [&str; DIM] = ["lt0", "lkm0", "lbeta", "ldelta", "lsigma"];
    /// Lower bounds of the values.
    pub const LOWER: [f64; DIM] = [-2.0, -5.0, -5.0, -5.0, -2.0];
    /// Upper bounds of the values.
    pub const UPPER: [f64; DIM] = [1.0, 5.0, 5.0, 5.0, 2.0];

    /// log₁₀ of t₀, k m₀, β, δ and σ at a point.
    pub fn values(point: &[f64]) -> [f64; DIM] {
        std::array::from_fn(|j| {
            Self::LOWER[j] + (Self::UPPER[j] - Self::LOWER[j]) / (1.0 + one::exp(-point[j]))
        })
    }
}

impl Target for Mrna {
    fn dim(&self) -> usize {
        DIM
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Posterior { x, out });
        Ok(())
    }
}

struct Posterior<'a> {
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Posterior<'_> {
    type Output = ();

    /// Eight rows at a time.
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for first in (0..self.x.rows()).step_by(WIDTH) {
            let rows = (self.x.rows() - first).min(WIDTH);
            let x = &self.x.as_slice()[first * DIM..(first + rows) * DIM];
            let x: [L; DIM] = std::array::from_fn(|j| L::load_column(x, DIM, j));
            let (log_likelihood, slopes) = likelihood(std::array::from_fn(|j| value(j, x[j])));
            let mut log_density = log_likelihood;
            let score = &mut self.out.score.as_mut_slice()[first * DIM..(first + rows) * DIM];
            // The two rates first, so that exchanging them changes no bit.
            let log_jacobians: [L; DIM] = std::array::from_fn(|j| -softplus(x[j]) - softplus(-x[j]));
            let rest = log_jacobians[0] + log_jacobians[1] + log_jacobians[4];
            log_density = log_density + ((log_jacobians[2] + log_jacobians[3]) + rest);
            for j in 0..DIM {
                let (above, below) = (sigmoid(x[j]), sigmoid(-x[j]));
                let slope = L::splat(Mrna::UPPER[j] - Mrna::LOWER[j]) * above * below * slopes[j];
                (slope + below - above).store_column(score, DIM, j);
            }
            let widths: f64 = (0..DIM).map(|j| one::ln(Mrna::UPPER[j] - Mrna::LOWER[j])).sum();
            (log_density + L::splat(widths)).store_some(&mut self.out.log_density[first..first + rows]);
        }
    }
}

/// Value j of a free coordinate.
#[inline(always)]
fn value<L: Lanes>(j: usize, x: L) -> L {
    L::splat(Mrna::UPPER[j] - Mrna::LOWER[j]).mul_add(sigmoid(x), L::splat(Mrna::LOWER[j]))
}

/// Log likelihood of values, and its derivative by each.
#[inline(always)]
fn likelihood<L: Lanes>(values: [L; DIM]) -> (L, [L; DIM]) {
    let ten_to = |value: L| exp(value * L::splat(LN_10));
    let [start, height, beta, delta, _] = values.map(ten_to);
    let (slow, fast) = (beta.min(delta), beta.max(delta));
    let zero = L::splat(0.0);
    let (mut squares, mut by_height, mut by_time, mut by_slow, mut by_fast) = (zero, zero, zero, zero, zero);
    for (i, seen) in FLUORESCENCE.iter().enumerate() {
        let since = L::splat(i as f64 * INTERVAL) - start;
        let has_begun = zero.lt(since);
        let shape = Shape::at(zero.max(since), slow, fast);
        let of = |part: L| L::select(has_begun, part, zero);
        let residual = L::splat(*seen) - height * of(shape.value);
        squares = residual.mul_add(residual, squares);
        by_height = residual.mul_add(of(shape.value), by_height);
        by_time = residual.mul_add(of(shape.by_time), by_time);
        by_slow = residual.mul_add(of(shape.by_slow), by_slow);
        by_fast = residual.mul_add(of(shape.by_fast), by_fast);
    }
    let count = L::splat(FLUORESCENCE.len() as f64);
    let precision = exp(values[4] * L::splat(-2.0 * LN_10));
    let scaled = squares * precision;
    let constant = L::splat(-0.5 * FLUORESCENCE.len() as f64 * LN_TAU);
    let log_likelihood = constant - count * L::splat(LN_10) * values[4] - L::splat(0.5) * scaled;
    let by_mean = height * precision * L::splat(LN_10);
    let is_slow = beta.lt(delta);
    let by_beta = L::select(is_slow, by_slow, by_fast);
    let by_delta = L::select(is_slow, by_fast, by_slow);
    let of_noise = (scaled - count) * L::splat(LN_10);
    let slopes = [
        -by_mean * start * by_time,
        by_mean * by_height,
        by_mean * beta * by_beta,
        by_mean * delta * by_delta,
        of_noise,
    ];
    (log_likelihood, slopes)
}

/// (e^{−aτ} − e^{−bτ}) / (b − a) for rates a ≤ b, and its derivatives.
struct Shape<L> {
    value: L,
    by_time: L,
    by_slow: L,
    by_fast: L,
}

impl<L: Lanes> Shape<L> {
    #[inline(always)]
    fn at(time: L, slow: L, fast: L) -> Self {
        let half = L::splat(0.5);
        let (near, apart) = (Self::of_near_rates(time, slow, fast), Self::of_rates_apart(time, slow, fast));
        let is_near = ((fast - slow) * time * half).lt(half);
        let pick = |near, apart| L::select(is_near, near, apart);
        Self {
            value: pick(near.value, apart.value),
            by_time: pick(near.by_time, apart.by_time),
            by_slow: pick(near.by_slow, apart.by_slow),
            by_fast: pick(near.by_fast, apart.by_fast),
        }
    }

    /// As it is written, where the difference loses nothing.
    #[inline(always)]
    fn of_rates_apart(time: L, slow: L, fast: L) -> Self {
        let (late, early) = (exp(-(slow * time)), exp(-(fast * time)));
        let gap = fast - slow;
        let value = (late - early) / gap;
        Self {
            value,
            by_time: (fast * early - slow * late) / gap,
            by_slow: (value - time * late) / gap,
            by_fast: (time * early - value) / gap,
        }
    }

    /// τ e^{−mτ} sinh(z)/z with the mean m of the rates and z = (b − a) τ/2 < ½, as a series in z².
    #[inline(always)]
    fn of_near_rates(time: L, slow: L, fast: L) -> Self {
        let half = L::splat(0.5);
        let (mean, z) = ((slow + fast) * half, (fast - slow) * time * half);
        let square = z * z;
        let (mut ratio, mut slope) = (L::splat(0.0), L::splat(0.0));
        for (k, coefficient) in ODD_FACTORIALS.iter().enumerate().rev() {
            ratio = ratio.mul_add(square, L::splat(*coefficient));
            if k > 0 {
                slope = slope.mul_add(square, L::splat(2.0 * k as f64 * coefficient));
            }
        }
        let decay = exp(-(mean * time));
        let value = time * decay * ratio;
        let half_time = half * time;
        let turned = time * decay * z * slope;
        Self {
            value,
            by_time: decay * (ratio + square * slope - mean * time * ratio),
            by_slow: -half_time * (value + turned),
            by_fast: half_time * (turned - value),
        }
    }
}

/// 1/(2k + 1)!.
const ODD_FACTORIALS: [f64; 8] = {
    let mut all = [1.0; 8];
    let mut k = 1;
    while k < 8 {
        all[k] = all[k - 1] / (2 * k * (2 * k + 1)) as f64;
        k += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(x: &[f64]) -> Evaluation {
        let x = Batch::from_vec(DIM, x.to_vec());
        let mut out = Evaluation::zeros(x.rows(), DIM);
        Mrna.evaluate(&x, &mut out).unwrap();
        out
    }

    #[test]
    fn exchanging_the_rates_changes_no_bit() {
        let out = evaluate(&[1.4, 0.6, -0.4, -0.1, -0.9, 1.4, 0.6, -0.1, -0.4, -0.9]);
        assert_eq!(out.log_density[0].to_bits(), out.log_density[1].to_bits());
        assert_eq!(out.score.row(0)[2].to_bits(), out.score.row(1)[3].to_bits());
    }

    /// Where the two formulas meet, and where rates are the same.
    #[test]
    fn near_rates_are_as_smooth_as_others() {
        let between = |a: f64, b: f64| {
            let out = evaluate(&[1.4, 0.6, -0.4, a, -0.9, 1.4, 0.6, -0.4, b, -0.9]);
            let slope = (out.log_density[1] - out.log_density[0]) / (b - a);
            (slope, 0.5 * (out.score.row(0)[3] + out.score.row(1)[3]))
        };
        for middle in [-0.4, -0.399, -0.41, -0.3, -0.2] {
            let (slope, score) = between(middle - 1e-5, middle + 1e-5);
            assert!((slope - score).abs() < 1e-6 * score.abs().max(1.0), "at {middle}: {slope} and {score}");
        }
    }

    #[test]
    fn far_away_it_is_finite() {
        for far in [-800.0, -40.0, 40.0, 800.0] {
            let out = evaluate(&[far; DIM]);
            assert!(
                out.log_density[0] < 0.0 && out.score.row(0).iter().all(|s| s.is_finite()),
                "{far}: {out:?}"
            );
        }
    }
}
