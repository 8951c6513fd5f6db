//! Accelerators: paths that carry the proposals of a swap (§3.1; Algorithm 1, lines 5–10).

use crate::call::{Call, Rows, Scratch};
use crate::path::{AnnealingPath, Points};
use crate::transport::Interval;
use crate::{Batch, Result, Schedule, Streams};

/// Where rows start, where they end, and the weight of the way.
#[derive(Clone, Debug, Default)]
pub struct Journey {
    /// In: the points, evaluated at the chain they come from. Out: the end points, evaluated at
    /// the chain they would go to.
    pub points: Points,
    /// log w of the path, always written forward: Q over P (eq. 5).
    pub log_weight: Vec<f64>,
}

impl Journey {
    /// Room for `rows` points of length `dim`.
    pub fn new(rows: usize, dim: usize) -> Self {
        Self { points: Points::zeros(rows, dim), log_weight: vec![0.0; rows] }
    }

    /// Sets the starting points.
    pub fn begin(&mut self, from: &Points, rows: &[usize]) {
        self.log_weight.resize(rows.len(), 0.0);
        self.points.gather(from, rows);
    }
}

/// The direction of a journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From chain n − 1 to chain n, by P.
    Forward,
    /// From chain n to chain n − 1, by Q.
    Backward,
}

impl Direction {
    /// β at which journeys in this direction end.
    pub fn ends(self, intervals: &[Interval], out: &mut Vec<f64>) {
        out.clear();
        out.extend(intervals.iter().map(|interval| match self {
            Self::Forward => interval.upper,
            Self::Backward => interval.lower,
        }));
    }
}

/// A family of forward and backward kernels, one pair of them for each pair of chains.
pub trait Accelerator: Send + Sync {
    /// K.
    fn steps(&self) -> usize;

    /// Carries the call's rows in one direction and weighs their paths.
    fn travel(
        &self,
        direction: Direction,
        call: &Call,
        journey: &mut Journey,
        scratch: &mut Scratch,
    ) -> Result<()>;
}

/// Journeys outside a ladder: of one pair, from given points.
///
/// ```
/// use sterna::accelerator::{Crossing, Direction};
/// use sterna::{Batch, Schedule, Streams, accelerators::Identity, paths::Geometric, targets::Normal};
/// let path = Geometric::from_standard_normal(Normal::isotropic(1, 4.0));
/// let (schedule, streams) = (Schedule::uniform(2), Streams::new(1));
/// let crossing = Crossing { accelerator: &Identity, path: &path, schedule: &schedule, streams: &streams };
/// let start = crossing.start(1, Direction::Forward, Batch::from_vec(1, vec![1.0])).unwrap();
/// let there = crossing.cross(1, Direction::Forward, 1, start).unwrap();
/// assert!((there.log_weight[0] + 1.5).abs() < 1e-12); // −½ · 4 + ½ · 1
/// ```
pub struct Crossing<'a> {
    /// What carries them.
    pub accelerator: &'a dyn Accelerator,
    /// From reference to target.
    pub path: &'a dyn AnnealingPath,
    /// β of each chain.
    pub schedule: &'a Schedule,
    /// All randomness.
    pub streams: &'a Streams,
}

impl Crossing<'_> {
    /// Points evaluated at the chain from which they cross a pair.
    pub fn start(&self, pair: usize, direction: Direction, x: Batch) -> Result<Points> {
        let interval = self.schedule.interval(pair);
        let beta = if direction == Direction::Forward { interval.lower } else { interval.upper };
        let mut points = Points::zeros(x.rows(), x.dim());
        points.x = x;
        self.path.evaluate(&vec![beta; points.rows()], &mut points)?;
        Ok(points)
    }

    /// Journeys over a pair from points that were evaluated where they start; row i has the random numbers of row i in
    /// the given iteration.
    pub fn cross(&self, pair: usize, direction: Direction, iteration: u64, start: Points) -> Result<Journey> {
        let rows = Rows::over_pair(self.schedule, pair, direction, start.rows());
        let mut journey = Journey { log_weight: vec![0.0; rows.len()], points: start };
        let call = Call::new(self.path, self.streams, iteration, &rows);
        self.accelerator.travel(direction, &call, &mut journey, &mut Scratch::default())?;
        Ok(journey)
    }
}
