//! Path weights of a run of any length in bounded memory.
//!
//! A run keeps the weights of its latest proposals one by one. Whenever these fill their buffers, they are
//! folded into sums: exact ones for the forward and backward estimates; narrow bins, each with the count,
//! mean and variance of what fell into it, for Bennett's ratio and Crooks' check; and the influence of each
//! proposal on log Z, in order of time, for its error. A bin is a sixteenth wide and stands for its weights
//! by two points with their first two moments, so ratios are off by less than 10⁻⁷.

use super::bar::{Weighted, bar_of, sigmoid};
use super::blocks::Series;
use super::log_z::Works;
use crate::lanes::one::{exp, ln};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bins that one direction of a pair may have; more make all of them twice as wide.
const MOST_BINS: usize = 1 << 13;

/// From zero to here each whole number is a float.
const MOST_PLACES: f64 = 9_007_199_254_740_992.0;

/// Numbers that the series of influences keeps.
const MOST_INFLUENCES: usize = 1 << 16;

/// log Σ exp of log-weights, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LogSum {
    top: f64,
    sum: f64,
    count: u64,
}

impl LogSum {
    pub(super) fn new() -> Self {
        Self { top: f64::NEG_INFINITY, sum: 0.0, count: 0 }
    }

    pub(super) fn add(&mut self, log_weight: f64) {
        self.join(&Self { top: log_weight, sum: 1.0, count: 1 });
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.count += other.count;
        if other.top == f64::NEG_INFINITY {
            return;
        }
        if other.top > self.top {
            let old = if self.sum == 0.0 { 0.0 } else { self.sum * exp(self.top - other.top) };
            (self.top, self.sum) = (other.top, old + other.sum);
        } else if self.top.is_finite() {
            self.sum += other.sum * exp(other.top - self.top);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn log_mean(&self) -> f64 {
        if !self.top.is_finite() {
            return self.top;
        }
        self.top + ln(self.sum / self.count as f64)
    }
}

/// What fell into a bin: how many, Σ (w − m), Σ (w − m)² about its middle m.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bin {
    count: u64,
    first: f64,
    second: f64,
}

/// Folded weights of one pair in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoldedWeights {
    /// Of w forward, of 1/w backward.
    pub(super) sum: LogSum,
    /// Weights that say that a path led to where the density vanishes.
    pub(super) vanished: u64,
    /// Width of a bin is 2^`doublings`/16.
    doublings: u32,
    bins: BTreeMap<i64, Bin>,
}

impl FoldedWeights {
    fn new() -> Self {
        Self { sum: LogSum::new(), vanished: 0, doublings: 0, bins: BTreeMap::new() }
    }

    fn width(&self) -> f64 {
        0.0625 * 2f64.powi(self.doublings.cast_signed())
    }

    /// `sign` is +1 forward and −1 backward.
    fn fold(&mut self, weights: &[f64], sign: f64) {
        for &w in weights {
            // One from where the density vanishes is no sample: see `bar`.
            if sign < 0.0 && w == f64::NEG_INFINITY {
                continue;
            }
            self.sum.add(sign * w);
            if w == sign * f64::NEG_INFINITY {
                self.vanished += 1;
            }
            if !w.is_finite() {
                continue;
            }
            let width = self.width();
            let place = (w / width).floor();
            // Where places are farther apart than bins, its own place is all that a weight has; and none of them is near a ratio.
            let from_middle = if place.abs() < MOST_PLACES { w - (place + 0.5) * width } else { 0.0 };
            let bin = self.bins.entry(place as i64).or_default();
            bin.count += 1;
            bin.first += from_middle;
            bin.second += from_middle * from_middle;
            while self.bins.len() > MOST_BINS {
                self.widen();
            }
        }
    }

    /// Joins neighbours in pairs.
    fn widen(&mut self) {
        let width = self.width();
        let mut wider: BTreeMap<i64, Bin> = BTreeMap::new();
        for (&place, bin) in &self.bins {
            // The middle moves by half of the old width, up or down.
            let shift = if place.rem_euclid(2) == 0 { -0.5 * width } else { 0.5 * width };
            let n = bin.count as f64;
            let into = wider.entry(place.div_euclid(2)).or_default();
            into.count += bin.count;
            into.first += bin.first + n * shift;
            into.second += bin.second + 2.0 * shift * bin.first + n * shift * shift;
        }
        self.bins = wider;
        self.doublings += 1;
    }

