//! What estimates are made from: draws, weights and traces of sampling.

use super::{Counts, Ladders, MOST_COUNTED};
use crate::Result;
use crate::estimates::{FoldedLadder, LadderWeights, Series, most_kept};
use crate::fitted::Modes;
use crate::index_process::Legs;
use crate::iteration::{Recorder, Step};
use crate::trace::LadderTrace;
use serde::{Deserialize, Serialize};

/// Draws of the target chain of one ladder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Draws {
    /// Points, one after the other.
    pub x: Vec<f64>,
    /// log π̃ at each.
    pub log_density: Vec<f64>,
    /// The replica that sat on the target chain.
    pub replica: Vec<u32>,
    /// Mean acceptance of the local moves that this iteration made on the target chain; NaN if it made none.
    pub acceptance: Vec<f32>,
    /// Whether one of them came to a point at which the log density is no number.
    pub diverging: Vec<bool>,
}

impl Draws {
    /// The point on a chain of a ladder after an iteration.
    fn push(&mut self, step: &Step, copy: usize, chain: usize) {
        let ensemble = step.ensemble;
        let row = ensemble.row(copy, chain);
        self.x.extend_from_slice(ensemble.points.x.row(row));
        self.log_density.push(ensemble.points.log_density[row]);
        self.replica.push(ensemble.index[copy].replica(chain) as u32);
        let (acceptance, diverging) = moves_before(step, copy, chain);
        self.acceptance.push(acceptance);
        self.diverging.push(diverging);
    }

    /// Whether all parts have as many draws.
    fn is_whole(&self, dim: usize) -> bool {
        let draws = self.replica.len();
        [self.log_density.len(), self.acceptance.len(), self.diverging.len()] == [draws; 3]
            && draws.checked_mul(dim) == Some(self.x.len())
    }

    /// All of them; as many more will fit without growing again.
    pub(crate) fn take(&mut self) -> Self {
        let room = Self {
            x: Vec::with_capacity(self.x.len()),
            log_density: Vec::with_capacity(self.log_density.len()),
            replica: Vec::with_capacity(self.replica.len()),
            acceptance: Vec::with_capacity(self.acceptance.len()),
            diverging: Vec::with_capacity(self.diverging.len()),
        };
        std::mem::replace(self, room)
    }
}

/// Mean acceptance of the local moves that an iteration made on a chain of a ladder, NaN if it made none, and whether one of them
/// came to a point at which the log density is no number.
///
/// A swap may have come after the moves: they were those of the row that sat there then.
pub(super) fn moves_before(step: &Step, copy: usize, chain: usize) -> (f32, bool) {
    let chains = step.ensemble.chains();
    let ladder = copy * chains..(copy + 1) * chains;
    let sat_there =
        ladder.zip(&step.explored_chain[copy * chains..]).find(|(_, explored)| **explored == chain);
    let moves = sat_there.map(|(row, _)| step.moves[row]).unwrap_or_default();
    ((moves.acceptance / f64::from(moves.proposed)) as f32, moves.bad > 0)
}

/// Proposals of each pair whose weights are kept one by one; then they are folded.
pub const LATEST: u64 = 1 << 16;

/// Numbers of draws that have their memory from the start.
const MOST_RESERVED: usize = 1 << 26;

/// What estimates are made from. Its size does not grow beyond a bound, but for draws that nobody takes out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SamplingRecord {
    /// Moves, swaps and their weights.
    pub counts: Counts,
    /// Draws of each ladder's target chain, every `thin`-th iteration, since they were last taken out.
    pub draws: Vec<Draws>,
    /// `[copy · dim + coordinate]` of all draws, or means of blocks of them.
    pub series: Vec<Series>,
    /// `[copy]` of the log density, likewise.
    pub heights: Vec<Series>,
    /// Modes whose shares of the draws are followed, where there are several.
    modes: Option<Modes>,
    /// `[copy · modes + mode]`: whether each draw belongs to it, or the share of a block that does.
    pub mode_series: Vec<Series>,
    /// `[copy · legs + leg]`: weights beyond the latest; none while these are all.
    pub folded: Vec<FoldedLadder>,
    /// Round trips of each ladder in this record.
    pub round_trips: Vec<u64>,
    /// Of those, the ones that began at the anchor.
    from_anchor: Vec<u64>,
    /// What people look at, ladder by ladder.
    pub traces: Vec<LadderTrace>,
    /// `[copy · chains + chain]`: draws of all chains, where they are kept. Log densities are of the chain's own law.
    pub trajectories: Vec<Draws>,
    round_trips_before: Vec<u64>,
    from_anchor_before: Vec<u64>,
    legs: Legs,
    thin: u64,
    every: Option<u64>,
}

