//! What a run has to gain from a transport, as plain swaps show it.

use super::pick::Leg;
use crate::Schedule;
use crate::estimates::round_trip_rate;
use serde::{Deserialize, Serialize};

/// What swaps so far cost and brought, and how long the run is to go on.
///
/// ```
/// use sterna::acceleration::Prospect;
/// let prospect = Prospect { ladders: 2, iterations: 100, evaluations: 4000, ..Prospect::default() };
/// assert_eq!(prospect.evaluations_each(), 20.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prospect {
    /// Ladders.
    pub ladders: usize,
    /// Iterations that were looked at.
    pub iterations: u64,
    /// Evaluations of the target in them, by all ladders.
    pub evaluations: u64,
    /// Round trips of all ladders in them.
    pub round_trips: u64,
    /// Effective draws of the target in them, of the coordinate that has fewest; none where nobody counted.
    pub effective: Option<f64>,
    /// Rejection rate of each pair in them, and how many of those are on the way from the first reference to the target.
    pub rejection_rates: Vec<f64>,
    /// See there.
    pub target: usize,
    /// How often a pair on that way is proposed in two iterations: once, or twice where there is no other.
    pub turns: u64,
    /// The leg beyond the target moves in every so many iterations.
    pub every: u64,
    /// Iterations still to come, as far as is known.
    pub ahead: f64,
}

/// Round trips that make a count of them trustworthy.
const ENOUGH: u64 = 20;

/// Ladders that would hardly all be in one mode of several.
const MANY_LADDERS: usize = 4;

/// Ladders that never leave their modes are worth about so many draws each.
const OF_A_LADDER: f64 = 3.0;

/// Of n effective draws, which the coordinate with fewest of them had, there may have been so many √n more.
const COUNTED_LOW: f64 = 10.0;

/// Share of what round trips take longer than rejections say that no transport mends.
const OF_MOVES: f64 = 0.5;

impl Prospect {
    /// Evaluations of an iteration of one ladder.
    pub fn evaluations_each(&self) -> f64 {
        self.evaluations as f64 / (self.iterations.max(1) * self.ladders.max(1) as u64) as f64
    }

    /// Evaluations that the rest of the run asks for.
    pub fn evaluations_ahead(&self) -> f64 {
        self.evaluations_each() * self.ladders as f64 * self.ahead
    }

    /// Iterations of a round trip that local moves take. Trips take longer than rejections alone say; half of that is counted
    /// here, since swaps that follow on each other are rejected together where moves are short, which transports mend.
    fn idle(&self, legs: [&[f64]; 2]) -> f64 {
        if self.round_trips < ENOUGH {
            return 0.0;
        }
        let seen = (self.iterations * self.ladders as u64) as f64 / self.round_trips as f64;
        let every = [1, self.every.max(1)];
        let there = legs.into_iter().zip(every).filter(|(rates, _)| !rates.is_empty());
        let allowed: f64 = there.map(|(rates, every)| round_trip_rate(rates) / every as f64).sum();
        OF_MOVES * (seen - allowed.recip()).max(0.0)
    }

    /// The legs of a schedule without their swaps: every chain that moves costs as much as another.
    pub(super) fn legs(&self, schedule: &Schedule) -> Vec<Leg> {
        let target = schedule.target();
        let known = self.known_rates();
        let (first, second) = known.split_at(self.target.min(known.len()));
        let idle = self.idle([first, second]);
        let chains = [(target + 1) as f64, (schedule.pairs() - target) as f64];
        let moving = chains[0] + chains[1] / self.every.max(1) as f64;
        let local = self.local_draws();
        let leg = |leg: usize| Leg { idle, local, cost: self.evaluations_each() * chains[leg] / moving };
        (0..schedule.legs()).map(leg).collect()
    }

    /// Effective draws of an iteration of one ladder that local moves bring by themselves: those beyond one for each round trip. Short
    /// series count them low, so that there may be some more. Where trips were few, draws of a single mode may look like many: then
    /// nobody knows, and none are counted, unless there are ladders enough to lie in modes that differ.
    fn local_draws(&self) -> f64 {
        let mut counted = self.effective.unwrap_or(0.0);
        if self.round_trips < ENOUGH {
            if self.ladders < MANY_LADDERS {
                return 0.0;
            }
            counted = (counted - OF_A_LADDER * self.ladders as f64).max(0.0);
        }
        let more = counted + COUNTED_LOW * counted.sqrt() - self.round_trips as f64;
        if more > 0.0 { more / (self.iterations.max(1) * self.ladders.max(1) as u64) as f64 } else { 0.0 }
    }

    fn known_rates(&self) -> Vec<f64> {
        self.rejection_rates.iter().map(|r| if r.is_finite() { r.min(0.999) } else { 0.999 }).collect()
    }

    /// How many times as many draws there would be if no swap on the way to the target were rejected; no bound where nothing
    /// was seen.
    pub fn most_gain(&self) -> f64 {
        let known = self.known_rates();
        if known.is_empty() {
            return f64::INFINITY;
        }
        let first = &known[..self.target.min(known.len())];
        let odds: f64 = first.iter().map(|r| r / (1.0 - r)).sum();
        let (rest, local) = (1.0 + 0.5 * self.idle([first, &[]]), self.local_draws());
        (local + 0.5 / rest) / (local + 0.5 / (rest + odds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_moves_take_what_swaps_do_not() {
        let rates = vec![0.5, 0.5];
        // Swaps allow a trip in six iterations; one in ten was seen: two of the four between them are those of moves.
        let prospect = Prospect {
            ladders: 2,
            iterations: 1000,
            evaluations: 12_000,
            round_trips: 200,
            effective: Some(50.0),
            rejection_rates: rates,
            target: 2,
            turns: 1,
            every: 1,
            ahead: 50.0,
        };
        let legs = prospect.legs(&Schedule::uniform(3));
        assert_eq!(legs.len(), 1);
        assert!((legs[0].idle - 2.0).abs() < 1e-12 && legs[0].cost == 6.0, "{legs:?}");
        assert!((prospect.most_gain() - 2.0).abs() < 1e-12);
        assert_eq!(prospect.evaluations_ahead(), 600.0);
        // Where local moves bring most draws, trips have little to add: one in ten iterations, and a trip in ten.
        // Four hundred that were counted may be two hundred more.
        let easy = Prospect { effective: Some(400.0), ..prospect.clone() };
        assert!(
            (easy.most_gain() - (0.2 + 1.0 / 4.0) / (0.2 + 1.0 / 8.0)).abs() < 1e-12,
            "{}",
            easy.most_gain()
        );
        // Too few trips tell nothing of what hinders them.
        let few = Prospect { round_trips: 3, effective: None, ..prospect.clone() };
        assert_eq!(few.most_gain(), 3.0);
        // But many ladders would hardly all be in one mode.
        let many = Prospect { ladders: 4, round_trips: 3, effective: Some(400.0), ..prospect };
        assert!(many.most_gain() < 2.5, "{}", many.most_gain());
        // The second leg rests in nine of ten iterations.
        let both = Schedule::two_legs(&Schedule::uniform(3), &Schedule::uniform(2));
        let resting = Prospect { rejection_rates: vec![0.5, 0.5, 0.1], every: 10, ..few };
        let legs = resting.legs(&both);
        assert!((legs[0].cost - 6.0 * 3.0 / 3.1).abs() < 1e-12, "{legs:?}");
    }
}
