//! Chains follow the transports that were chosen: they were tuned for plain swaps. As many as make draws cheapest move to where all
//! pairs would be rejected equally often.
//!
//! Nobody has samples of chains that have moved, so burn-in is looked at: halfway chains move once more, by what it has seen, and at
//! its end they go back if all this came to nothing.

use super::balance::PLAIN_SHARE;
use super::pick::{Leg, Way};
use super::{Choice, Choose, Made, Prospect, Record};
use crate::acceleration::Fitted;
use crate::estimates::{barrier_of_rejection, rejection_across};
use crate::{Result, Schedule};
use serde::{Deserialize, Serialize};

/// Where chains are, and where they were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Where they are now.
    pub to: Schedule,
    /// The schedule of the samples that the choice was made from.
    pub from: Schedule,
    /// Which way carried each pair there.
    pub of_pair: Vec<usize>,
}

/// A move that promises less than so many times the draws for their cost is not made.
const WORTH_MOVING: f64 = 1.1;
/// Nor is another number of chains, that promises less than so many times what as many as now do.
const WORTH_ANOTHER_NUMBER: f64 = 1.05;
/// Beyond half and twice as many pairs as samples were taken of nothing is known of what lies between them.
const FARTHEST: usize = 2;
/// A pair that let nothing pass may be this far apart, or farther.
const MOST_REJECTED: f64 = 0.9995;

fn barriers(rejections: &[f64]) -> Vec<f64> {
    let known = |r: &f64| if r.is_finite() { r.clamp(0.0, MOST_REJECTED) } else { MOST_REJECTED };
    rejections.iter().map(|r| barrier_of_rejection(known(r))).collect()
}

/// Where chains would go, and what that promises.
struct Plan {
    to: Schedule,
    of_pair: Vec<usize>,
    worth: f64,
}

impl Choice {
    /// Rejections that held-out samples promise, with pairs carried so, plain turns among them.
    fn promised(&self, of_pair: &[usize]) -> Vec<f64> {
        let of = |(pair, &way): (usize, &usize)| {
            let [plain, own] = [0, way].map(|way| self.weighed[way].rejection_rates[pair]);
            own + PLAIN_SHARE * (plain - own)
        };
        of_pair.iter().enumerate().map(of).collect()
    }

    /// Where the samples lay that it was made from.
    pub(super) fn from<'a>(&'a self, schedule: &'a Schedule) -> &'a Schedule {
        self.moved.as_ref().map_or(schedule, |moved| &moved.from)
    }

    /// The first leg without its swaps, if it has so many pairs.
    pub(super) fn leg_of(&self, from: &Schedule, pairs: usize) -> Leg {
        let leg = self.prospect.legs(from)[0];
        Leg { cost: leg.cost * (pairs + 1) as f64 / (from.target() + 1) as f64, ..leg }
    }

    /// What an iteration's journeys over a pair of the first leg cost, carried so, plain turns among them.
    pub(super) fn cost_of(&self, way: usize) -> f64 {
        let turns = (1.0 - PLAIN_SHARE) * self.prospect.turns as f64;
        if way == 0 { 0.0 } else { turns * self.weighed[way].journey(self.evaluation) }
    }

    /// Evaluations that its journeys have taken in an iteration of a ladder with such turns.
    pub(crate) fn journeys(&self, prospect: &Prospect) -> f64 {
        let of_pair = |(pair, &way): (usize, &usize)| {
            let turns = if pair < prospect.target {
                prospect.turns as f64
            } else {
                1.0 / prospect.every.max(1) as f64
            };
            (1.0 - PLAIN_SHARE) * turns * self.weighed.get(way).map_or(0.0, |way| way.evaluations)
        };
        self.of_pair.iter().enumerate().filter(|(_, way)| **way > 0).map(of_pair).sum()
    }

    /// Draws of a first leg for their cost, whose pairs are rejected so and carried so.
    fn worth(&self, from: &Schedule, rejections: &[f64], of_pair: &[usize]) -> f64 {
        let way = |(&r, &way): (&f64, &usize)| {
            vec![Way::new(if r.is_finite() { r } else { 1.0 }, self.cost_of(way))]
        };
        let ways: Vec<Vec<Way>> = rejections.iter().zip(of_pair).map(way).collect();
        let (leg, of_pair) = (self.leg_of(from, ways.len()), vec![0; ways.len()]);
        leg.draws(&ways, &of_pair) / leg.each(&ways, &of_pair)
    }

    /// The way of a pair between two β: that which carried most of what plain swaps reject there, where samples were taken.
    fn way_between(&self, from: &Schedule, [lower, upper]: [f64; 2]) -> usize {
        let of_pair = self.moved.as_ref().map_or(&self.of_pair, |moved| &moved.of_pair);
        let plain = barriers(&self.weighed[0].rejection_rates);
        let mut shares = vec![0.0; self.weighed.len()];
        for ((ends, way), barrier) in from.betas().windows(2).zip(of_pair).zip(plain) {
            let common = (upper.min(ends[1]) - lower.max(ends[0])).max(0.0);
            shares[*way] += barrier * common / (ends[1] - ends[0]);
        }
        (0..shares.len()).fold(0, |best, way| if shares[way] > shares[best] { way } else { best })
    }

    /// The same with so many pairs on the first leg, which share its barrier.
    fn spread(&self, from: &Schedule, now: &Schedule, barriers: &[f64], pairs: usize) -> Plan {
        let target = now.target();
        let to = now.equalise_with(barriers, pairs + 1);
        let ends = to.betas().windows(2);
        let of_pair: Vec<usize> = ends.map(|ends| self.way_between(from, [ends[0], ends[1]])).collect();
        let each = rejection_across(barriers[..target].iter().sum::<f64>() / pairs as f64);
        let worth = self.worth(from, &vec![each; pairs], &of_pair[..pairs]);
        Plan { to, of_pair, worth }
    }

