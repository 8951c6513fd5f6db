//! Reference conformations that OpenMM wrote.

use serde_json::Value;
use sterna::streams::{Phase, Streams};
use sterna::{Batch, Evaluation, Target};
use sterna_molecule::{Energy, Molecule, System, Temperatures};

/// A molecule with its reference values.
pub struct Reference {
    pub name: &'static str,
    pub system: System,
    pub conformations: Vec<Conformation>,
}

/// OpenMM's word on one conformation.
pub struct Conformation {
    pub positions: Vec<f64>,
    pub forces: Vec<f64>,
    pub energy: Energy,
    pub total: f64,
}

/// Alanine dipeptide, alanine tetrapeptide, and phenylalanine with its caps.
pub fn references() -> [Reference; 3] {
    [
        read(
            "alanine dipeptide",
            include_str!("../../assets/system.xml"),
            include_str!("../../assets/reference.json"),
        ),
        read(
            "alanine tetrapeptide",
            include_str!("../data/ala3.system.xml"),
            include_str!("../data/ala3.reference.json"),
        ),
        read(
            "ACE-PHE-NME",
            include_str!("../data/phe.system.xml"),
            include_str!("../data/phe.reference.json"),
        ),
    ]
}

fn read(name: &'static str, xml: &str, json: &str) -> Reference {
    let value: Value = serde_json::from_str(json).unwrap();
    let numbers = |value: &Value| -> Vec<f64> {
        value
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|p| p.as_array().unwrap())
            .map(|v| v.as_f64().unwrap())
            .collect()
    };
    let conformations = value["conformations"].as_array().unwrap().iter().map(|c| {
        let term = |name: &str| c["energy"][name].as_f64().unwrap();
        Conformation {
            positions: numbers(&c["coordinates"]),
            forces: numbers(&c["forces"]),
            energy: Energy {
                bond: term("bond"),
                angle: term("angle"),
                torsion: term("torsion"),
                nonbonded: term("nonbonded"),
            },
            total: term("total"),
        }
    });
    Reference { name, system: System::from_xml(xml).unwrap(), conformations: conformations.collect() }
}

/// Points of a short walk at β, by Hamiltonian Monte Carlo from the minimum.
pub fn walk(molecule: &Molecule, path: Temperatures, beta: f64, seed: u64) -> Batch {
    let step = 0.0011;
    let (rows, dim) = (32, molecule.dim());
    let factor = path.target / path.at(beta);
    let step = step / factor.sqrt();
    let streams = Streams::new(seed);
    let keys: Vec<u32> = (0..rows as u32).collect();
    let mut x = Batch::from_vec(dim, molecule.start().repeat(rows));
    let mut now = Evaluation::zeros(rows, dim);
    molecule.evaluate(&x, &mut now).unwrap();
    let mut kept = Vec::new();
    for t in 0..1500 {
        let mut p = Batch::zeros(rows, dim);
        streams.normals(Phase::Local.number(0), t, &keys, &mut p);
        let (mut y, mut at) = (x.clone(), now.clone());
        let energy = |p: &Batch, at: &Evaluation, row: usize| {
            0.5 * p.row(row).iter().map(|p| p * p).sum::<f64>() - factor * at.log_density[row]
        };
        let before: Vec<f64> = (0..rows).map(|row| energy(&p, &now, row)).collect();
        for _ in 0..5 {
            let kick = |p: &mut Batch, at: &Evaluation| {
                p.as_mut_slice()
                    .iter_mut()
                    .zip(at.score.as_slice())
                    .for_each(|(p, s)| *p += 0.5 * step * factor * s);
            };
            kick(&mut p, &at);
            y.as_mut_slice().iter_mut().zip(p.as_slice()).for_each(|(y, p)| *y += step * p);
            molecule.evaluate(&y, &mut at).unwrap();
            kick(&mut p, &at);
        }
        for (row, before) in before.iter().enumerate() {
            let log_ratio = before - energy(&p, &at, row);
            if streams.row(Phase::Local.number(1), t, row as u32).uniform().ln() < log_ratio {
                x.row_mut(row).copy_from_slice(y.row(row));
                now.log_density[row] = at.log_density[row];
                now.score.row_mut(row).copy_from_slice(at.score.row(row));
            }
        }
        if t >= 300 && t % 30 == 0 {
            kept.extend_from_slice(x.as_slice());
        }
    }
    Batch::from_vec(dim, kept)
}
