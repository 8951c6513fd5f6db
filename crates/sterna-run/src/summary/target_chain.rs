//! What the draws of the target chain say, and how local moves fared on the way there.

use super::number;
use crate::chemistry::Molecule;
use serde::{Deserialize, Serialize};
use sterna::explorers::MOVES;
use sterna::records::BadPoint;
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
    /// Moves an iteration on each chain, where tuning has found their number (`explorer.steps = "auto"`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<u32>,
}

fn moves_of(described: &[(&str, Vec<f64>)]) -> Vec<u32> {
    let moves = described.iter().find(|(name, _)| *name == MOVES);
    moves.map_or_else(Vec::new, |(_, moves)| moves.iter().map(|&moves| moves as u32).collect())
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
    /// Why, where the target can tell: the text of an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
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
    pub(super) fn of(run: &Run, results: &Results, says: Option<String>) -> Self {
        let described = run.sampler().explorer.describe();
        let (count, first) = &results.bad;
        let bad = |b: &BadPoint| BadDensity {
            iteration: b.iteration,
            chain: b.chain,
            replica: b.replica,
            point: b.point.clone(),
            says: says.clone(),
        };
        Self {
            explorer: ExplorerSummary {
                acceptance: results.acceptance.clone(),
                step_size: results.step_size.clone(),
                moves: moves_of(&described),
                size: described.first().map_or_else(step_size, |(name, _)| name.replace('_', " ")),
            },
            bad_densities: BadDensities { count: *count, first: first.as_ref().map(bad) },
        }
    }
}
