//! Paths of K Gaussian steps: what controlled diffusions (§5.2) and diffusion models (§5.3) share.
//!
//! Step k goes from x_{k−1} to x_k by P and back by Q, both Gaussian, with variances p_k and q_k. Where
//! these differ the normalisers stay (errata E8):
//!
//! log w = log π̃ⁿ(x_K) − log π̃ⁿ⁻¹(x_0)
//!       + Σ_k |x_k − mean_P(x_{k−1})|² / (2 p_k) − |x_{k−1} − mean_Q(x_k)|² / (2 q_k) + (d/2) log(p_k / q_k).
//!
//! Each point is evaluated once; its score and its control serve the kernel that leaves it and the one that
//! returns: K evaluations and K + 1 controls a journey, whose start comes evaluated.

use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Rows, Scratch};
use crate::lanes::{Kernel, Lanes, dispatch};
use crate::path::Points;
use crate::streams::Phase;
use crate::weight::step_log_ratio;
use crate::{Batch, Result, for_each_chunk};

/// The two means and the variance of each step. `k` runs from 1 to K.
pub trait GaussianSteps: Send + Sync {
    /// K ≥ 1.
    fn steps(&self) -> usize;

    /// β at which x_k of each row is evaluated, k = 0..=K; the ends are those of the interval.
    fn betas(&self, rows: &Rows, k: usize, out: &mut [f64]);

    /// Variance of P_k for each row: strictly positive.
    fn variances(&self, rows: &Rows, k: usize, out: &mut [f64]);

    /// Variance of Q_{k−1} for each row: strictly positive. By default that of P_k.
    fn backward_variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        self.variances(rows, k, out);
    }

    /// Writes what both means need of x_k beside its score, k = 0..=K: a drift, where there is one.
    fn control(
        &self,
        _rows: &Rows,
        _k: usize,
        _points: &Points,
        _out: &mut Batch,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        Ok(())
    }

    /// mean_P(x_{k−1}) from points and their control at k − 1.
    fn forward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()>;

    /// mean_Q(x_k) from points and their control at k.
    fn backward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()>;
}

/// K Gaussian steps as an accelerator.
#[derive(Clone)]
pub struct Gaussian<S> {
    /// The kernels.
    pub steps: S,
}

/// What the steps of a call need; kept for the next one.
#[derive(Default)]
struct Memory {
    /// β that a step works at, one per row.
    beta: Vec<f64>,
    /// Log-ratio of returning to going so far, one per row.
    log_ratio: Vec<f64>,
    /// Variance of a step, one per row.
    variance: Vec<f64>,
    /// Variance of the step that returns, one per row.
    return_variance: Vec<f64>,
    noise: Batch,
    /// Points before a step.
    before: Batch,
    /// Mean of a step.
    mean: Batch,
    /// What steers a step: a drift, where there is one.
    control: Batch,
    of_steps: Scratch,
}

impl Memory {
    fn set_size(&mut self, rows: usize, dim: usize) {
        let Self { beta, log_ratio, variance, return_variance, noise, before, mean, control, .. } = self;
        for vector in [beta, log_ratio, variance, return_variance] {
            vector.resize(rows, 0.0);
        }
        for matrix in [noise, before, mean, control] {
            matrix.set_size(rows, dim);
        }
    }
}

impl<S: GaussianSteps> Accelerator for Gaussian<S> {
    fn steps(&self) -> usize {
        self.steps.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Journey { points, log_weight } = journey;
        let memory = scratch.get::<Memory>();
        memory.set_size(points.rows(), points.x.dim());
        let Memory { beta, log_ratio, variance, return_variance, noise, before, mean, control, of_steps } =
            memory;
        let rows = call.rows;
        let last = self.steps.steps();
        log_weight.copy_from_slice(&points.log_density);
        log_ratio.fill(0.0);
        let start = if direction == Direction::Forward { 0 } else { last };
        self.steps.control(rows, start, points, control, of_steps)?;
        for n in 1..=last {
            // The step walked, the point it ends at, and the phase its noise is keyed by.
            let (k, to, phase) = match direction {
                Direction::Forward => (n, n, Phase::Forward),
                Direction::Backward => (last + 1 - n, last - n, Phase::Backward),
            };
            call.normals(phase.number(k), noise);
            match direction {
                Direction::Forward => {
                    self.steps.variances(rows, k, variance);
                    self.steps.backward_variances(rows, k, return_variance);
                }
                Direction::Backward => {
                    self.steps.backward_variances(rows, k, variance);
                    self.steps.variances(rows, k, return_variance);
                }
            }
            self.steps.betas(rows, to, beta);
            match direction {
                Direction::Forward => self.steps.forward_means(rows, k, points, control, mean)?,
                Direction::Backward => self.steps.backward_means(rows, k, points, control, mean)?,
            }
            dispatch(Walk { mean, variance, noise, x: &mut points.x, before });
            call.path.evaluate(beta, points)?;
            self.steps.control(rows, to, points, control, of_steps)?;
            match direction {
                Direction::Forward => self.steps.backward_means(rows, k, points, control, mean)?,
                Direction::Backward => self.steps.forward_means(rows, k, points, control, mean)?,
            }
            dispatch(Weigh { mean, variance, return_variance, noise, before, log_ratio });
        }
        for ((log_weight, there), log_ratio) in log_weight.iter_mut().zip(&points.log_density).zip(log_ratio)
        {
            *log_weight = direction.log_weight(*log_weight, *there + *log_ratio);
        }
        Ok(())
    }
}

/// before ← x, x ← mean + √v z.
struct Walk<'a> {
    mean: &'a Batch,
    variance: &'a [f64],
    noise: &'a Batch,
    x: &'a mut Batch,
    before: &'a mut Batch,
}
impl Kernel for Walk<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (i, variance) in self.variance.iter().enumerate() {
            let scale = L::splat(variance.sqrt());
            let (mean, noise) = (self.mean.row(i), self.noise.row(i));
            let (x, before) = (self.x.row_mut(i), self.before.row_mut(i));
            for_each_chunk!(mean.len(), |chunk| {
                L::load_some(&x[chunk.clone()]).store_some(&mut before[chunk.clone()]);
                let step =
                    scale.mul_add(L::load_some(&noise[chunk.clone()]), L::load_some(&mean[chunk.clone()]));
                step.store_some(&mut x[chunk]);
            });
        }
    }
}

/// log_ratio += log(return) − log(outward).
struct Weigh<'a> {
    mean: &'a Batch,
    variance: &'a [f64],
    return_variance: &'a [f64],
    noise: &'a Batch,
    before: &'a Batch,
    log_ratio: &'a mut [f64],
}
impl Kernel for Weigh<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (i, log_ratio) in self.log_ratio.iter_mut().enumerate() {
            let (mean, before, noise) = (self.mean.row(i), self.before.row(i), self.noise.row(i));
            let (mut outward, mut homeward) = (L::splat(0.0), L::splat(0.0));
            for_each_chunk!(mean.len(), |chunk| {
                let z = L::load_some(&noise[chunk.clone()]);
                outward = z.mul_add(z, outward);
                let miss = L::load_some(&before[chunk.clone()]) - L::load_some(&mean[chunk]);
                homeward = miss.mul_add(miss, homeward);
            });
            let (outward, homeward) = (outward.sum(), homeward.sum());
            *log_ratio +=
                step_log_ratio(mean.len(), outward, homeward, self.variance[i], self.return_variance[i]);
        }
    }
}
