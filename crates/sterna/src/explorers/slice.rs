//! Slice sampling, one coordinate after the other, with stepping out and shrinkage (Neal, 2003). Needs no score.
//!
//! A height is drawn under the density at x; an interval of the coordinate's width is laid at random around x and steps
//! out while its ends lie above that height; then points are drawn from it until one lies above, the interval shrinking
//! to each that does not. At most `expansions` widths are laid out; how many of them to the left is drawn beforehand,
//! which keeps the move exact. All rows of a call advance together: each evaluation serves every row that has not found
//! its point yet.

use super::Between;
use crate::call::{Call, EXPLORER_SLOTS, Scratch};
use crate::error::BadState;
use crate::explorer::{Explorer, Moved, Tuning};
use crate::lanes::one::ln;
use crate::path::Points;
use crate::streams::RowStream;
use crate::{Batch, Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Points that a row may draw from its interval; then it stays, which is as exact: the way back would draw as many.
const MOST_DRAWS: usize = 100;

/// Widths of an interval, at most.
const MOST_EXPANSIONS: usize = 10_000;

/// Widths in units of a coordinate's standard deviation.
const WIDTH: f64 = 2.0;

/// Slice sampling of each coordinate in turn.
///
/// ```
/// use std::sync::Arc;
/// use sterna::explorers::Slice;
/// use sterna::{paths::Geometric, run::{Run, Settings}, targets::Normal};
/// let path = Arc::new(Geometric::from_standard_normal(Normal::isotropic(2, 4.0)));
/// let explorer = Arc::new(Slice { sweeps: 2, ..Slice::default() });
/// let settings = Settings { chains: 3, rounds: 3, iterations: 2_000, explorer, ..Settings::default() };
/// let mut run = Run::new(path, settings).unwrap();
/// run.complete().unwrap();
/// let log_z = run.results().log_z;
/// assert!((log_z.bar + 4f64.ln()).abs() < 5.0 * log_z.standard_error);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// How often an iteration moves every coordinate.
    pub sweeps: usize,
    /// Width of the first interval, until tuning has seen the coordinates' own.
    pub width: f64,
    /// Widths that an interval may grow to.
    pub expansions: usize,
    /// Width of each coordinate on each chain (chains × dim). Empty until [`begin`](Explorer::begin) knows their number.
    pub widths: Batch,
}

impl Default for Slice {
    fn default() -> Self {
        Self { sweeps: 1, width: 1.0, expansions: 16, widths: Batch::default() }
    }
}

/// What a call needs; kept for the next one.
#[derive(Default)]
struct Memory {
    streams: Vec<RowStream>,
    searches: Vec<Search>,
    /// Places of the rows that still search, and these rows, in one order.
    places: Vec<usize>,
    rows: Vec<usize>,
    betas: Vec<f64>,
    points: Points,
    found: Vec<bool>,
}

/// A row's search along one coordinate.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Log density that a point must exceed.
    height: f64,
    /// Where the row is.
    x: f64,
    width: f64,
    ends: [f64; 2],
    /// Widths that each end may still step out.
    left: [usize; 2],
    next: Next,
}

/// What a row asks next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    /// Whether an end of the interval lies above the height.
    End(usize),
    /// Whether this point does, the so many-th.
    Point(f64, usize),
    /// Nothing: the row has found its point, or stays.
    Done,
}

impl Search {
    fn begin(log_density: f64, x: f64, width: f64, expansions: usize, stream: &mut RowStream) -> Self {
        let height = log_density + ln(stream.uniform());
        let lower = x - width * stream.uniform();
        let to_the_left = stream.below(expansions);
        let left = [to_the_left, expansions - 1 - to_the_left];
        let mut search = Self { height, x, width, ends: [lower, lower + width], left, next: Next::Done };
        search.next = search.after_end(0, stream);
        search
    }

    /// What to ask once the ends before `end` are settled.
    fn after_end(&self, end: usize, stream: &mut RowStream) -> Next {
        match (end..2).find(|&end| self.left[end] > 0) {
            Some(end) => Next::End(end),
            None => self.point(1, stream),
        }
    }

    fn point(&self, draws: usize, stream: &mut RowStream) -> Next {
        let [lower, upper] = self.ends;
        Next::Point(lower + (upper - lower) * stream.uniform(), draws)
    }

    /// Where the coordinate is asked, if anywhere.
    fn asks(&self) -> Option<f64> {
        match self.next {
            Next::End(end) => Some(self.ends[end]),
            Next::Point(x, _) => Some(x),
            Next::Done => None,
        }
    }

    /// Takes the answer: whether the density lies above the height there. Tells whether the row moves there.
    fn answer(&mut self, above: bool, stream: &mut RowStream) -> bool {
        match self.next {
            Next::End(end) => {
                if above {
                    self.ends[end] += if end == 0 { -self.width } else { self.width };
                    self.left[end] -= 1;
                }
                let settled = !above || self.left[end] == 0;
                self.next = if settled { self.after_end(end + 1, stream) } else { Next::End(end) };
                false
            }
            Next::Point(..) if above => {
                self.next = Next::Done;
                true
            }
            Next::Point(x, draws) => {
                self.ends[usize::from(x > self.x)] = x;
                self.next = if draws < MOST_DRAWS { self.point(draws + 1, stream) } else { Next::Done };
                false
            }
            Next::Done => false,
        }
    }
}

