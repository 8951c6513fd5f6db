//! Controlled Monte Carlo diffusions (§5.2, with errata E6, E8 and E9).
//!
//! P_k: x + Δs (σ_k² ∇U(x) + b(x)) at k − 1; Q_{k−1}: x + Δs (σ_k² ∇U(x) − b(x)) at k; each with
//! variance 2 Δs σ_k², where σ_k may differ between P and Q: a step towards a narrower density should
//! return with more noise than it went. U interpolates the two log densities: on the geometric path it is the path at
//! β + φ_k (β′ − β). A drift may have a part along the score, b + c_k ∇U: with it alone one normal becomes another.

use super::gaussian::{Gaussian, GaussianSteps};
use crate::call::{Rows, Scratch};
use crate::path::Points;
use crate::targets::Normal;
use crate::transport::{Drift, Interval};
use crate::weight::step_mean;
use crate::{Batch, Error, Result};
use std::sync::Arc;

/// A controlled diffusion as an accelerator.
pub type Cmcd = Gaussian<CmcdSteps>;

/// Drift, interpolation and noise of all pairs.
///
/// ```
/// use std::sync::Arc;
/// use sterna::accelerator::Accelerator;
/// use sterna::accelerators::{Cmcd, CmcdSteps, NoDrift};
/// // Three pairs of two steps each, and the variance of their noise.
/// let cmcd = Cmcd { steps: CmcdSteps::linear(Arc::new(NoDrift), 2, &[0.1, 0.05, 0.02]).unwrap() };
/// assert_eq!(cmcd.steps(), 2);
/// ```
pub struct CmcdSteps {
    drift: Arc<dyn Drift>,
    /// φ_0 = 0 ≤ … ≤ φ_K = 1 of each pair (pairs × (K + 1)).
    interpolation: Batch,
    /// σ_k² of P for each pair (pairs × K).
    noise: Batch,
    /// σ_k² of Q for each pair (pairs × K).
    backward_noise: Batch,
    /// c_k of each pair (pairs × (K + 1)), if the drift has a part along the score.
    along_score: Option<Batch>,
}

impl CmcdSteps {
    /// `interpolation` is pairs × (K + 1), `noise` pairs × K: σ² of each step, which should vanish
    /// with the width of the pair, so that the accelerator becomes the identity there (errata E9).
    pub fn new(drift: Arc<dyn Drift>, interpolation: Batch, noise: Batch) -> Result<Self> {
        Self::with_backward_noise(drift, interpolation, noise.clone(), noise)
    }

    /// As [`new`](Self::new), with a σ² of its own for each step back.
    pub fn with_backward_noise(
        drift: Arc<dyn Drift>,
        interpolation: Batch,
        noise: Batch,
        backward_noise: Batch,
    ) -> Result<Self> {
        let wrong = |setting, value: String, cure| Err(Error::Setting { setting, value, cure });
        if noise.dim() == 0 || interpolation.dim() != noise.dim() + 1 || interpolation.rows() != noise.rows()
        {
            let value = format!("{} × {} values", interpolation.rows(), interpolation.dim());
            return wrong(
                "CmcdSteps.interpolation",
                value,
                "each pair needs one value more than it has steps",
            );
        }
        if (backward_noise.rows(), backward_noise.dim()) != (noise.rows(), noise.dim()) {
            let value = format!("{} × {} values", backward_noise.rows(), backward_noise.dim());
            return wrong("CmcdSteps.backward_noise", value, "each step needs one value for its way back");
        }
        for row in interpolation.iter_rows() {
            if row[0] != 0.0 || row[row.len() - 1] != 1.0 || !row.is_sorted() {
                return wrong("CmcdSteps.interpolation", format!("{row:?}"), "it must rise from 0 to 1");
            }
        }
        let mut all = noise.as_slice().iter().chain(backward_noise.as_slice());
        if let Some(s) = all.find(|&&s| !(s > 0.0 && s.is_finite())) {
            return wrong("CmcdSteps.noise", s.to_string(), "every variance must be positive");
        }
        Ok(Self { drift, interpolation, noise, backward_noise, along_score: None })
    }

    /// Adds c_k ∇U to the drift at path time k/K: one number for each pair and k (pairs × (K + 1)).
    pub fn with_score(mut self, along_score: Batch) -> Result<Self> {
        let expected = (self.interpolation.rows(), self.interpolation.dim());
        if (along_score.rows(), along_score.dim()) != expected {
            let value = format!("{} × {} values", along_score.rows(), along_score.dim());
            let cure = "each pair needs one value more than it has steps";
            return Err(Error::Setting { setting: "CmcdSteps.along_score", value, cure });
        }
        self.along_score = Some(along_score);
        Ok(self)
    }

    /// φ linear in path time, one σ² for all steps of a pair.
    pub fn linear(drift: Arc<dyn Drift>, steps: usize, noise_of_pair: &[f64]) -> Result<Self> {
        let pairs = noise_of_pair.len();
        let interpolation =
            (0..pairs).flat_map(|_| (0..=steps).map(move |k| k as f64 / steps as f64)).collect();
        let noise = noise_of_pair.iter().flat_map(|&s| std::iter::repeat_n(s, steps)).collect();
        if steps == 0 {
            let cure = "a controlled diffusion needs at least one step";
            return Err(Error::Setting { setting: "CmcdSteps.steps", value: "0".into(), cure });
        }
        Self::new(drift, Batch::from_vec(steps + 1, interpolation), Batch::from_vec(steps, noise))
    }

