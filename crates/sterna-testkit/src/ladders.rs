//! Ladders every chain of which can be drawn exactly.

use std::sync::Arc;
use sterna::path::AnnealingPath;
use sterna::paths::{Diffused, Geometric};
use sterna::streams::{Phase, RowStream, Streams};
use sterna::targets::{Gmm, Normal};
use sterna::{Batch, Schedule, Target};

/// A path whose laws π^β can all be drawn from.
pub trait ExactLadder: Send + Sync {
    /// The path.
    fn path(&self) -> Arc<dyn AnnealingPath>;

    /// One exact draw from π^β.
    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]);

    /// log ∫ π̃^β, where it is known.
    fn log_z(&self, beta: f64) -> Option<f64>;

    /// `rows` exact draws from π⁰⊗…⊗πᴺ: a row holds its chains one after the other.
    fn draw_ladder(&self, schedule: &Schedule, streams: &Streams, rows: usize) -> Batch {
        self.draw_betas(schedule.betas(), streams, rows)
    }

    /// As [`draw_ladder`](Self::draw_ladder), for any list of β.
    fn draw_betas(&self, betas: &[f64], streams: &Streams, rows: usize) -> Batch {
        let dim = self.path().dim();
        let mut out = Batch::zeros(rows, betas.len() * dim);
        for row in 0..rows {
            let mut stream = streams.row(Phase::Exact, 0, row as u32);
            for (x, &beta) in out.row_mut(row).chunks_exact_mut(dim).zip(betas) {
                self.draw(beta, &mut stream, x);
            }
        }
        out
    }
}

/// The geometric path from N(0, I) to a diagonal normal: normal at every β.
///
/// ```
/// use sterna::targets::Normal;
/// use sterna_testkit::{ExactLadder, GaussianLadder};
///
/// let ladder = GaussianLadder::new(Normal::isotropic(1, 4.0));
/// assert_eq!(ladder.moments(0.0, 0), (0.0, 1.0));
/// assert!((ladder.log_z(1.0).unwrap() + 2.0f64.ln()).abs() < 1e-12, "∫ of the target over ∫ of the reference");
/// ```
pub struct GaussianLadder {
    normal: Normal,
    path: Arc<Geometric>,
}

impl GaussianLadder {
    /// From N(0, I) to `normal`.
    pub fn new(normal: Normal) -> Self {
        let path = Arc::new(Geometric::from_standard_normal(normal.clone()));
        Self { normal, path }
    }

    /// Means and precisions that differ between coordinates.
    pub fn uneven(dim: usize) -> Self {
        let mean = (0..dim).map(|j| 0.6 - 0.5 * j as f64).collect();
        let precision = (0..dim).map(|j| [4.0, 0.5, 9.0, 1.5][j % 4]).collect();
        Self::new(Normal::new(mean, precision))
    }

    /// Mean and precision of coordinate j at β.
    pub fn moments(&self, beta: f64, j: usize) -> (f64, f64) {
        let (mean, target) = (self.normal.mean()[j], self.normal.precision()[j]);
        let precision = (1.0 - beta) + beta * target;
        (beta * target * mean / precision, precision)
    }
}

impl ExactLadder for GaussianLadder {
    fn path(&self) -> Arc<dyn AnnealingPath> {
        self.path.clone()
    }

    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]) {
        for (j, x) in x.iter_mut().enumerate() {
            let (mean, precision) = self.moments(beta, j);
            *x = mean + stream.normal() / precision.sqrt();
        }
    }

    /// Completes the square of (1−β) x² + βλ (x − m)² in each coordinate.
    fn log_z(&self, beta: f64) -> Option<f64> {
        let coordinate = |j: usize| {
            let (mean, precision) = self.moments(beta, j);
            let (m, target) = (self.normal.mean()[j], self.normal.precision()[j]);
            -0.5 * (precision.ln() + beta * target * m * m - precision * mean * mean)
        };
        Some((0..self.normal.mean().len()).map(coordinate).sum())
    }
}

/// The geometric path from N(0, I) to a mixture of few Gaussians. Its laws are no mixtures, but
/// (Σ aᵢ)^β ≤ Σ aᵢ^β for β ≤ 1, so the mixture of the components' own geometric paths, which are
/// normal, covers π̃^β, and rejection from it is exact.
///
/// ```
/// use sterna::{Schedule, Streams};
/// use sterna_testkit::{ExactLadder, MixtureLadder};
///
/// let draws = MixtureLadder::three_modes(2).draw_ladder(&Schedule::uniform(4), &Streams::new(1), 10);
/// assert_eq!((draws.rows(), draws.dim()), (10, 4 * 2));
/// ```
pub struct MixtureLadder {
    gmm: Gmm,
    path: Arc<Geometric>,
}

impl MixtureLadder {
    /// From N(0, I) to `gmm`.
    pub fn new(gmm: Gmm) -> Self {
        let path = Arc::new(Geometric::from_standard_normal(gmm.clone()));
        Self { gmm, path }
    }

    /// Three overlapping modes.
    pub fn three_modes(dim: usize) -> Self {
        Self::new(Gmm::new(dim, vec![[1.0, 0.5], [-0.8, 0.7], [0.2, -1.1]], 0.35))
    }