impl Slice {
    /// Moves coordinate `j` of all rows.
    fn move_coordinate(
        &self,
        j: usize,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        memory: &mut Memory,
    ) -> Result<()> {
        let Memory { streams, searches, places, rows, betas, points: asked, found } = memory;
        searches.clear();
        for (i, &row) in call.rows.row.iter().enumerate() {
            let (log_density, x) = (points.log_density[row], points.x.row(row)[j]);
            let width = self.widths.row(call.rows.chain[i])[j];
            searches.push(Search::begin(log_density, x, width, self.expansions, &mut streams[i]));
        }
        loop {
            places.clear();
            places.extend((0..searches.len()).filter(|&i| searches[i].next != Next::Done));
            if places.is_empty() {
                return Ok(());
            }
            rows.clear();
            rows.extend(places.iter().map(|&i| call.rows.row[i]));
            betas.clear();
            betas.extend(places.iter().map(|&i| call.rows.beta[i]));
            asked.gather_state(points, rows);
            for (k, &i) in places.iter().enumerate() {
                asked.x.row_mut(k)[j] = searches[i].asks().expect("still searching");
            }
            call.path.evaluate(betas, asked)?;
            found.clear();
            for (k, &i) in places.iter().enumerate() {
                if asked.is_bad(k) {
                    moved.note_bad(i, asked.x.row(k));
                }
                // NaN and +∞ lie nowhere.
                let log_density = asked.log_density[k];
                let above = log_density > searches[i].height && log_density < f64::INFINITY;
                found.push(searches[i].answer(above, &mut streams[i]));
            }
            points.scatter(rows, asked, |k| found[k]);
        }
    }

    fn has_widths_for(&self, chains: usize, dim: usize) -> bool {
        (self.widths.rows(), self.widths.dim()) == (chains, dim)
            && self.widths.as_slice().iter().all(|w| *w > 0.0 && w.is_finite())
    }
}

impl Explorer for Slice {
    fn explore(
        &self,
        call: &Call,
        points: &mut Points,
        moved: &mut Moved,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let memory = scratch.get::<Memory>();
        for _ in 0..self.sweeps {
            let slot = call.slots.take();
            memory.streams.clear();
            memory.streams.extend((0..call.rows.len()).map(|i| call.stream(slot, i)));
            for j in 0..points.x.dim() {
                self.move_coordinate(j, call, points, moved, memory)?;
            }
            // A sweep always moves.
            for moves in &mut moved.rows {
                moves.proposed += 1;
                moves.acceptance += 1.0;
            }
        }
        Ok(())
    }

    fn check(&self, _chains: usize, _rounds: usize) -> Result<()> {
        if self.sweeps == 0 || self.sweeps > EXPLORER_SLOTS {
            let cure = "between 1 and 190 sweeps an iteration are possible";
            return Err(Error::setting("Slice.sweeps", self.sweeps, cure));
        }
        if self.expansions == 0 || self.expansions > MOST_EXPANSIONS {
            const { assert!(MOST_EXPANSIONS == 10_000) };
            let cure = "an interval has between 1 and 10000 widths";
            return Err(Error::setting("Slice.expansions", self.expansions, cure));
        }
        if !(self.width > 0.0 && self.width.is_finite()) {
            return Err(Error::setting("Slice.width", self.width, "a width is a positive number"));
        }
        Ok(())
    }

    fn begin(&self, chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        if self.widths == Batch::default() {
            let widths = Batch::from_vec(dim, vec![self.width; chains * dim]);
            return Ok(Some(Arc::new(Self { widths, ..self.clone() })));
        }
        let (found, expected) = (self.widths.dim(), dim);
        match self.has_widths_for(chains, dim) {
            true => Ok(None),
            false => Err(Error::Dimension { what: "the widths of slices", found, expected }),
        }
    }

    fn adapt(&self, tuning: &Tuning) -> Option<Arc<dyn Explorer>> {
        let widths = match tuning {
            Tuning::Block { .. } | Tuning::Balance(_) => return None,
            Tuning::Masses { shapes, .. } => {
                let widths = shapes.iter().flat_map(|shape| shape.deviations());
                Batch::from_vec(self.widths.dim(), widths.map(|deviation| WIDTH * deviation).collect())
            }
            Tuning::Round { spread, .. } => {
                let mut widths = self.widths.clone();
                let seen = widths.as_mut_slice().iter_mut().zip(spread.as_slice());
                // A coordinate that has not moved tells nothing.
                seen.filter(|(_, s)| **s > 0.0 && s.is_finite()).for_each(|(w, s)| *w = WIDTH * s);
                widths
            }
            Tuning::Schedule { from, to } => {
                let mut widths = Batch::zeros(to.chains(), self.widths.dim());
                for (chain, &beta) in to.betas().iter().enumerate() {
                    let between = Between::new(from, beta);
                    for (j, width) in widths.row_mut(chain).iter_mut().enumerate() {
                        *width = between.width(|n| self.widths.row(n)[j]);
                    }
                }
                widths
            }
        };
        Some(Arc::new(Self { widths, ..self.clone() }))
    }

    fn describe(&self) -> Vec<(&'static str, Vec<f64>)> {
        let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
        vec![("width", self.widths.iter_rows().map(mean).collect())]
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_allocvec(&("slice", self)).expect("memory is all it needs")
    }

    fn restore(&self, saved: &[u8], chains: usize, dim: usize) -> Result<Option<Arc<dyn Explorer>>> {
        let (kind, theirs): (&str, Self) =
            postcard::from_bytes(saved).map_err(|e| BadState::Unreadable(e.to_string()))?;
        let same = Self { widths: self.widths.clone(), ..theirs.clone() } == *self;
        if kind != "slice" || !same || !theirs.has_widths_for(chains, dim) {
            return Err(BadState::Contradiction.into());
        }
        Ok(Some(Arc::new(theirs)))
    }
}
