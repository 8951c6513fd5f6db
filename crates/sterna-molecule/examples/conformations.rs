//! Conformations of any molecule, for other programs to judge: `scripts/molecule/check.py` does.
//!
//! `conformations SYSTEM.xml POINTS` prints energies by term and forces as JSON (OpenMM compares);
//! `conformations SYSTEM.xml POINTS TOPOLOGY.pdb OUT` writes them as a trajectory, OUT.dcd and OUT.pdb (mdtraj opens them).

use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use sterna_molecule::{DcdWriter, Energy, ForceField, Molecule, System, Topology, read_positions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [system, points, more @ ..] = arguments.as_slice() else {
        return Err("usage: conformations SYSTEM.xml POINTS.json|.csv|.pdb [TOPOLOGY.pdb OUT]".into());
    };
    let system = System::read_xml(system)?;
    let positions = read_positions(points, system.atoms())?;
    match more {
        [] => evaluate(&system, &positions),
        [topology, out] => write_trajectory(system, &positions, topology, out),
        _ => Err("a trajectory needs TOPOLOGY.pdb and OUT".into()),
    }
}

fn evaluate(system: &System, positions: &[f64]) -> Outcome {
    let dim = 3 * system.atoms();
    let mut forces = vec![0.0; positions.len()];
    let mut energies = vec![Energy::default(); positions.len() / dim];
    ForceField::new(system)?.evaluate_by_term(positions, |row, energy| energies[row] = energy, &mut forces);
    let rows = energies.iter().zip(forces.chunks(dim)).map(|(energy, forces)| {
        json!({
            "energy": {
                "bond": energy.bond, "angle": energy.angle, "torsion": energy.torsion,
                "nonbonded": energy.nonbonded, "total": energy.total(),
            },
            "forces": forces.chunks(3).collect::<Vec<_>>(),
        })
    });
    println!("{}", json!({ "conformations": rows.collect::<Vec<_>>() }));
    Ok(())
}

fn write_trajectory(system: System, positions: &[f64], topology: &str, out: &str) -> Outcome {
    let (topology, _) = Topology::read_pdb(topology)?;
    let dim = 3 * system.atoms();
    let molecule = Molecule::new(system, &positions[..dim], 300.0)?.with_topology(topology);
    molecule.write_pdb(&mut BufWriter::new(File::create(format!("{out}.pdb"))?), &positions[..dim])?;
    let mut trajectory =
        DcdWriter::new(BufWriter::new(File::create(format!("{out}.dcd"))?), molecule.atoms())?;
    for conformation in positions.chunks(dim) {
        trajectory.write(conformation)?;
    }
    trajectory.finish()?;
    Ok(())
}
