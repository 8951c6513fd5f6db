//! What is kept of an iteration: sums for tuning, weights and draws for estimates.
//!
//! Everything is kept ladder by ladder and joined in their order, so no sum depends on how the
//! ladders were spread over threads or batches.

use crate::estimates::{FoldedLadder, LadderWeights, MOST, Series, local_barrier};
use crate::iteration::{Recorder, Step};
use crate::trace::LadderTrace;
use crate::{Batch, Result};
use serde::{Deserialize, Serialize};

/// A record of several ladders that can be joined and parted: a run goes on with another number of
/// threads than it began with.
pub(crate) trait Ladders: Sized {
    /// Adds the ladders of another record, which follow on these.
    fn append(&mut self, other: Self);
    /// Takes away the ladders from `copies` on.
    fn split_off(&mut self, copies: usize) -> Self;
    /// Whether all parts belong to so many ladders: a file may claim anything.
    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool;
}

/// Local moves on one chain of one ladder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalMoves {
    /// Sum of acceptance probabilities.
    pub acceptance: f64,
    /// Moves proposed.
    pub proposed: u64,
    /// Proposals at which the target answered NaN or +∞.
    pub bad: u64,
}

/// A point at which the target answered NaN or +∞.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BadPoint {
    /// Iteration of the first such proposal.
    pub iteration: u64,
    /// Chain it was proposed on.
    pub chain: usize,
    /// Replica it was proposed to, counted over all ladders.
    pub replica: usize,
    /// The point.
    pub point: Vec<f64>,
}

/// Swaps of one pair in one ladder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PairRecord {
    /// Sum of |tanh(Δ/2)|.
    pub rejection: f64,
    /// Swaps proposed.
    pub proposed: u64,
    /// Swaps accepted.
    pub accepted: u64,
    /// log-weights of the latest forward paths, in order of time; earlier ones are folded. Empty in tuning.
    pub forward: Vec<f64>,
    /// log-weights of backward paths.
    pub backward: Vec<f64>,
}

/// Counts that every round keeps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    chains: usize,
    /// `local[copy · chains + chain]`.
    pub local: Vec<LocalMoves>,
    /// `pairs[copy · (chains − 1) + pair − 1]`.
    pub pairs: Vec<PairRecord>,
    /// The first bad point.
    pub bad_point: Option<BadPoint>,
    /// Iterations recorded.
    pub iterations: u64,
}

impl Counts {
    /// Nothing yet, for `copies` ladders.
    pub fn new(copies: usize, chains: usize) -> Self {
        Self {
            chains,
            local: vec![LocalMoves::default(); copies * chains],
            pairs: vec![PairRecord::default(); copies * (chains - 1)],
            bad_point: None,
            iterations: 0,
        }
    }

    fn add(&mut self, step: &Step) {
        self.iterations += 1;
        for (row, (moves, &chain)) in step.moves.iter().zip(step.explored_chain).enumerate() {
            let local = &mut self.local[row / self.chains * self.chains + chain];
            local.acceptance += moves.acceptance;
            local.proposed += u64::from(moves.proposed);
            local.bad += u64::from(moves.bad);
        }
        for swap in step.swaps {
            let pair = &mut self.pairs[swap.copy * (self.chains - 1) + swap.pair - 1];
            pair.rejection += swap.rejection;
            pair.proposed += 1;
            pair.accepted += u64::from(swap.accepted);
        }
        if let (None, Some((chain, row, point))) = (&self.bad_point, step.bad_point) {
            let replica = step.ensemble.key(row) as usize;
            self.bad_point =
                Some(BadPoint { iteration: step.iteration, chain, replica, point: point.to_vec() });
        }
    }

