//! From draws of the target chain to angles, populations and alarms.

use super::{Apart, Basins, Chirality, FreeEnergyMap, Molecule, PeptideBond, Population, WatchedSeries};
use crate::config::Config;
use crate::error::JobError;
use crate::problem::Problem;
use crate::references::{Ground, Hot};
use std::sync::Arc;
use sterna::Schedule;
use sterna::estimates::effective_sample_size;
use sterna::lanes::one::{cos, sin};
use sterna::records::Draws;
use sterna_molecule::{Backbone, ChiralCentre, dihedral, distance};

/// One number per draw of the target chain.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in `draws.nc`, such as `phi`.
    pub name: String,
    /// The atoms, counted from 0: four of a dihedral (degrees), two of a distance (nm).
    pub atoms: Vec<usize>,
    /// `[ensemble][draw]`.
    pub values: Vec<Vec<f64>>,
}

impl Series {
    /// Independent draws that the series is worth: an angle's is the smaller one of its sine and cosine.
    pub fn effective_sample_size(&self) -> f64 {
        let of = |f: &dyn Fn(f64) -> f64| {
            let chains: Vec<Vec<f64>> =
                self.values.iter().map(|values| values.iter().map(|&v| f(v)).collect()).collect();
            effective_sample_size(&chains.iter().map(|chain| &chain[..]).collect::<Vec<_>>())
        };
        match self.atoms.len() {
            4 => of(&|angle| sin(angle.to_radians())).min(of(&|angle| cos(angle.to_radians()))),
            _ => of(&|distance| distance),
        }
    }

    fn watched(&self) -> WatchedSeries {
        WatchedSeries {
            name: self.name.clone(),
            atoms: self.atoms.clone(),
            ess: self.effective_sample_size(),
        }
    }
}

/// What was seen of a molecule.
#[derive(Clone)]
pub struct Observed {
    /// What the summary tells of it.
    pub molecule: Molecule,
    /// The molecule in the coordinates of the run.
    pub coordinates: Arc<sterna_molecule::Molecule>,
    /// Dihedrals and distances of each draw.
    pub series: Vec<Series>,
    /// Free energy over φ and ψ of each residue.
    pub maps: Vec<FreeEnergyMap>,
}

