//! What swaps did: rejections, the barrier, round trips; and the normalising constants that their weights give.

use super::{About, Setup, Times, number};
use serde::{Deserialize, Serialize};
use sterna::estimates::global_barrier;
use sterna::run::{Leg, Results};

/// λ(β) on the schedule of the last tuning round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalBarrier {
    /// Where.
    #[serde(deserialize_with = "number::list")]
    pub beta: Vec<f64>,
    /// How much barrier a unit of β has there.
    #[serde(deserialize_with = "number::list")]
    pub lambda: Vec<f64>,
}

/// Round trips for what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalised {
    /// Divided by evaluations per machine and swap, as the paper counts them: K + 1, and 2 for parallel tempering,
    /// which in truth needs none (errata E20).
    #[serde(deserialize_with = "number::one")]
    pub paper: f64,
    /// Divided by all evaluations per machine and iteration, local moves included.
    #[serde(deserialize_with = "number::one")]
    pub all_evaluations: f64,
    /// In a second of sampling.
    #[serde(deserialize_with = "number::one")]
    pub per_second: f64,
}

/// What swaps did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swaps {
    /// Share of rejected swaps of each pair.
    #[serde(deserialize_with = "number::list")]
    pub rejection_rates: Vec<f64>,
    /// Λ: their sum.
    #[serde(deserialize_with = "number::one")]
    pub global_barrier: f64,
    /// λ(β) of plain swaps.
    pub local_barrier: LocalBarrier,
    /// Of all ladders.
    pub round_trips: u64,
    /// Per iteration and ladder.
    #[serde(deserialize_with = "number::one")]
    pub round_trip_rate: f64,
    /// What the rejection rates allow.
    #[serde(deserialize_with = "number::one")]
    pub round_trip_rate_predicted: f64,
    /// R / (T τ̂): low means that local moves, not swaps, are the bottleneck.
    #[serde(deserialize_with = "number::one")]
    pub exploration_efficiency: f64,
    /// Round trips for what they cost.
    pub compute_normalised_round_trips: Normalised,
    /// What each way to the target found, where the reference was fitted: from it, and from the anchor if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub legs: Vec<LegSummary>,
}

/// One of the ways to the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LegSummary {
    /// Where it begins: the kind of reference, or `anchor`.
    pub reference: String,
    /// Its chains, the target among them.
    pub chains: usize,
    /// It moves in every so many iterations.
    pub every: u64,
    /// Σ of its rejection rates.
    #[serde(deserialize_with = "number::one")]
    pub barrier: f64,
    /// Round trips that began at its reference.
    pub round_trips: u64,
    /// log Z from it alone.
    #[serde(deserialize_with = "number::one")]
    pub log_z: f64,
    /// Of `log_z`.
    #[serde(deserialize_with = "number::one")]
    pub log_z_error: f64,
}

impl LegSummary {
    fn all(about: &About, results: &Results) -> Vec<Self> {
        if about.reference != "fitted" {
            return Vec::new();
        }
        let names = [about.reference.as_str(), "anchor"];
        let of = |(leg, name): (&Leg, &str)| Self {
            reference: name.into(),
            chains: leg.chains,
            every: leg.every,
            barrier: leg.barrier,
            round_trips: leg.round_trips,
            log_z: leg.log_z.bar,
            log_z_error: leg.log_z.standard_error,
        };
        results.legs.iter().zip(names).map(of).collect()
    }
}

impl Swaps {
    /// The efficiency for people: both numbers are estimates, so that chance may carry it a little above 1.
    pub fn share_of_allowed(&self) -> f64 {
        if self.exploration_efficiency > 1.0 { 1.0 } else { self.exploration_efficiency }
    }

