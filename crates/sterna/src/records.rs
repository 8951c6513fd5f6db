//! What is kept of an iteration: sums for tuning, weights and draws for estimates.
//!
//! Everything is kept ladder by ladder and joined in their order, so no sum depends on how the
//! ladders were spread over threads or batches.

use crate::Result;
use crate::iteration::{Recorder, Step};
use serde::{Deserialize, Serialize};

mod jumps;
mod sampling;
mod tuning;
mod turns;
mod warmup;

pub use sampling::{Draws, LATEST, SamplingRecord};
pub use tuning::TuningRecord;
pub(crate) use turns::{ENOUGH_SWAPS, LOOKING_TURNS, TurnsRecord};
pub use turns::{Rate, SwapsSeen};
pub use warmup::WarmupRecord;

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

/// No count of a run comes near this: sums of two such numbers still fit.
pub(crate) const MOST_COUNTED: u64 = 1 << 60;

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

    /// Local moves on each chain that were proposed.
    pub fn moves<'a>(counts: impl Iterator<Item = &'a Counts> + Clone, chains: usize) -> Vec<u64> {
        let of = |chain: usize| {
            counts.clone().flat_map(|c| c.local.iter().skip(chain).step_by(chains)).map(|l| l.proposed).sum()
        };
        (0..chains).map(of).collect()
    }

    /// Swaps of each pair that were proposed.
    pub fn swaps<'a>(counts: impl Iterator<Item = &'a Counts> + Clone, chains: usize) -> Vec<u64> {
        let of = |pair: usize| {
            let each = counts.clone().flat_map(move |c| c.pairs.iter().skip(pair).step_by(chains - 1));
            each.map(|pair| pair.proposed).sum()
        };
        (0..chains - 1).map(of).collect()
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
            && self.pairs.iter().all(|p| p.proposed.max(p.accepted) < MOST_COUNTED)
            && self.local.iter().all(|l| l.proposed.max(l.bad) < MOST_COUNTED)
            && self.iterations < MOST_COUNTED
            && self.bad_point.as_ref().is_none_or(|b| b.point.len() == dim)
    }
}

/// Keeps nothing.
impl Recorder for () {
    fn record(&mut self, _step: &Step) -> Result<()> {
        Ok(())
    }
}
