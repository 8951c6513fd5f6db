//! Densities exp(Σ aᵢ fᵢ) on a grid whose mean features are those of given samples: maximum likelihood.

use super::ordered;
use super::regression::solve_positive_definite;
use sterna::lanes::one::{exp, ln};

/// Features on a grid of equal cells.
pub(super) struct ExponentialFamily {
    dim: usize,
    /// The features of each cell.
    grid: Vec<Vec<f64>>,
}

/// A faint prior on the coefficients, relative to the weight of all samples: keeps them finite.
const PRIOR: f64 = 1e-5;

impl ExponentialFamily {
    /// `features` writes the `dim` features of a cell.
    pub(super) fn new<T>(
        dim: usize,
        cells: impl Iterator<Item = T>,
        features: impl Fn(&T, &mut [f64]),
    ) -> Self {
        let of = |cell: T| {
            let mut out = vec![0.0; dim];
            features(&cell, &mut out);
            out
        };
        Self { dim, grid: cells.map(of).collect() }
    }

    /// The coefficients for samples: Newton's method with halved steps on the likelihood, which is concave.
    pub(super) fn fit<T: Sync>(&self, samples: &[T], features: impl Fn(&T, &mut [f64]) + Sync) -> Vec<f64> {
        let mut moments = vec![0.0; self.dim];
        ordered::add_up(samples, 1, &mut moments, |sample, out| features(&sample[0], out));
        moments.iter_mut().for_each(|m| *m /= samples.len() as f64);
        let mut a = vec![0.0; self.dim];
        let mut best = self.objective(&moments, &a);
        for _ in 0..100 {
            let (gradient, hessian) = self.derivatives(&moments, &a);
            let Some(step) = solve_positive_definite(hessian, gradient) else { break };
            let before = best;
            let mut size = 1.0;
            while size > 1e-6 {
                let trial: Vec<f64> = a.iter().zip(&step).map(|(a, s)| a + size * s).collect();
                let value = self.objective(&moments, &trial);
                if value > best {
                    (a, best) = (trial, value);
                    break;
                }
                size *= 0.5;
            }
            if best - before < 1e-10 {
                break;
            }
        }
        a
    }

    /// The mass of each cell, of which a part `uniform` is spread evenly.
    pub(super) fn masses(&self, a: &[f64], uniform: f64) -> Vec<f64> {
        let (weights, total, _) = self.weights(a);
        let cells = self.grid.len() as f64;
        weights.iter().map(|w| (1.0 - uniform) * w / total + uniform / cells).collect()
    }

    /// exp(a · f − largest) of each cell, their sum, and the largest.
    fn weights(&self, a: &[f64]) -> (Vec<f64>, f64, f64) {
        let exponents: Vec<f64> = self.grid.iter().map(|f| dot(a, f)).collect();
        let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = exponents.iter().map(|e| exp(e - largest)).collect();
        let total = weights.iter().sum();
        (weights, total, largest)
    }

    /// Log-likelihood per sample: a · moments − log Z, less the prior.
    fn objective(&self, moments: &[f64], a: &[f64]) -> f64 {
        let (_, total, largest) = self.weights(a);
        dot(a, moments) - ln(total) - largest - 0.5 * PRIOR * dot(a, a)
    }

    /// Gradient, and minus the Hessian (its lower triangle).
    fn derivatives(&self, moments: &[f64], a: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let (weights, total, _) = self.weights(a);
        let mut mean = vec![0.0; self.dim];
        let mut second: Vec<Vec<f64>> = (0..self.dim).map(|i| vec![0.0; i + 1]).collect();
        for (f, w) in self.grid.iter().zip(&weights) {
            let w = w / total;
            if w < 1e-12 {
                continue;
            }
            for (i, row) in second.iter_mut().enumerate() {
                let scaled = w * f[i];
                mean[i] += scaled;
                row.iter_mut().zip(f).for_each(|(s, f)| *s += scaled * f);
            }
        }
        for (i, row) in second.iter_mut().enumerate() {
            row.iter_mut().zip(&mean).for_each(|(s, m)| *s -= mean[i] * m);
            row[i] += PRIOR;
        }
        let gradient = (0..self.dim).map(|i| moments[i] - mean[i] - PRIOR * a[i]).collect();
        (gradient, second)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
