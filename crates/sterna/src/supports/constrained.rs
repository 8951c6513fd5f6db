//! A density that is written in values, as a target in free coordinates.

use super::Parameters;
use crate::{Batch, Error, Evaluation, Result, Target};
use std::cell::Cell;

/// A density in the values of parameters with supports: the sampler sees free coordinates, and the volume of the change
/// belongs to their density, so that log Z is the integral over the values.
///
/// ```
/// use sterna::Target;
/// use sterna::supports::{Constrained, Parameters, Support};
///
/// // Five heads in eight throws: p⁵ (1 − p)³, written in p.
/// let parameters = Parameters::new([("p", Support::Interval { lower: 0.0, upper: 1.0 }).into()])?;
/// let target = Constrained::row_by_row(parameters, |values, gradient| {
///     let p = values[0];
///     gradient[0] = 5.0 / p - 3.0 / (1.0 - p);
///     5.0 * p.ln() + 3.0 * (1.0 - p).ln()
/// });
/// assert_eq!(target.dim(), 1);
/// # Ok::<(), sterna::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Constrained<T> {
    parameters: Parameters,
    density: T,
    /// Whether the volume of the change belongs to it.
    volume: bool,
}

impl<T: Target> Constrained<T> {
    /// A density whose points are values: `density.dim()` is their number, and its score the gradient by them.
    ///
    /// # Errors
    /// If the density has another number of values than the parameters.
    pub fn new(parameters: Parameters, density: T) -> Result<Self> {
        let (found, expected) = (density.dim(), parameters.values());
        if found != expected {
            return Err(Error::Dimension { what: "the density in values", found, expected });
        }
        Ok(Self { parameters, density, volume: true })
    }

    /// The same as a function of the point alone, without the volume of the change: a likelihood, whose prior has it.
    pub fn without_volume(self) -> Self {
        Self { volume: false, ..self }
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

impl<F: Fn(&[f64], &mut [f64]) -> f64 + Send + Sync> Constrained<RowByRow<F>> {
    /// The same of a function of one point's values, which writes the gradient and returns the log density.
    pub fn row_by_row(parameters: Parameters, function: F) -> Self {
        let density = RowByRow { dim: parameters.values(), function };
        Self { parameters, density, volume: true }
    }
}

/// A function of one point as a target: it writes the score and returns the log density.
#[derive(Clone, Debug)]
pub struct RowByRow<F> {
    dim: usize,
    function: F,
}

impl<F: Fn(&[f64], &mut [f64]) -> f64 + Send + Sync> Target for RowByRow<F> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        for i in 0..x.rows() {
            out.log_density[i] = (self.function)(x.row(i), out.score.row_mut(i));
        }
        Ok(())
    }
}

/// Values, what the density says of them, and the log volumes.
#[derive(Default)]
struct Room {
    values: Batch,
    inside: Evaluation,
    log_volume: Vec<f64>,
}

thread_local! {
    /// Kept between calls; one within another makes its own.
    static ROOM: Cell<Room> = Cell::default();
}

impl<T: Target> Target for Constrained<T> {
    fn dim(&self) -> usize {
        self.parameters.free()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        let found = if x.dim() == self.dim() { out.score.dim() } else { x.dim() };
        if found != self.dim() {
            return Err(Error::Dimension { what: "a point", found, expected: self.dim() });
        }
        let mut room = ROOM.take();
        let Room { values, inside, log_volume } = &mut room;
        self.parameters.constrain_batch(x, values, log_volume);
        inside.score.set_size(x.rows(), self.parameters.values());
        inside.log_density.resize(x.rows(), 0.0);
        let evaluated = self.density.evaluate(values, inside);
        if evaluated.is_ok() {
            let volume = |i: usize| if self.volume { log_volume[i] } else { 0.0 };
            let logs = out.log_density.iter_mut().zip(&inside.log_density);
            logs.enumerate().for_each(|(i, (out, inside))| *out = inside + volume(i));
            if self.has_score() {
                self.parameters.pull_back(x, values, &inside.score, self.volume, &mut out.score);
            }
        }
        ROOM.set(room);
        evaluated
    }

    fn has_score(&self) -> bool {
        self.density.has_score()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.density.takes_blocks(rows)
    }

    fn log_z(&self) -> Option<f64> {
        self.density.log_z().filter(|_| self.volume)
    }
}
