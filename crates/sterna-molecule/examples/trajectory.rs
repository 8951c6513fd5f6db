//! Conformations as a trajectory: `trajectory SYSTEM.xml TOPOLOGY.pdb POINTS OUT` writes OUT.dcd and OUT.pdb.
//! `scripts/molecule/check_trajectory.py` opens them with mdtraj.

use std::fs::File;
use std::io::BufWriter;
use sterna_molecule::{DcdWriter, Molecule, System, Topology, read_positions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [system, topology, points, out] = arguments.as_slice() else {
        return Err("usage: trajectory SYSTEM.xml TOPOLOGY.pdb POINTS.json|.csv|.pdb OUT".into());
    };
    let (topology, _) = Topology::read_pdb(topology)?;
    let system = System::read_xml(system)?;
    let dim = 3 * system.atoms();
    let positions = read_positions(points, system.atoms())?;
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