    /// The first bad point of the given ladders: earliest iteration, then first replica.
    pub fn first_bad_point<'a>(counts: impl Iterator<Item = &'a Counts>) -> Option<&'a BadPoint> {
        counts.filter_map(|c| c.bad_point.as_ref()).min_by_key(|b| (b.iteration, b.replica))
    }

    /// Mean acceptance of the local moves of each chain, over the given ladders.
    pub fn acceptance<'a>(counts: impl Iterator<Item = &'a Counts> + Clone, chains: usize) -> Vec<f64> {
        (0..chains)
            .map(|chain| {
                let all = counts.clone().flat_map(|c| c.local.iter().skip(chain).step_by(chains));
                let (sum, n) = all.fold((0.0, 0), |(s, n), l| (s + l.acceptance, n + l.proposed));
                sum / n as f64
            })
            .collect()
    }

    /// Rejection rate of each pair by the tanh estimator, over the given ladders.
    pub fn rejection_rates<'a>(counts: impl Iterator<Item = &'a Counts> + Clone, chains: usize) -> Vec<f64> {
        (0..chains - 1)
            .map(|pair| {
                let all = counts.clone().flat_map(|c| c.pairs.iter().skip(pair).step_by(chains - 1));
                let (sum, n) = all.fold((0.0, 0), |(s, n), p| (s + p.rejection, n + p.proposed));
                sum / n as f64
            })
            .collect()
    }
}

impl Ladders for Counts {
    fn append(&mut self, other: Self) {
        self.bad_point = Self::first_bad_point([&*self, &other].into_iter()).cloned();
        self.local.extend(other.local);
        self.pairs.extend(other.pairs);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        Self {
            chains: self.chains,
            local: self.local.split_off(copies * self.chains),
            pairs: self.pairs.split_off(copies * (self.chains - 1)),
            // It stays with the first ladders: all are asked together.
            bad_point: None,
            iterations: self.iterations,
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        self.chains == chains
            && self.local.len() == copies * chains
            && self.pairs.len() == copies * (chains - 1)
            && self.pairs.iter().all(|p| p.forward.len() == p.backward.len())
            && self.bad_point.as_ref().is_none_or(|b| b.point.len() == dim)
    }
}

/// What tuning learns from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TuningRecord {
    /// Moves and swaps.
    pub counts: Counts,
    /// d log π^β/dβ of each chain, iteration by iteration, ladder by ladder.
    slopes: Vec<Vec<f64>>,
    /// Σ score² of each coordinate, one row per chain and ladder.
    score_squares: Batch,
    row_betas: Vec<f64>,
    row_slopes: Vec<f64>,
}

impl TuningRecord {
    /// Nothing yet.
    pub fn new(copies: usize, chains: usize, dim: usize, iterations: usize) -> Self {
        Self {
            counts: Counts::new(copies, chains),
            slopes: vec![Vec::with_capacity(iterations); copies * chains],
            score_squares: Batch::zeros(copies * chains, dim),
            row_betas: vec![0.0; copies * chains],
            row_slopes: vec![0.0; copies * chains],
        }
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
}

impl Recorder for TuningRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.counts.add(step);
        let ensemble = step.ensemble;
        let chains = ensemble.chains();
        for (row, beta) in self.row_betas.iter_mut().enumerate() {
            *beta = step.sampler.schedule.betas()[ensemble.chain(row)];
        }
        step.sampler.path.slopes(&self.row_betas, &ensemble.points, &mut self.row_slopes)?;
        for row in 0..self.row_betas.len() {
            let place = row / chains * chains + ensemble.chain(row);
            self.slopes[place].push(self.row_slopes[row]);
            let sums = self.score_squares.row_mut(place);
            for (sum, score) in sums.iter_mut().zip(ensemble.points.score.row(row)) {
                let square = score * score;
                *sum += if square.is_finite() { square } else { 0.0 };
            }
        }
        Ok(())
    }
}

impl Ladders for TuningRecord {
    fn append(&mut self, other: Self) {
        self.counts.append(other.counts);
        self.slopes.extend(other.slopes);
        self.score_squares.append(other.score_squares);
        self.row_betas.extend(other.row_betas);
        self.row_slopes.extend(other.row_slopes);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        let rows = copies * self.counts.chains;
        Self {
            counts: self.counts.split_off(copies),
            slopes: self.slopes.split_off(rows),
            score_squares: self.score_squares.split_off(rows),
            row_betas: self.row_betas.split_off(rows),
            row_slopes: self.row_slopes.split_off(rows),
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let rows = copies * chains;
        let lengths = [self.slopes.len(), self.row_betas.len(), self.row_slopes.len()];
        self.counts.is_sound(copies, chains, dim)
            && lengths == [rows; 3]
            && self.score_squares.rows() == rows
            && self.score_squares.dim() == dim
    }
}

/// Draws of the target chain of one ladder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Draws {
    /// Points, one after the other.
    pub x: Vec<f64>,
    /// log π̃ at each.
    pub log_density: Vec<f64>,
    /// The replica that sat on the target chain.
    pub replica: Vec<u32>,
}

