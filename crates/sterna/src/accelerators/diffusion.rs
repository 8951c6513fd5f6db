//! Steps along the variance-preserving diffusion and back (§5.3, App. D.3, errata E12).

use super::gaussian::{Gaussian, GaussianSteps};
use crate::call::Rows;
use crate::path::Points;
use crate::transport::Interval;
use crate::{Batch, Error, Result};

/// A diffusion as an accelerator; its path must be a diffusion path.
pub type Diffusion = Gaussian<DiffusionSteps>;

/// How the time reversal is discretised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Integrator {
    /// Exact noising kernel, exponential integrator back.
    #[default]
    Exponential,
    /// Euler and Maruyama, the rate taken at the later time of a step in both directions, where it
    /// is finite.
    Euler,
}

/// K equal steps in s between the times of the two chains.
///
/// ```
/// use sterna::accelerator::Accelerator;
/// use sterna::accelerators::{Diffusion, DiffusionSteps, Integrator};
/// let diffusion = Diffusion { steps: DiffusionSteps::new(5, Integrator::Exponential).unwrap() };
/// assert_eq!(diffusion.steps(), 5);
/// assert!(DiffusionSteps::new(0, Integrator::Euler).is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DiffusionSteps {
    steps: usize,
    integrator: Integrator,
}

impl DiffusionSteps {
    /// K ≥ 1 steps.
    pub fn new(steps: usize, integrator: Integrator) -> Result<Self> {
        if steps == 0 {
            let cure = "K = 0 is the identity, which needs no steps";
            return Err(Error::Setting { setting: "DiffusionSteps.steps", value: "0".into(), cure });
        }
        Ok(Self { steps, integrator })
    }

    fn time(&self, interval: &Interval, k: usize) -> f64 {
        if k == self.steps {
            interval.upper
        } else {
            interval.lower + interval.width() * k as f64 / self.steps as f64
        }
    }

    /// With γ_s = 1/(2(1−s)), ∫2γ over a step is log(s_k/s_{k−1}): α = 1 − s_{k−1}/s_k for the
    /// exponential integrator, 2δγ = 1 − s_{k−1}/s_k for Euler with the rate at s_k. The same number.
    fn alpha(&self, interval: &Interval, k: usize) -> f64 {
        1.0 - self.time(interval, k - 1) / self.time(interval, k)
    }
}

impl GaussianSteps for DiffusionSteps {
    fn steps(&self) -> usize {
        self.steps
    }

    fn betas(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        for (out, interval) in out.iter_mut().zip(&rows.interval) {
            *out = self.time(interval, k);
        }
    }

    fn variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        for (out, interval) in out.iter_mut().zip(&rows.interval) {
            *out = self.alpha(interval, k);
        }
    }

    fn forward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        _control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        for (i, interval) in rows.interval.iter().enumerate() {
            let alpha = self.alpha(interval, k);
            // mean = a x + c (x + score).
            let (a, c) = match self.integrator {
                Integrator::Exponential => {
                    let shrink = (1.0 - alpha).sqrt();
                    (shrink, 2.0 * (1.0 - shrink))
                }
                Integrator::Euler => (1.0 - 0.5 * alpha, alpha),
            };
            for ((out, x), score) in out.row_mut(i).iter_mut().zip(points.x.row(i)).zip(points.score.row(i)) {
                *out = a * x + c * (x + score);
            }
        }
        Ok(())
    }

    fn backward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        _control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        for (i, interval) in rows.interval.iter().enumerate() {
            let alpha = self.alpha(interval, k);
            let shrink = match self.integrator {
                Integrator::Exponential => (1.0 - alpha).sqrt(),
                Integrator::Euler => 1.0 - 0.5 * alpha,
            };
            for (out, x) in out.row_mut(i).iter_mut().zip(points.x.row(i)) {
                *out = shrink * x;
            }
        }
        Ok(())
    }
}
