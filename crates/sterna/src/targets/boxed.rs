//! Likelihoods on a box, as nested samplers have them: coordinates are N(0, 1) each, and their distribution function leads to the
//! box, so that the prior is uniform there and log Z is the log evidence.

use crate::lanes::one::{LN_TAU, exp};
use crate::priors::normal_distribution;
use crate::{Batch, Evaluation, Result, Target};
use std::cell::Cell;
use std::f64::consts::TAU;

/// A log likelihood of values in a box, the same for every coordinate.
pub trait Likelihood: Send + Sync {
    /// How many values.
    fn dim(&self) -> usize;

    /// Lower and upper bound of each value.
    fn bounds(&self) -> [f64; 2];

    /// The log likelihood; its derivatives are written.
    fn evaluate(&self, values: &[f64], slopes: &mut [f64]) -> f64;

    /// log of the likelihood's mean over the box.
    fn log_z(&self) -> f64;
}

/// The posterior of a likelihood in its box, with the prior N(0, I) in free coordinates.
///
/// ```
/// use sterna::{Target, targets::{Boxed, Shells}};
/// let shells = Boxed::new(Shells::new(10));
/// assert!((shells.log_z().unwrap() + 14.590491).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct Boxed<T> {
    likelihood: T,
}

thread_local! {
    /// Values of a point.
    static VALUES: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl<T: Likelihood> Boxed<T> {
    /// Uniform in the box of the likelihood.
    pub fn new(likelihood: T) -> Self {
        Self { likelihood }
    }

    /// Values at a point.
    pub fn values(&self, point: &[f64], values: &mut [f64]) {
        let [lower, upper] = self.likelihood.bounds();
        for (value, x) in values.iter_mut().zip(point) {
            *value = lower + (upper - lower) * normal_distribution(*x);
        }
    }
}

impl<T: Likelihood> Target for Boxed<T> {
    fn dim(&self) -> usize {
        self.likelihood.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let [lower, upper] = self.likelihood.bounds();
        let density = (upper - lower) / TAU.sqrt();
        let mut values = VALUES.take();
        values.resize(self.dim(), 0.0);
        for i in 0..x.rows() {
            let (x, score) = (x.row(i), out.score.row_mut(i));
            self.values(x, &mut values);
            let log_likelihood = self.likelihood.evaluate(&values, score);
            let mut squares = 0.0;
            for (score, x) in score.iter_mut().zip(x) {
                *score = *score * density * exp(-0.5 * x * x) - x;
                squares += x * x;
            }
            out.log_density[i] = log_likelihood - 0.5 * (squares + x.len() as f64 * LN_TAU);
        }
        VALUES.set(values);
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(self.likelihood.log_z())
    }
}

/// ∫ of a smooth function by Simpson's rule.
pub(super) fn integral([from, to]: [f64; 2], pieces: u32, f: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / f64::from(2 * pieces);
    let weight = |i| if i == 0 || i == 2 * pieces { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    (0..=2 * pieces).map(|i| weight(i) * f(from + step * f64::from(i))).sum::<f64>() * step / 3.0
}

/// Share of N(mean, width²) between two bounds.
pub(super) fn share([lower, upper]: [f64; 2], mean: f64, width: f64) -> f64 {
    normal_distribution((upper - mean) / width) - normal_distribution((lower - mean) / width)
}

/// log(eᵃ + eᵇ), and the share of the first.
pub(super) fn log_sum(a: f64, b: f64) -> (f64, f64) {
    let top = a.max(b);
    let (first, second) = (exp(a - top), exp(b - top));
    (top + crate::lanes::one::ln(first + second), first / (first + second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};
    use crate::targets::{CorrelatedNormal, Eggbox, LogGamma, Rosenbrock, Shells, SpikeAndSlab};

    /// Truths that were computed by other means (`scripts/compare/densities.py`: adaptive quadrature, SciPy's laws).
    #[test]
    fn log_z_is_what_others_find() {
        let of = |likelihood: &dyn Likelihood, truth: f64| {
            let found = likelihood.log_z();
            assert!((found - truth).abs() < 2e-6, "{found} and {truth}");
        };
        of(&Shells::new(2), -1.745642);
        of(&Shells::new(10), -14.590491);
        of(&Shells::new(30), -60.127767);
        of(&Eggbox, 235.855940);
        of(&LogGamma::new(10), -0.000023);
        of(&Rosenbrock::new(10), -29.995788);
        of(&CorrelatedNormal::new(25), -57.564642);
        of(&SpikeAndSlab::new(10), -6.931914);
    }

    /// The mean of the likelihood over uniform draws in the box, where few dimensions allow it, within 5 standard errors; without the
    /// volume of the box it is far off.
    #[test]
    fn log_z_is_the_mean_over_the_box() {
        let check = |likelihood: &dyn Likelihood, wrong: f64| {
            let (dim, [lower, upper], rows) = (likelihood.dim(), likelihood.bounds(), 400_000);
            let (mut values, mut slopes) = (vec![0.0; dim], vec![0.0; dim]);
            let (mut sum, mut squares) = (0.0, 0.0);
            let log_z = likelihood.log_z() + wrong;
            for row in 0..rows {
                let mut stream = Streams::new(3).row(Phase::Check, 0, row);
                values.iter_mut().for_each(|value| *value = lower + (upper - lower) * stream.uniform());
                let ratio = (likelihood.evaluate(&values, &mut slopes) - log_z).exp();
                sum += ratio;
                squares += ratio * ratio;
            }
            let n = f64::from(rows);
            let error = ((squares / n - (sum / n).powi(2)) / n).sqrt();
            ((sum / n - 1.0) / error).abs() < 5.0
        };
        for likelihood in
            [&Shells::new(2) as &dyn Likelihood, &Eggbox, &LogGamma::new(2), &Rosenbrock::new(2)]
        {
            assert!(check(likelihood, 0.0));
            assert!(!check(likelihood, likelihood.bounds()[1].max(2.0).ln()));
        }
        assert!(check(&CorrelatedNormal::new(2), 0.0) && check(&SpikeAndSlab::new(1), 0.0));
    }
}
