//! An accelerator that travels in coordinates of its own: those in which the reference is about N(0, I).

use crate::accelerator::{Accelerator, Direction, Journey};
use crate::call::{Call, Scratch};
use crate::frame::Frame;
use crate::path::{AnnealingPath, Points};
use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Result};
use std::sync::Arc;

/// Carries points in the coordinates of a frame. Weights need no volume: it is the same at both ends of a journey.
///
/// ```
/// use std::sync::Arc;
/// use sterna::accelerators::{FlowAccelerator, Framed};
/// use sterna::{Batch, fitted::Shape, frame::Frame, transports::Affine};
/// let samples = [0.0, 1.0].map(|shift| Batch::from_vec(1, vec![shift, shift + 1.0, shift - 1.0]));
/// let affine = FlowAccelerator::new(Arc::new(Affine::fit(&[0.0, 1.0], &samples, false).unwrap()));
/// let frame = Frame::new(vec![1e4], Shape::Diagonal(vec![1e-3])).unwrap();
/// let far_away = Framed::new(Arc::new(affine), Arc::new(frame));
/// ```
pub struct Framed {
    inner: Arc<dyn Accelerator>,
    frame: Arc<Frame>,
    /// Scores are never longer.
    steepest: f64,
}

impl Framed {
    /// `inner` knows the coordinates of the frame alone.
    pub fn new(inner: Arc<dyn Accelerator>, frame: Arc<Frame>) -> Self {
        Self { inner, frame, steepest: f64::INFINITY }
    }

    /// The same, but that `inner` sees no score longer than this, by [`tamed`]: a step along it then stays within reach,
    /// however steep the target is far out. Journeys weigh what they did, so they stay exact.
    pub fn with_steepest(self, steepest: f64) -> Self {
        Self { steepest, ..self }
    }
}

/// What a score of squared length |s|² is multiplied with so that it is nowhere longer than `steepest`: 1/√(1 + |s|²/S²).
pub fn tamed(squared_length: f64, steepest: f64) -> f64 {
    (1.0 + squared_length / (steepest * steepest)).sqrt().recip()
}

/// The journey as the inner accelerator sees it; the points themselves lie behind its own.
#[derive(Default)]
struct Memory {
    journey: Journey,
    of_inner: Scratch,
}

impl Accelerator for Framed {
    fn steps(&self) -> usize {
        self.inner.steps()
    }

    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Memory { journey: inside, of_inner } = scratch.get();
        let (rows, dim) = (journey.points.rows(), self.frame.dim());
        inside.points.set_size(rows, dim);
        inside.log_weight.resize(rows, 0.0);
        let view = View { frame: &self.frame, path: call.path, steepest: self.steepest };
        view.see(&journey.points, &mut inside.points);
        inside.points.x.as_mut_slice().copy_from_slice(journey.points.x.as_slice());
        (0..rows).for_each(|i| self.frame.standardise(inside.points.x.row_mut(i)));
        std::mem::swap(&mut journey.points, inside.points.scratch.get());
        let made = self.inner.travel(direction, &call.on(&view), inside, of_inner);
        std::mem::swap(&mut journey.points, inside.points.scratch.get());
        journey.log_weight.copy_from_slice(&inside.log_weight);
        made
    }
}

/// A path seen from inside the frame.
struct View<'a> {
    frame: &'a Frame,
    path: &'a dyn AnnealingPath,
    steepest: f64,
}

impl View<'_> {
    /// Log densities and scores of points, in the frame's coordinates.
    fn see(&self, outside: &Points, inside: &mut Points) {
        inside.log_density.copy_from_slice(&outside.log_density);
        inside.score.as_mut_slice().copy_from_slice(outside.score.as_slice());
        for i in 0..inside.rows() {
            let score = inside.score.row_mut(i);
            self.frame.standardise_score(score);
            if self.steepest.is_finite() {
                let by = tamed(score.iter().map(|s| s * s).sum(), self.steepest);
                score.iter_mut().for_each(|s| *s *= by);
            }
        }
    }
}

impl AnnealingPath for View<'_> {
    fn dim(&self) -> usize {
        self.frame.dim()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        // Out of the points' scratch while they are written to, and back.
        let mut outside: Points = std::mem::take(points.scratch.get());
        outside.set_size(points.rows(), self.dim());
        outside.x.as_mut_slice().copy_from_slice(points.x.as_slice());
        (0..points.rows()).for_each(|i| self.frame.place(outside.x.row_mut(i)));
        self.path.evaluate(betas, &mut outside)?;
        self.see(&outside, points);
        *points.scratch.get() = outside;
        Ok(())
    }

    fn slopes(&self, _: &[f64], _: &Points, _: &mut [f64], _: &mut Scratch) -> Result<()> {
        unreachable!("accelerators ask for densities and scores alone")
    }

    fn draw_reference(&self, _: f64, _: &Streams, _: PhaseKey, _: u64, _: &[u32], _: &mut Batch) {
        unreachable!("accelerators ask for densities and scores alone")
    }

    fn draws_reference(&self) -> bool {
        false
    }

    fn log_z(&self) -> Option<f64> {
        None
    }

    fn evaluations(&self) -> u64 {
        self.path.evaluations()
    }
}