impl Draws {
    /// All of them; as many more will fit without growing again.
    pub(crate) fn take(&mut self) -> Self {
        let room = Self {
            x: Vec::with_capacity(self.x.len()),
            log_density: Vec::with_capacity(self.log_density.len()),
            replica: Vec::with_capacity(self.replica.len()),
        };
        std::mem::replace(self, room)
    }
}

/// Proposals of each pair whose weights are kept one by one; then they are folded.
pub const LATEST: u64 = 1 << 16;

/// What estimates are made from. Its size does not grow beyond a bound, but for draws that nobody takes out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SamplingRecord {
    /// Moves, swaps and their weights.
    pub counts: Counts,
    /// Draws of each ladder's target chain, every `thin`-th iteration, since they were last taken out.
    pub draws: Vec<Draws>,
    /// `[copy · dim + coordinate]` of all draws, or means of blocks of them.
    pub series: Vec<Series>,
    /// Weights of each ladder beyond the latest; none while these are all.
    pub folded: Vec<FoldedLadder>,
    /// Round trips of each ladder in this record.
    pub round_trips: Vec<u64>,
    /// What people look at, ladder by ladder.
    pub traces: Vec<LadderTrace>,
    /// `[copy · chains + chain]`: points one after the other, where they are kept.
    pub trajectories: Vec<Vec<f64>>,
    round_trips_before: Vec<u64>,
    thin: u64,
    every: Option<u64>,
}

impl SamplingRecord {
    /// Room for `iterations` of the ladders in `ensemble`.
    pub fn new(ensemble: &crate::Ensemble, iterations: u64, thin: u64) -> Self {
        let copies = ensemble.copies();
        let dim = ensemble.points.x.dim();
        let mut record = Self {
            counts: Counts::new(copies, ensemble.chains()),
            draws: vec![Draws::default(); copies],
            series: vec![Series::new(MOST); copies * dim],
            folded: Vec::new(),
            round_trips: vec![0; copies],
            traces: (0..copies).map(|copy| LadderTrace::new(ensemble, copy)).collect(),
            trajectories: Vec::new(),
            every: None,
            round_trips_before: ensemble.index.iter().map(|i| i.round_trips()).collect(),
            thin,
        };
        record.reserve(iterations);
        record
    }

    /// Room for so many more iterations, as far as they are kept.
    pub(crate) fn reserve(&mut self, iterations: u64) {
        let proposals = (iterations / 2 + 1).min(LATEST) as usize;
        for pair in &mut self.counts.pairs {
            pair.forward.reserve(proposals);
            pair.backward.reserve(proposals);
        }
        let kept = iterations / self.thin + 1;
        self.series.iter_mut().for_each(|s| s.reserve(kept));
        let dim = self.series.len() / self.draws.len();
        // Draws are taken out now and then.
        let kept = kept.min(1 << 16) as usize;
        for draws in &mut self.draws {
            draws.x.reserve(kept * dim);
            draws.log_density.reserve(kept);
            draws.replica.reserve(kept);
        }
    }

    /// Weights of each ladder.
    pub fn weights(&self) -> impl Iterator<Item = LadderWeights<'_>> {
        let pairs = self.counts.chains - 1;
        self.counts.pairs.chunks_exact(pairs).enumerate().map(|(copy, pairs)| LadderWeights {
            folded: self.folded.get(copy),
            latest: pairs.iter().map(|p| (&p.forward[..], &p.backward[..])).collect(),
        })
    }

    /// Every pair has exactly so many latest weights after twice as many iterations.
    fn fold(&mut self) {
        let pairs = self.counts.chains - 1;
        if self.folded.is_empty() {
            self.folded = vec![FoldedLadder::new(pairs); self.draws.len()];
        }
        for (folded, pairs) in self.folded.iter_mut().zip(self.counts.pairs.chunks_exact_mut(pairs)) {
            folded.fold(&pairs.iter().map(|p| (&p.forward[..], &p.backward[..])).collect::<Vec<_>>());
            for pair in pairs {
                pair.forward.clear();
                pair.backward.clear();
            }
        }
    }

    /// The same, keeping the points of all chains every so many iterations.
    pub fn with_trajectories(mut self, every: Option<u64>) -> Self {
        self.trajectories =
            if every.is_some() { vec![Vec::new(); self.counts.local.len()] } else { Vec::new() };
        self.every = every;
        self
    }
}

