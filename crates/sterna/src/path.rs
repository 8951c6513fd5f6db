//! The annealing path π^β from reference (β = 0) to target (β = 1) (§2), and perhaps on to an anchor (β = 2).

use crate::call::Scratch;
use crate::explorer::Explorer;
use crate::lanes::{Kernel, Lanes, dispatch, for_each_chunk};
use crate::paths::{Geometric, Spline};
use crate::streams::{PhaseKey, Streams};
use crate::{Batch, Evaluation, Result, Schedule};

/// Points with what a path knows about them.
///
/// ```
/// use sterna::{Points, path::AnnealingPath, paths::Geometric, targets::Normal};
/// let path = Geometric::from_standard_normal(Normal::isotropic(2, 4.0));
/// let mut points = Points::zeros(1, 2);
/// points.x.row_mut(0).copy_from_slice(&[1.0, 0.0]);
/// path.evaluate(&[1.0], &mut points).unwrap();
/// assert!((points.log_density[0] + 2.0 + std::f64::consts::TAU.ln()).abs() < 1e-12);
/// assert_eq!(points.score.row(0), [-4.0, 0.0]);
/// ```
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Points {
    /// The points.
    pub x: Batch,
    /// log π̃^β of each row at the row's own β; −∞ where it is not a number.
    pub log_density: Vec<f64>,
    /// Score of π̃^β at the row's own β.
    pub score: Batch,
    /// Kept by paths that can move to another β without asking the target again:
    /// log density of the reference …
    pub log_reference: Vec<f64>,
    /// … and the target's answer.
    pub target: Evaluation,
    /// Memory of the path that evaluates them.
    #[serde(skip)]
    pub scratch: Scratch,
}

impl Points {
    /// Room for `rows` points of length `dim`.
    pub fn zeros(rows: usize, dim: usize) -> Self {
        Self {
            x: Batch::zeros(rows, dim),
            log_density: vec![0.0; rows],
            score: Batch::zeros(rows, dim),
            log_reference: vec![0.0; rows],
            target: Evaluation::zeros(rows, dim),
            scratch: Scratch::default(),
        }
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.x.rows()
    }

    /// Changes the number of rows, allocating only beyond the largest number so far.
    pub fn set_rows(&mut self, rows: usize) {
        self.x.set_rows(rows);
        self.log_density.resize(rows, 0.0);
        self.score.set_rows(rows);
        self.log_reference.resize(rows, 0.0);
        self.target.set_rows(rows);
    }

    /// Changes the number and length of points, allocating only beyond the largest so far.
    pub fn set_size(&mut self, rows: usize, dim: usize) {
        for batch in [&mut self.x, &mut self.score, &mut self.target.score] {
            batch.set_size(rows, dim);
        }
        self.set_rows(rows);
    }

    /// Adds other points.
    pub(crate) fn append(&mut self, other: Self) {
        self.x.append(other.x);
        self.log_density.extend(other.log_density);
        self.score.append(other.score);
        self.log_reference.extend(other.log_reference);
        self.target.log_density.extend(other.target.log_density);
        self.target.score.append(other.target.score);
    }

    /// Adds a row of other points.
    pub(crate) fn push(&mut self, other: &Self, row: usize) {
        self.x.push(other.x.row(row));
        self.log_density.push(other.log_density[row]);
        self.score.push(other.score.row(row));
        self.log_reference.push(other.log_reference[row]);
        self.target.log_density.push(other.target.log_density[row]);
        self.target.score.push(other.target.score.row(row));
    }

    /// A row becomes one of other points.
    pub(crate) fn set(&mut self, row: usize, other: &Self, from: usize) {
        dispatch(CopyRows { to: self, from: other, rows: 1, pair: |_| Some((row, from)) });
    }

    /// Takes away the points from `row` on.
    pub(crate) fn split_off(&mut self, row: usize) -> Self {
        Self {
            x: self.x.split_off(row),
            log_density: self.log_density.split_off(row),
            score: self.score.split_off(row),
            log_reference: self.log_reference.split_off(row),
            target: Evaluation {
                log_density: self.target.log_density.split_off(row),
                score: self.target.score.split_off(row),
            },
            scratch: Scratch::default(),
        }
    }

    /// Whether all parts have this size: a file may claim anything.
    pub(crate) fn is_sound(&self, rows: usize, dim: usize) -> bool {
        let numbers = [&self.log_density, &self.log_reference, &self.target.log_density];
        let batches = [&self.x, &self.score, &self.target.score];
        numbers.iter().all(|n| n.len() == rows) && batches.iter().all(|b| b.rows() == rows && b.dim() == dim)
    }

    /// Becomes the given rows of `other`, in that order.
    pub fn gather(&mut self, other: &Points, rows: &[usize]) {
        self.set_size(rows.len(), other.x.dim());
        dispatch(CopyRows { to: self, from: other, rows: rows.len(), pair: |i| Some((i, rows[i])) });
    }

    /// As `gather`, but only points, log densities and scores: enough where all is evaluated anew.
    pub fn gather_state(&mut self, other: &Points, rows: &[usize]) {
        self.set_size(rows.len(), other.x.dim());
        for (i, &row) in rows.iter().enumerate() {
            self.log_density[i] = other.log_density[row];
        }
        dispatch(CopyState { to: self, from: other, rows });
    }

