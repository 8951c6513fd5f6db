//! Energies by term and forces of any molecule: `evaluate SYSTEM.xml POINTS.json`, JSON out.
//! `scripts/molecule/check_against_openmm.py` compares its word with OpenMM's.

use serde_json::json;
use sterna_molecule::{Energy, ForceField, System, read_positions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [system, points] = arguments.as_slice() else {
        return Err("usage: evaluate SYSTEM.xml POINTS.json|.csv|.pdb".into());
    };
    let system = System::read_xml(system)?;
    let positions = read_positions(points, system.atoms())?;
    let dim = 3 * system.atoms();
    let mut forces = vec![0.0; positions.len()];
    let mut energies = vec![Energy::default(); positions.len() / dim];
    ForceField::new(&system)?.evaluate_by_term(&positions, |row, energy| energies[row] = energy, &mut forces);
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
