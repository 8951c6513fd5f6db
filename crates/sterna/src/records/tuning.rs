//! What tuning learns from: moves and swaps, slopes along the path, scores and spreads.

use super::jumps::Jumps;
use super::{Counts, Ladders};
use crate::call::Scratch;
use crate::estimates::local_barrier;
use crate::iteration::{Recorder, Step};
use crate::{Batch, Result};
use serde::{Deserialize, Serialize};

/// What tuning learns from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TuningRecord {
    /// Moves and swaps.
    pub counts: Counts,
    /// d log π^β/dβ of each chain, iteration by iteration, ladder by ladder.
    slopes: Vec<Vec<f64>>,
    /// Of the target on the leg beyond it, where there is one.
    beyond: Vec<Vec<f64>>,
    /// Σ score² of each coordinate, one row per chain and ladder.
    score_squares: Batch,
    /// Σ x and Σ x² of each coordinate, likewise.
    sums: [Batch; 2],
    row_betas: Vec<f64>,
    row_slopes: Vec<f64>,
    /// (log η, log π) of each chain, where the path goes over knots that tuning moves.
    ends: Vec<Vec<[f64; 2]>>,
    /// How far local moves lead.
    pub(super) jumps: Jumps,
    #[serde(skip)]
    scratch: Scratch,
}

/// Iterations that have their memory from the start; those of a longer round get it as they come.
const MOST_RESERVED: usize = 1 << 16;

/// Iterations with local moves on a chain that can tell what these leave of an autocorrelation.
const ENOUGH_MOVES: u64 = 50;
/// What moves leave at the least: those that overshoot have no more use for what follows them.
const LEAST_LEFT: f64 = 0.02;

impl TuningRecord {
    /// Nothing yet.
    pub fn new(copies: usize, chains: usize, dim: usize, iterations: usize) -> Self {
        Self {
            counts: Counts::new(copies, chains),
            slopes: (0..copies * chains).map(|_| Vec::with_capacity(iterations.min(MOST_RESERVED))).collect(),
            beyond: vec![Vec::new(); copies],
            score_squares: Batch::zeros(copies * chains, dim),
            sums: [0, 1].map(|_| Batch::zeros(copies * chains, dim)),
            row_betas: vec![0.0; copies * chains],
            row_slopes: vec![0.0; copies * chains],
            ends: vec![Vec::new(); copies * chains],
            jumps: Jumps::new(copies, chains, dim),
            scratch: Scratch::default(),
        }
    }

    /// λ(β) of the target on the leg beyond it; NaN where there is none.
    pub fn barrier_beyond<'a>(records: impl Iterator<Item = &'a TuningRecord>) -> f64 {
        local_barrier(&mut records.flat_map(|r| &r.beyond).flatten().copied().collect())
    }

    /// λ(β) at each chain.
    pub fn local_barriers<'a>(
        records: impl Iterator<Item = &'a TuningRecord> + Clone,
        chains: usize,
    ) -> Vec<f64> {
        (0..chains)
            .map(|chain| {
                let all = records.clone().flat_map(|r| r.slopes.iter().skip(chain).step_by(chains));
                local_barrier(&mut all.flatten().copied().collect())
            })
            .collect()
    }

    /// E(score²) of each coordinate of each chain (chains × dim), shrunk towards the chain's mean by
    /// the weight of five samples.
    pub fn information<'a>(
        records: impl Iterator<Item = &'a TuningRecord> + Clone,
        chains: usize,
        dim: usize,
    ) -> Batch {
        let mut out = Batch::zeros(chains, dim);
        for chain in 0..chains {
            let mut count = 0.0;
            let row = out.row_mut(chain);
            for record in records.clone() {
                for ladder in record.score_squares.iter_rows().skip(chain).step_by(chains) {
                    row.iter_mut().zip(ladder).for_each(|(sum, x)| *sum += x);
                    count += record.counts.iterations as f64;
                }
            }
            let mean = row.iter().sum::<f64>() / (count * dim as f64);
            row.iter_mut().for_each(|x| *x = (*x + 5.0 * mean) / (count + 5.0));
        }
        out
    }

    /// (log η, log π) of the samples of each chain, over the given ladders: the ends of a path over knots.
    pub fn ends<'a>(
        records: impl Iterator<Item = &'a TuningRecord> + Clone,
        chains: usize,
    ) -> Vec<Vec<[f64; 2]>> {
        let of = |chain: usize| records.clone().flat_map(move |r| r.ends.iter().skip(chain).step_by(chains));
        (0..chains).map(|chain| of(chain).flatten().copied().collect()).collect()
    }

    /// What 1, 2, 4, … iterations of local moves leave of autocorrelations on a chain, as far as rows were seen to stay there: of the
    /// slope along the path, then of each coordinate. From how far moves lead beside how wide the chain is: 1 − ρ = E(x′ − x)²/(2 Var x).
    pub fn left<'a>(
        records: impl Iterator<Item = &'a TuningRecord> + Clone,
        (chain, chains): (usize, usize),
        spread: &Batch,
    ) -> Vec<Vec<f64>> {
        let slopes = records.clone().flat_map(|r| r.slopes.iter().skip(chain).step_by(chains)).flatten();
        let (count, sum) = slopes.clone().fold((0.0, 0.0), |(n, sum), slope| (n + 1.0, sum + slope));
        let variance = slopes.map(|slope| (slope - sum / count).powi(2)).sum::<f64>() / count;
        let variances: Vec<f64> =
            std::iter::once(variance).chain(spread.row(chain).iter().map(|s| s * s)).collect();
        let left = |(square, variance): (&f64, &f64)| match 1.0 - 0.5 * square / variance {
            left if left.is_finite() => left.max(LEAST_LEFT),
            _ => 1.0,
        };
        let squares = Jumps::mean_squares(records, chain, ENOUGH_MOVES);
        squares.iter().map(|squares| squares.iter().zip(&variances).map(left).collect()).collect()
    }

    /// Standard deviation of each coordinate on each chain (chains × dim), over the given ladders.
    pub fn spread<'a>(
        records: impl Iterator<Item = &'a TuningRecord> + Clone,
        chains: usize,
        dim: usize,
    ) -> Batch {
        let mut out = Batch::zeros(chains, dim);
        for chain in 0..chains {
            let (mut sum, mut squares, mut count) = (vec![0.0; dim], vec![0.0; dim], 0.0);
            for record in records.clone() {
                let [sums, all_squares] =
                    [0, 1].map(|k| record.sums[k].iter_rows().skip(chain).step_by(chains));
                for (ladder_sum, ladder_squares) in sums.zip(all_squares) {
                    sum.iter_mut().zip(ladder_sum).for_each(|(sum, x)| *sum += x);
                    squares.iter_mut().zip(ladder_squares).for_each(|(sum, x)| *sum += x);
                    count += record.counts.iterations as f64;
                }
            }
            for (j, spread) in out.row_mut(chain).iter_mut().enumerate() {
                let mean: f64 = sum[j] / count;
                *spread = (squares[j] / count - mean * mean).max(0.0).sqrt();
            }
        }
        out
    }
}

