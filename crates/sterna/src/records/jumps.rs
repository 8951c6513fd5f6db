//! How far local moves carry a row: what tuning learns of their autocorrelations, for no further evaluation.

use super::{Ladders, TuningRecord};
use crate::Batch;
use crate::iteration::Step;
use serde::{Deserialize, Serialize};

/// So many iterations of local moves in a row are looked at: 1, 2, 4, 8 and 16.
const LAGS: usize = 5;

/// Squared distances that rows go by local moves while they stay on a chain, chain by chain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Jumps {
    chains: usize,
    /// Where each row was when it came to its chain, and the slope of its log density there; no numbers before it is known.
    from: Batch,
    from_slopes: Vec<f64>,
    /// Iterations of local moves since.
    since: Vec<u32>,
    lags: Vec<Lag>,
}

/// What was seen after so many iterations.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lag {
    /// Σ (x′ − x)² of each coordinate, one row per chain and ladder.
    squares: Batch,
    /// The same of the slope of the log density along the path.
    slope_squares: Vec<f64>,
    /// How often, likewise.
    seen: Vec<u64>,
}

impl Jumps {
    pub fn new(copies: usize, chains: usize, dim: usize) -> Self {
        let rows = copies * chains;
        let lag =
            || Lag { squares: Batch::zeros(rows, dim), slope_squares: vec![0.0; rows], seen: vec![0; rows] };
        Self {
            chains,
            from: Batch::from_vec(dim, vec![f64::NAN; rows * dim]),
            from_slopes: vec![f64::NAN; rows],
            since: vec![0; rows],
            lags: (0..LAGS).map(|_| lag()).collect(),
        }
    }

    /// Adds what an iteration did. Swaps that leave points where they are change nothing of what moves did before them; rows that
    /// were carried elsewhere are passed over.
    pub fn add(&mut self, step: &Step, slopes: &[f64]) {
        let ensemble = step.ensemble;
        let carries = step.sampler.accelerator.steps() > 0;
        let (target, legs) = (ensemble.legs().target(), ensemble.legs());
        for (row, &slope) in slopes.iter().enumerate() {
            let (was, is) = (step.explored_chain[row], ensemble.chain(row));
            let x = ensemble.points.x.row(row);
            // What lies beyond the target has a slope of another leg.
            let known = self.from_slopes[row].is_finite() && slope.is_finite() && was.max(is) <= target;
            if known && step.moves[row].proposed > 0 && !(carries && was != is) {
                self.since[row] += 1;
                if self.since[row].is_power_of_two() {
                    let place = row / self.chains * self.chains + was;
                    let lag = &mut self.lags[self.since[row].ilog2() as usize];
                    lag.seen[place] += 1;
                    lag.slope_squares[place] += (slope - self.from_slopes[row]).powi(2);
                    let sums = lag.squares.row_mut(place).iter_mut();
                    for ((sum, x), from) in sums.zip(x).zip(self.from.row(row)) {
                        *sum += (x - from) * (x - from);
                    }
                }
            }
            let drawn = step.moves[row].proposed == 0 && legs.is_reference(was);
            if !known || was != is || drawn || self.since[row] == 1 << (LAGS - 1) {
                self.from.row_mut(row).copy_from_slice(x);
                self.from_slopes[row] = if is <= target { slope } else { f64::NAN };
                self.since[row] = 0;
            }
        }
    }

    /// Mean squares of a chain's jumps after 1, 2, 4, … iterations, as far as enough of them were seen: of the slope, then of each
    /// coordinate.
    pub fn mean_squares<'a>(
        records: impl Iterator<Item = &'a TuningRecord> + Clone,
        chain: usize,
        enough: u64,
    ) -> Vec<Vec<f64>> {
        let of_lag = |lag: usize| {
            let (mut count, mut sums) = (0, Vec::new());
            for jumps in records.clone().map(|r| &r.jumps) {
                let Lag { squares, slope_squares, seen } = &jumps.lags[lag];
                sums.resize(squares.dim() + 1, 0.0);
                for place in (chain..seen.len()).step_by(jumps.chains) {
                    count += seen[place];
                    sums[0] += slope_squares[place];
                    sums[1..].iter_mut().zip(squares.row(place)).for_each(|(sum, square)| *sum += square);
                }
            }
            let means: Vec<f64> = sums.iter().map(|sum| sum / count as f64).collect();
            (count >= enough).then_some(means)
        };
        (0..LAGS).map_while(of_lag).collect()
    }
}

impl Ladders for Jumps {
    fn append(&mut self, other: Self) {
        self.from.append(other.from);
        self.from_slopes.extend(other.from_slopes);
        self.since.extend(other.since);
        for (lag, other) in self.lags.iter_mut().zip(other.lags) {
            lag.squares.append(other.squares);
            lag.slope_squares.extend(other.slope_squares);
            lag.seen.extend(other.seen);
        }
    }

    fn split_off(&mut self, copies: usize) -> Self {
        let rows = copies * self.chains;
        let split = |lag: &mut Lag| Lag {
            squares: lag.squares.split_off(rows),
            slope_squares: lag.slope_squares.split_off(rows),
            seen: lag.seen.split_off(rows),
        };
        Self {
            chains: self.chains,
            from: self.from.split_off(rows),
            from_slopes: self.from_slopes.split_off(rows),
            since: self.since.split_off(rows),
            lags: self.lags.iter_mut().map(split).collect(),
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let rows = copies * chains;
        let fits = |batch: &Batch| (batch.rows(), batch.dim()) == (rows, dim);
        let lag = |lag: &Lag| {
            fits(&lag.squares)
                && [lag.slope_squares.len(), lag.seen.len()] == [rows; 2]
                && lag.seen.iter().all(|&n| n < super::MOST_COUNTED)
        };
        self.chains == chains
            && fits(&self.from)
            && [self.from_slopes.len(), self.since.len()] == [rows; 2]
            && self.since.iter().all(|&since| since < 1 << (LAGS - 1))
            && self.lags.len() == LAGS
            && self.lags.iter().all(lag)
    }
}
