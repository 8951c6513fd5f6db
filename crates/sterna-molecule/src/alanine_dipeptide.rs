//! Alanine dipeptide, ACE-ALA-NME, in vacuum with amber14/protein.ff14SB: the paper's molecule (§6.5), built in.

use crate::{Molecule, MoleculeError, System, Topology};

const SYSTEM: &str = include_str!("../assets/system.xml");
const TOPOLOGY: &str = include_str!("../assets/topology.pdb");

/// Alanine dipeptide at `temperature` (K): 22 atoms, 63 coordinates without the centre of mass. It starts in
/// its lowest minimum (C7eq).
pub fn alanine_dipeptide(temperature: f64) -> Result<Molecule, MoleculeError> {
    let system = System::from_xml(SYSTEM)?;
    let (topology, positions) = Topology::from_pdb("the built-in alanine dipeptide", TOPOLOGY)?;
    Ok(Molecule::new(system, &positions, temperature)?.with_topology(topology))
}
