//! What is sampled: a log density with its score, for whole batches.

use crate::{Batch, Result, streams::RowStream, transport::EnergyModel};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Log density and score of each row of a batch.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Evaluation {
    /// log π̃(x), one per row; −∞ where the density vanishes.
    pub log_density: Vec<f64>,
    /// ∇ log π̃(x), one row per row.
    pub score: Batch,
}

impl Evaluation {
    /// Room for `rows` points of length `dim`.
    pub fn zeros(rows: usize, dim: usize) -> Self {
        Self { log_density: vec![0.0; rows], score: Batch::zeros(rows, dim) }
    }

    /// Changes the number of rows, allocating only beyond the largest number so far.
    pub fn set_rows(&mut self, rows: usize) {
        self.log_density.resize(rows, 0.0);
        self.score.set_rows(rows);
    }
}

/// An unnormalised density on ℝᵈ. [`evaluate`](Target::evaluate) is the one method to write.
///
/// ```
/// use sterna::{Batch, Evaluation, Result, Target};
///
/// /// A standard normal, unnormalised.
/// struct Bowl;
///
/// impl Target for Bowl {
///     fn dim(&self) -> usize {
///         2
///     }
///     fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
///         for i in 0..x.rows() {
///             out.log_density[i] = -0.5 * x.row(i).iter().map(|x| x * x).sum::<f64>();
///             for (score, x) in out.score.row_mut(i).iter_mut().zip(x.row(i)) {
///                 *score = -x;
///             }
///         }
///         Ok(())
///     }
/// }
/// let mut out = Evaluation::zeros(1, 2);
/// Bowl.evaluate(&Batch::from_vec(2, vec![3.0, 4.0]), &mut out).unwrap();
/// assert_eq!(out.log_density, [-12.5]);
/// ```
pub trait Target: Send + Sync {
    /// Length of a point.
    fn dim(&self) -> usize;

    /// Writes log density and score of every row; `out` has as many rows as `x`.
    ///
    /// A row whose density cannot be computed is data, not an error: write NaN or −∞ and the move
    /// is rejected and counted. `Err` stops the run. A row's result must depend on that row alone.
    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()>;

    /// Whether it writes scores. Without them only moves that need none are possible, slices for one.
    fn has_score(&self) -> bool {
        true
    }

    /// log ∫ π̃, where it is known.
    fn log_z(&self) -> Option<f64> {
        None
    }

    /// The target's own diffusion (§5.3) in closed form, where it is known.
    fn diffused(&self) -> Option<&dyn EnergyModel> {
        None
    }

    /// Whether so many rows may come in blocks that stay in a core's cache, instead of all at once: a call must cost hardly
    /// more than its rows, and not share them out.
    fn takes_blocks(&self, _rows: usize) -> bool {
        true
    }

    /// Draws one exact sample into `x`, where that is possible; `false` leaves `x` alone.
    fn draw(&self, _stream: &mut RowStream, _x: &mut [f64]) -> bool {
        false
    }
}

impl<T: Target + ?Sized> Target for Arc<T> {
    fn dim(&self) -> usize {
        (**self).dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        (**self).evaluate(x, out)
    }

    fn has_score(&self) -> bool {
        (**self).has_score()
    }

    fn log_z(&self) -> Option<f64> {
        (**self).log_z()
    }

    fn diffused(&self) -> Option<&dyn EnergyModel> {
        (**self).diffused()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        (**self).takes_blocks(rows)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        (**self).draw(stream, x)
    }
}

/// A target that counts the points at which it was evaluated.
///
/// ```
/// use sterna::{Batch, Counted, Evaluation, Target, targets::Dw4};
/// let target = Counted::new(Dw4);
/// target.evaluate(&Batch::zeros(3, 6), &mut Evaluation::zeros(3, 6)).unwrap();
/// assert_eq!(target.evaluations(), 3);
/// ```
#[derive(Debug)]
pub struct Counted<T> {
    target: T,
    points: AtomicU64,
}

impl<T: Target> Counted<T> {
    /// Nothing was asked yet.
    pub fn new(target: T) -> Self {
        Self { target, points: AtomicU64::new(0) }
    }

    /// The target itself.
    pub fn get(&self) -> &T {
        &self.target
    }

    /// Points at which it was evaluated.
    pub fn evaluations(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }
}

impl<T: Target> Target for Counted<T> {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn evaluate(&self, x: &Batch, out: &mut Evaluation) -> Result<()> {
        self.points.fetch_add(x.rows() as u64, Ordering::Relaxed);
        self.target.evaluate(x, out)
    }

    fn has_score(&self) -> bool {
        self.target.has_score()
    }

    fn log_z(&self) -> Option<f64> {
        self.target.log_z()
    }

    fn diffused(&self) -> Option<&dyn EnergyModel> {
        self.target.diffused()
    }

    fn takes_blocks(&self, rows: usize) -> bool {
        self.target.takes_blocks(rows)
    }

    fn draw(&self, stream: &mut RowStream, x: &mut [f64]) -> bool {
        self.target.draw(stream, x)
    }
}
