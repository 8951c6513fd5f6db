//! Transports in closed form: no training, everything about them can be checked exactly. An affine map between
//! neighbouring chains that matches their means and covariances (§5.1), and monotone maps of each coordinate.

mod monotone;
mod smooth;

use crate::lanes::one::ln;
pub use monotone::Monotone;

use crate::call::Scratch;
use crate::transport::{Flow, Interval};
use crate::{Batch, Error, Result};
use std::cell::RefCell;

/// x ↦ m′ + L′ L⁻¹ (x − m), with mean m and covariance L Lᵀ of each chain.
///
/// ```
/// use sterna::{Batch, call::Scratch, transport::{Flow, Interval}, transports::Affine};
/// // N(0, 1) to N(3, 2²).
/// let moments = vec![(vec![0.0], vec![1.0]), (vec![3.0], vec![4.0])];
/// let affine = Affine::diagonal(vec![0.0, 1.0], moments).unwrap();
/// let (mut x, mut log_det) = (Batch::from_vec(1, vec![1.0]), vec![0.0]);
/// affine.forward(&[Interval { lower: 0.0, upper: 1.0 }], &mut x, &mut log_det, &mut Scratch::default()).unwrap();
/// assert_eq!((x.row(0)[0], log_det[0]), (5.0, 2f64.ln()));
/// ```
#[derive(Clone, Debug)]
pub struct Affine {
    betas: Vec<f64>,
    means: Vec<Vec<f64>>,
    /// Lower-triangular factors, row-major; only the diagonal if `diagonal`.
    factors: Vec<Vec<f64>>,
    diagonal: bool,
}

impl Affine {
    /// From (mean, variances) of each chain.
    pub fn diagonal(betas: Vec<f64>, moments: Vec<(Vec<f64>, Vec<f64>)>) -> Result<Self> {
        let (means, variances): (Vec<_>, Vec<_>) = moments.into_iter().unzip();
        if let Some(v) = variances.iter().flatten().find(|v| !(**v > 0.0 && v.is_finite())) {
            let cure = "every coordinate must vary on every chain";
            return Err(Error::Setting { setting: "Affine.variance", value: v.to_string(), cure });
        }
        let factors = variances.iter().map(|v: &Vec<f64>| v.iter().map(|v| v.sqrt()).collect()).collect();
        Ok(Self { betas, means, factors, diagonal: true })
    }

    /// From (mean, covariance, row-major) of each chain.
    pub fn full(betas: Vec<f64>, moments: Vec<(Vec<f64>, Vec<f64>)>) -> Result<Self> {
        let (means, covariances): (Vec<_>, Vec<_>) = moments.into_iter().unzip();
        let factors = covariances.iter().map(|c: &Vec<f64>| cholesky(c)).collect::<Option<_>>();
        Ok(Self { betas, means, factors: factors.ok_or_else(singular)?, diagonal: false })
    }

    /// Moment-matched to samples of each chain.
    pub fn fit(betas: &[f64], samples: &[Batch], full: bool) -> Result<Self> {
        let moments = samples.iter().map(|s| moments(s, full)).collect();
        if full { Self::full(betas.to_vec(), moments) } else { Self::diagonal(betas.to_vec(), moments) }
    }

    /// The same for other chains. Between two that it was fitted to, precisions and precisions times means are taken as linear in β,
    /// as they are between normals.
    pub fn at(&self, betas: &[f64]) -> Result<Self> {
        let (means, factors) = betas.iter().map(|&beta| self.moments_at(beta)).collect::<Result<_>>()?;
        Ok(Self { betas: betas.to_vec(), means, factors, diagonal: self.diagonal })
    }

    /// Mean and factor of a chain at β.
    fn moments_at(&self, beta: f64) -> Result<(Vec<f64>, Vec<f64>)> {
        let above = self.betas.partition_point(|&b| b < beta);
        let known = |chain: usize| (self.means[chain].clone(), self.factors[chain].clone());
        match self.betas.get(above) {
            Some(&b) if b == beta => return Ok(known(above)),
            Some(_) if above > 0 => {}
            _ => return self.chain(beta).map(known),
        }
        let [a, b] = [above - 1, above].map(|chain| self.precision(chain));
        let along = (beta - self.betas[above - 1]) / (self.betas[above] - self.betas[above - 1]);
        let between = |(a, b): (Vec<f64>, Vec<f64>)| -> Vec<f64> {
            a.iter().zip(&b).map(|(a, b)| a + along * (b - a)).collect()
        };
        let (precision, pull) = (between((a.0, b.0)), between((a.1, b.1)));
        if self.diagonal {
            let mean = pull.iter().zip(&precision).map(|(pull, p)| pull / p).collect();
            return Ok((mean, precision.iter().map(|p| p.sqrt().recip()).collect()));
        }
        let covariance = cholesky(&precision).map(|factor| inverse(&factor));
        let factor = covariance.as_ref().and_then(|covariance| cholesky(covariance));
        match (covariance, factor) {
            (Some(covariance), Some(factor)) => Ok((times(&covariance, &pull), factor)),
            _ => Err(singular()),
        }
    }

