//! From draws of the target chain to angles, populations and alarms.

use super::FreeEnergyMap;
use crate::alarms::Alarm;
use crate::config::Config;
use crate::error::JobError;
use crate::molecules::run_molecule;
use serde_json::{Map, Value, json};
use sterna::Schedule;
use sterna::estimates::{effective_sample_size, mean_with_error};
use sterna::records::Draws;
use sterna_molecule::{Backbone, Basin, ChiralCentre, Molecule, dihedral, distance};

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
            4 => of(&|angle| angle.to_radians().sin()).min(of(&|angle| angle.to_radians().cos())),
            _ => of(&|distance| distance),
        }
    }

    fn to_value(&self) -> Value {
        let size = self.effective_sample_size();
        let size = if size.is_finite() { json!(size) } else { Value::Null };
        json!({"name": self.name, "atoms": self.atoms, "ess": size})
    }
}

/// How much of the time something holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Population {
    /// Share of the draws.
    pub share: f64,
    /// Its standard error; NaN where no draw differed from another, so that nothing is known of it.
    pub standard_error: f64,
}

/// Something that should not change, and how often it has.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The atom of a chiral centre, or the two of a peptide bond.
    pub atoms: Vec<usize>,
    /// What a person calls it.
    pub name: String,
    /// Share of the draws in which it is not as at the start (chirality), or cis (peptide bonds).
    pub changed: Population,
}

/// Populations of the basins of one residue: all, and given φ < 0 (outside C7ax), where a run that never crosses
/// can be compared.
#[derive(Clone, Debug)]
pub struct Basins {
    /// The residue's name.
    pub residue: String,
    /// Of all draws.
    pub all: Vec<(Basin, Population)>,
    /// Of draws with φ < 0.
    pub given_negative_phi: Vec<(Basin, Population)>,
}

/// What was seen of a molecule.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Dihedrals and distances of each draw.
    pub series: Vec<Series>,
    /// Basins of each residue.
    pub basins: Vec<Basins>,
    /// Free energy over φ and ψ of each residue.
    pub maps: Vec<FreeEnergyMap>,
    /// Chiral centres.
    pub chirality: Vec<Watch>,
    /// Peptide bonds.
    pub peptide_bonds: Vec<Watch>,
    /// Of each chain, in kelvin.
    pub temperatures: Vec<f64>,
}