    /// Where chains are to go, if that pays: by the rates that were seen or, before there were any, by those that are promised.
    fn plan(&self, schedule: &Schedule, rejections: &[f64], most_chains: Option<usize>) -> Option<Plan> {
        let (barriers, target) = (barriers(rejections), schedule.target());
        let from = self.from(schedule);
        let with = |pairs: usize| self.spread(from, schedule, &barriers, pairs);
        let mut best = with(target);
        if let Some(most) = most_chains {
            let least = WORTH_ANOTHER_NUMBER * best.worth;
            let (known, beyond) = (from.target(), schedule.chains() - target);
            let numbers = known.div_ceil(FARTHEST)..=(FARTHEST * known).min(most.saturating_sub(beyond));
            let other = numbers.map(with).reduce(|a, b| if b.worth > a.worth { b } else { a });
            best = other.filter(|other| other.worth > least).unwrap_or(best);
        }
        let now = self.worth(from, &rejections[..target], &self.of_pair[..target]);
        (best.worth >= WORTH_MOVING * now).then_some(best)
    }
}

impl Choose {
    /// Ways from their records, for chains that lie elsewhere; none where one of them cannot be had there.
    pub(super) fn made_at(&self, ways: &[(usize, Vec<u8>)], to: &Schedule) -> Result<Option<Made>> {
        let at = |(way, record): &(usize, Vec<u8>)| -> Result<_> {
            Ok(self.maker(*way)?.rebuild_at(record, to)?.map(|fitted| (*way, fitted)))
        };
        ways.iter().map(at).collect::<Result<Option<_>>>()
    }

    /// Where chains are to move, how many of them, and what carries their swaps there.
    pub(super) fn followed(
        &self,
        fitted: &Fitted,
        schedule: &Schedule,
        seen: Option<Vec<f64>>,
    ) -> Result<Option<(Schedule, Fitted)>> {
        let Some(choice) = fitted.report.choice.as_ref().filter(|c| c.of_pair.iter().any(|way| *way > 0))
        else {
            return Ok(None);
        };
        let rejections = seen.unwrap_or_else(|| choice.promised(&choice.of_pair));
        if rejections.len() != schedule.pairs() || choice.of_pair.len() != schedule.pairs() {
            return Ok(None);
        }
        let Some(Plan { to, of_pair, .. }) = choice.plan(schedule, &rejections, self.most_chains) else {
            return Ok(None);
        };
        let Some(made) = self.made_at(&Record::read(&fitted.record)?.ways, &to)? else { return Ok(None) };
        let before = choice.moved.as_ref().map(|moved| (moved.from.clone(), moved.of_pair.clone()));
        let (from, before) = before.unwrap_or_else(|| (schedule.clone(), choice.of_pair.clone()));
        let moved = Moved { to: to.clone(), from, of_pair: before };
        let choice = Choice { of_pair, moved: Some(moved), ..choice.clone() };
        Ok(Some((to, self.made(choice, made, fitted.report.clone())?)))
    }

    /// Where chains were, if they have moved, and what carried their swaps there.
    pub(super) fn gone_back(&self, fitted: &Fitted, choice: &Choice) -> Result<Option<(Schedule, Fitted)>> {
        let Some(Moved { from, of_pair, .. }) = choice.moved.clone() else { return Ok(None) };
        let made = self.made_again(&Record::read(&fitted.record)?.ways)?;
        let choice = Choice { of_pair, moved: None, ..choice.clone() };
        Ok(Some((from, self.made(choice, made, fitted.report.clone())?)))
    }
}

impl Choice {
    /// Whether chains have moved, and draws cost more by what was seen than had been promised where they were.
    pub(super) fn moved_in_vain(&self, seen: &[f64]) -> bool {
        let Some(Moved { from, to, of_pair }) = &self.moved else { return false };
        let worth = |rejections: &[f64], of_pair: &[usize], target: usize| {
            self.worth(from, &rejections[..target], &of_pair[..target])
        };
        let known = seen.len() == to.pairs() && seen[..to.target()].iter().all(|r| r.is_finite());
        known
            && worth(seen, &self.of_pair, to.target())
                < worth(&self.promised(of_pair), of_pair, from.target())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acceleration::Weighed;

    /// Half and twice as many pairs are those of where samples were taken, however often chains move.
    #[test]
    fn two_moves_lead_no_farther_than_one() {
        let way = |r: f64| Weighed { rejection_rates: vec![r; 8], ..Weighed::default() };
        let prospect = Prospect {
            ladders: 4,
            iterations: 1000,
            evaluations: 36_000,
            rejection_rates: vec![0.5; 8],
            target: 8,
            turns: 1,
            every: 1,
            ..Prospect::default()
        };
        let from = Schedule::uniform(9);
        let choice = |pairs: usize| Choice {
            weighed: vec![way(0.5), way(0.01)],
            of_pair: vec![1; pairs],
            evaluation: 1.0,
            prospect: prospect.clone(),
            moved: Some(Moved { to: Schedule::uniform(pairs + 1), from: from.clone(), of_pair: vec![1; 8] }),
            ..Choice::default()
        };
        let next = |pairs: usize, rejection: f64| {
            let plan = choice(pairs).plan(&Schedule::uniform(pairs + 1), &vec![rejection; pairs], Some(100));
            plan.map_or(pairs, |plan| plan.of_pair.len())
        };
        // Where nothing is rejected the fewest pairs are best, where most is, the most.
        assert_eq!([8, 4].map(|pairs| next(pairs, 0.001)), [4, 4]);
        assert_eq!([next(8, 0.99), next(16, 0.9)], [16, 16]);
    }
}
