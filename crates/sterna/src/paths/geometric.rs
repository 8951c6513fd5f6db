//! The geometric path η^{1−β} π^β: linear in β in log space, so a plain swap costs no evaluation (§2).

use crate::call::Scratch;
use crate::lanes::{Kernel, Lanes, dispatch, for_each_chunk};
use crate::path::{AnnealingPath, Points};
use crate::path_formula::{path_log_density, path_score};
use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Counted, Error, Result, Target};
use std::sync::Arc;

/// A normalised normal with diagonal covariance, from which replicas start anew.
///
/// ```
/// use std::sync::Arc;
/// use sterna::{paths::{Geometric, Reference}, targets::Normal};
/// let reference = Reference::normal(vec![1.0, 0.0], vec![2.0, 0.5]);
/// let path = Geometric::new(reference, Arc::new(Normal::isotropic(2, 4.0))).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Reference {
    mean: Vec<f64>,
    standard_deviation: Vec<f64>,
    precision: Vec<f64>,
    log_normaliser: f64,
    is_standard: bool,
}

impl Reference {
    /// N(0, I).
    pub fn standard_normal(dim: usize) -> Self {
        Self::normal(vec![0.0; dim], vec![1.0; dim])
    }

    /// A normal of the given means and standard deviations.
    ///
    /// # Panics
    /// If lengths differ or a standard deviation is not positive.
    pub fn normal(mean: Vec<f64>, standard_deviation: Vec<f64>) -> Self {
        assert_eq!(mean.len(), standard_deviation.len());
        assert!(standard_deviation.iter().all(|&s| s > 0.0 && s.is_finite()));
        let log_volume: f64 = standard_deviation.iter().map(|s| s.ln()).sum();
        Self {
            is_standard: mean.iter().all(|&m| m == 0.0) && standard_deviation.iter().all(|&s| s == 1.0),
            precision: standard_deviation.iter().map(|s| 1.0 / (s * s)).collect(),
            log_normaliser: -0.5 * mean.len() as f64 * std::f64::consts::TAU.ln() - log_volume,
            mean,
            standard_deviation,
        }
    }
}

/// π̃^β = η^{1−β} π̃^β.
///
/// ```
/// use sterna::{paths::Geometric, targets::Gmm, path::AnnealingPath};
/// let path = Geometric::from_standard_normal(Gmm::paper(10));
/// assert_eq!(path.dim(), 10);
/// ```
pub struct Geometric {
    reference: Reference,
    target: Counted<Arc<dyn Target>>,
}

impl Geometric {
    /// From a reference to a target of the same dimension.
    pub fn new(reference: Reference, target: Arc<dyn Target>) -> Result<Self> {
        let (found, expected) = (reference.mean.len(), target.dim());
        if found != expected {
            return Err(Error::Dimension { what: "the reference", found, expected });
        }
        Ok(Self { reference, target: Counted::new(target) })
    }

    /// From N(0, I).
    pub fn from_standard_normal(target: impl Target + 'static) -> Self {
        let reference = Reference::standard_normal(target.dim());
        Self { reference, target: Counted::new(Arc::new(target)) }
    }
}

impl AnnealingPath for Geometric {
    fn dim(&self) -> usize {
        self.reference.mean.len()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.target.evaluate(&points.x, &mut points.target)?;
        self.move_to(betas, points)
    }

    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        dispatch(Interpolate { reference: &self.reference, betas, points });
        Ok(())
    }

    fn slopes(&self, _betas: &[f64], points: &Points, out: &mut [f64], _scratch: &mut Scratch) -> Result<()> {
        for (i, out) in out.iter_mut().enumerate() {
            *out = points.target.log_density[i] - points.log_reference[i];
        }
        Ok(())
    }

    fn draw_reference(
        &self,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        streams.normals(phase, iteration, rows, x);
        let Reference { mean, standard_deviation, .. } = &self.reference;
        for x in x.as_mut_slice().chunks_exact_mut(mean.len()) {
            for ((x, mean), scale) in x.iter_mut().zip(mean).zip(standard_deviation) {
                *x = mean + scale * *x;
            }
        }
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z()
    }

    fn evaluations(&self) -> u64 {
        self.target.evaluations()
    }
}

struct Interpolate<'a> {
    reference: &'a Reference,
    betas: &'a [f64],
    points: &'a mut Points,
}

impl Kernel for Interpolate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        if self.reference.is_standard {
            self.interpolate::<L, true>()
        } else {
            self.interpolate::<L, false>()
        }
    }
}

impl Interpolate<'_> {
    #[inline(always)]
    fn interpolate<L: Lanes, const STANDARD: bool>(self) {
        let Points { x, log_density, score, log_reference, target, .. } = self.points;
        let dim = x.dim();
        for (i, &beta) in self.betas.iter().enumerate() {
            let (x, target_score) = (x.row(i), target.score.row(i));
            let score = score.row_mut(i);
            let lanes_beta = L::splat(beta);
            let mut sum = L::splat(0.0);
            for_each_chunk!(dim, |range| {
                let mut shift = L::load_some(&x[range.clone()]);
                let mut pull = shift;
                if !STANDARD {
                    shift = shift - L::load_some(&self.reference.mean[range.clone()]);
                    pull = shift * L::load_some(&self.reference.precision[range.clone()]);
                }
                sum = shift.mul_add(pull, sum);
                // At β = 0 the target has no say, whatever its score is there.
                let total = if beta > 0.0 {
                    path_score(lanes_beta, pull, L::load_some(&target_score[range.clone()]))
                } else {
                    -pull
                };
                total.store_some(&mut score[range]);
            });
            log_reference[i] = self.reference.log_normaliser - 0.5 * sum.sum();
            log_density[i] = interpolate(beta, log_reference[i], target.log_density[i]);
        }
    }
}

/// The log density at one point; a target that is NaN, or +∞, counts as zero density.
#[inline(always)]
fn interpolate(beta: f64, log_reference: f64, log_target: f64) -> f64 {
    if beta <= 0.0 {
        log_reference
    } else if log_target < f64::INFINITY {
        path_log_density(beta, log_reference, log_target)
    } else {
        f64::NEG_INFINITY
    }
}
