//! How often swaps are rejected while plain ones and those that a transport carries take turns.

use super::Ladders;
use crate::Result;
use crate::accelerators::InTurn;
use crate::estimates::{Series, mean_with_error};
use crate::iteration::{Recorder, Step};
use serde::{Deserialize, Serialize};

/// While swaps are looked at every other proposal of a pair is plain: both kinds are seen equally often, in the same ladders.
pub(crate) const LOOKING_TURNS: u64 = 2;

/// Numbers that are kept of a pair and kind; of more, means of blocks.
const MOST: usize = 256;

/// Swaps of either kind that show how often it is rejected.
pub(crate) const ENOUGH_SWAPS: u64 = 50;

/// Rejections of carried and of plain swaps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TurnsRecord {
    pairs: usize,
    /// `[2 · (copy · pairs + pair − 1) + turn]`: carried swaps come first.
    rejections: Vec<Series>,
    iterations: u64,
}

/// A rejection rate, as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// NaN where nothing was seen.
    pub mean: f64,
    /// Of the mean, swaps that follow on each other being alike.
    pub standard_error: f64,
    /// Swaps that it was seen in.
    pub swaps: u64,
}

/// What a stretch of a run has shown of its swaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwapsSeen {
    /// Iterations.
    pub iterations: u64,
    /// Rejection rate of each pair in the proposals that the transports carried.
    pub carried: Vec<Rate>,
    /// The same in the plain ones between them.
    pub plain: Vec<Rate>,
}

impl TurnsRecord {
    pub fn new(copies: usize, chains: usize) -> Self {
        let pairs = chains - 1;
        Self { pairs, rejections: vec![Series::new(MOST); 2 * copies * pairs], iterations: 0 }
    }

    /// Over the given ladders.
    pub fn seen<'a>(records: impl Iterator<Item = &'a Self> + Clone, chains: usize) -> SwapsSeen {
        let pairs = chains - 1;
        let rate = |pair: usize, turn: usize| {
            let place = 2 * pair + turn;
            let all = records.clone().flat_map(|r| r.rejections.iter().skip(place).step_by(2 * pairs));
            let swaps = all.clone().map(Series::count).sum();
            let (_, standard_error) =
                mean_with_error(&all.clone().flat_map(Series::means).copied().collect::<Vec<_>>());
            let sum: f64 = all.map(|series| series.mean() * series.count() as f64).sum();
            Rate { mean: sum / swaps as f64, standard_error, swaps }
        };
        let [carried, plain] = [0, 1].map(|turn| (0..pairs).map(|pair| rate(pair, turn)).collect());
        SwapsSeen { iterations: records.clone().next().map_or(0, |record| record.iterations), carried, plain }
    }
}

impl SwapsSeen {
    /// Whether enough was seen of a pair, counted from 0.
    pub fn knows(&self, pair: usize) -> bool {
        let enough = |rates: &[Rate]| rates.get(pair).is_some_and(|rate| rate.swaps >= ENOUGH_SWAPS);
        enough(&self.carried) && enough(&self.plain)
    }

    /// Rejection rates if so many of the proposals are plain; NaN where too little was seen.
    pub fn mixed(&self, plain_share: f64) -> Vec<f64> {
        let of = |pair: usize| match self.knows(pair) {
            true => self.carried[pair].mean + plain_share * (self.plain[pair].mean - self.carried[pair].mean),
            false => f64::NAN,
        };
        (0..self.carried.len()).map(of).collect()
    }
}

impl Recorder for TurnsRecord {
    fn record(&mut self, step: &Step) -> Result<()> {
        self.iterations += 1;
        let turn = usize::from(InTurn::is_plain_turn(LOOKING_TURNS, step.iteration));
        for swap in step.swaps {
            self.rejections[2 * (swap.copy * self.pairs + swap.pair - 1) + turn].push(swap.rejection);
        }
        Ok(())
    }
}

impl Ladders for TurnsRecord {
    fn append(&mut self, other: Self) {
        self.rejections.extend(other.rejections);
    }

    fn split_off(&mut self, copies: usize) -> Self {
        let rejections = self.rejections.split_off(2 * copies * self.pairs);
        Self { pairs: self.pairs, rejections, iterations: self.iterations }
    }

    fn is_sound(&self, copies: usize, chains: usize, _dim: usize) -> bool {
        chains.checked_sub(1) == Some(self.pairs)
            && self.rejections.len() == 2 * copies * self.pairs
            && self.rejections.iter().all(|series| series.is_sound(MOST))
            && self.iterations < super::MOST_COUNTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swap::Swap;

    /// Rates of both kinds by themselves, with errors that know of likeness, however ladders are cut.
    #[test]
    fn carried_and_plain_swaps_are_told_apart() {
        let (copies, chains) = (3, 3);
        let mut whole = TurnsRecord::new(copies, chains);
        let rejection = |copy: usize, pair: usize, t: u64| {
            let plain = (t / LOOKING_TURNS).is_multiple_of(2);
            if plain { 0.5 + 0.1 * pair as f64 } else { 0.1 * copy as f64 + 0.01 * (t % 7) as f64 }
        };
        for t in 1..=400u64 {
            let pair = if t % 2 == 1 { 1 } else { 2 };
            for copy in 0..copies {
                let turn = usize::from(InTurn::is_plain_turn(LOOKING_TURNS, t));
                let swap = Swap { copy, pair, rejection: rejection(copy, pair, t), ..Swap::default() };
                whole.rejections[2 * (swap.copy * 2 + swap.pair - 1) + turn].push(swap.rejection);
            }
            whole.iterations += 1;
        }
        let seen = TurnsRecord::seen([&whole].into_iter(), chains);
        for pair in 0..2 {
            assert!((seen.plain[pair].mean - (0.6 + 0.1 * pair as f64)).abs() < 1e-12);
            assert!((seen.carried[pair].mean - 0.13).abs() < 0.01 && seen.knows(pair));
            assert_eq!(seen.carried[pair].swaps + seen.plain[pair].swaps, 600);
        }
        assert!((seen.mixed(0.5)[0] - 0.5 * (seen.plain[0].mean + seen.carried[0].mean)).abs() < 1e-12);
        let mut first = whole.clone();
        let rest = first.split_off(1);
        assert!(first.is_sound(1, chains, 9) && rest.is_sound(2, chains, 9) && !rest.is_sound(1, chains, 9));
        assert_eq!(TurnsRecord::seen([&first, &rest].into_iter(), chains), seen);
        first.append(rest);
        assert_eq!(TurnsRecord::seen([&first].into_iter(), chains), seen);
        assert!(!TurnsRecord::seen([&TurnsRecord::new(3, 3)].into_iter(), chains).knows(0));
    }
}
