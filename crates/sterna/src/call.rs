//! What every call of a kernel shares: the rows on their way, the path, and randomness; and the memory that a kernel
//! keeps between calls.

use crate::accelerator::Direction;
use crate::path::AnnealingPath;
use crate::streams::{Phase, PhaseKey, RowStream, Streams};
use crate::transport::Interval;
use crate::{Batch, Schedule};
use std::any::Any;
use std::cell::Cell;

/// Rows of an ensemble that a kernel moves: parallel lists. Local moves leave a row on its chain; journeys carry it over
/// a pair to the neighbouring one.
///
/// ```
/// use sterna::accelerator::Direction;
/// use sterna::{Schedule, call::Rows};
/// let stay = Rows::of_ladders(&[0.0, 1.0], 2);
/// assert_eq!(stay.chain, [0, 1, 0, 1]);
/// let leave = Rows::over_pair(&Schedule::uniform(3), 2, Direction::Backward, 4);
/// assert_eq!((leave.pair[3], leave.beta[3]), (2, 1.0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Row in the ensemble.
    pub row: Vec<usize>,
    /// Key of its random numbers.
    pub key: Vec<u32>,
    /// Chain it sits on.
    pub chain: Vec<usize>,
    /// β of that chain.
    pub beta: Vec<f64>,
    /// Pair n ∈ 1..=N that it crosses; no entries where rows stay.
    pub pair: Vec<usize>,
    /// β and β′ of that pair.
    pub interval: Vec<Interval>,
}

impl Rows {
    /// Ladders one after the other, each row on the chain of its number: local moves of all of them.
    pub fn of_ladders(schedule: &[f64], ladders: usize) -> Self {
        let mut rows = Self::default();
        for row in 0..ladders * schedule.len() {
            let chain = row % schedule.len();
            rows.push_staying(row, row as u32, chain, schedule[chain]);
        }
        rows
    }

    /// The first `count` rows, all of them over one pair.
    pub fn over_pair(schedule: &Schedule, pair: usize, direction: Direction, count: usize) -> Self {
        let mut rows = Self::default();
        for row in 0..count {
            rows.push_leaving(row, row as u32, pair, schedule.interval(pair), direction);
        }
        rows
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.row.clear();
        self.key.clear();
        self.chain.clear();
        self.beta.clear();
        self.pair.clear();
        self.interval.clear();
    }

    /// Adds a row that stays on its chain.
    pub fn push_staying(&mut self, row: usize, key: u32, chain: usize, beta: f64) {
        self.row.push(row);
        self.key.push(key);
        self.chain.push(chain);
        self.beta.push(beta);
    }

    /// Adds a row that crosses a pair.
    pub fn push_leaving(
        &mut self,
        row: usize,
        key: u32,
        pair: usize,
        interval: Interval,
        direction: Direction,
    ) {
        let (chain, beta) = match direction {
            Direction::Forward => (pair - 1, interval.lower),
            Direction::Backward => (pair, interval.upper),
        };
        self.push_staying(row, key, chain, beta);
        self.pair.push(pair);
        self.interval.push(interval);
    }

    /// Becomes some of the travelling rows of `other`.
    pub fn choose(&mut self, other: &Self, places: &[usize]) {
        self.clear();
        for &i in places {
            self.push_staying(other.row[i], other.key[i], other.chain[i], other.beta[i]);
            self.pair.push(other.pair[i]);
            self.interval.push(other.interval[i]);
        }
    }
}

/// One call of a kernel: which rows it moves, on which path, by which random numbers.
pub struct Call<'a> {
    /// From reference to target.
    pub path: &'a dyn AnnealingPath,
    /// All randomness.
    pub streams: &'a Streams,
    /// t.
    pub iteration: u64,
    /// The rows.
    pub rows: &'a Rows,
    /// Hands out the random numbers of local moves; journeys have those of their steps.
    pub slots: Slots,
}

impl<'a> Call<'a> {
    /// A call whose local moves are those of a sampler's explorer, or journeys.
    pub fn new(path: &'a dyn AnnealingPath, streams: &'a Streams, iteration: u64, rows: &'a Rows) -> Self {
        Self { path, streams, iteration, rows, slots: Slots::of_explorer() }
    }