impl Recorder for TuningRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.counts.add(step);
        let ensemble = step.ensemble;
        let chains = ensemble.chains();
        let (legs, betas) = (ensemble.legs(), step.sampler.schedule.betas());
        let (path, scratch) = (&step.sampler.path, &mut self.scratch);
        if legs.count() == 2 {
            // The target's own chain belongs to the second leg as well.
            let after = 1f64.next_up();
            let beyond = self.row_betas.iter_mut().enumerate();
            beyond.for_each(|(row, beta)| *beta = betas[ensemble.chain(row)].max(after));
            path.slopes(&self.row_betas, &ensemble.points, &mut self.row_slopes, scratch)?;
            for (copy, slopes) in self.beyond.iter_mut().enumerate() {
                slopes.push(self.row_slopes[ensemble.row(copy, legs.target())]);
            }
        }
        self.row_betas.iter_mut().enumerate().for_each(|(row, beta)| *beta = betas[ensemble.chain(row)]);
        path.slopes(&self.row_betas, &ensemble.points, &mut self.row_slopes, scratch)?;
        self.jumps.add(step, &self.row_slopes);
        for row in 0..self.row_betas.len() {
            let place = row / chains * chains + ensemble.chain(row);
            self.slopes[place].push(self.row_slopes[row]);
            if path.as_spline().is_some() {
                let points = &ensemble.points;
                self.ends[place].push([points.log_reference[row], points.target.log_density[row]]);
            }
            let sums = self.score_squares.row_mut(place);
            for (sum, score) in sums.iter_mut().zip(ensemble.points.score.row(row)) {
                let square = score * score;
                *sum += if square.is_finite() { square } else { 0.0 };
            }
            let [sums, squares] = &mut self.sums;
            let of_row = sums.row_mut(place).iter_mut().zip(squares.row_mut(place));
            for ((sum, squares), x) in of_row.zip(ensemble.points.x.row(row)) {
                *sum += x;
                *squares += x * x;
            }
        }
        Ok(())
    }
}

impl Ladders for TuningRecord {
    fn append(&mut self, other: Self) {
        self.counts.append(other.counts);
        self.slopes.extend(other.slopes);
        self.beyond.extend(other.beyond);
        self.score_squares.append(other.score_squares);
        self.sums.iter_mut().zip(other.sums).for_each(|(sums, other)| sums.append(other));
        self.row_betas.extend(other.row_betas);
        self.row_slopes.extend(other.row_slopes);
        self.ends.extend(other.ends);
        self.jumps.append(other.jumps);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        let rows = copies * self.counts.chains;
        Self {
            counts: self.counts.split_off(copies),
            slopes: self.slopes.split_off(rows),
            beyond: self.beyond.split_off(copies),
            score_squares: self.score_squares.split_off(rows),
            sums: self.sums.each_mut().map(|sums| sums.split_off(rows)),
            row_betas: self.row_betas.split_off(rows),
            row_slopes: self.row_slopes.split_off(rows),
            ends: self.ends.split_off(rows),
            jumps: self.jumps.split_off(copies),
            scratch: Scratch::default(),
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let rows = copies * chains;
        let lengths = [self.slopes.len(), self.row_betas.len(), self.row_slopes.len(), self.ends.len()];
        self.counts.is_sound(copies, chains, dim)
            && lengths == [rows; 4]
            && self.jumps.is_sound(copies, chains, dim)
            && self.beyond.len() == copies
            && [&self.score_squares, &self.sums[0], &self.sums[1]]
                .iter()
                .all(|sums| (sums.rows(), sums.dim()) == (rows, dim))
    }
}