    /// 2 Δs σ² of a row's pair at step k, for P or for Q.
    fn variance(&self, noise: &Batch, pair: usize, k: usize) -> f64 {
        2.0 * (noise.row(pair - 1)[k - 1] / noise.dim() as f64)
    }

    /// x + Δs (σ² score ± b).
    fn means(
        &self,
        rows: &Rows,
        k: usize,
        (noise, sign): (&Batch, f64),
        points: &Points,
        drift: &Batch,
        out: &mut Batch,
    ) {
        let signed_step = sign / self.noise.dim() as f64;
        for (i, &pair) in rows.pair.iter().enumerate() {
            let variance = self.variance(noise, pair, k);
            let (x, score, drift) = (points.x.row(i), points.score.row(i), drift.row(i));
            for (j, out) in out.row_mut(i).iter_mut().enumerate() {
                *out = step_mean(x[j], variance, score[j], signed_step * drift[j]);
            }
        }
    }
}

impl GaussianSteps for CmcdSteps {
    fn steps(&self) -> usize {
        self.noise.dim()
    }

    fn betas(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        for ((out, &pair), interval) in out.iter_mut().zip(&rows.pair).zip(&rows.interval) {
            // The ends exactly, whatever rounding does in between.
            *out = match k {
                0 => interval.lower,
                k if k == self.steps() => interval.upper,
                k => interval.lower + self.interpolation.row(pair - 1)[k] * interval.width(),
            };
        }
    }

    fn variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        for (out, &pair) in out.iter_mut().zip(&rows.pair) {
            *out = self.variance(&self.noise, pair, k);
        }
    }

    fn backward_variances(&self, rows: &Rows, k: usize, out: &mut [f64]) {
        for (out, &pair) in out.iter_mut().zip(&rows.pair) {
            *out = self.variance(&self.backward_noise, pair, k);
        }
    }

    /// b at path time k/K: P_{k+1} leaves x_k with it, Q_{k−1} returns from x_k with it.
    fn control(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        out: &mut Batch,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (times, of_drift) = scratch.get::<(Vec<f64>, Scratch)>();
        times.clear();
        times.resize(points.rows(), k as f64 / self.noise.dim() as f64);
        self.drift.drift(&rows.interval, times, &points.x, out, of_drift)?;
        if let Some(along_score) = &self.along_score {
            for (i, &pair) in rows.pair.iter().enumerate() {
                let share = along_score.row(pair - 1)[k];
                for (out, score) in out.row_mut(i).iter_mut().zip(points.score.row(i)) {
                    *out += share * score;
                }
            }
        }
        Ok(())
    }

    fn forward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.means(rows, k, (&self.noise, 1.0), points, control, out);
        Ok(())
    }

    /// With minus the drift and plus the score, whatever the paper prints (errata E6).
    fn backward_means(
        &self,
        rows: &Rows,
        k: usize,
        points: &Points,
        control: &Batch,
        out: &mut Batch,
    ) -> Result<()> {
        self.means(rows, k, (&self.backward_noise, -1.0), points, control, out);
        Ok(())
    }
}

/// b = 0: annealed Langevin dynamics, the ablation that the paper lacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDrift;

impl Drift for NoDrift {
    fn drift(
        &self,
        _pairs: &[Interval],
        _times: &[f64],
        _x: &Batch,
        out: &mut Batch,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        out.as_mut_slice().fill(0.0);
        Ok(())
    }
}

/// The exact drift along the geometric path from N(0, I) to a [`Normal`], for φ linear in path time.
///
/// At β the path is normal with precision p = 1 − β + βλ and mean μ = βλm/p; following it costs
/// b = Δβ (μ′ − ½ p′/p (x − μ)).
#[derive(Clone, Debug)]
pub struct NormalDrift {
    target: Normal,
}

impl NormalDrift {
    /// For the ladder from N(0, I) to `target`.
    pub fn new(target: Normal) -> Self {
        Self { target }
    }
}

impl Drift for NormalDrift {
    fn drift(
        &self,
        pairs: &[Interval],
        times: &[f64],
        x: &Batch,
        out: &mut Batch,
        _scratch: &mut Scratch,
    ) -> Result<()> {
        for (i, (pair, time)) in pairs.iter().zip(times).enumerate() {
            let beta = pair.lower + time * pair.width();
            for (j, out) in out.row_mut(i).iter_mut().enumerate() {
                let (lambda, m) = (self.target.precision()[j], self.target.mean()[j]);
                let precision = 1.0 - beta + beta * lambda;
                let mean = beta * lambda * m / precision;
                let mean_slope = lambda * m / (precision * precision);
                let log_width_slope = -0.5 * (lambda - 1.0) / precision;
                *out = pair.width() * (mean_slope + log_width_slope * (x.row(i)[j] - mean));
            }
        }
        Ok(())
    }
}