    pub(super) fn of(about: &About, setup: &Setup, results: &Results, times: &Times) -> Self {
        let trips = results.round_trips as f64;
        let replicas = (setup.chains * setup.ensembles) as f64;
        let each = results.sampling_evaluations as f64 / (replicas * results.iterations as f64);
        let (beta, lambda) = results.local_barrier.iter().copied().unzip();
        Self {
            rejection_rates: results.rejection_rates.clone(),
            global_barrier: global_barrier(&results.rejection_rates),
            local_barrier: LocalBarrier { beta, lambda },
            round_trips: results.round_trips,
            round_trip_rate: results.round_trip_rate,
            round_trip_rate_predicted: results.round_trip_rate_predicted,
            exploration_efficiency: results.round_trip_rate / results.round_trip_rate_predicted,
            compute_normalised_round_trips: Normalised {
                paper: trips / (setup.accelerator.steps + 1).max(2) as f64,
                all_evaluations: trips / each,
                per_second: trips / times.sampling.clock_s,
            },
            legs: LegSummary::all(about, results),
        }
    }

    /// The pair that rejects most, from 0, and its rejection rate; none where no rate is known.
    pub fn worst_pair(&self) -> Option<(usize, f64)> {
        let rates = self.rejection_rates.iter().copied().enumerate();
        rates.filter(|rate| rate.1.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The ratio of normalising constants of two neighbouring chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairRatio {
    /// From weights of forward paths.
    #[serde(deserialize_with = "number::one")]
    pub forward: f64,
    /// From weights of backward paths.
    #[serde(deserialize_with = "number::one")]
    pub backward: f64,
    /// By Bennett's acceptance ratio.
    #[serde(deserialize_with = "number::one")]
    pub bar: f64,
    /// 1 where weights of both directions are alike, 0 where they never meet.
    #[serde(deserialize_with = "number::one")]
    pub overlap: f64,
    /// Where the densities of forward and backward works cross.
    #[serde(deserialize_with = "number::one")]
    pub crossing: f64,
    /// Slope of their log-ratio: 1 by Crooks' relation.
    #[serde(deserialize_with = "number::one")]
    pub crossing_slope: f64,
}

/// The `log_z` of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// From weights of forward paths.
    #[serde(deserialize_with = "number::one")]
    pub forward: f64,
    /// From weights of backward paths.
    #[serde(deserialize_with = "number::one")]
    pub backward: f64,
    /// Half way between the two: the paper's estimate.
    #[serde(deserialize_with = "number::one")]
    pub geometric_mean: f64,
    /// By Bennett's acceptance ratio: the one to quote.
    #[serde(deserialize_with = "number::one")]
    pub bar: f64,
    /// Of `bar`.
    #[serde(deserialize_with = "number::one")]
    pub standard_error: f64,
    /// The true value, where it is known.
    pub truth: Option<f64>,
    /// What it is the logarithm of, where that has a name: the evidence, of a likelihood with its prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Pair by pair.
    pub pairs: Vec<PairRatio>,
}

impl LogZ {
    pub(super) fn of(results: &Results, is_evidence: bool) -> Self {
        let z = &results.log_z;
        let pairs = z.pairs.iter().map(|p| PairRatio {
            forward: p.forward,
            backward: p.backward,
            bar: p.bar.log_ratio,
            overlap: p.bar.overlap,
            crossing: p.crooks.crossing,
            crossing_slope: p.crooks.slope,
        });
        Self {
            forward: z.forward,
            backward: z.backward,
            geometric_mean: z.geometric_mean,
            bar: z.bar,
            standard_error: z.standard_error,
            truth: results.log_z_truth,
            of: is_evidence.then(|| "evidence".into()),
            pairs: pairs.collect(),
        }
    }

    /// What to call it: log Z, or log evidence.
    pub fn name(&self) -> String {
        format!("log {}", self.of.as_deref().unwrap_or("Z"))
    }

    /// Standard errors between the estimate and the truth, where that is known.
    pub fn deviation(&self) -> Option<f64> {
        let off = (self.bar - self.truth?) / self.standard_error;
        off.is_finite().then_some(off)
    }

    /// The pair with the least overlap, from 0, and that overlap; an unknown one counts as none at all.
    pub fn least_overlap(&self) -> Option<(usize, f64)> {
        let known = |overlap: f64| if overlap.is_nan() { 0.0 } else { overlap };
        let overlaps = self.pairs.iter().map(|p| known(p.overlap)).enumerate();
        overlaps.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}
