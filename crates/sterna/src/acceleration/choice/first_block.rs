//! The check after the run's first block, whose draws do not count: held-out samples are few, and tuned ladders are not those that
//! sample. In this block plain and carried swaps take turns, so that both are seen in the same ladders on the same chains; where a
//! transport does not pay, plain swaps it is.

use super::balance::PLAIN_SHARE;
use super::pick::Way;
use super::{Choice, Choose};
use crate::acceleration::{Fitted, Rate, SwapsSeen, Verdict};
use crate::{Result, Schedule};
use serde::{Deserialize, Serialize};

/// What the run's first block has shown of its swaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstBlock {
    /// Iterations.
    pub iterations: u64,
    /// Rejection rate of each pair in the proposals that were carried.
    pub carried: Vec<f64>,
    /// The same in the plain ones between them.
    pub plain: Vec<f64>,
    /// Pairs, counted from 0, that went back to plain swaps.
    pub given_back: Vec<usize>,
}

/// A transport is believed to reject less than was seen, by so many standard errors: where the two are alike it stays.
const DOUBT: f64 = 2.0;

impl Choice {
    /// Which way carries each pair, if those that do not pay by what was seen are plain. A pair of which too little was seen keeps its
    /// own; on a leg that rests what is rejected less is what pays.
    fn kept(&self, schedule: &Schedule, seen: &SwapsSeen) -> Vec<usize> {
        let (from, target) = (self.from(schedule), schedule.target());
        let own = |pair: usize| {
            let (carried, plain) = (seen.carried[pair], seen.plain[pair]);
            let believed =
                carried.mean - DOUBT * (carried.standard_error.powi(2) + plain.standard_error.powi(2)).sqrt();
            believed + PLAIN_SHARE * (plain.mean - believed)
        };
        let known = |pair: usize| self.of_pair[pair] > 0 && seen.knows(pair) && own(pair).is_finite();
        let ways = |pair: usize| {
            let free = |rejection: f64| Way::new(rejection, 0.0);
            match (known(pair), seen.mixed(0.0)[pair]) {
                (true, _) => {
                    vec![free(seen.plain[pair].mean), Way::new(own(pair), self.cost_of(self.of_pair[pair]))]
                }
                (false, r) => vec![free(if r.is_finite() { r } else { 0.0 }); 2],
            }
        };
        let ways: Vec<Vec<Way>> = (0..target).map(ways).collect();
        let best = self.leg_of(from, target).best(&ways);
        let pays = |pair: usize| match best.get(pair) {
            Some(way) => *way == 1,
            None => own(pair) <= seen.plain[pair].mean,
        };
        let kept = |(pair, way): (usize, &usize)| if known(pair) && !pays(pair) { 0 } else { *way };
        self.of_pair.iter().enumerate().map(kept).collect()
    }
}

impl Choose {
    /// What goes on by what the first block has shown.
    pub(super) fn looked_at(
        &self,
        fitted: &Fitted,
        schedule: &Schedule,
        seen: &SwapsSeen,
    ) -> Result<Verdict> {
        let Some(choice) = &fitted.report.choice else { return Ok(Verdict::Here(fitted.clone())) };
        if fitted.record.is_empty() || [choice.of_pair.len(), seen.carried.len()] != [schedule.pairs(); 2] {
            return Ok(Verdict::Here(fitted.clone()));
        }
        let kept = choice.kept(schedule, seen);
        let in_vain = choice.moved_in_vain(&seen.mixed(PLAIN_SHARE)) || kept.iter().all(|way| *way == 0);
        if let (true, Some((schedule, fitted))) = (in_vain, self.gone_back(fitted, choice)?) {
            return Ok(Verdict::Back(schedule, fitted));
        }
        let (_, ways) = self.read(&fitted.record)?;
        let ways = ways.into_iter().filter(|(way, _)| kept.contains(way)).collect();
        let rates = |rates: &[Rate]| rates.iter().map(|rate| rate.mean).collect();
        let first_block = FirstBlock {
            iterations: seen.iterations,
            carried: rates(&seen.carried),
            plain: rates(&seen.plain),
            given_back: (0..kept.len()).filter(|&pair| kept[pair] != choice.of_pair[pair]).collect(),
        };
        let choice = Choice { of_pair: kept, first_block: Some(first_block), ..choice.clone() };
        Ok(Verdict::Here(self.made(choice, ways, fitted.report.clone())?))
    }
}