    /// The precision of a chain, and its product with the mean.
    fn precision(&self, chain: usize) -> (Vec<f64>, Vec<f64>) {
        let (mean, factor) = (&self.means[chain], &self.factors[chain]);
        if self.diagonal {
            let precision: Vec<f64> = factor.iter().map(|f| (f * f).recip()).collect();
            let pull = precision.iter().zip(mean).map(|(p, m)| p * m).collect();
            return (precision, pull);
        }
        let precision = inverse(factor);
        let pull = times(&precision, mean);
        (precision, pull)
    }

    fn chain(&self, beta: f64) -> Result<usize> {
        let found = self.betas.binary_search_by(|b| b.total_cmp(&beta));
        let cure = "the map was fitted to other chains; fit it to this schedule";
        found.map_err(|_| Error::Setting { setting: "Affine.betas", value: beta.to_string(), cure })
    }

    /// Maps a row from the moments of one chain to those of another; returns log|det|.
    fn map(&self, from: usize, to: usize, x: &mut [f64]) -> f64 {
        let dim = x.len();
        let (a, b) = (&self.factors[from], &self.factors[to]);
        let (m, m2) = (&self.means[from], &self.means[to]);
        if self.diagonal {
            let mut log_det = 0.0;
            for j in 0..dim {
                let scale = b[j] / a[j];
                x[j] = m2[j] + scale * (x[j] - m[j]);
                log_det += ln(scale);
            }
            return log_det;
        }
        thread_local! {
            static WHITE: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
        }
        WHITE.with_borrow_mut(|white| {
            white.resize(dim, 0.0);
            let mut log_det = 0.0;
            // L z = x − m, then x′ = m′ + L′ z.
            for i in 0..dim {
                let known: f64 = (0..i).map(|j| a[i * dim + j] * white[j]).sum();
                white[i] = (x[i] - m[i] - known) / a[i * dim + i];
                log_det += ln(b[i * dim + i] / a[i * dim + i]);
            }
            for i in 0..dim {
                x[i] = m2[i] + (0..=i).map(|j| b[i * dim + j] * white[j]).sum::<f64>();
            }
            log_det
        })
    }
}

impl Flow for Affine {
    fn forward(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            log_det[i] = self.map(self.chain(pair.lower)?, self.chain(pair.upper)?, x.row_mut(i));
        }
        Ok(())
    }

    fn inverse(
        &self,
        pairs: &[Interval],
        x: &mut Batch,
        log_det: &mut [f64],
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, pair) in pairs.iter().enumerate() {
            log_det[i] = self.map(self.chain(pair.upper)?, self.chain(pair.lower)?, x.row_mut(i));
        }
        Ok(())
    }
}

/// Mean, and variances or covariance.
fn moments(samples: &Batch, full: bool) -> (Vec<f64>, Vec<f64>) {
    let (n, dim) = (samples.rows() as f64, samples.dim());
    let mut mean = vec![0.0; dim];
    for row in samples.iter_rows() {
        mean.iter_mut().zip(row).for_each(|(m, x)| *m += x / n);
    }
    let mut second = vec![0.0; if full { dim * dim } else { dim }];
    for row in samples.iter_rows() {
        for i in 0..dim {
            let di = (row[i] - mean[i]) / (n - 1.0);
            if full {
                (0..dim).for_each(|j| second[i * dim + j] += di * (row[j] - mean[j]));
            } else {
                second[i] += di * (row[i] - mean[i]);
            }
        }
    }
    (mean, second)
}

fn singular() -> Error {
    let cure = "a covariance must be positive definite: collect more samples, or use the diagonal";
    Error::Setting { setting: "Affine.covariance", value: "singular".into(), cure }
}

/// (L Lᵀ)⁻¹ of a lower-triangular factor, row-major: its columns solve L Lᵀ x = e.
fn inverse(factor: &[f64]) -> Vec<f64> {
    let dim = factor.len().isqrt();
    let (mut out, mut x) = (vec![0.0; factor.len()], vec![0.0; dim]);
    for column in 0..dim {
        for i in 0..dim {
            let known: f64 = (0..i).map(|j| factor[i * dim + j] * x[j]).sum();
            x[i] = (f64::from(u8::from(i == column)) - known) / factor[i * dim + i];
        }
        for i in (0..dim).rev() {
            let known: f64 = (i + 1..dim).map(|j| factor[j * dim + i] * x[j]).sum();
            x[i] = (x[i] - known) / factor[i * dim + i];
        }
        (0..dim).for_each(|i| out[i * dim + column] = x[i]);
    }
    out
}