impl Recorder for SamplingRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.counts.add(step);
        let ensemble = step.ensemble;
        let chains = ensemble.chains();
        for swap in step.swaps {
            let pair = &mut self.counts.pairs[swap.copy * (chains - 1) + swap.pair - 1];
            pair.forward.push(swap.log_forward);
            pair.backward.push(swap.log_backward);
        }
        for (copy, index) in ensemble.index.iter().enumerate() {
            self.round_trips[copy] = index.round_trips() - self.round_trips_before[copy];
        }
        for (copy, trace) in self.traces.iter_mut().enumerate() {
            trace.record(ensemble, copy);
        }
        if self.counts.iterations.is_multiple_of(self.thin) {
            for (copy, draws) in self.draws.iter_mut().enumerate() {
                let row = ensemble.row(copy, chains - 1);
                draws.x.extend_from_slice(ensemble.points.x.row(row));
                draws.log_density.push(ensemble.points.log_density[row]);
                draws.replica.push(ensemble.index[copy].replica(chains - 1) as u32);
                let x = ensemble.points.x.row(row);
                let series = &mut self.series[copy * x.len()..(copy + 1) * x.len()];
                series.iter_mut().zip(x).for_each(|(series, &x)| series.push(x));
            }
        }
        if self.every.is_some_and(|every| self.counts.iterations.is_multiple_of(every)) {
            for (place, points) in self.trajectories.iter_mut().enumerate() {
                let row = ensemble.row(place / chains, place % chains);
                points.extend_from_slice(ensemble.points.x.row(row));
            }
        }
        if self.counts.iterations.is_multiple_of(2 * LATEST) {
            self.fold();
        }
        Ok(())
    }
}

impl Ladders for SamplingRecord {
    fn append(&mut self, other: Self) {
        self.counts.append(other.counts);
        self.draws.extend(other.draws);
        self.series.extend(other.series);
        self.folded.extend(other.folded);
        self.round_trips.extend(other.round_trips);
        self.traces.extend(other.traces);
        self.trajectories.extend(other.trajectories);
        self.round_trips_before.extend(other.round_trips_before);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        let dim = self.series.len() / self.draws.len();
        Self {
            counts: self.counts.split_off(copies),
            draws: self.draws.split_off(copies),
            series: self.series.split_off(copies * dim),
            folded: self.folded.split_off(copies.min(self.folded.len())),
            round_trips: self.round_trips.split_off(copies),
            traces: self.traces.split_off(copies),
            trajectories: match self.every {
                Some(_) => self.trajectories.split_off(copies * self.counts.chains),
                None => Vec::new(),
            },
            every: self.every,
            round_trips_before: self.round_trips_before.split_off(copies),
            thin: self.thin,
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let lengths =
            [self.draws.len(), self.round_trips.len(), self.round_trips_before.len(), self.traces.len()];
        let whole = |d: &Draws| {
            let draws = d.replica.len();
            d.log_density.len() == draws && draws.checked_mul(dim) == Some(d.x.len())
        };
        self.counts.is_sound(copies, chains, dim)
            && lengths == [copies; 4]
            && self.draws.iter().all(whole)
            && self.traces.iter().all(|trace| trace.is_sound(chains))
            && self.trajectories.len() == if self.every.is_some() { copies * chains } else { 0 }
            && self.trajectories.iter().all(|points| points.len().is_multiple_of(dim))
            && self.every != Some(0)
            && self.thin > 0
            && self.series.len() == copies * dim
            && self.series.iter().all(|s| s.is_sound(MOST) && s.count() == self.counts.iterations / self.thin)
            && self.folded.len() == if self.counts.iterations < 2 * LATEST { 0 } else { copies }
            && self.folded.iter().all(|f| f.is_sound(chains - 1))
            && self.counts.pairs.iter().all(|p| p.forward.len() as u64 <= LATEST)
    }
}

/// Keeps nothing: burn-in.
impl Recorder for () {
    fn record(&mut self, _step: &Step) -> Result<()> {
        Ok(())
    }
}
