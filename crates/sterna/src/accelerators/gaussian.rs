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

use crate::accelerator::{Accelerator, Direction, Journey, Travellers};
use crate::lanes::{Kernel, Lanes, dispatch};
use crate::path::{AnnealingPath, Points};
use crate::streams::{Phase, Streams};
use crate::weight::step_log_ratio;
use crate::{Batch, Result, for_each_chunk};

/// The two means and the variance of each step. `k` runs from 1 to K.
pub trait GaussianSteps: Send + Sync {
    /// K ≥ 1.
    fn steps(&self) -> usize;

    /// β at which x_k of each traveller is evaluated, k = 0..=K; the ends are those of the interval.
    fn betas(&self, travellers: &Travellers, k: usize, out: &mut [f64]);

    /// Variance of P_k for each traveller: strictly positive.
    fn variances(&self, travellers: &Travellers, k: usize, out: &mut [f64]);

    /// Variance of Q_{k−1} for each traveller: strictly positive. By default that of P_k.
    fn backward_variances(&self, travellers: &Travellers, k: usize, out: &mut [f64]) {
        self.variances(travellers, k, out);
    }

    /// Writes what both means need of x_k beside its score, k = 0..=K: a drift, where there is one.
    fn control(&self, _travellers: &Travellers, _k: usize, _points: &Points, _out: &mut Batch) -> Result<()> {
        Ok(())
    }

    /// mean_P(x_{k−1}) from points and their control at k − 1.
    fn forward_means(
        &self,
        travellers: &Travellers,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()>;

    /// mean_Q(x_k) from points and their control at k.
    fn backward_means(
        &self,
        travellers: &Travellers,
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

impl<S: GaussianSteps> Accelerator for Gaussian<S> {
    fn steps(&self) -> usize {
        self.steps.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        path: &dyn AnnealingPath,
        streams: &Streams,
        iteration: u64,
        travellers: &Travellers,
        journey: &mut Journey,
    ) -> Result<()> {
        let Journey {
            points,
            log_weight,
            beta,
            log_det: log_ratio,
            variance,
            return_variance,
            noise,
            before,
            mean,
            control,
        } = journey;
        let last = self.steps.steps();
        log_weight.copy_from_slice(&points.log_density);
        log_ratio.fill(0.0);
        let start = if direction == Direction::Forward { 0 } else { last };
        self.steps.control(travellers, start, points, control)?;
        for n in 1..=last {
            // The step walked, the point it ends at, and the phase its noise is keyed by.
            let (k, to, phase) = match direction {
                Direction::Forward => (n, n, Phase::Forward),
                Direction::Backward => (last + 1 - n, last - n, Phase::Backward),
            };
            streams.normals(phase.number(k), iteration, &travellers.key, noise);
            match direction {
                Direction::Forward => {
                    self.steps.variances(travellers, k, variance);
                    self.steps.backward_variances(travellers, k, return_variance);
                }
                Direction::Backward => {
                    self.steps.backward_variances(travellers, k, variance);
                    self.steps.variances(travellers, k, return_variance);
                }
            }
            self.steps.betas(travellers, to, beta);
            match direction {
                Direction::Forward => self.steps.forward_means(travellers, k, points, control, mean)?,
                Direction::Backward => self.steps.backward_means(travellers, k, points, control, mean)?,
            }
            dispatch(Walk { mean, variance, noise, x: &mut points.x, before });
            path.evaluate(beta, points)?;
            self.steps.control(travellers, to, points, control)?;
            match direction {
                Direction::Forward => self.steps.backward_means(travellers, k, points, control, mean)?,
                Direction::Backward => self.steps.forward_means(travellers, k, points, control, mean)?,
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