    /// Row `rows[i]` becomes row i of `other`, wherever `wanted(i)`.
    pub fn scatter(&mut self, rows: &[usize], other: &Points, wanted: impl Fn(usize) -> bool) {
        let pair = |i: usize| wanted(i).then(|| (rows[i], i));
        dispatch(CopyRows { to: self, from: other, rows: rows.len(), pair });
    }

    /// Whether the target answered NaN or +∞ at row `i`.
    pub fn is_bad(&self, i: usize) -> bool {
        let value = self.target.log_density[i];
        value.is_nan() || value == f64::INFINITY
    }
}

/// Copies rows; short rows are copied in line, where a call to `memcpy` would cost more than the copy.
struct CopyRows<'a, F> {
    to: &'a mut Points,
    from: &'a Points,
    rows: usize,
    /// (to, from) of the i-th row.
    pair: F,
}
impl<F: Fn(usize) -> Option<(usize, usize)>> Kernel for CopyRows<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        let (to, from) = (self.to, self.from);
        for (i, j) in (0..self.rows).filter_map(self.pair) {
            copy::<L>(to.x.row_mut(i), from.x.row(j));
            copy::<L>(to.score.row_mut(i), from.score.row(j));
            copy::<L>(to.target.score.row_mut(i), from.target.score.row(j));
            to.log_density[i] = from.log_density[j];
            to.log_reference[i] = from.log_reference[j];
            to.target.log_density[i] = from.target.log_density[j];
        }
    }
}

struct CopyState<'a> {
    to: &'a mut Points,
    from: &'a Points,
    rows: &'a [usize],
}
impl Kernel for CopyState<'_> {
    type Output = ();
    #[inline(always)]
    fn run<L: Lanes>(self) {
        for (i, &j) in self.rows.iter().enumerate() {
            copy::<L>(self.to.x.row_mut(i), self.from.x.row(j));
            copy::<L>(self.to.score.row_mut(i), self.from.score.row(j));
        }
    }
}

#[inline(always)]
fn copy<L: Lanes>(to: &mut [f64], from: &[f64]) {
    for_each_chunk!(from.len(), |chunk| {
        L::load_some(&from[chunk.clone()]).store_some(&mut to[chunk]);
    });
}

/// A path of unnormalised densities. Row i of every call is meant at `betas[i]`.
pub trait AnnealingPath: Send + Sync {
    /// Length of a point.
    fn dim(&self) -> usize;

    /// Fills all of `points` from `points.x`.
    fn evaluate(&self, betas: &[f64], points: &mut Points) -> Result<()>;

    /// The same points at other β: as `evaluate`, but free where the path is linear in β.
    fn move_to(&self, betas: &[f64], points: &mut Points) -> Result<()> {
        self.evaluate(betas, points)
    }

    /// d log π̃^β / dβ at points that were evaluated at `betas`.
    fn slopes(&self, betas: &[f64], points: &Points, out: &mut [f64], scratch: &mut Scratch) -> Result<()>;

    /// Exact draws from an end of the path, β = 0 or, where there is an anchor, 2; one stream per row. Only called if
    /// [`draws_reference`](Self::draws_reference).
    fn draw_reference(
        &self,
        end: f64,
        streams: &Streams,
        phase: PhaseKey,
        iteration: u64,
        rows: &[u32],
        x: &mut Batch,
    );

    /// Whether β = 0 can be drawn exactly; otherwise it has local moves like any other chain.
    fn draws_reference(&self) -> bool {
        true
    }

    /// The schedule of so many chains that a run starts from.
    fn first_schedule(&self, chains: usize) -> Schedule {
        Schedule::uniform(chains)
    }

    /// Turns samples of the target into points to begin with at these βs, where the path knows how. A run that
    /// changes its path then need not find its way from the old one's places.
    fn begin_from(
        &self,
        _betas: &[f64],
        _streams: &Streams,
        _iteration: u64,
        _rows: &[u32],
        _x: &mut Batch,
    ) -> bool {
        false
    }

    /// Moves that only this path knows, made after the explorer's in each iteration.
    fn own_moves(&self) -> Option<&dyn Explorer> {
        None
    }

    /// log Z of β = 0. Zero for a normalised reference, not for learned paths (errata E13).
    fn log_z_reference(&self) -> f64 {
        0.0
    }

    /// Whether [`Points::target`] holds the target's own log density; a path that is not made of it, such as a
    /// diffusion, keeps the chain's there.
    fn keeps_target(&self) -> bool {
        true
    }

    /// Whether so many rows may come in blocks that stay in a core's cache, as [`Target::takes_blocks`](crate::Target::takes_blocks).
    fn takes_blocks(&self, _rows: usize) -> bool {
        false
    }

    /// The geometric path that it is, if it is one: training knows its ends by it.
    fn as_geometric(&self) -> Option<&Geometric> {
        None
    }

    /// The path over knots that it is, if it is one: tuning moves them.
    fn as_spline(&self) -> Option<&Spline> {
        None
    }

    /// log Z of the target, where it is known.
    fn log_z(&self) -> Option<f64>;

    /// Target evaluations since the path was made, in points.
    fn evaluations(&self) -> u64;

    /// Evaluations of a network since the path was made, in points: none unless the path was learned.
    fn network_evaluations(&self) -> u64 {
        0
    }
}