    /// The same call on another path.
    pub fn on<'b>(&self, path: &'b dyn AnnealingPath) -> Call<'b>
    where
        'a: 'b,
    {
        Call {
            path,
            streams: self.streams,
            iteration: self.iteration,
            rows: self.rows,
            slots: self.slots.clone(),
        }
    }

    /// The same call for other rows.
    pub fn of<'b>(&self, rows: &'b Rows) -> Call<'b>
    where
        'a: 'b,
    {
        Call {
            path: self.path,
            streams: self.streams,
            iteration: self.iteration,
            rows,
            slots: self.slots.clone(),
        }
    }

    /// Row i of `out`: normals of row i.
    pub fn normals(&self, phase: PhaseKey, out: &mut Batch) {
        self.streams.normals(phase, self.iteration, &self.rows.key, out);
    }

    /// `out[i]`: a uniform of row i.
    pub fn uniforms(&self, phase: PhaseKey, out: &mut [f64]) {
        self.streams.uniforms(phase, self.iteration, &self.rows.key, out);
    }

    /// The stream of row i.
    pub fn stream(&self, phase: PhaseKey, i: usize) -> RowStream {
        self.streams.row(phase, self.iteration, self.rows.key[i])
    }
}

/// Places of local moves among the random numbers of an iteration. Each is handed out once, so that no two moves share
/// numbers, and in the same order in every iteration.
///
/// ```
/// use sterna::call::Slots;
/// let slots = Slots::of_explorer();
/// assert_ne!(slots.take(), slots.take());
/// ```
#[derive(Clone, Debug)]
pub struct Slots {
    next: Cell<usize>,
    end: usize,
}

/// Slots of a sampler's explorer: the paths' own moves have those that follow.
pub const EXPLORER_SLOTS: usize = 190;
const ALL_SLOTS: usize = 256;

impl Slots {
    /// Those of a sampler's explorer.
    pub fn of_explorer() -> Self {
        Self { next: Cell::new(0), end: EXPLORER_SLOTS }
    }

    /// Those of the moves that a path brings along.
    pub fn of_path() -> Self {
        Self { next: Cell::new(EXPLORER_SLOTS), end: ALL_SLOTS }
    }

    /// The next one.
    ///
    /// # Panics
    /// If all are taken.
    pub fn take(&self) -> PhaseKey {
        let slot = self.next.get();
        assert!(slot < self.end, "local moves may draw {} times an iteration", self.end);
        self.next.set(slot + 1);
        Phase::Local.number(slot)
    }

    /// Goes on after what another copy has handed out.
    pub fn follow(&self, other: &Self) {
        self.next.set(other.next.get());
    }

    /// Begins another kernel: at an even number.
    pub fn begin_next(&self) {
        self.next.set(self.next.get().next_multiple_of(2));
    }
}

/// Memory that a kernel keeps between calls. It is of the kernel's own type; whoever owns the rows keeps it and hands it
/// back, so that a loop allocates nothing and kernels share nothing.
///
/// ```
/// use sterna::call::Scratch;
/// let mut scratch = Scratch::default();
/// scratch.get::<Vec<f64>>().push(1.0);
/// assert_eq!(scratch.get::<Vec<f64>>(), &[1.0]);
/// assert_eq!(scratch.get::<String>(), ""); // another kernel: new memory
/// ```
#[derive(Default)]
pub struct Scratch(Option<Box<dyn Any + Send>>);

// SAFETY: what it holds can be reached through `&mut self` alone, so that threads which share it reach nothing.
unsafe impl Sync for Scratch {}

impl Scratch {
    /// The memory of a kernel, empty where another kernel or none had it last.
    pub fn get<T: Default + Send + 'static>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|memory| memory.is::<T>()) {
            self.0 = Some(Box::<T>::default());
        }
        self.0.as_mut().and_then(|memory| memory.downcast_mut()).expect("of this type")
    }
}

/// A copy of rows works in memory of its own.
impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("Scratch")
    }
}
