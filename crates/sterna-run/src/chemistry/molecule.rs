//! The `molecule` of `summary.json`: populations of basins, chirality, peptide bonds, and what is worth how many draws.

use super::Apart;
use crate::alarms::{Alarm, Code};
use crate::summary::number;
use serde::{Deserialize, Serialize};
use sterna::estimates::mean_with_error;
use sterna_molecule::Basin;

/// How much of the time something holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// Share of the draws.
    #[serde(rename = "population", deserialize_with = "number::one")]
    pub share: f64,
    /// Its standard error; NaN where no draw differed from another, so that nothing is known of it.
    #[serde(deserialize_with = "number::one")]
    pub standard_error: f64,
}

/// Populations of the basins of one residue: all, and given φ < 0 (outside C7ax), where a run that never crosses
/// can be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Basins {
    /// The residue's name.
    pub residue: String,
    /// Of all draws.
    #[serde(rename = "basins", with = "by_name")]
    pub all: Vec<(Basin, Population)>,
    /// Of draws with φ < 0.
    #[serde(with = "by_name")]
    pub given_negative_phi: Vec<(Basin, Population)>,
}

/// A chiral centre, and how often it turned over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chirality {
    /// What a person calls it.
    pub name: String,
    /// The atom.
    pub atoms: Vec<usize>,
    /// Draws with the other hand than at the start.
    pub flipped: Population,
}

/// A peptide bond, and how often it is cis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeptideBond {
    /// What a person calls it.
    pub name: String,
    /// Its two atoms.
    pub atoms: Vec<usize>,
    /// Draws in which it is cis.
    pub cis: Population,
}

/// A dihedral or a distance that was watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedSeries {
    /// Its name in `draws.nc`.
    pub name: String,
    /// The atoms, counted from 0: four of a dihedral, two of a distance.
    pub atoms: Vec<usize>,
    /// Independent draws that it is worth.
    #[serde(deserialize_with = "number::one")]
    pub ess: f64,
}

/// What a summary tells of a molecule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Molecule {
    /// Of each chain, in kelvin.
    #[serde(deserialize_with = "number::list")]
    pub temperatures: Vec<f64>,
    /// Basins of each residue.
    pub residues: Vec<Basins>,
    /// Chiral centres.
    pub chirality: Vec<Chirality>,
    /// Peptide bonds.
    pub peptide_bonds: Vec<PeptideBond>,
    /// Dihedrals and distances.
    pub series: Vec<WatchedSeries>,
    /// How far parts went that no bond holds together, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Apart>,
}

impl Molecule {
    /// Independent draws that the worst dihedral is worth; none where none is watched. (Cartesian coordinates would say
    /// little: each iteration turns the whole molecule.)
    pub fn smallest_effective_sample_size(&self) -> Option<f64> {
        let dihedrals = self.series.iter().filter(|series| series.atoms.len() == 4);
        let sizes = dihedrals.map(|series| series.ess).filter(|size| size.is_finite());
        sizes.min_by(f64::total_cmp)
    }

    /// Lost parts, flipped centres and cis peptide bonds.
    pub fn alarms(&self) -> Vec<Alarm> {
        let flipped = self.chirality.iter().filter(|watch| watch.flipped.share > 0.0).map(|watch| Alarm {
            code: Code::ChiralityFlipped,
            message: format!(
                "the chiral centre {} has the other hand in {:.3}% of the draws: the energy does not tell mirror images \
                 apart, so populations mix both; leave those draws out, or lower reference.temperature",
                watch.name,
                100.0 * watch.flipped.share
            ),
        });
        let cis = self.peptide_bonds.iter().filter(|watch| watch.cis.share > 0.0).map(|watch| Alarm {
            code: Code::CisPeptide,
            message: format!(
                "the peptide bond {} is cis in {:.3}% of the draws; hot chains make it so, and it comes back rarely: \
                 check that this is meant",
                watch.name,
                100.0 * watch.cis.share
            ),
        });
        let lost = self.apart.iter().filter(|apart| apart.is_dissociated()).map(|apart| Alarm {
            code: Code::Dissociated,
            message: format!(
                "{} parts without a bond between them drifted as far as {:.1e} nm from their middle, {:.2} nm at the start: \
                 without walls such a system has no law, and log Z no meaning; bond or restrain them in the force field, or \
                 sample one molecule alone",
                apart.parts, apart.farthest_nm, apart.at_start_nm
            ),
        });
        lost.chain(flipped).chain(cis).collect()
    }
}

