//! What the draws of the target chain say, of named quantities too, and how local moves fared on the way there.

use super::number;
use crate::chemistry::Molecule;
use crate::problem::{Constrain, Observable};
use serde::{Deserialize, Serialize};
use sterna::estimates::effective_sample_size;
use sterna::records::{BadPoint, Draws};
use sterna::run::{Results, Run};

/// Mean of each coordinate on the target chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expectations {
    /// The means.
    #[serde(deserialize_with = "number::list")]
    pub mean: Vec<f64>,
    /// Of each mean.
    #[serde(deserialize_with = "number::list")]
    pub standard_error: Vec<f64>,
}

/// Effective sample sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ess {
    /// Independent draws that the worst coordinate is worth; of a molecule, the worst dihedral.
    #[serde(deserialize_with = "number::one")]
    pub minimum: f64,
    /// Of each coordinate.
    #[serde(deserialize_with = "number::list")]
    pub coordinates: Vec<f64>,
}

/// What the draws of the target chain say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetChain {
    /// Means.
    pub expectations: Expectations,
    /// How many independent draws there are.
    pub ess: Ess,
}

impl TargetChain {
    pub(super) fn of(results: &Results, molecule: Option<&Molecule>) -> Self {
        let (mean, standard_error) = results.means.iter().copied().unzip();
        let smallest = || results.ess.iter().copied().fold(f64::INFINITY, f64::min);
        let dihedrals = molecule.and_then(Molecule::smallest_effective_sample_size);
        Self {
            expectations: Expectations { mean, standard_error },
            ess: Ess { minimum: dihedrals.unwrap_or_else(smallest), coordinates: results.ess.clone() },
        }
    }
}

/// The `explorer` of a summary: local moves of each chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplorerSummary {
    /// Mean acceptance; NaN on chains that draw exactly.
    #[serde(deserialize_with = "number::list")]
    pub acceptance: Vec<f64>,
    /// Sizes of moves in use.
    #[serde(deserialize_with = "number::list")]
    pub step_size: Vec<f64>,
    /// What they are, where they are no step sizes: `width` of slices.
    #[serde(default = "step_size", skip_serializing_if = "is_step_size")]
    pub size: String,
}

fn step_size() -> String {
    "step size".into()
}

fn is_step_size(size: &str) -> bool {
    size == "step size"
}

/// A proposal at which the target answered NaN or +∞.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BadDensity {
    /// When.
    pub iteration: u64,
    /// On which chain.
    pub chain: usize,
    /// To which replica, counted over all ladders.
    pub replica: usize,
    /// Where.
    #[serde(deserialize_with = "number::list")]
    pub point: Vec<f64>,
}

/// How often the target answered NaN or +∞.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BadDensities {
    /// Proposals, all of them rejected.
    pub count: u64,
    /// The first of them.
    pub first: Option<BadDensity>,
}

/// Local moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moves {
    /// How they fared.
    pub explorer: ExplorerSummary,
    /// Where the target had no answer.
    pub bad_densities: BadDensities,
}

impl Moves {
    pub(super) fn of(run: &Run, results: &Results) -> Self {
        let described = run.sampler().explorer.describe();
        let (count, first) = &results.bad;
        let bad = |b: &BadPoint| BadDensity {
            iteration: b.iteration,
            chain: b.chain,
            replica: b.replica,
            point: b.point.clone(),
        };
        Self {
            explorer: ExplorerSummary {
                acceptance: results.acceptance.clone(),
                step_size: results.step_size.clone(),
                size: described.first().map_or_else(step_size, |(name, _)| name.replace('_', " ")),
            },
            bad_densities: BadDensities { count: *count, first: first.as_ref().map(bad) },
        }
    }
}

/// What the draws say of a named quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// Its name.
    pub name: String,
    /// Mean of the draws.
    #[serde(deserialize_with = "number::one")]
    pub mean: f64,
    /// Their standard deviation.
    #[serde(deserialize_with = "number::one")]
    pub sd: f64,
    /// Standard error of the mean.
    #[serde(deserialize_with = "number::one")]
    pub mcse: f64,
    /// Independent draws that they are worth.
    #[serde(deserialize_with = "number::one")]
    pub ess: f64,
}

impl Quantity {
    /// One for each coordinate, where they have names.
    pub(super) fn parameters(names: &[String], results: &Results, draws: &[Draws]) -> Vec<Self> {
        let dim = results.means.len();
        if names.len() != dim {
            return Vec::new();
        }
        let quantity = |(j, name): (usize, &String)| {
            let column = draws.iter().flat_map(|d| d.x.chunks_exact(dim)).map(|x| x[j]);
            let (mean, mcse) = results.means[j];
            Self { name: name.clone(), mean, sd: deviation(column), mcse, ess: results.ess[j] }
        };
        names.iter().enumerate().map(quantity).collect()
    }

    /// One for each named value of points of this dimension.
    pub(super) fn values(names: &[String], values: &dyn Constrain, dim: usize, draws: &[Draws]) -> Vec<Self> {
        let count = values.values();
        if names.len() != count {
            return Vec::new();
        }
        let mut columns = vec![vec![Vec::new(); draws.len()]; count];
        let mut of_point = vec![0.0; count];
        for (ladder, draws) in draws.iter().enumerate() {
            for point in draws.x.chunks_exact(dim) {
                values.constrain(point, &mut of_point);
                columns.iter_mut().zip(&of_point).for_each(|(column, x)| column[ladder].push(*x));
            }
        }
        names.iter().zip(columns).map(|(name, ladders)| Self::of(name, &ladders)).collect()
    }

    /// One for each observable of points of this dimension.
    pub(super) fn observables(observables: &[Observable], dim: usize, draws: &[Draws]) -> Vec<Self> {
        let quantity = |observable: &Observable| {
            let of = |d: &Draws| d.x.chunks_exact(dim).map(|x| (observable.value)(x)).collect();
            Self::of(&observable.name, &draws.iter().map(of).collect::<Vec<_>>())
        };
        observables.iter().map(quantity).collect()
    }

    /// Of numbers, ladder by ladder.
    fn of(name: &str, ladders: &[Vec<f64>]) -> Self {
        let ess = effective_sample_size(&ladders.iter().map(|l| &l[..]).collect::<Vec<_>>());
        let all = || ladders.iter().flatten().copied();
        let sd = deviation(all());
        let mean = all().sum::<f64>() / all().count() as f64;
        Self { name: name.into(), mean, sd, mcse: sd / ess.sqrt(), ess }
    }
}

/// Standard deviation, in two passes.
fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_observable_has_the_moments_of_its_values() {
        let x: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 1000) / 1000.0).collect();
        let draws = [Draws { x, ..Draws::default() }];
        let square = Observable { name: "square".into(), value: Arc::new(|x| x[0] * x[0]) };
        let found = &Quantity::observables(&[square], 1, &draws)[0];
        // Uniform on [0, 1): 1/3, and 4/45 for the variance.
        assert!((found.mean - 1.0 / 3.0).abs() < 1e-3, "{found:?}");
        assert!((found.sd - (4f64 / 45.0).sqrt()).abs() < 1e-3, "{found:?}");
        assert!((found.mcse * found.ess.sqrt() - found.sd).abs() < 1e-12);
    }
}
