//! Training in growing slices: a transport that is worth its training is not known before it has begun.

use super::balance::Balance;
use super::judges::Judged;
use crate::Result;
use crate::acceleration::Fit;
use crate::estimates::Seen;
use crate::lanes::one::{self, ln};
use crate::path::AnnealingPath;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A transport that is trained, as long as that pays.
pub trait InSlices: Send + Sync {
    /// A training of so many steps, which goes on from the weights of an earlier one.
    fn slice(&self, steps: u64) -> Result<Arc<dyn Fit>>;

    /// The same for swaps on another path.
    fn on(&self, path: &Arc<dyn AnnealingPath>) -> Arc<dyn InSlices>;
}

/// A transport that may pay once it is trained.
#[derive(Clone)]
pub struct Trainee {
    /// What it is called.
    pub name: String,
    /// Of which kind it is, and its K: what some K have left of rejections says what to hope of others of the kind, which follow them.
    /// One that goes on from another counts as the K after it.
    pub family: (String, usize),
    /// Trains it.
    pub training: Arc<dyn InSlices>,
    /// Which of those before it has weights that it begins with, once that one has been trained.
    pub after: Option<usize>,
    /// Multiply-adds of a journey, the target's left aside, and evaluations of the target that it takes.
    pub operations: f64,
    /// See there.
    pub evaluations: f64,
    /// Multiply-adds of a step of training, and evaluations of the target.
    pub step: (f64, f64),
    /// Steps of the first slice, for ten pairs at most; each one after it has twice as many.
    pub first: u64,
}

/// A slice that is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Slice {
    pub steps: u64,
    pub judged: Judged,
    /// The weights that it came to.
    pub record: Vec<u8>,
    /// Evaluations of the target, and of a network, inside losses.
    pub asked: (u64, u64),
    pub losses: Vec<f64>,
    /// Where the target's samples lay, as far as this is the last slice.
    pub seen: Option<Seen>,
}

/// Before anything is trained it is hoped that this share of the odds of a plain swap's rejection is left.
const HOPED: f64 = 0.2;
/// With K times as many steps of a path K⁻ᵃ of the odds are left: a is hoped to be this, until two K have shown it, and at most
/// the other.
const USUAL_POWER: f64 = 0.5;
const MOST_POWER: f64 = 1.0;
/// And that twice the steps leave this share of what is left.
const USUAL_PROGRESS: f64 = 0.7;
/// A slice is so long for so many pairs, twice as long for twice as many.
const MANY_PAIRS: usize = 10;
/// So many slices are begun on hope: what they have brought so far may not show yet.
const PATIENCE: usize = 2;
/// Share of the evaluations to come that a slice on hope may cost, and all those together that hope has begun.
const COST_OF_HOPE: f64 = 0.05;
const COST_OF_ALL_HOPES: f64 = 0.08;

/// Before a trainee is trained: the share of the odds of rejection that it may leave, and evaluations that hope has cost so far.
#[derive(Clone, Copy)]
pub(super) struct Hope {
    pub share: f64,
    pub spent: f64,
}

/// The share of the odds that K steps may leave, by what others have left, K rising.
pub(super) fn hoped(known: &[(usize, f64)], steps: usize) -> f64 {
    let power = match known {
        [] => return HOPED,
        [.., (a, left), (b, less)] => (ln(left / less) / ln(*b as f64 / *a as f64)).clamp(0.0, MOST_POWER),
        [_] => USUAL_POWER,
    };
    let (last, left) = known[known.len() - 1];
    left * one::power(last as f64 / steps as f64, power)
}

impl Trainee {
    /// What so many steps cost, in evaluations that are worth so many multiply-adds each.
    pub(super) fn cost(&self, steps: u64, evaluation: f64) -> f64 {
        steps as f64 * (self.step.1 + self.step.0 / evaluation)
    }

    /// Whether the next slice after these is begun on hope: what went before in another's training shows as much as one.
    pub(super) fn is_on_hope(slices: usize, before: Option<&Slice>) -> bool {
        slices + usize::from(before.is_some()) < PATIENCE
    }

    /// Steps of the next slice, where what it may save covers what it costs, its judging by so many evaluations among that. It has made
    /// these slices, and before them began with what another came to; `balance` has all ways so far, of which `way` is this one's, once
    /// it has been judged.
    pub(super) fn next(
        &self,
        (slices, before): (&[Slice], Option<&Slice>),
        (balance, way): (&Balance, Option<usize>),
        (evaluation, judging): (f64, u64),
        hope: Hope,
    ) -> Option<u64> {
        // Pairs share a batch: more of them need more steps.
        let steps = (self.first * balance.ways.len().div_ceil(MANY_PAIRS) as u64) << slices.len().min(40);
        let plain = |pair: usize| balance.ways[pair][0].odds;
        let own = |pair: usize| way.map_or(f64::INFINITY, |way| balance.ways[pair][way].odds);
        let left = match (slices, before) {
            ([], _) => hope.share,
            ([.., before, last], _) | ([last], Some(before)) => progress(&before.judged, &last.judged),
            ([_], None) => USUAL_PROGRESS,
        };
        let on_hope = Self::is_on_hope(slices.len(), before);
        let odds = |pair: usize| match on_hope || slices.is_empty() {
            true => (hope.share * plain(pair)).min(left * own(pair)),
            false => left * own(pair),
        };
        let journey = self.evaluations + self.operations / evaluation;
        let saved = balance.bill() - balance.with(odds, journey).bill();
        let cost = self.cost(steps, evaluation) + judging as f64;
        let bearable = !on_hope
            || (cost < COST_OF_HOPE * balance.ahead && hope.spent + cost < COST_OF_ALL_HOPES * balance.ahead);
        (saved > cost && bearable).then_some(steps)
    }
}

/// The share of the odds of rejection that the last slice left.
fn progress(before: &Judged, last: &Judged) -> f64 {
    let left = last.odds() / before.odds();
    if left.is_finite() { left.clamp(0.3, 1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_of_some_steps_tells_of_more() {
        assert_eq!(hoped(&[], 5), HOPED);
        assert_eq!(hoped(&[(1, 0.8)], 4), 0.4);
        // From one to two steps half is left: so it is from two to four.
        assert!((hoped(&[(1, 0.6), (2, 0.3)], 4) - 0.15).abs() < 1e-12);
        // What has brought nothing is not hoped to bring more.
        assert_eq!(hoped(&[(1, 0.6), (2, 0.9)], 4), 0.9);
        assert!((hoped(&[(1, 0.6), (2, 0.01)], 4) - 0.005).abs() < 1e-12);
    }
}