impl Population {
    /// The mean of a 0/1 series of several ladders. Its error is the larger of two: from the correlations within
    /// ladders, and (from four ladders on) from the spread between them, which also sees what no ladder left.
    pub(super) fn new(ladders: &[Vec<f64>]) -> Self {
        let value = ladders.iter().flatten().next();
        let (share, error) = mean_and_error(ladders);
        let known = ladders.iter().flatten().any(|v| Some(v) != value);
        Self { share, standard_error: if known { error } else { f64::NAN } }
    }
}

fn mean_and_error(ladders: &[Vec<f64>]) -> (f64, f64) {
    let each: Vec<(f64, f64)> = ladders.iter().map(|ladder| mean_with_error(ladder)).collect();
    let count = each.len() as f64;
    let mean = each.iter().map(|e| e.0).sum::<f64>() / count;
    let within = each.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt() / count;
    let spread = each.iter().map(|e| (e.0 - mean) * (e.0 - mean)).sum::<f64>();
    let between = if each.len() < 4 { 0.0 } else { (spread / (count - 1.0) / count).sqrt() };
    (mean, within.max(between))
}

impl Basins {
    pub(super) fn new(residue: String, phi: &[Vec<f64>], psi: &[Vec<f64>]) -> Self {
        let ladders: Vec<Vec<Basin>> = phi
            .iter()
            .zip(psi)
            .map(|(phi, psi)| {
                phi.iter().zip(psi).map(|(a, b)| Basin::of(a.to_radians(), b.to_radians())).collect()
            })
            .collect();
        let series = |f: &dyn Fn(Basin) -> f64| -> Vec<Vec<f64>> {
            ladders.iter().map(|ladder| ladder.iter().map(|&basin| f(basin)).collect()).collect()
        };
        let indicator = |holds: bool| f64::from(u8::from(holds));
        let all: Vec<(Basin, Population)> =
            Basin::ALL.map(|basin| (basin, Population::new(&series(&|b| indicator(b == basin))))).to_vec();
        let negative: f64 = all.iter().filter(|(b, _)| *b != Basin::C7ax).map(|(_, p)| p.share).sum();
        let given = all.iter().filter(|(basin, _)| *basin != Basin::C7ax).map(|&(basin, population)| {
            let share = population.share / negative;
            // The error of a ratio, by its linear part.
            let linear = series(&|b| indicator(b == basin) - share * indicator(b != Basin::C7ax));
            let error = mean_and_error(&linear).1 / negative;
            let known = population.standard_error.is_finite();
            (basin, Population { share, standard_error: if known { error } else { f64::NAN } })
        });
        let given_negative_phi = if negative > 0.0 { given.collect() } else { Vec::new() };
        Self { residue, all, given_negative_phi }
    }
}

/// Basins as the keys of an object; read back in the order of [`Basin::ALL`].
mod by_name {
    use super::{Basin, Population};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub fn serialize<S: Serializer>(list: &[(Basin, Population)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(list.iter().map(|(basin, population)| (basin.name(), population)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Basin, Population)>, D::Error> {
        let all = BTreeMap::<String, Population>::deserialize(from)?;
        Ok(Basin::ALL.into_iter().filter_map(|basin| Some((basin, *all.get(basin.name())?))).collect())
    }
}
