//! Normals with diagonal precision: everything about them is known in closed form.

use crate::call::Scratch;
use crate::lanes::one::{LN_TAU, ln};
use crate::lanes::{Kernel, Lanes, dispatch, for_each_chunk};
use crate::streams::RowStream;
use crate::transport::EnergyModel;
use crate::{Batch, Evaluation, Result, Target};

/// π̃(x) = (2π)^{−d/2} exp(−½ Σ λⱼ (xⱼ − mⱼ)²), so log Z = −½ Σ log λⱼ.
///
/// ```
/// use sterna::{Target, targets::Normal};
/// let normal = Normal::isotropic(4, 10.0);
/// assert!((normal.log_z().unwrap() + 2.0 * 10f64.ln()).abs() < 1e-15);
/// assert!((Normal::global_barrier(4, 10.0) - 0.75 * 10f64.ln()).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct Normal {
    mean: Vec<f64>,
    precision: Vec<f64>,
}

impl Normal {
    /// # Panics
    /// If the lengths differ, are zero, or a precision is not positive.
    pub fn new(mean: Vec<f64>, precision: Vec<f64>) -> Self {
        assert!(mean.len() == precision.len() && !mean.is_empty());
        assert!(precision.iter().all(|&p| p > 0.0 && p.is_finite()));
        Self { mean, precision }
    }

    /// Mean zero, one precision.
    pub fn isotropic(dim: usize, precision: f64) -> Self {
        Self::new(vec![0.0; dim], vec![precision; dim])
    }

    /// Mean.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Precision λ of each coordinate.
    pub fn precision(&self) -> &[f64] {
        &self.precision
    }

    /// Λ of the geometric path from N(0, I) to N(0, I/precision):
    /// 2^{2−d}/B(d/2, d/2) · ½ |log precision|.
    pub fn global_barrier(dim: usize, precision: f64) -> f64 {
        // 2^{2−d}/B(d/2, d/2) by B(a+1, a+1) = B(a, a) · a/(2(2a+1)), from B(½, ½) = π and B(1, 1) = 1.
        let (mut a, mut factor) = if dim % 2 == 1 { (0.5, 2.0 / std::f64::consts::PI) } else { (1.0, 1.0) };
        while a + 0.5 < dim as f64 / 2.0 {
            factor *= (2.0 * a + 1.0) / (2.0 * a);
            a += 1.0;
        }
        factor * 0.5 * ln(precision).abs()
    }
}

/// √s X + √(1−s) Z is normal with mean √s m and variance s/λ + 1 − s (§5.3); it keeps the mass of π̃.
impl EnergyModel for Normal {
    fn evaluate(&self, times: &[f64], x: &Batch, out: &mut Evaluation, _scratch: &mut Scratch) -> Result<()> {
        for (i, &s) in times.iter().enumerate() {
            let mut sum = 0.0;
            for (j, (x, score)) in x.row(i).iter().zip(out.score.row_mut(i)).enumerate() {
                let variance = s / self.precision[j] + 1.0 - s;
                let shift = x - s.sqrt() * self.mean[j];
                *score = -shift / variance;
                sum += shift * shift / variance + ln(variance * self.precision[j]);
            }
            out.log_density[i] = -0.5 * (sum + x.dim() as f64 * LN_TAU);
        }
        Ok(())
    }

    fn log_z_reference(&self) -> f64 {
        self.log_z().expect("known")
    }
}

impl Target for Normal {
    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        dispatch(Parabola { normal: self, x, out });
        Ok(())
    }

    fn log_z(&self) -> Option<f64> {
        Some(-0.5 * self.precision.iter().map(|p| ln(*p)).sum::<f64>())
    }

    fn diffused(&self) -> Option<&dyn EnergyModel> {
        Some(self)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        for ((x, m), p) in x.iter_mut().zip(&self.mean).zip(&self.precision) {
            *x = m + stream.normal() / p.sqrt();
        }
        true
    }
}

struct Parabola<'a> {
    normal: &'a Normal,
    x: &'a Batch,
    out: &'a mut Evaluation,
}

impl Kernel for Parabola<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        let dim = self.x.dim();
        let constant = -0.5 * dim as f64 * LN_TAU;
        for i in 0..self.x.rows() {
            let mut sum = L::splat(0.0);
            let score = self.out.score.row_mut(i);
            for_each_chunk!(dim, |range| {
                let shift = L::load_some(&self.x.row(i)[range.clone()])
                    - L::load_some(&self.normal.mean[range.clone()]);
                let pull = shift * L::load_some(&self.normal.precision[range.clone()]);
                sum = shift.mul_add(pull, sum);
                (-pull).store_some(&mut score[range]);
            });
            self.out.log_density[i] = constant - 0.5 * sum.sum();
        }
    }
}
