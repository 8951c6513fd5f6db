//! Coordinates in which a reference is N(0, I), or nearly so: x = μ + F z.
//!
//! Transports learn and travel in them, whatever place and width a problem has. Log densities are always those of x: what a
//! change of coordinates adds to them is the same at both ends of every journey.

use crate::fitted::Shape;
use crate::{Batch, Error, Evaluation, Result, Target};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// x = μ + F z.
///
/// ```
/// use sterna::fitted::Shape;
/// use sterna::frame::Frame;
/// let frame = Frame::new(vec![1.0, 0.0], Shape::Diagonal(vec![2.0, 0.5])).unwrap();
/// let mut point = [5.0, 1.0];
/// frame.standardise(&mut point);
/// assert_eq!(point, [2.0, 2.0]);
/// frame.place(&mut point);
/// assert_eq!(point, [5.0, 1.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Untrusted")]
pub struct Frame {
    mean: Vec<f64>,
    shape: Shape,
}

/// A frame as a file claims it to be.
#[derive(Deserialize)]
struct Untrusted {
    mean: Vec<f64>,
    shape: Shape,
}

impl TryFrom<Untrusted> for Frame {
    type Error = String;

    fn try_from(Untrusted { mean, shape }: Untrusted) -> std::result::Result<Self, String> {
        Self::new(mean, shape).map_err(|error| error.to_string())
    }
}

impl Frame {
    /// μ and F.
    ///
    /// # Errors
    /// If lengths differ, or a number is none that a normal can have.
    pub fn new(mean: Vec<f64>, shape: Shape) -> Result<Self> {
        let cure = match shape.check() {
            Ok(()) if mean.len() != shape.dim() => "mean and shape must have one length",
            Ok(()) if mean.iter().any(|m| !m.is_finite()) => "means must be finite",
            Ok(()) => return Ok(Self { mean, shape }),
            Err(cure) => cure,
        };
        Err(Error::setting("Frame", format!("{} coordinates", mean.len()), cure))
    }

    /// Median and width of each coordinate, over samples of all chains.
    ///
    /// # Errors
    /// If there are none, or they are not finite.
    pub fn of_samples(samples: &[Batch]) -> Result<Self> {
        let dim = samples.first().map_or(0, Batch::dim);
        let quantiles = |j: usize| {
            let mut all: Vec<f64> = samples.iter().flat_map(|b| b.iter_rows().map(move |x| x[j])).collect();
            all.sort_by(f64::total_cmp);
            let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
            (at(0.5), (0.5 * (at(0.84) - at(0.16))).max(f64::MIN_POSITIVE))
        };
        if samples.iter().all(|batch| batch.rows() == 0) {
            return Err(Error::setting("Frame", "no samples", "a frame is that of samples"));
        }
        let (mean, deviations) = (0..dim).map(quantiles).unzip();
        Self::new(mean, Shape::Diagonal(deviations))
    }

    /// Length of a point.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// μ.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// F.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// x becomes z = F⁻¹ (x − μ).
    pub fn standardise(&self, x: &mut [f64]) {
        x.iter_mut().zip(&self.mean).for_each(|(x, mean)| *x -= mean);
        self.shape.solve(x);
    }

    /// z becomes x = μ + F z.
    pub fn place(&self, z: &mut [f64]) {
        self.shape.apply(z);
        z.iter_mut().zip(&self.mean).for_each(|(z, mean)| *z += mean);
    }

    /// A score in x becomes the score in z: Fᵀ s.
    pub fn standardise_score(&self, score: &mut [f64]) {
        self.shape.apply_transposed(score);
    }

    /// A score in z becomes the score in x: F⁻ᵀ s.
    pub fn place_score(&self, score: &mut [f64]) {
        self.shape.solve_transposed(score);
    }

    /// log |det F|: how much larger the integral over x is than that over z.
    pub fn log_volume(&self) -> f64 {
        self.shape.log_volume()
    }

    /// All rows in standard coordinates.
    pub fn standardised(&self, x: &Batch) -> Batch {
        let mut z = x.clone();
        (0..z.rows()).for_each(|i| self.standardise(z.row_mut(i)));
        z
    }
}

/// A target as a function of z: log π̃(μ + F z).
///
/// ```
/// use std::sync::Arc;
/// use sterna::fitted::Shape;
/// use sterna::frame::{Frame, InFrame};
/// use sterna::{Batch, Evaluation, Target, targets::Normal};
/// let frame = Frame::new(vec![3.0], Shape::Diagonal(vec![0.5])).unwrap();
/// let target = InFrame::new(Arc::new(Normal::new(vec![3.0], vec![4.0])), Arc::new(frame));
/// let mut out = Evaluation::zeros(1, 1);
/// target.evaluate(&Batch::from_vec(1, vec![2.0]), &mut out).unwrap();
/// assert_eq!(out.score.row(0), [-2.0]);
/// ```
pub struct InFrame {
    target: Arc<dyn Target>,
    frame: Arc<Frame>,
}

impl InFrame {
    /// A target of the frame's dimension.
    ///
    /// # Panics
    /// If it has another.
    pub fn new(target: Arc<dyn Target>, frame: Arc<Frame>) -> Self {
        assert_eq!(target.dim(), frame.dim(), "length of a point");
        Self { target, frame }
    }
}

impl Target for InFrame {
    fn dim(&self) -> usize {
        self.frame.dim()
    }

    fn evaluate(&self, z: &Batch, out: &mut Evaluation) -> Result<()> {
        let mut x = z.clone();
        (0..x.rows()).for_each(|i| self.frame.place(x.row_mut(i)));
        self.target.evaluate(&x, out)?;
        if self.has_score() {
            (0..z.rows()).for_each(|i| self.frame.standardise_score(out.score.row_mut(i)));
        }
        Ok(())
    }

    fn has_score(&self) -> bool {
        self.target.has_score()
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z().map(|log_z| log_z - self.frame.log_volume())
    }
}