impl SamplingRecord {
    /// Room for `iterations` of the ladders in `ensemble`.
    pub fn new(ensemble: &crate::Ensemble, iterations: u64, thin: u64) -> Self {
        let copies = ensemble.copies();
        let dim = ensemble.points.x.dim();
        let most = most_kept(dim);
        let mut record = Self {
            counts: Counts::new(copies, ensemble.chains()),
            draws: vec![Draws::default(); copies],
            series: vec![Series::new(most); copies * dim],
            heights: vec![Series::new(most); copies],
            modes: None,
            mode_series: Vec::new(),
            folded: Vec::new(),
            round_trips: vec![0; copies],
            from_anchor: vec![0; copies],
            traces: (0..copies).map(|copy| LadderTrace::new(ensemble, copy)).collect(),
            trajectories: Vec::new(),
            every: None,
            round_trips_before: ensemble.index.iter().map(|i| i.round_trips()).collect(),
            from_anchor_before: ensemble.index.iter().map(|i| i.round_trips_of(1)).collect(),
            legs: ensemble.legs(),
            thin,
        };
        record.reserve(iterations);
        record
    }

    /// The same, following the shares of modes where there are several.
    pub(crate) fn with_modes(mut self, modes: Option<Modes>) -> Self {
        let count = modes.as_ref().map_or(0, Modes::count);
        let dim = self.series.len() / self.draws.len();
        self.mode_series = vec![Series::new(most_kept(dim)); self.draws.len() * count];
        self.modes = modes;
        self
    }

    /// Room for so many more iterations, as far as they are kept.
    pub(crate) fn reserve(&mut self, iterations: u64) {
        let proposals = (iterations / 2 + 1).min(LATEST) as usize;
        for pair in &mut self.counts.pairs {
            pair.forward.reserve(proposals);
            pair.backward.reserve(proposals);
        }
        let kept = iterations / self.thin + 1;
        let all = self.series.iter_mut().chain(&mut self.heights).chain(&mut self.mode_series);
        all.for_each(|s| s.reserve(kept));
        let dim = self.series.len() / self.draws.len();
        // Draws are taken out now and then, the sooner the more numbers they have.
        let kept = kept.min(1 << 16).min((MOST_RESERVED / (dim * self.draws.len()).max(1)) as u64) as usize;
        for draws in &mut self.draws {
            draws.x.reserve(kept * dim);
            draws.log_density.reserve(kept);
            draws.replica.reserve(kept);
            draws.acceptance.reserve(kept);
            draws.diverging.reserve(kept);
        }
    }

    /// Round trips that began at the reference of a leg, over all ladders.
    pub fn round_trips_of(&self, leg: usize) -> u64 {
        let from_anchor: u64 = self.from_anchor.iter().sum();
        if leg == 1 { from_anchor } else { self.round_trips.iter().sum::<u64>() - from_anchor }
    }

    /// Where the target lay among the chains.
    pub fn legs(&self) -> Legs {
        self.legs
    }

    /// Weights of a leg in each ladder, seen from its reference to the target.
    pub fn weights(&self, leg: usize) -> impl Iterator<Item = LadderWeights<'_>> {
        let (pairs, legs) = (self.counts.chains - 1, self.legs);
        self.counts.pairs.chunks_exact(pairs).enumerate().map(move |(copy, pairs)| LadderWeights {
            folded: self.folded.get(copy * legs.count() + leg),
            latest: pairs[legs.pairs_of(leg)].iter().map(|p| (&p.forward[..], &p.backward[..])).collect(),
        })
    }

    /// Every pair has exactly so many latest weights after twice as many iterations; fewer in a leg that rests.
    fn fold(&mut self) {
        let (pairs, legs) = (self.counts.chains - 1, self.legs);
        if self.folded.is_empty() {
            let of_leg = |leg| FoldedLadder::new(legs.pairs_of(leg).len());
            self.folded = (0..self.draws.len()).flat_map(|_| (0..legs.count()).map(of_leg)).collect();
        }
        let ladders = self.counts.pairs.chunks_exact_mut(pairs);
        for (folded, pairs) in self.folded.chunks_exact_mut(legs.count()).zip(ladders) {
            for (leg, folded) in folded.iter_mut().enumerate() {
                let pairs = pairs[legs.pairs_of(leg)].iter();
                folded.fold(&pairs.map(|p| (&p.forward[..], &p.backward[..])).collect::<Vec<_>>());
            }
            for pair in pairs {
                pair.forward.clear();
                pair.backward.clear();
            }
        }
    }

    /// The same, keeping the points of all chains every so many iterations.
    pub fn with_trajectories(mut self, every: Option<u64>) -> Self {
        self.trajectories =
            if every.is_some() { vec![Draws::default(); self.counts.local.len()] } else { Vec::new() };
        self.every = every;
        self
    }
}

impl SamplingRecord {
    /// Whether it can have been made with these ladders.
    pub(crate) fn follows(&self, ensemble: &crate::Ensemble) -> bool {
        let index = || ensemble.index.iter();
        let grown = |(now, before): (u64, &u64)| *before <= now;
        self.legs == ensemble.legs()
            && index().zip(&self.traces).all(|(i, trace)| trace.follows(i.round_trips()))
            && index().map(|i| i.round_trips()).zip(&self.round_trips_before).all(grown)
            && index().map(|i| i.round_trips_of(1)).zip(&self.from_anchor_before).all(grown)
    }
}