/// Looks at a molecule's draws; other targets have nothing to show.
pub fn observe(config: &Config, schedule: &Schedule, draws: &[Draws]) -> Result<Option<Observed>, JobError> {
    if !config.target.is_molecule() {
        return Ok(None);
    }
    let molecule = run_molecule(config)?;
    let refused = |error: sterna_molecule::MoleculeError| JobError::Config(error.to_string());
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
    for draws in draws {
        let rows = cartesian(&molecule, &draws.x);
        let rows = || rows.chunks_exact(3 * molecule.atoms());
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
    let chirality = centres.iter().zip(&flipped).map(|(centre, flipped)| Watch {
        atoms: vec![centre.atom],
        name: label(centre.atom),
        changed: Population::new(flipped),
    });
    let bonds = backbone.peptide_bonds.iter().enumerate().filter_map(|(k, atoms)| {
        let omega = find(format!("omega{}", number(k, backbone.peptide_bonds.len())))?;
        let cis: Vec<Vec<f64>> = omega
            .iter()
            .map(|ensemble| ensemble.iter().map(|angle| f64::from(u8::from(angle.abs() < 90.0))).collect())
            .collect();
        Some(Watch {
            atoms: atoms[1..3].to_vec(),
            name: format!("{} – {}", label(atoms[1]), label(atoms[2])),
            changed: Population::new(&cis),
        })
    });
    let (chirality, peptide_bonds) = (chirality.collect(), bonds.collect());
    let reference = config.reference.temperature.unwrap_or(crate::molecules::REFERENCE_TEMPERATURE);
    let path =
        sterna_molecule::TemperedPath::new(std::sync::Arc::new(molecule), reference).map_err(refused)?;
    let betas = schedule.betas();
    let temperatures = betas.iter().map(|&beta| path.temperatures().at(beta)).collect();
    Ok(Some(Observed { series, basins, maps, chirality, peptide_bonds, temperatures }))
}

fn numbered(what: &str, atoms: &[usize]) -> String {
    atoms.iter().fold(what.to_string(), |name, atom| format!("{name}_{atom}"))
}

fn cartesian(molecule: &Molecule, points: &[f64]) -> Vec<f64> {
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

impl Population {
    /// The mean of a 0/1 series of several ladders. Its error is the larger of two: from the correlations within
    /// ladders, and (from four ladders on) from the spread between them, which also sees what no ladder left.
    fn new(ladders: &[Vec<f64>]) -> Self {
        let value = ladders.iter().flatten().next();
        let (share, error) = mean_and_error(ladders);
        let known = ladders.iter().flatten().any(|v| Some(v) != value);
        Self { share, standard_error: if known { error } else { f64::NAN } }
    }

    fn to_value(self) -> Value {
        let error = if self.standard_error.is_finite() { json!(self.standard_error) } else { Value::Null };
        json!({"population": self.share, "standard_error": error})
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
    fn new(residue: String, phi: &[Vec<f64>], psi: &[Vec<f64>]) -> Self {
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

    fn to_value(&self) -> Value {
        let object = |list: &[(Basin, Population)]| -> Map<String, Value> {
            list.iter().map(|(basin, population)| (basin.name().to_string(), population.to_value())).collect()
        };
        json!({
            "residue": self.residue,
            "basins": object(&self.all),
            "given_negative_phi": object(&self.given_negative_phi),
        })
    }
}

impl Observed {
    /// The `molecule` of `summary.json`.
    pub fn to_value(&self) -> Value {
        let watch = |list: &[Watch], changed: &str| -> Vec<Value> {
            let entry = |w: &Watch| json!({"name": w.name, "atoms": w.atoms, changed: w.changed.to_value()});
            list.iter().map(entry).collect()
        };
        json!({
            "temperatures": self.temperatures,
            "residues": self.basins.iter().map(Basins::to_value).collect::<Vec<_>>(),
            "chirality": watch(&self.chirality, "flipped"),
            "peptide_bonds": watch(&self.peptide_bonds, "cis"),
            "series": self.series.iter().map(Series::to_value).collect::<Vec<_>>(),
        })
    }

    /// Independent draws that the worst dihedral is worth; none where none is watched. (Cartesian coordinates would say
    /// little: each iteration turns the whole molecule.)
    pub fn smallest_effective_sample_size(&self) -> Option<f64> {
        let dihedrals = self.series.iter().filter(|series| series.atoms.len() == 4);
        let sizes = dihedrals.map(Series::effective_sample_size).filter(|size| size.is_finite());
        sizes.min_by(f64::total_cmp)
    }

    /// Flipped centres and cis peptide bonds.
    pub fn alarms(&self) -> Vec<Alarm> {
        let flipped = self.chirality.iter().filter(|watch| watch.changed.share > 0.0).map(|watch| Alarm {
            code: "chirality-flipped".into(),
            message: format!(
                "the chiral centre {} has the other hand in {:.3}% of the draws: the energy does not tell mirror images \
                 apart, so populations mix both; leave those draws out, or lower reference.temperature",
                watch.name,
                100.0 * watch.changed.share
            ),
        });
        let cis = self.peptide_bonds.iter().filter(|watch| watch.changed.share > 0.0).map(|watch| Alarm {
            code: "cis-peptide".into(),
            message: format!(
                "the peptide bond {} is cis in {:.3}% of the draws; hot chains make it so, and it comes back rarely: \
                 check that this is meant",
                watch.name,
                100.0 * watch.changed.share
            ),
        });
        flipped.chain(cis).collect()
    }
}
