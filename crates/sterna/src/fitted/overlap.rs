//! How often a draw of a mixture would be taken for one of the target, from draws of the target alone.

use super::Mixture;
use super::numbers::shares;
use crate::Batch;

/// Draws that are compared with each other, at most.
const MOST: usize = 400;

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
        let stride = draws.rows().div_ceil(MOST).max(1);
        let gaps: Vec<f64> =
            self.gaps(draws, log_target).into_iter().step_by(stride).filter(|g| !g.is_nan()).collect();
        let mut weights: Vec<f64> = gaps.iter().map(|gap| -gap).collect();
        if shares(&mut weights) == f64::NEG_INFINITY {
            return 1.0;
        }
        let accepted = |gap: &f64| gaps.iter().map(|other| (gap - other).min(0.0).exp()).sum::<f64>();
        let all: f64 = gaps.iter().zip(&weights).map(|(gap, weight)| weight * accepted(gap)).sum();
        1.0 - all / gaps.len() as f64
    }

    /// Draws of this mixture as draws of the target: chosen at equal steps of their weights π/η, as many as these are worth, at
    /// most `most`; those chosen more than once follow each other.
    ///
    /// ```
    /// use sterna::{Batch, fitted::{Mixture, Shape}};
    /// let mixture = Mixture::normal(vec![0.0], Shape::Diagonal(vec![1.0])).unwrap();
    /// let draws = Batch::from_vec(1, vec![-1.0, 0.0, 0.5, 1.0]);
    /// // The target is the mixture, of which nothing lies below zero.
    /// let log_target: Vec<f64> =
    ///     draws.iter_rows().map(|x| if x[0] < 0.0 { f64::NEG_INFINITY } else { -0.5 * x[0] * x[0] }).collect();
    /// assert_eq!(mixture.recycle(&draws, &log_target, 10).as_slice(), [0.0, 0.5, 1.0]);
    /// assert_eq!(mixture.recycle(&draws, &log_target, 1).as_slice(), [0.5]);
    /// ```
    pub fn recycle(&self, draws: &Batch, log_target: &[f64], most: usize) -> Batch {
        let gaps = self.gaps(draws, log_target).into_iter();
        let mut weights: Vec<f64> = gaps.map(|g| if g.is_nan() { f64::NEG_INFINITY } else { g }).collect();
        let mut chosen = Vec::new();
        if shares(&mut weights) > f64::NEG_INFINITY {
            let worth = 1.0 / weights.iter().map(|w| w * w).sum::<f64>();
            let count = most.min((worth + 1e-9) as usize);
            let mut sum = 0.0;
            for (x, weight) in draws.iter_rows().zip(&weights) {
                sum += weight * count as f64;
                while chosen.len() < count * self.dim() && sum > (chosen.len() / self.dim()) as f64 + 0.5 {
                    chosen.extend_from_slice(x);
                }
            }
        }
        Batch::from_vec(self.dim(), chosen)
    }
}
