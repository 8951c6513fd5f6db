//! How often a draw of a mixture would be taken for one of the target, from draws of the target alone.

use super::Mixture;
use super::numbers::shares;
use crate::Batch;
use crate::lanes::one::exp;

/// Draws that are compared with each other, at most.
const MOST: usize = 400;

/// Swaps that a draw waits for at most: by then local moves have brought it elsewhere.
const LONGEST: f64 = 50.0;

impl Mixture {
    /// Rejection rate of swaps between this mixture and a target of which there are draws.
    ///
    /// With g = log π − log η, a swap of x ~ π and y ~ η is accepted with probability min(1, e^{g(y) − g(x)}); draws of π stand
    /// for those of η, each weighed by e^{−g}.
    ///
    /// ```
    /// use sterna::{Batch, Streams, streams::Phase, fitted::{Mixture, Shape}};
    /// let mut draws = Batch::zeros(400, 1);
    /// Streams::new(1).normals(Phase::Check, 0, &(0..400).collect::<Vec<_>>(), &mut draws);
    /// let log_target: Vec<f64> = draws.iter_rows().map(|x| -0.5 * x[0] * x[0]).collect();
    /// let rejection = |mean: f64| {
    ///     let mixture = Mixture::normal(vec![mean], Shape::Diagonal(vec![1.0])).unwrap();
    ///     mixture.rejection(&draws, &log_target)
    /// };
    /// assert!(rejection(0.0) < 1e-12);
    /// // Two unit normals at a distance of 1: erf(1/2).
    /// assert!((rejection(1.0) - 0.5205).abs() < 0.1);
    /// ```
    pub fn rejection(&self, draws: &Batch, log_target: &[f64]) -> f64 {
        let Some(accepted) = self.accepted(draws, log_target) else { return 1.0 };
        1.0 - accepted.iter().sum::<f64>() / accepted.len() as f64
    }

    /// How many swaps a draw of the target waits on average until one is accepted, each draw no longer than so many: those in
    /// tails that the mixture is too narrow for wait longest, and cost most.
    pub(crate) fn waiting(&self, draws: &Batch, log_target: &[f64]) -> f64 {
        let Some(accepted) = self.accepted(draws, log_target) else { return LONGEST };
        accepted.iter().map(|a| (1.0 / a).min(LONGEST)).sum::<f64>() / accepted.len() as f64
    }

    /// The chance of each of some draws that a swap with a draw of this mixture is accepted; none where nothing is known.
    fn accepted(&self, draws: &Batch, log_target: &[f64]) -> Option<Vec<f64>> {
        let stride = draws.rows().div_ceil(MOST).max(1);
        let gaps: Vec<f64> =
            self.gaps(draws, log_target).into_iter().step_by(stride).filter(|g| !g.is_nan()).collect();
        let mut weights: Vec<f64> = gaps.iter().map(|gap| -gap).collect();
        if shares(&mut weights) == f64::NEG_INFINITY {
            return None;
        }
        let of = |gap: &f64| {
            let each = gaps.iter().zip(&weights);
            each.map(|(other, weight)| weight * exp((other - gap).min(0.0))).sum::<f64>()
        };
        Some(gaps.iter().map(of).collect())
    }
}
