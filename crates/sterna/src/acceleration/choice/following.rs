//! Chains follow the transports that were chosen, to where all pairs would be rejected equally often: those were tuned for plain swaps.
//!
//! Nobody has samples of chains that have moved, so burn-in is looked at: halfway chains move once more, by what it has seen, and at
//! its end they go back if all this came to nothing.

use super::balance::PLAIN_SHARE;
use super::{Choice, Choose, Made, Record};
use crate::acceleration::Fitted;
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

/// A move that promises less than so many times the round trips is not made.
const WORTH_MOVING: f64 = 1.1;

/// Iterations of a round trip on the first leg: 2 + 2 Σ r/(1 − r).
fn iterations(rejections: &[f64], target: usize) -> f64 {
    let odds = |r: &f64| {
        let r = if r.is_finite() { r.clamp(0.0, 0.999) } else { 0.999 };
        r / (1.0 - r)
    };
    2.0 + 2.0 * rejections[..target].iter().map(odds).sum::<f64>()
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
}

impl Choose {
    /// Ways from their records, for chains that lie elsewhere; none where one of them cannot be had there.
    pub(super) fn made_at(&self, ways: &[(usize, Vec<u8>)], to: &Schedule) -> Result<Option<Made>> {
        let at = |(way, record): &(usize, Vec<u8>)| -> Result<_> {
            Ok(self.maker(*way)?.rebuild_at(record, to)?.map(|fitted| (*way, fitted)))
        };
        ways.iter().map(at).collect::<Result<Option<_>>>()
    }

    /// Where chains are to move, and what carries their swaps there: a pair goes the way of that in whose place it is.
    pub(super) fn followed(
        &self,
        fitted: &Fitted,
        schedule: &Schedule,
        seen: Option<&[f64]>,
    ) -> Result<Option<(Schedule, Fitted)>> {
        let Some(choice) = fitted.report.choice.as_ref().filter(|c| c.of_pair.iter().any(|way| *way > 0))
        else {
            return Ok(None);
        };
        let rejections = seen.map_or_else(|| choice.promised(&choice.of_pair), <[f64]>::to_vec);
        let (pairs, target) = (schedule.pairs(), schedule.target());
        if rejections.len() != pairs {
            return Ok(None);
        }
        let mean = rejections[..target].iter().sum::<f64>() / target as f64;
        if iterations(&rejections, target) < WORTH_MOVING * iterations(&vec![mean; target], target) {
            return Ok(None);
        }
        let to = schedule.equalise_rejections(&rejections);
        let Some(made) = self.made_at(&Record::read(&fitted.record)?.ways, &to)? else { return Ok(None) };
        let place = |n: usize| {
            let middle = 0.5 * (to.betas()[n] + to.betas()[n + 1]);
            choice.of_pair[schedule.betas().partition_point(|&beta| beta <= middle) - 1]
        };
        let before = choice.moved.as_ref().map(|moved| (moved.from.clone(), moved.of_pair.clone()));
        let (from, of_pair) = before.unwrap_or_else(|| (schedule.clone(), choice.of_pair.clone()));
        let moved = Moved { to: to.clone(), from, of_pair };
        let choice =
            Choice { of_pair: (0..pairs).map(place).collect(), moved: Some(moved), ..choice.clone() };
        Ok(Some((to, self.made(choice, made, fitted.report.clone())?)))
    }

    /// Where chains were, if a round trip takes longer by what was seen than had been promised there.
    pub(super) fn gone_back(&self, fitted: &Fitted, seen: &[f64]) -> Result<Option<(Schedule, Fitted)>> {
        let Some((choice, moved)) = fitted.report.choice.as_ref().and_then(|c| Some((c, c.moved.clone()?)))
        else {
            return Ok(None);
        };
        let Moved { from, of_pair, .. } = moved;
        let target = from.target();
        if iterations(seen, target) <= iterations(&choice.promised(&of_pair), target) {
            return Ok(None);
        }
        let made = self.made_again(&Record::read(&fitted.record)?.ways)?;
        let choice = Choice { of_pair, moved: None, ..choice.clone() };
        Ok(Some((from, self.made(choice, made, fitted.report.clone())?)))
    }
}
