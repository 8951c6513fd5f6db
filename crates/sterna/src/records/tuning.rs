//! What tuning learns from: moves and swaps, slopes along the path, scores and spreads.

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
    #[serde(skip)]
    scratch: Scratch,
}

/// Iterations that have their memory from the start; those of a longer round get it as they come.
const MOST_RESERVED: usize = 1 << 16;

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
        for row in 0..self.row_betas.len() {
            let place = row / chains * chains + ensemble.chain(row);
            self.slopes[place].push(self.row_slopes[row]);
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
            scratch: Scratch::default(),
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let rows = copies * chains;
        let lengths = [self.slopes.len(), self.row_betas.len(), self.row_slopes.len()];
        self.counts.is_sound(copies, chains, dim)
            && lengths == [rows; 3]
            && self.beyond.len() == copies
            && [&self.score_squares, &self.sums[0], &self.sums[1]]
                .iter()
                .all(|sums| (sums.rows(), sums.dim()) == (rows, dim))
    }
}