    /// Points that stand for the finite weights: (log-weight, how many).
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let width = self.width();
        self.bins.iter().flat_map(move |(&place, bin)| {
            let n = bin.count as f64;
            let mean = bin.first / n;
            let spread = (bin.second / n - mean * mean).max(0.0).sqrt();
            let middle = (place as f64 + 0.5) * width + mean;
            [(middle - spread, 0.5 * n), (middle + spread, 0.5 * n)]
        })
    }

    /// Whether counts are possible: a file may claim anything.
    fn is_sound(&self) -> bool {
        self.doublings < 1100
            && self.bins.len() <= MOST_BINS
            && self.bins.values().all(|b| b.count > 0 && b.count < 1 << 60)
    }
}

/// Folded weights of all pairs of a ladder, forward and backward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoldedLadder {
    /// Proposals of each pair that were folded.
    pub proposals: u64,
    /// (forward, backward) of each pair.
    pub pairs: Vec<(FoldedWeights, FoldedWeights)>,
    /// Influence of each proposal on log Z.
    pub(super) influence: Series,
}

impl FoldedLadder {
    /// Nothing yet.
    pub fn new(pairs: usize) -> Self {
        Self {
            proposals: 0,
            pairs: vec![(FoldedWeights::new(), FoldedWeights::new()); pairs],
            influence: Series::new(MOST_INFLUENCES),
        }
    }

    /// Adds the latest weights of each pair, as many of each.
    pub fn fold(&mut self, works: &[Works]) {
        let proposals = works[0].0.len();
        self.proposals += proposals as u64;
        let mut influence = vec![0.0; proposals];
        for ((forward, backward), works) in self.pairs.iter_mut().zip(works) {
            forward.fold(works.0, 1.0);
            backward.fold(works.1, -1.0);
            // The ladder's own ratio so far: it is known well by now, and needs no other ladder.
            let (mut up, mut down) = (Weighted::default(), Weighted::default());
            up.add_folded(forward, 1.0);
            down.add_folded(backward, -1.0);
            let ratio = bar_of(&up, &down);
            let slope = ratio.slope / self.proposals as f64;
            if ratio.log_ratio.is_finite() && slope > 0.0 {
                add_influence(&mut influence, works, ratio.log_ratio, slope);
            }
        }
        influence.iter().for_each(|&x| self.influence.push(x));
    }

    /// Whether it belongs to so many pairs: a file may claim anything.
    pub(crate) fn is_sound(&self, pairs: usize) -> bool {
        self.pairs.len() == pairs
            && self.proposals < 1 << 60
            && self.pairs.iter().all(|(f, b)| f.is_sound() && b.is_sound())
            && self.influence.is_sound(MOST_INFLUENCES)
            && self.influence.count() == self.proposals
    }
}

