//! log Z in all its estimates.

use super::number;
use serde::{Deserialize, Serialize};
use sterna::run::Results;

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
    /// Pair by pair.
    pub pairs: Vec<PairRatio>,
}

impl LogZ {
    pub(super) fn of(results: &Results) -> Self {
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
            pairs: pairs.collect(),
        }
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
