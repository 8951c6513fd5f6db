//! Where replicas start anew: a normalised density that can be drawn from.

use crate::Batch;
use crate::fitted::{Mixture, Shape};
use crate::frame::Frame;
use crate::lanes::one::{LN_TAU, ln};
use crate::streams::{PhaseKey, RowStream, Streams};
use std::fmt;
use std::sync::Arc;

/// A normalised density from which replicas start anew.
///
/// ```
/// use std::sync::Arc;
/// use sterna::{paths::{Geometric, Reference}, targets::Normal};
/// let reference = Reference::normal(vec![1.0, 0.0], vec![2.0, 0.5]);
/// let path = Geometric::new(reference, Arc::new(Normal::isotropic(2, 4.0))).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Reference(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Normal(Diagonal),
    Mixture(Arc<Mixture>),
    Prior(Arc<dyn Prior>),
}

/// A normalised density of one's own: that of a model's parameters before any data, for one.
///
/// ```
/// use sterna::{paths::{Prior, Reference}, streams::RowStream};
///
/// /// Exponential waiting times, on the log scale: x = log t, so that p(x) = exp(x − eˣ).
/// #[derive(Debug)]
/// struct Waiting;
///
/// impl Prior for Waiting {
///     fn dim(&self) -> usize {
///         1
///     }
///     fn evaluate(&self, x: &[f64], score: &mut [f64]) -> f64 {
///         score[0] = 1.0 - x[0].exp();
///         x[0] - x[0].exp()
///     }
///     fn draw(&self, stream: &mut RowStream, x: &mut [f64]) {
///         x[0] = (-stream.uniform().ln()).ln();
///     }
/// }
/// let reference = Reference::prior(Waiting);
/// assert_eq!(reference.dim(), 1);
/// ```
pub trait Prior: Send + Sync + fmt::Debug {
    /// Length of a point.
    fn dim(&self) -> usize;
    /// The log density at a point, with all constants, and its score.
    fn evaluate(&self, x: &[f64], score: &mut [f64]) -> f64;
    /// An exact draw.
    fn draw(&self, stream: &mut RowStream, x: &mut [f64]);
}

/// A normal with diagonal covariance.
#[derive(Clone, Debug)]
pub(super) struct Diagonal {
    pub mean: Vec<f64>,
    pub standard_deviation: Vec<f64>,
    pub precision: Vec<f64>,
    pub log_normaliser: f64,
    pub is_standard: bool,
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
        let log_volume: f64 = standard_deviation.iter().map(|s| ln(*s)).sum();
        Self(Kind::Normal(Diagonal {
            is_standard: mean.iter().all(|&m| m == 0.0) && standard_deviation.iter().all(|&s| s == 1.0),
            precision: standard_deviation.iter().map(|s| 1.0 / (s * s)).collect(),
            log_normaliser: -0.5 * mean.len() as f64 * LN_TAU - log_volume,
            mean,
            standard_deviation,
        }))
    }

    /// A mixture of normals.
    pub fn mixture(mixture: Mixture) -> Self {
        Self(Kind::Mixture(Arc::new(mixture)))
    }

    /// A density of one's own.
    pub fn prior(prior: impl Prior + 'static) -> Self {
        Self(Kind::Prior(Arc::new(prior)))
    }

    /// Means and standard deviations of each coordinate, where it is one normal without correlations.
    pub fn as_normal(&self) -> Option<(&[f64], &[f64])> {
        match &self.0 {
            Kind::Normal(normal) => Some((&normal.mean, &normal.standard_deviation)),
            _ => None,
        }
    }

    /// The mixture, where it is one.
    pub fn as_mixture(&self) -> Option<&Mixture> {
        match &self.0 {
            Kind::Mixture(mixture) => Some(mixture),
            _ => None,
        }
    }

    /// Whether it is N(0, I).
    pub fn is_standard(&self) -> bool {
        matches!(&self.0, Kind::Normal(normal) if normal.is_standard)
    }

    /// Coordinates in which it is N(0, I), or, of a mixture, has its mean and covariance; none where it is N(0, I) already,
    /// or a prior, whose moments nobody knows.
    ///
    /// ```
    /// use sterna::paths::Reference;
    /// let frame = Reference::normal(vec![1.0], vec![2.0]).frame().unwrap();
    /// assert_eq!(frame.mean(), [1.0]);
    /// assert!(Reference::standard_normal(1).frame().is_none());
    /// ```
    pub fn frame(&self) -> Option<Frame> {
        let (mean, shape) = match &self.0 {
            Kind::Normal(normal) if normal.is_standard => return None,
            Kind::Normal(normal) => (normal.mean.clone(), Shape::Diagonal(normal.standard_deviation.clone())),
            Kind::Mixture(mixture) => match mixture.components() {
                [only] => (only.mean.clone(), only.shape.clone()),
                _ => (mixture.mean(), mixture.whole_shape()),
            },
            Kind::Prior(_) => return None,
        };
        Frame::new(mean, shape).ok()
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        match &self.0 {
            Kind::Normal(normal) => normal.mean.len(),
            Kind::Mixture(mixture) => mixture.dim(),
            Kind::Prior(prior) => prior.dim(),
        }
    }

    /// Log density and score at a point; `work` is memory for the next call.
    pub fn evaluate(&self, x: &[f64], score: &mut [f64], work: &mut Vec<f64>) -> f64 {
        match &self.0 {
            Kind::Normal(normal) => {
                let mut sum = 0.0;
                for (j, score) in score.iter_mut().enumerate() {
                    let shift = x[j] - normal.mean[j];
                    *score = -shift * normal.precision[j];
                    sum -= shift * *score;
                }
                normal.log_normaliser - 0.5 * sum
            }
            Kind::Mixture(mixture) => mixture.evaluate(x, score, work),
            Kind::Prior(prior) => prior.evaluate(x, score),
        }
    }

    /// Exact draws, one stream per row.
    pub fn draw(&self, streams: &Streams, phase: PhaseKey, iteration: u64, rows: &[u32], x: &mut Batch) {
        match &self.0 {
            Kind::Normal(Diagonal { mean, standard_deviation, .. }) => {
                streams.normals(phase, iteration, rows, x);
                for x in x.as_mut_slice().chunks_exact_mut(mean.len()) {
                    for ((x, mean), scale) in x.iter_mut().zip(mean).zip(standard_deviation) {
                        *x = mean + scale * *x;
                    }
                }
            }
            Kind::Mixture(mixture) => {
                for (i, &row) in rows.iter().enumerate() {
                    let mut stream = streams.row(phase, iteration, row);
                    let (uniform, x) = (stream.uniform(), x.row_mut(i));
                    x.iter_mut().for_each(|x| *x = stream.normal());
                    mixture.draw(uniform, x);
                }
            }
            Kind::Prior(prior) => {
                for (i, &row) in rows.iter().enumerate() {
                    prior.draw(&mut streams.row(phase, iteration, row), x.row_mut(i));
                }
            }
        }
    }
}
