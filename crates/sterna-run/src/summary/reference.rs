//! What a fitted reference came to, and which chain is which on its ladder.

use super::{Summary, number};
use serde::{Deserialize, Serialize};
use sterna::fitted::Optimum;
use sterna::run::{Results, Run};

/// Fewer round trips from the anchor say little.
const FEW_TRIPS: u64 = 10;

/// The `reference` of a summary, where one was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedReference {
    /// Weights of its normals.
    #[serde(deserialize_with = "number::list")]
    pub weights: Vec<f64>,
    /// What climbs found, the one with most mass around it first.
    pub optima: Vec<OptimumSummary>,
    /// What became of the second leg.
    pub anchor: AnchorState,
    /// What should be known of what the anchor vouches for, where that is little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An optimum that climbs found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptimumSummary {
    /// Where.
    #[serde(deserialize_with = "number::list")]
    pub at: Vec<f64>,
    /// log density there.
    #[serde(deserialize_with = "number::one")]
    pub log_density: f64,
    /// Laplace's estimate of the logarithm of the mass around it.
    #[serde(deserialize_with = "number::one")]
    pub log_evidence: f64,
    /// Climbs that ended there.
    pub climbs: usize,
}

/// What became of the second leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnchorState {
    /// Chains lead to it.
    Kept,
    /// Its barrier was too high for the chains that it may have.
    GivenUp,
    /// The reference is the anchor itself: no fit is apart from it.
    Same,
    /// It was not asked for.
    None,
}

impl FittedReference {
    pub(super) fn of(run: &Run, results: &Results) -> Option<Self> {
        let mixture = run.mixture()?;
        let anchor = match (results.legs.len(), run.anchor_dropped()) {
            (2, _) => AnchorState::Kept,
            (_, true) => AnchorState::GivenUp,
            _ if run.settings().fit.as_ref().is_some_and(|fit| fit.anchor) => AnchorState::Same,
            _ => AnchorState::None,
        };
        let climbs: usize = run.optima().iter().map(|optimum| optimum.climbs).sum();
        let rests = match run.optima().len() {
            0 => "nothing else speaks for there being no other mode".into(),
            n => {
                let s = if n == 1 { "um" } else { "a" };
                format!("that there is no other mode rests on {climbs} climbs, which found {n} optim{s}")
            }
        };
        let note = match (anchor, results.legs.get(1)) {
            (AnchorState::GivenUp, _) => Some(format!(
                "the second leg was given up: its barrier was too high for the chains that it may have, and {rests}; an \
                 anchor nearer to the target (reference.mean, reference.scale) could be reached"
            )),
            (AnchorState::Kept, Some(leg)) if leg.round_trips < FEW_TRIPS => {
                let trips = match leg.round_trips {
                    0 => "no round trip".into(),
                    1 => "only 1 round trip".into(),
                    n => format!("only {n} round trips"),
                };
                Some(format!(
                    "{trips} came from the anchor: {rests}; sample longer, or bring the anchor nearer to the target \
                     (reference.mean, reference.scale)"
                ))
            }
            _ => None,
        };
        Some(Self {
            weights: mixture.components().iter().map(|component| component.weight).collect(),
            optima: run.optima().iter().map(OptimumSummary::of).collect(),
            anchor,
            note,
        })
    }
}

impl OptimumSummary {
    fn of(optimum: &Optimum) -> Self {
        let Optimum { mean, log_density, log_evidence, climbs, .. } = optimum;
        Self { at: mean.clone(), log_density: *log_density, log_evidence: *log_evidence, climbs: *climbs }
    }
}

impl Summary {
    /// The chain of the target: the last one, or that where two legs meet.
    pub fn target_number(&self) -> usize {
        let last = self.setup.chains.saturating_sub(1);
        self.swaps.legs.first().map_or(last, |leg| leg.chains.saturating_sub(1).min(last))
    }

    /// What stands at a chain, where that has a name.
    pub fn chain_name(&self, chain: usize) -> Option<&'static str> {
        match chain {
            0 if self.swaps.legs.is_empty() => Some("reference"),
            0 => Some("fitted reference"),
            n if n == self.target_number() => Some("target"),
            n if n + 1 == self.setup.chains => Some("anchor"),
            _ => None,
        }
    }

    /// Which way a row of chains leads.
    pub fn way(&self) -> String {
        match self.swaps.legs.len() {
            2 => format!("from fitted reference over target ({}) to anchor", self.target_number()),
            _ => "from reference to target".into(),
        }
    }
}
