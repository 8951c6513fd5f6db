//! A path that is written in coordinates of its own, as a path of points: a diffusion that starts from any normal.

use crate::call::Scratch;
use crate::frame::Frame;
use crate::path::{AnnealingPath, Points};
use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Result, Schedule};
use std::sync::Arc;

/// A path in the coordinates of a frame: where it begins at N(0, I), this one begins at N(μ, F Fᵀ).
///
/// ```
/// use std::sync::Arc;
/// use sterna::fitted::Shape;
/// use sterna::frame::{Frame, InFrame};
/// use sterna::path::AnnealingPath;
/// use sterna::paths::{Diffused, Framed, Geometric};
/// use sterna::targets::Normal;
/// let frame = Arc::new(Frame::new(vec![5.0], Shape::Diagonal(vec![2.0])).unwrap());
/// let inside = Geometric::from_standard_normal(InFrame::new(Arc::new(Normal::isotropic(1, 4.0)), frame.clone()));
/// let path = Framed::new(Arc::new(inside), frame);
/// assert!((path.log_z().unwrap() + 0.5 * 4f64.ln()).abs() < 1e-12);
/// ```
pub struct Framed {
    inner: Arc<dyn AnnealingPath>,
    frame: Arc<Frame>,
}

impl Framed {
    /// `inner` knows the coordinates of the frame alone; log densities are those of x.
    pub fn new(inner: Arc<dyn AnnealingPath>, frame: Arc<Frame>) -> Self {
        Self { inner, frame }
    }

    fn standardise(&self, x: &Batch, z: &mut Batch) {
        z.as_mut_slice().copy_from_slice(x.as_slice());
        (0..z.rows()).for_each(|i| self.frame.standardise(z.row_mut(i)));
    }

    fn place(&self, x: &mut Batch) {
        (0..x.rows()).for_each(|i| self.frame.place(x.row_mut(i)));
    }

    /// What the inner path says of points becomes what this one says of them.
    fn tell(&self, inside: &Points, points: &mut Points) {
        points.log_density.copy_from_slice(&inside.log_density);
        points.log_reference.copy_from_slice(&inside.log_reference);
        points.target.log_density.copy_from_slice(&inside.target.log_density);
        let scores = [(&inside.score, &mut points.score), (&inside.target.score, &mut points.target.score)];
        for (from, to) in scores {
            to.as_mut_slice().copy_from_slice(from.as_slice());
            (0..to.rows()).for_each(|i| self.frame.place_score(to.row_mut(i)));
        }
    }

    fn by(
        &self,
        points: &mut Points,
        evaluate: impl FnOnce(&dyn AnnealingPath, &mut Points) -> Result<()>,
    ) -> Result<()> {
        // Out of the points' scratch while they are written to, and back.
        let mut inside: Points = std::mem::take(points.scratch.get());
        inside.set_size(points.rows(), points.x.dim());
        self.standardise(&points.x, &mut inside.x);
        evaluate(&*self.inner, &mut inside)?;
        self.tell(&inside, points);
        *points.scratch.get() = inside;
        Ok(())
    }
}

impl AnnealingPath for Framed {
    fn dim(&self) -> usize {
        self.frame.dim()
    }

    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.by(points, |inner, inside| inner.evaluate(betas, inside))
    }

    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()> {
        let (inside, of_inner): &mut (Points, Scratch) = scratch.get();
        inside.set_size(points.rows(), points.x.dim());
        self.standardise(&points.x, &mut inside.x);
        inside.log_density.copy_from_slice(&points.log_density);
        inside.log_reference.copy_from_slice(&points.log_reference);
        inside.target.log_density.copy_from_slice(&points.target.log_density);
        self.inner.slopes(betas, inside, out, of_inner)
    }

    fn draw_reference(
        &self,
        end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) {
        self.inner.draw_reference(end, streams, phase, iteration, rows, x);
        self.place(x);
    }

    fn draws_reference(&self) -> bool {
        self.inner.draws_reference()
    }

    fn first_schedule(&self, chains: usize) -> Schedule {
        self.inner.first_schedule(chains)
    }

    fn begin_from(
        &self,
        betas: &[f64],
        streams: &Streams,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    ) -> bool {
        let mut z = self.frame.standardised(x);
        let knows = self.inner.begin_from(betas, streams, iteration, rows, &mut z);
        if knows {
            self.place(&mut z);
            *x = z;
        }
        knows
    }

    fn log_z_reference(&self) -> f64 {
        self.inner.log_z_reference() + self.frame.log_volume()
    }

    fn keeps_target(&self) -> bool {
        self.inner.keeps_target()
    }

    fn log_z(&self) -> Option<f64> {
        self.inner.log_z().map(|log_z| log_z + self.frame.log_volume())
    }

    fn evaluations(&self) -> u64 {
        self.inner.evaluations()
    }

    fn network_evaluations(&self) -> u64 {
        self.inner.network_evaluations()
    }
}