/// A square matrix times a vector.
fn times(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

/// L with L Lᵀ = `a`, row-major; none if `a` is not positive definite.
fn cholesky(a: &[f64]) -> Option<Vec<f64>> {
    let dim = a.len().isqrt();
    let mut l = vec![0.0; a.len()];
    for i in 0..dim {
        for j in 0..=i {
            let rest = a[i * dim + j] - (0..j).map(|k| l[i * dim + k] * l[j * dim + k]).sum::<f64>();
            l[i * dim + j] = if i == j { rest.sqrt() } else { rest / l[j * dim + j] };
        }
        if !(l[i * dim + i] > 0.0 && l[i * dim + i].is_finite()) {
            return None;
        }
    }
    Some(l)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Phase, Streams};

    fn draws(rows: usize, dim: usize, seed: u64) -> Batch {
        let mut x = Batch::zeros(rows, dim);
        let keys: Vec<u32> = (0..rows as u32).collect();
        Streams::new(seed).normals(Phase::Check, 0, &keys, &mut x);
        x
    }

    #[test]
    fn fitted_maps_carry_moments_and_invert() {
        let a = draws(500, 3, 1);
        let mut b = draws(500, 3, 2);
        for i in 0..500 {
            let row = b.row_mut(i);
            row[1] = 3.0 * row[1] + 2.0 * row[0] - 1.0;
        }
        for full in [false, true] {
            let affine = Affine::fit(&[0.0, 1.0], &[a.clone(), b.clone()], full).unwrap();
            let pairs = vec![Interval { lower: 0.0, upper: 1.0 }; 500];
            let (mut x, mut up, mut down) = (a.clone(), vec![0.0; 500], vec![0.0; 500]);
            affine.forward(&pairs, &mut x, &mut up, &mut Scratch::default()).unwrap();
            let (carried, wanted) = (moments(&x, full), moments(&b, full));
            for (p, q) in carried.0.iter().zip(&wanted.0).chain(carried.1.iter().zip(&wanted.1)) {
                assert!((p - q).abs() < 1e-12);
            }
            affine.inverse(&pairs, &mut x, &mut down, &mut Scratch::default()).unwrap();
            for (p, q) in x.as_slice().iter().zip(a.as_slice()) {
                assert!((p - q).abs() < 1e-12);
            }
            assert!(up.iter().zip(&down).all(|(u, d)| (u + d).abs() < 1e-12));
        }
    }

    /// Between N(0, I) and a normal every chain is a normal, whose precision is linear in β.
    #[test]
    fn chains_in_between_are_those_of_normals() {
        let (mean, precision) = ([1.0, -2.0], [2.0, 0.6, 0.6, 1.0]);
        let exact = |beta: f64| {
            let one = [1.0, 0.0, 0.0, 1.0];
            let mixed: Vec<f64> = (0..4).map(|i| one[i] + beta * (precision[i] - one[i])).collect();
            let pull: Vec<f64> = times(&precision, &mean).iter().map(|p| beta * p).collect();
            let covariance = inverse(&cholesky(&mixed).unwrap());
            (times(&covariance, &pull), covariance)
        };
        let (known, wanted) = ([0.0, 0.3, 1.0], [0.0, 0.1, 0.3, 0.7, 1.0]);
        let full = |betas: &[f64]| Affine::full(betas.to_vec(), betas.iter().map(|&b| exact(b)).collect());
        let (moved, direct) = (full(&known).unwrap().at(&wanted).unwrap(), full(&wanted).unwrap());
        let close = |a: &[Vec<f64>], b: &[Vec<f64>]| {
            a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-12)
        };
        assert!(close(&moved.means, &direct.means) && close(&moved.factors, &direct.factors));
        // One coordinate of it, N(0, 1) to N(3, 1/4).
        let alone = |beta: f64| {
            let p = 1.0 + 3.0 * beta;
            (vec![beta * 12.0 / p], vec![p.recip()])
        };
        let diagonal =
            |betas: &[f64]| Affine::diagonal(betas.to_vec(), betas.iter().map(|&b| alone(b)).collect());
        let (moved, direct) = (diagonal(&known).unwrap().at(&wanted).unwrap(), diagonal(&wanted).unwrap());
        assert!(close(&moved.means, &direct.means) && close(&moved.factors, &direct.factors));
        // Not beyond what is known.
        assert!(diagonal(&known).unwrap().at(&[0.0, 1.5]).is_err());
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let flat = Batch::zeros(10, 2);
        assert!(Affine::fit(&[0.0, 1.0], &[flat.clone(), flat.clone()], false).is_err());
        assert!(Affine::fit(&[0.0, 1.0], &[flat.clone(), flat], true).is_err());
        let affine = Affine::diagonal(vec![0.0, 1.0], vec![(vec![0.0], vec![1.0]); 2]).unwrap();
        let elsewhere = [Interval { lower: 0.0, upper: 0.5 }];
        assert!(
            affine.forward(&elsewhere, &mut Batch::zeros(1, 1), &mut [0.0], &mut Scratch::default()).is_err()
        );
    }
}