/// How much each proposal moves the ratio of its pair; `slope` says how the equation responds.
pub(super) fn add_influence(influence: &mut [f64], works: &Works, log_ratio: f64, slope: f64) {
    for ((influence, f), b) in influence.iter_mut().zip(works.0).zip(works.1) {
        let backward = if *b == f64::NEG_INFINITY { 0.0 } else { sigmoid(log_ratio - b) };
        *influence += (sigmoid(f - log_ratio) - backward) / slope;
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_z::{LadderWeights, log_z, log_z_of};
    use super::*;
    use crate::streams::{Phase, Streams};

    /// Correlated Gaussian work of two pairs that satisfies Crooks' relation, with a few paths into nothing.
    fn works(n: usize, seed: u64) -> Vec<(Vec<f64>, Vec<f64>)> {
        [(1.0, 1.0), (-2.0, 2.5)]
            .iter()
            .enumerate()
            .map(|(pair, &(c, s))| {
                let mut stream = Streams::new(seed).row(Phase::Check, pair as u64, 0);
                let mut side = |sign: f64| -> Vec<f64> {
                    let mut x = stream.normal();
                    let mut next = || {
                        x = 0.6 * x + 0.8 * stream.normal();
                        c + sign * 0.5 * s * s + s * x
                    };
                    (0..n).map(|_| next()).collect()
                };
                let (mut forward, backward) = (side(-1.0), side(1.0));
                forward.iter_mut().step_by(997).for_each(|w| *w = f64::NEG_INFINITY);
                (forward, backward)
            })
            .collect()
    }

    /// Folding in pieces changes estimates by far less than their error.
    #[test]
    fn folded_estimates_are_those_of_all_weights() {
        let n = 60_000;
        let ladders = [works(n, 1), works(n, 2)];
        let slices = |range: std::ops::Range<usize>| -> Vec<Vec<Works>> {
            let of = |ladder: &'_ Vec<(Vec<f64>, Vec<f64>)>| -> Vec<(usize, usize)> {
                (0..ladder.len()).map(|p| (p, 0)).collect()
            };
            ladders
                .iter()
                .map(|l| {
                    of(l).iter().map(|&(p, _)| (&l[p].0[range.clone()], &l[p].1[range.clone()])).collect()
                })
                .collect()
        };
        let whole = log_z(0.5, &slices(0..n));
        let mut folded = [FoldedLadder::new(2), FoldedLadder::new(2)];
        for piece in 0..5 {
            for (ladder, works) in folded.iter_mut().zip(slices(piece * 10_000..(piece + 1) * 10_000)) {
                ladder.fold(&works);
                assert!(ladder.is_sound(2));
            }
        }
        let rest = slices(50_000..n);
        let both: Vec<LadderWeights> = folded
            .iter()
            .zip(rest)
            .map(|(folded, latest)| LadderWeights { folded: Some(folded), latest })
            .collect();
        let found = log_z_of(0.5, &both);
        let error = whole.standard_error;
        for (a, b) in [(whole.forward, found.forward), (whole.backward, found.backward)] {
            assert!((a - b).abs() < 1e-10, "{a} {b}");
        }
        assert!((whole.bar - found.bar).abs() < 1e-4 * error, "{} {} ± {error}", whole.bar, found.bar);
        assert!((found.standard_error / error - 1.0).abs() < 0.1, "{} {error}", found.standard_error);
        for (a, b) in whole.pairs.iter().zip(&found.pairs) {
            assert!((a.bar.overlap - b.bar.overlap).abs() < 1e-5);
            assert!((a.crooks.crossing - b.crooks.crossing).abs() < 1e-4 * error);
            assert!((a.crooks.slope - b.crooks.slope).abs() < 1e-4);
        }
    }

    #[test]
    fn wide_weights_get_wider_bins_and_keep_their_moments() {
        let mut folded = FoldedWeights::new();
        let weights: Vec<f64> = (0..40_000).map(|i| 0.37 * f64::from(i) - 1000.0).collect();
        folded.fold(&weights, 1.0);
        assert!(folded.is_sound() && folded.doublings >= 5);
        let (n, sum) = folded.points().fold((0.0, 0.0), |(n, s), (w, c)| (n + c, s + c * w));
        let exact: f64 = weights.iter().sum();
        assert!(n == 40_000.0 && (sum / exact - 1.0).abs() < 1e-12, "{n} {sum} {exact}");
    }

    /// Weights at which a density all but vanishes: no more of them is left than that they are far out.
    #[test]
    fn weights_that_are_far_out_spoil_nothing() {
        let works = works(40_000, 3);
        let mut far: Vec<f64> = works[0].0.clone();
        for (i, w) in [-1e17, -1.7e213, -1e300, f64::MIN].into_iter().enumerate() {
            far[100 * i] = w;
        }
        let plain = log_z(0.0, &[vec![(&far, &works[0].1)]]);
        let mut folded = FoldedLadder::new(1);
        folded.fold(&[(&far, &works[0].1)]);
        assert!(folded.is_sound(1) && folded.pairs[0].0.points().all(|(w, _)| w.is_finite()));
        let found = log_z_of(0.0, &[LadderWeights { folded: Some(&folded), latest: vec![(&[], &[])] }]);
        assert!((plain.bar - found.bar).abs() < 1e-4 * plain.standard_error, "{} {}", plain.bar, found.bar);
        let [a, b] = [&plain, &found].map(|z| z.pairs[0].crooks);
        assert!((a.crossing - b.crossing).abs() < 1e-3 && (a.slope - b.slope).abs() < 1e-3, "{a:?} {b:?}");
        let without = log_z(0.0, &[vec![(&works[0].0, &works[0].1)]]).pairs[0].crooks;
        assert!((a.slope - without.slope).abs() < 1e-2, "{a:?} {without:?}");
    }

    #[test]
    fn sums_survive_infinities() {
        let mut sum = LogSum::new();
        sum.add(f64::NEG_INFINITY);
        assert_eq!(sum.log_mean(), f64::NEG_INFINITY);
        sum.add(3.0);
        sum.add(-800.0);
        assert!((sum.log_mean() - (3.0 - 3f64.ln())).abs() < 1e-12);
        sum.add(f64::INFINITY);
        sum.add(f64::INFINITY);
        assert_eq!(sum.log_mean(), f64::INFINITY);
    }
}