impl Recorder for SamplingRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.counts.add(step);
        let ensemble = step.ensemble;
        let (chains, target) = (ensemble.chains(), ensemble.legs().target());
        for swap in step.swaps {
            let pair = &mut self.counts.pairs[swap.copy * (chains - 1) + swap.pair - 1];
            // Beyond the target the way to it leads down.
            let (forward, backward) = match swap.pair > target {
                false => (swap.log_forward, swap.log_backward),
                true => (-swap.log_backward, -swap.log_forward),
            };
            pair.forward.push(forward);
            pair.backward.push(backward);
        }
        for (copy, index) in ensemble.index.iter().enumerate() {
            self.round_trips[copy] = index.round_trips() - self.round_trips_before[copy];
            self.from_anchor[copy] = index.round_trips_of(1) - self.from_anchor_before[copy];
        }
        for (copy, trace) in self.traces.iter_mut().enumerate() {
            trace.record(ensemble, copy);
        }
        if self.counts.iterations.is_multiple_of(self.thin) {
            for (copy, draws) in self.draws.iter_mut().enumerate() {
                draws.push(step, copy, target);
                let row = ensemble.row(copy, target);
                self.heights[copy].push(ensemble.points.log_density[row]);
                let x = ensemble.points.x.row(row);
                let series = &mut self.series[copy * x.len()..(copy + 1) * x.len()];
                series.iter_mut().zip(x).for_each(|(series, &x)| series.push(x));
                if let Some(modes) = &mut self.modes {
                    let (here, count) = (modes.at(x), modes.count());
                    let series = self.mode_series[copy * count..(copy + 1) * count].iter_mut().enumerate();
                    series.for_each(|(mode, series)| series.push(f64::from(u8::from(mode == here))));
                }
            }
        }
        if self.every.is_some_and(|every| self.counts.iterations.is_multiple_of(every)) {
            for (place, draws) in self.trajectories.iter_mut().enumerate() {
                draws.push(step, place / chains, place % chains);
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
        self.heights.extend(other.heights);
        self.mode_series.extend(other.mode_series);
        self.folded.extend(other.folded);
        self.round_trips.extend(other.round_trips);
        self.from_anchor.extend(other.from_anchor);
        self.traces.extend(other.traces);
        self.trajectories.extend(other.trajectories);
        self.round_trips_before.extend(other.round_trips_before);
        self.from_anchor_before.extend(other.from_anchor_before);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        let dim = self.series.len() / self.draws.len();
        let modes = self.modes.as_ref().map_or(0, Modes::count);
        Self {
            modes: self.modes.clone(),
            mode_series: self.mode_series.split_off(copies * modes),
            counts: self.counts.split_off(copies),
            draws: self.draws.split_off(copies),
            series: self.series.split_off(copies * dim),
            heights: self.heights.split_off(copies),
            folded: self.folded.split_off((copies * self.legs.count()).min(self.folded.len())),
            round_trips: self.round_trips.split_off(copies),
            from_anchor: self.from_anchor.split_off(copies),
            traces: self.traces.split_off(copies),
            trajectories: match self.every {
                Some(_) => self.trajectories.split_off(copies * self.counts.chains),
                None => Vec::new(),
            },
            every: self.every,
            round_trips_before: self.round_trips_before.split_off(copies),
            from_anchor_before: self.from_anchor_before.split_off(copies),
            legs: self.legs,
            thin: self.thin,
        }
    }

    fn is_sound(&self, copies: usize, chains: usize, dim: usize) -> bool {
        let trips =
            [&self.round_trips, &self.from_anchor, &self.round_trips_before, &self.from_anchor_before];
        self.counts.is_sound(copies, chains, dim)
            && trips.iter().all(|trips| trips.len() == copies && trips.iter().all(|&n| n < MOST_COUNTED))
            && [self.draws.len(), self.traces.len()] == [copies; 2]
            && self.draws.iter().all(|draws| draws.is_whole(dim))
            && self.traces.iter().all(|trace| trace.is_sound(chains))
            && self.trajectories.len() == if self.every.is_some() { copies * chains } else { 0 }
            && self.trajectories.iter().all(|draws| draws.is_whole(dim))
            && self.every != Some(0)
            && self.thin > 0
            && self.series.len() == copies * dim
            && self.heights.len() == copies
            && self.modes.as_ref().is_none_or(|modes| modes.is_sound(dim))
            && self.mode_series.len() == copies * self.modes.as_ref().map_or(0, Modes::count)
            && self
                .mode_series
                .iter()
                .all(|s| s.is_sound(most_kept(dim)) && s.count() == self.counts.iterations / self.thin)
            && self
                .series
                .iter()
                .chain(&self.heights)
                .all(|s| s.is_sound(most_kept(dim)) && s.count() == self.counts.iterations / self.thin)
            && self.folded.len()
                == if self.counts.iterations < 2 * LATEST { 0 } else { copies * self.legs.count() }
            && self.folded.chunks(self.legs.count()).all(|ladder| {
                ladder.iter().enumerate().all(|(leg, f)| f.is_sound(self.legs.pairs_of(leg).len()))
            })
            && self.counts.pairs.iter().all(|p| p.forward.len() as u64 <= LATEST)
    }
}