    fn precision(&self, beta: f64) -> f64 {
        (1.0 - beta) + beta * self.gmm.standard_deviation().powi(-2)
    }

    /// log of ∫ η^{1−β} φᵢ^β up to what all components share.
    fn log_mass(&self, beta: f64, mean: &[f64; 2]) -> f64 {
        let target = self.gmm.standard_deviation().powi(-2);
        let square = mean[0] * mean[0] + mean[1] * mean[1];
        -0.5 * (1.0 - beta) * beta * target * square / self.precision(beta)
    }

    /// −(x − μᵢ)²/2σ² in the plane.
    fn exponent(&self, x: &[f64], mean: &[f64; 2]) -> f64 {
        let square = (x[0] - mean[0]).powi(2) + (x[1] - mean[1]).powi(2);
        -0.5 * square * self.gmm.standard_deviation().powi(-2)
    }

    fn sum_of_exponentials(values: impl Iterator<Item = f64>) -> f64 {
        values.map(f64::exp).sum()
    }
}

impl ExactLadder for MixtureLadder {
    fn path(&self) -> Arc<dyn AnnealingPath> {
        self.path.clone()
    }

    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]) {
        let means = self.gmm.means();
        let target = self.gmm.standard_deviation().powi(-2);
        let precision = self.precision(beta);
        let total = Self::sum_of_exponentials(means.iter().map(|m| self.log_mass(beta, m)));
        loop {
            let mut share = stream.uniform() * total;
            let heavy = means.iter().position(|m| {
                share -= self.log_mass(beta, m).exp();
                share < 0.0
            });
            let mean = means[heavy.unwrap_or(means.len() - 1)];
            for (j, x) in x.iter_mut().enumerate() {
                let centre = beta * target * mean.get(j).copied().unwrap_or(0.0) / precision;
                *x = centre + stream.normal() / precision.sqrt();
            }
            let top = means.iter().map(|m| self.exponent(x, m)).fold(f64::NEG_INFINITY, f64::max);
            let mixture = Self::sum_of_exponentials(means.iter().map(|m| self.exponent(x, m) - top));
            let cover = Self::sum_of_exponentials(means.iter().map(|m| beta * (self.exponent(x, m) - top)));
            if stream.uniform() < mixture.powf(beta) / cover {
                return;
            }
        }
    }

    /// By the trapezoidal rule in the plane, whose error for so smooth an integrand is below
    /// rounding; the other coordinates are normal.
    fn log_z(&self, beta: f64) -> Option<f64> {
        let deviation = self.gmm.standard_deviation();
        let (step, width) = (0.1 * deviation.min(1.0), 9.0);
        let n = (width / step) as i32;
        let log_tau = std::f64::consts::TAU.ln();
        let log_component = -(self.gmm.means().len() as f64).ln() - log_tau - 2.0 * deviation.ln();
        let mut sum = 0.0;
        for i in -n..=n {
            for j in -n..=n {
                let x = [f64::from(i) * step, f64::from(j) * step];
                let log_reference = -0.5 * (x[0] * x[0] + x[1] * x[1]) - log_tau;
                let mixture =
                    Self::sum_of_exponentials(self.gmm.means().iter().map(|m| self.exponent(&x, m)));
                sum += ((1.0 - beta) * log_reference + beta * log_component).exp() * mixture.powf(beta);
            }
        }
        let other = -beta * deviation.ln() - 0.5 * self.precision(beta).ln();
        let others = (self.path.dim() - 2) as f64 * other;
        Some((sum * step * step).ln() + others)
    }
}

/// The variance-preserving diffusion of a target that knows it, and that can be drawn exactly:
/// √s X + √(1−s) Z at every s, with the mass of the target.
///
/// ```
/// use std::sync::Arc;
/// use sterna::{targets::Normal, path::AnnealingPath};
/// use sterna_testkit::{DiffusedLadder, ExactLadder};
///
/// assert_eq!(DiffusedLadder::new(Arc::new(Normal::isotropic(3, 4.0))).path().dim(), 3);
/// ```
pub struct DiffusedLadder {
    target: Arc<dyn Target>,
    path: Arc<Diffused>,
}

impl DiffusedLadder {
    /// # Panics
    /// If the target does not know its diffusion.
    pub fn new(target: Arc<dyn Target>) -> Self {
        let path = Diffused::exact(target.clone()).expect("the target knows its diffusion");
        Self { target, path: Arc::new(path) }
    }
}

impl ExactLadder for DiffusedLadder {
    fn path(&self) -> Arc<dyn AnnealingPath> {
        self.path.clone()
    }

    fn draw(&self, beta: f64, stream: &mut RowStream, x: &mut [f64]) {
        assert!(self.target.draw(stream, x), "the target can be drawn exactly");
        let (keep, noise) = (beta.sqrt(), (1.0 - beta).sqrt());
        x.iter_mut().for_each(|x| *x = keep * *x + noise * stream.normal());
    }

    fn log_z(&self, _beta: f64) -> Option<f64> {
        self.target.log_z()
    }
}
