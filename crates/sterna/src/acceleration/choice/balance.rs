//! What swaps of all kinds bring and cost, on one scale: draws for evaluations of the target.

use super::pick::{Leg, Way};
use super::{PLAIN_TURNS, Prospect, Weighed};
use crate::Schedule;

/// Share of the proposals that are plain whatever carries the others.
pub(super) const PLAIN_SHARE: f64 = 1.0 / PLAIN_TURNS as f64;

/// The pairs of a ladder, and every way to carry them.
pub(super) struct Balance {
    legs: Vec<Leg>,
    /// A leg moves in every so many iterations.
    every: [f64; 2],
    /// Pairs on the way from the first reference to the target.
    target: usize,
    /// Journeys of each pair in an iteration.
    journeys: Vec<f64>,
    /// `[pair][way]`.
    pub ways: Vec<Vec<Way>>,
    /// Evaluations that the rest of the run asks for with plain swaps.
    pub ahead: f64,
}

impl Balance {
    /// Of ways that were weighed; an evaluation is worth so many multiply-adds.
    pub fn new(prospect: &Prospect, schedule: &Schedule, weighed: &[Weighed], evaluation: f64) -> Self {
        let (pairs, target) = (schedule.pairs(), schedule.target());
        // Two journeys a swap, which is proposed in every second iteration, or in each.
        let journeys: Vec<f64> =
            (0..pairs).map(|pair| if pair < target { prospect.turns as f64 } else { 1.0 }).collect();
        let plain = &weighed[0];
        let way = |weighed: &Weighed, pair: usize| match &weighed.refused {
            Some(_) => Way::new(1.0, f64::MAX.sqrt()),
            None => {
                let (own, plain) = (weighed.rejection_rates[pair], plain.rejection_rates[pair]);
                let carried = own + weighed.uncertainty[pair];
                let journey = journeys[pair] * weighed.journey(evaluation);
                Way::new(carried + PLAIN_SHARE * (plain - carried), (1.0 - PLAIN_SHARE) * journey)
            }
        };
        let ways =
            (0..pairs).map(|pair| weighed.iter().map(|weighed| way(weighed, pair)).collect()).collect();
        let (legs, every) = (prospect.legs(schedule), [1.0, prospect.every.max(1) as f64]);
        Self { legs, every, target, journeys, ways, ahead: prospect.evaluations_ahead() }
    }

    /// The same with one more way, which leaves so much of what plain swaps reject.
    pub fn with(&self, odds: impl Fn(usize) -> f64, journey: f64) -> Self {
        let more = |(pair, ways): (usize, &Vec<Way>)| {
            let way = Way { odds: odds(pair), cost: self.journeys[pair] * journey };
            ways.iter().copied().chain([way]).collect()
        };
        let ways = self.ways.iter().enumerate().map(more).collect();
        Self { ways, legs: self.legs.clone(), journeys: self.journeys.clone(), ..*self }
    }

    fn of_legs(&self) -> impl Iterator<Item = (Leg, std::ops::Range<usize>, f64)> {
        let ranges = [0..self.target, self.target..self.ways.len()];
        self.legs.iter().copied().zip(ranges).zip(self.every).map(|((leg, range), every)| (leg, range, every))
    }

    /// Draws for their cost, over both legs: one that rests brings and costs little.
    fn worth(&self, of_pair: &[usize]) -> f64 {
        let (mut rate, mut cost) = (0.0, 0.0);
        for (leg, range, every) in self.of_legs() {
            let (ways, own) = (&self.ways[range.clone()], &of_pair[range]);
            rate += leg.draws(ways, own) / every;
            cost += leg.each(ways, own) / every;
        }
        rate / cost
    }

    /// As many times the draws of plain swaps for their cost.
    pub fn gain(&self, of_pair: &[usize]) -> f64 {
        self.worth(of_pair) / self.worth(&vec![0; self.ways.len()])
    }

    /// The mixture whose round trips cost least, leg by leg.
    pub fn best(&self) -> Vec<usize> {
        self.of_legs().flat_map(|(leg, range, _)| leg.best(&self.ways[range])).collect()
    }

    /// Evaluations in which the best mixture brings what the rest of the run would bring by plain swaps.
    pub fn bill(&self) -> f64 {
        self.ahead / self.gain(&self.best()).max(1.0)
    }
}