/// Looks at a molecule's draws; other targets have nothing to show.
pub fn observe(
    problem: &Problem,
    config: &Config,
    schedule: &Schedule,
    draws: &[Draws],
) -> Result<Option<Observed>, JobError> {
    let Ground::Molecule(Hot { molecule, path }) = config.reference.ground(problem, config)? else {
        return Ok(None);
    };
    // What is not one bonded molecule has no backbone and no chiral centres to name.
    let backbone = Backbone::find(molecule.system()).unwrap_or_default();
    let centres = ChiralCentre::find(molecule.system()).unwrap_or_default();
    let label = |atom: usize| match molecule.topology().and_then(|t| t.atoms.get(atom)) {
        Some(label) => format!("{} {} {}", label.residue, label.residue_number, label.name),
        None => format!("atom {atom}"),
    };
    let mut series = Vec::new();
    let number = |k: usize, count: usize| if count == 1 { String::new() } else { format!("_{}", k + 1) };
    let mut dihedral_series = |name: String, atoms: [usize; 4]| {
        series.push(Series { name, atoms: atoms.to_vec(), values: Vec::new() });
    };
    let residues = backbone.residues.len();
    for (k, residue) in backbone.residues.iter().enumerate() {
        dihedral_series(format!("phi{}", number(k, residues)), residue.phi);
        dihedral_series(format!("psi{}", number(k, residues)), residue.psi);
    }
    for (k, &atoms) in backbone.peptide_bonds.iter().enumerate() {
        dihedral_series(format!("omega{}", number(k, backbone.peptide_bonds.len())), atoms);
    }
    for atoms in &config.output.dihedrals {
        dihedral_series(numbered("dihedral", atoms), *atoms);
    }
    for atoms in &config.output.distances {
        series.push(Series { name: numbered("distance", atoms), atoms: atoms.to_vec(), values: Vec::new() });
    }
    series.dedup_by(|a, b| a.name == b.name);
    let mut start = vec![0.0; 3 * molecule.atoms()];
    molecule.mean_free().to_cartesian(molecule.start(), &mut start);
    let hands: Vec<f64> = centres.iter().map(|centre| centre.handedness(&start)).collect();
    let mut flipped: Vec<Vec<Vec<f64>>> = vec![Vec::new(); centres.len()];
    let mut apart = Apart::of(&molecule, &start, std::iter::empty());
    for draws in draws {
        let rows = cartesian(&molecule, &draws.x);
        let rows = || rows.chunks_exact(3 * molecule.atoms());
        if let Some(apart) = &mut apart {
            let here = Apart::of(&molecule, &start, rows()).map_or(0.0, |here| here.farthest_nm);
            apart.farthest_nm = apart.farthest_nm.max(here);
        }
        for one in &mut series {
            one.values.push(rows().map(|x| measure(x, &one.atoms)).collect());
        }
        for ((centre, hand), flipped) in centres.iter().zip(&hands).zip(&mut flipped) {
            let indicator = |x: &[f64]| f64::from(u8::from(centre.handedness(x) != *hand));
            flipped.push(rows().map(indicator).collect());
        }
    }
    let find = |name: String| series.iter().find(|s| s.name == name).map(|s| &s.values);
    let (mut basins, mut maps) = (Vec::new(), Vec::new());
    for (k, residue) in backbone.residues.iter().enumerate() {
        let angles = ["phi", "psi"].map(|angle| find(format!("{angle}{}", number(k, residues))));
        let [Some(phi), Some(psi)] = angles else { continue };
        let name = match molecule.topology().and_then(|t| t.atoms.get(residue.phi[2])) {
            Some(label) => format!("{} {}", label.residue, label.residue_number),
            None => format!("residue {}", k + 1),
        };
        basins.push(Basins::new(name.clone(), phi, psi));
        maps.push(FreeEnergyMap::new(name, molecule.thermal_energy(), phi, psi));
    }
    let chirality = centres.iter().zip(&flipped).map(|(centre, flipped)| Chirality {
        atoms: vec![centre.atom],
        name: label(centre.atom),
        flipped: Population::new(flipped),
    });
    let bonds = backbone.peptide_bonds.iter().enumerate().filter_map(|(k, atoms)| {
        let omega = find(format!("omega{}", number(k, backbone.peptide_bonds.len())))?;
        let cis: Vec<Vec<f64>> = omega
            .iter()
            .map(|ensemble| ensemble.iter().map(|angle| f64::from(u8::from(angle.abs() < 90.0))).collect())
            .collect();
        Some(PeptideBond {
            atoms: atoms[1..3].to_vec(),
            name: format!("{} – {}", label(atoms[1]), label(atoms[2])),
            cis: Population::new(&cis),
        })
    });
    let (chirality, peptide_bonds) = (chirality.collect(), bonds.collect());
    let betas = schedule.betas();
    let temperatures = betas.iter().map(|&beta| path.temperatures().at(beta)).collect();
    let watched = series.iter().map(Series::watched).collect();
    let coordinates = molecule.clone();
    let molecule =
        Molecule { temperatures, residues: basins, chirality, peptide_bonds, series: watched, apart };
    Ok(Some(Observed { molecule, coordinates, series, maps }))
}

fn numbered(what: &str, atoms: &[usize]) -> String {
    atoms.iter().fold(what.to_string(), |name, atom| format!("{name}_{atom}"))
}

fn cartesian(molecule: &sterna_molecule::Molecule, points: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; points.len() / molecule.mean_free().dim() * 3 * molecule.atoms()];
    molecule.mean_free().to_cartesian(points, &mut out);
    out
}

fn measure(x: &[f64], atoms: &[usize]) -> f64 {
    match *atoms {
        [a, b] => distance(x, [a, b]),
        [a, b, c, d] => dihedral(x, [a, b, c, d]).to_degrees(),
        _ => f64::NAN,
    }
}
